"""Sweeps: every combination in its own folder, on this machine or through a launcher; failures leave the rest alone."""

import json

import pytest

from harness.cli.main import main
from harness.config.cells import cells_of
from harness.config.compose import CONFIG_DIR
from harness.records.folder import RunFolder
from harness.records.record import read_records
from harness.running.status import cell_statuses
from tests.builders.commands import changed
from tests.builders.processes import Ended, command

FAST = ["warmups=0", "drift_prompts=0", "task.max_new_tokens=24", "model.device=cpu"]
TIMES = {"wall_s", "model_s", "started_at", "checksum"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sweep(*arguments: str) -> Ended:
    """Hydra keeps state in the process, so each sweep gets its own."""
    return command("run", "-m", *FAST, *arguments)


def untimed(folder):
    rows = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def test_a_failing_run_leaves_the_others_alone_and_is_listed(tmp_path, capsys):
    done = sweep("schedule=linear,packed", "top_k=5,-3", "limit=1", "run_dir=all")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    found = {path.parent.name: next(read_records(path)).schedule for path in tmp_path.rglob("records.jsonl")}
    assert found == {"linear_top_k-5": "linear", "packed_top_k-5": "packed"}
    assert done.stdout.rstrip().endswith("2 done, 2 failed")
    assert "error: 2 of 4 cells are not done" in done.stderr
    assert main(["status", "all"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("failed  top_k: got -3") == 2
    assert "tiny_nemotron toy_math packed T=0" in listed


def test_a_value_that_no_run_takes_is_refused_before_any_cell_runs(tmp_path):
    done = sweep("schedule=linear,packed", "temperature=0,-1", "limit=1", "run_dir=all")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("error: temperature=-1: need a number of at least 0; 0 decodes greedily.")
    assert not (tmp_path / "all").exists()


def test_a_folder_with_runs_of_another_config_is_not_done():
    command = ["-m", "schedule=linear,packed", "limit=1", "run_dir=all", *FAST]
    for cell in cells_of(command):
        assert main(["run", *cell.command]) == 0
    assert {one.state for one in cell_statuses(cells_of(command))} == {"done"}
    other = cell_statuses(cells_of([*command, "temperature=1"]))
    assert {one.state for one in other} == {"other"}
    assert {one.reason for one in other} == {"holds a run of another config: temperature was 0.0, is 1.0"}


def test_the_same_sweep_again_goes_on_with_every_run(tmp_path):
    assert sweep("schedule=linear,packed", "limit=2", "run_dir=all").returncode == 0
    files = sorted(tmp_path.rglob("records.jsonl"))
    whole = [file.read_text() for file in files]
    files[0].write_text("".join(whole[0].splitlines(keepends=True)[:1]))
    again = sweep("schedule=linear,packed", "limit=2", "run_dir=all")
    assert "going on: 1 of 2" in again.stderr
    assert [len(list(read_records(file))) for file in files] == [2, 2]
    assert files[1].read_text() == whole[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["schedule=linear,pakced"], "error: schedule=pakced: no such schedule"),
        (["schedule=linear,packed", "nonsense=1"], "error: nonsense: no such key"),
        (["schedule=linear,packed", "limit=[1"], "error: limit=[1: cannot be read"),
        (["schedule=linear,packed", "hydra/launcher=nowhere"], "error: hydra/launcher=nowhere: no such hydra/launcher"),
    ],
)
def test_a_mistake_in_a_sweep_ends_with_status_2_and_one_line(tmp_path, arguments, said):
    done = sweep(*changed(["limit=1"], *arguments))
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith(said)
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("records.jsonl"))


def test_four_shards_in_parallel_through_submitit_equal_the_unsharded_run(tmp_path):
    common = ["schedule=[linear,packed]", "limit=6"]
    done = sweep(*common, "shard=1/4,2/4,3/4,4/4", "hydra/launcher=submitit_local", "run_dir=sharded")
    assert done.returncode == 0, done.stderr
    assert "4 done" in done.stdout
    assert main(["merge", "sharded"]) == 0
    assert main(["run", *FAST, *common, "run_dir=whole"]) == 0
    assert untimed(tmp_path / "sharded") == untimed(tmp_path / "whole")


def test_an_experiments_cells_and_shards_run_as_jobs_and_are_those_that_its_own_command_goes_on_with(tmp_path):
    cells = ["experiment=figure5", "model=tiny_nemotron", "task=toy_math", "schedule=packed", "limit=2"]
    done = sweep(*cells, "shard=1/2,2/2", "hydra/launcher=submitit_local")
    assert done.returncode == 0, done.stderr
    assert "2 done" in done.stdout
    folders = sorted(path.parent.relative_to(tmp_path) for path in tmp_path.rglob("records.jsonl"))
    assert {str(folder.parent.parent) for folder in folders} == {"results/runs/cells"}
    assert [folder.name for folder in folders] == ["shard-1-of-2", "shard-2-of-2"]
    again = sweep(*cells, "shard=1/2,2/2")
    assert again.stderr.count("going on: 1 of 1 responses are there") == 2


def test_one_cell_is_run_by_its_number(tmp_path):
    done = sweep("schedule=linear,packed", "limit=1", "run_dir=all", "experiment=figure5", "model=tiny_nemotron",
                 "task=toy_math", "cell=2")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [record.schedule for record in read_records(next(tmp_path.rglob("records.jsonl")))] == ["packed"]


def test_the_slurm_example_composes():
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = compose("config", overrides=["hydra/launcher=slurm_a100"], return_hydra_config=True)
    launcher = config.hydra.launcher
    assert launcher._target_.endswith("SlurmLauncher")
    assert (launcher.partition, launcher.gres, launcher.timeout_min) == ("gpu", "gpu:a100:1", 480)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nowhere"], "nowhere: no such folder"), (["x=1"], "status x=1: takes folders, or experiment=NAME")],
)
def test_status_names_mistakes_in_one_line(capsys, arguments, said):
    assert main(["status", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_status_of_nothing_says_so(tmp_path, capsys):
    assert main(["status", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no runs there\n"


def test_status_of_an_experiment_names_every_cell(capsys):
    cells = cells_of(["experiment=table6"])
    RunFolder(cells[1].run_dir).failed("no weights here")
    assert main(["status", "experiment=table6"]) == 0
    listed = capsys.readouterr().out
    assert listed.rstrip().endswith(f"{len(cells) - 1} missing, 1 failed")
    assert "failed   no weights here" in listed
    assert "model=nemotron8b task=writingbench" in listed
