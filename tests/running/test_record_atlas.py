"""`python -m harness atlas` on the embedded model: files, resuming, refusals, and replays that equal real decoding."""

import random
import subprocess
import sys
import time

import pytest

import harness
from harness.analysis.atlas.simulation import Simulation
from harness.cli.main import main
from harness.records.atlas import Atlas, read_atlas
from harness.running.record_atlas import record
from harness.tasks.toy import ToySource
from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.commands import changed

WIDTHS = (1, 3, 7, 15, 31)
COMMAND = ["atlas", "task.max_new_tokens=24", "model.device=cpu", "widths=1,3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("atlases") / "one"
    assert main([*COMMAND, "limit=3", f"run_dir={path}"]) == 0
    return path


def test_an_atlas_holds_every_prompt_at_every_width(folder):
    atlas = read_atlas(folder)
    assert (atlas.model, atlas.task, atlas.widths, atlas.expected) == ("tiny_nemotron", "toy_math", [1, 3], 3)
    assert [prompt.prompt_id for prompt in atlas.prompts] == [f"toy_math/{number}" for number in range(3)]
    for prompt in atlas.prompts:
        assert prompt.gaps.min() > 0
        for (kind, width), one in prompt.proposed.items():
            assert one.tokens.shape == one.probabilities.shape == (24, width + (kind == "branch"))
            assert ((one.probabilities > 0) & (one.probabilities <= 1)).all()


def test_a_killed_recording_goes_on_and_its_torn_part_is_redone(folder, tmp_path, capsys):
    process = subprocess.Popen([sys.executable, "-m", "harness", *COMMAND, "limit=3", f"run_dir={tmp_path}"])
    while not any(tmp_path.glob("prompts/*.npz")):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    (tmp_path / "prompts" / "00002.npz.partial").write_bytes(b"torn")
    assert main([*COMMAND, "limit=3", f"run_dir={tmp_path}"]) == 0
    assert "going on: " in capsys.readouterr().err
    names = sorted(path.name for path in tmp_path.glob("prompts/*"))
    assert names == sorted(path.name for path in folder.glob("prompts/*"))
    for name in names:
        assert (tmp_path / "prompts" / name).read_bytes() == (folder / "prompts" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["limit=2"], "holds a run of another config: limit was 3, is 2"),
        (["limit=3", "widths=7"], "another config: widths was [1, 3], is [7]"),
        (["limit=3", "task=toy_code"], "another config: "),
    ],
)
def test_another_atlas_is_refused_with_what_differs(folder, arguments, said, capsys):
    assert main(changed(COMMAND, *arguments, f"run_dir={folder}")) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["widths=0"], "widths=0: need speculative widths of at least 1"),
        (["widths=a"], "widths=a: need"),
        (["temperature=1"], "temperature=1: an atlas follows greedy continuations"),
        (["schedule=packed"], "schedule=packed: an atlas holds for every schedule"),
        (["shard=1/2"], "shard=1/2: is for runs"),
        (["model=tiny_setdlm", "limit=1"], "model=tiny_setdlm: atlases are recorded of the Nemotron family"),
        (["modle=x"], "modle: no such key"),
    ],
)
def test_mistakes_get_one_line(arguments, said, tmp_path, capsys):
    assert main(["atlas", *arguments, f"run_dir={tmp_path / 'none'}"]) == 2
    assert f"error: {said}" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tiny():
    return harness.load("tiny_nemotron", device="cpu")


def check_replays(tiny, count: int, widths) -> None:
    """Replays of `count` prompts of all toy tasks equal decoding them: calls, accepted tokens, rows."""
    items = [item for task in ("toy_math", "toy_code", "toy_writing") for item in ToySource(task, 60).read().items]
    rng = random.Random(0)
    rng.shuffle(items)
    prompts = [tiny.encode(item.fields["prompt"]) for item in items[:count]]
    # Some responses end at EOS, some at a cap.
    stops = [Stop(rng.choice([128, 128, rng.randint(1, 60)]), tiny.eos_ids) for _ in prompts]
    recorded = [
        record(tiny.model, item.prompt_id, prompt, stop, widths)
        for item, prompt, stop in zip(items, prompts, stops, strict=False)
    ]
    simulation = Simulation(Atlas("tiny_nemotron", "toy", recorded, count))
    cases = [(Autoregressive(), simulation.autoregressive())]
    for width in widths:
        sets = [[0, 1], [0, width], [0, *sorted(rng.sample(range(1, width + 1), k=min(width, 3)))]]
        one_call = [Packed(width), Quadratic(width), *(Branches(width, branches) for branches in sets)]
        cases.append((Linear(width), simulation.linear(width)))
        cases += [(schedule, simulation.one_call(width, schedule.branches)) for schedule in one_call]
    for schedule, found in cases:
        for index, (prompt, stop) in enumerate(zip(prompts, stops, strict=True)):
            response = schedule.decode(tiny.model, prompt, Greedy(), stop)
            what = (schedule.__class__.__name__, schedule.width, items[index].prompt_id)
            assert list(response.tokens) == recorded[index].tokens.tolist(), what
            assert found.accepted[index] == [iteration.accepted for iteration in response.trace], what
            assert (found.nfe[index], found.rows[index]) == (response.nfe, response.rows), what


def test_replays_equal_decoding(tiny):
    check_replays(tiny, count=3, widths=(3, 15))


def test_replays_equal_decoding_with_an_adapter_on_proposals():
    adapted = harness.load("tiny_nemotron", device="cpu", adapter="linear_spec_lora")
    check_replays(adapted, count=2, widths=(7,))


@pytest.mark.slow
def test_replays_equal_decoding_for_a_hundred_prompts_at_every_width(tiny):
    check_replays(tiny, count=100, widths=WIDTHS)
