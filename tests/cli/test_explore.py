"""`python -m harness explore` on atlases that are made up and on one of the embedded model."""

import importlib.util
import json

import numpy as np
import pytest

import harness
from harness.analysis.atlas.partial_branches import confident
from harness.analysis.atlas.simulation import Simulation
from harness.cli.main import main
from harness.records.atlas import MANIFEST, PROMPTS, Atlas, read_atlas
from harness.running.record_atlas import record
from harness.tasks.toy import ToySource
from schedules import Greedy, Stop
from tests.builders.atlases import made_prompt, threshold_prompt
from tests.builders.pages import GUIDE, write_files
from tests.builders.synthetic_runs import record as response
from tests.builders.synthetic_runs import write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six prompts at W = 7."""
    path = tmp_path_factory.mktemp("atlas")
    (path / PROMPTS).mkdir()
    rng = np.random.default_rng(0)
    for number in range(6):
        threshold_prompt(rng.integers(0, 12, 40).tolist(), 7).save(path / PROMPTS / f"{number}.npz")
    config = {"model": {"name": "tiny_nemotron"}, "task": {"name": "toy_math"}}
    manifest = {"schema": 1, "config": config, "plan": {"prompts": ["p"] * 8}, "data": {}}
    (path / MANIFEST).write_text(json.dumps(manifest))
    return path


def test_everything_is_made_and_the_tables_are_printed(folder, tmp_path, capsys):
    out = tmp_path / "out"
    own = ["schedule=branches", "schedules.branches.width=7", "schedules.branches.branches=[0,4]"]
    assert main(["explore", str(folder), *own, "tau_ms=5", "delta_ms=0.1", f"out={out}"]) == 0
    printed = capsys.readouterr().out
    assert "Partial branches" in printed
    assert "PARTIAL: 6 of 8" in printed
    assert "(prediction)" in printed
    assert "tau = 5 ms a call, delta = 0.1 ms a row" in printed
    names = {path.name for path in out.iterdir()}
    tables = {f"{name}.csv" for name in ("simulation", "monotonicity", "partial_branches", "devices")}
    figures = {f"{name}_figure.png" for name in ("monotonicity", "partial_branches", "winners")}
    assert tables | figures <= names


def test_recorded_runs_give_costs_predictions_and_what_was_measured(folder, tmp_path, capsys):
    simulation = Simulation(read_atlas(folder))
    records = []
    for schedule, one in (
        ("linear_w7", simulation.linear(7)),
        ("packed_w7", simulation.one_call(7, lambda drafted: (0,))),
    ):
        for index, accepted in enumerate(one.accepted):
            nfe, rows = int(one.nfe[index]), int(one.rows[index])
            model_s = 0.005 * nfe + 0.0001 * rows
            counts = {"nfe": nfe, "rows": rows, "tokens": sum(accepted), "accepted": accepted}
            times = {"model_s": model_s, "wall_s": model_s}
            records.append(response(schedule=schedule, width=7, prompt_id=f"p{index}", **counts, **times))
    configs = {"linear_w7": {"_target_": "schedules.Linear"}, "packed_w7": {"_target_": "schedules.Packed"}}
    run = write_run(tmp_path / "run", records)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"]["schedules"] = configs
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert main(["explore", str(folder), f"costs={run}", f"out={tmp_path / 'out'}"]) == 0
    printed = capsys.readouterr().out
    assert "All records give tau = 5 ms a call, delta = 0.1 ms a row" in printed
    assert "Tokens/s / Packed-SS W = 7" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "explore: name the folder of one atlas"),
        (["FOLDER", "cost=3"], "key=cost: no such key"),
        (["FOLDER", "tau_ms=3"], "tau_ms=3: give tau_ms and delta_ms, or costs=RUNS"),
        (["FOLDER", "tau_ms=x", "delta_ms=1"], "tau_ms=x: need milliseconds of at least 0"),
        (["FOLDER", "schedule=pakced"], "schedule=pakced: no such schedule"),
        (["FOLDER", "schedule=packed"], "schedules.packed.width=15: not in the atlas, which has 7"),
        (["FOLDER", "schedule=native", "schedules.native.width=7"], "schedules.native: has a loop of its own"),
        (["FOLDER", "costs=nowhere"], "nowhere: no such folder"),
        (["."], "atlas.json: cannot be read"),
    ],
)
def test_mistakes_get_one_line(folder, arguments, said, capsys):
    assert main(["explore", *(str(folder) if one == "FOLDER" else one for one in arguments)]) == 2
    assert f"error: {said}" in capsys.readouterr().err


def test_what_the_records_cannot_tell_stops_nothing_else(folder, tmp_path, capsys):
    ids = {"tokens": 40, "nfe": 20, "rows": 400, "accepted": [2] * 20}
    packed = [response(schedule="packed", width=w, prompt_id=f"p{n}", **ids) for w in (3, 7) for n in range(2)]
    write_run(tmp_path / "run", packed)
    assert main(["explore", str(folder), f"costs={tmp_path / 'run'}", f"out={tmp_path / 'out'}"]) == 0
    told = capsys.readouterr()
    assert "missing: prediction: costs: no width of the atlas has records of both" in told.err
    assert "Measured, beside the fastest Packed and Quadratic" in told.out


def test_costs_of_other_weights_or_of_runs_that_are_unlike_are_refused_by_name(folder, tmp_path, capsys):
    records = [response(schedule=name, prompt_id=f"p{index}") for name in ("linear", "packed") for index in range(4)]
    write_run(tmp_path / "other" / "run", records, weights="2" * 64)
    assert main(["explore", str(folder), f"costs={tmp_path / 'other'}", f"out={tmp_path / 'out'}"]) == 2
    assert "weights differs (the atlas: unknown; " in capsys.readouterr().err
    write_run(tmp_path / "unlike" / "a", records[:4])
    write_run(tmp_path / "unlike" / "b", records[4:], dtype="bfloat16")
    assert main(["explore", str(folder), f"costs={tmp_path / 'unlike'}", f"out={tmp_path / 'out'}"]) == 2
    assert "dtype differs (" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_costs_of_another_task_are_none(folder, tmp_path, capsys):
    write_run(tmp_path / "run", [response(task="toy_code", schedule="linear")])
    assert main(["explore", str(folder), f"costs={tmp_path}"]) == 2
    assert "no greedy responses of tiny_nemotron on toy_math" in capsys.readouterr().err


def test_intervals_need_prompts(tmp_path, capsys):
    (tmp_path / PROMPTS).mkdir()
    made_prompt(np.ones((3, 3), bool)).save(tmp_path / PROMPTS / "0.npz")
    config = {"model": {"name": "m"}, "task": {"name": "t"}}
    (tmp_path / MANIFEST).write_text(json.dumps({"config": config, "plan": {"prompts": ["p"]}}))
    assert main(["explore", str(tmp_path)]) == 2
    assert "1 prompts; need at least 4" in capsys.readouterr().err


@pytest.fixture(scope="module")
def guides_confident(tmp_path_factory):
    """The schedule of schedules/README.md that looks at its drafts."""
    folder = tmp_path_factory.mktemp("guide")
    write_files([GUIDE], folder)
    spec = importlib.util.spec_from_file_location("my_confident", folder / "my_confident.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Confident


def test_branches_chosen_by_confidence_replay_as_they_decode(guides_confident):
    tiny = harness.load("tiny_nemotron", device="cpu")
    items = ToySource("toy_math", 3).read().items
    prompts, stop = [tiny.encode(item.fields["prompt"]) for item in items], Stop(64, tiny.eos_ids)
    recorded = [
        record(tiny.model, item.prompt_id, prompt, stop, [7]) for item, prompt in zip(items, prompts, strict=True)
    ]
    found = confident(7, 3).simulate(Simulation(Atlas("tiny_nemotron", "toy_math", recorded, 3)))
    for index, prompt in enumerate(prompts):
        decoded = guides_confident(7).decode(tiny.model, prompt, Greedy(), stop)
        assert found.accepted[index] == [iteration.accepted for iteration in decoded.trace]
        assert (found.nfe[index], found.rows[index]) == (decoded.nfe, decoded.rows)
