"""Runs that were begun before the code had today's rooms go on, are graded and replayed.

The folder was recorded at the commit before, and stopped by SIGTERM after 44 of 96 responses. Its manifest names
classes by the paths of that time; command and host were made anonymous.
"""

import shutil
from pathlib import Path

import pytest

import harness
from harness.cli.main import main

RECORDED = Path(__file__).parent / "data" / "run_of_earlier_layout"
COMMAND = ["run", "task=toy_math", "schedule=[linear,packed]", "prompts=[1,2,3,4,5,6]", "temperature=1.0",
           "task.repetitions=8", "model.device=cpu"]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run, gone on with to its end."""
    folder = tmp_path_factory.mktemp("earlier") / "run"
    shutil.copytree(RECORDED, folder)
    assert main([*COMMAND, f"run_dir={folder}"]) == 0
    return folder


def test_it_goes_on_where_it_stopped(whole):
    before, after = (folder / "records.jsonl" for folder in (RECORDED, whole))
    assert after.read_text().startswith(before.read_text())
    frame = harness.records(whole)
    assert len(frame) == 6 * 8 * 2
    assert not frame.duplicated(["schedule", "prompt_id", "repetition"]).any()


def test_what_it_decodes_is_what_that_code_decoded(whole, tmp_path):
    """The first responses, decoded anew from their own seeds."""
    fewer = ["task.repetitions=2", "warmups=0", "drift_prompts=0", f"run_dir={tmp_path / 'anew'}"]
    assert main([*(word for word in COMMAND if "repetitions" not in word), *fewer]) == 0
    keys = ["schedule", "prompt_id", "repetition"]
    both = harness.records(RECORDED).merge(harness.records(tmp_path / "anew"), on=keys, suffixes=("", "_anew"))
    assert len(both) >= 10
    for name in ("token_ids", "accepted"):
        assert all(one.tolist() == other.tolist() for one, other in zip(both[name], both[f"{name}_anew"], strict=True))
    assert (both[["nfe", "rows", "seed"]].to_numpy() == both[["nfe_anew", "rows_anew", "seed_anew"]].to_numpy()).all()


def test_it_is_graded_again(tmp_path, capsys):
    shutil.copytree(RECORDED, tmp_path / "run")
    assert main(["grade", str(tmp_path / "run")]) == 0
    assert "PARTIAL: 22 of 48 responses for each schedule so far" in capsys.readouterr().out
    graded, recorded = (harness.records(folder)["correct"].tolist() for folder in (tmp_path / "run", RECORDED))
    assert graded == recorded


def test_it_is_replayed_and_shown(whole, tmp_path):
    assert main(["replay", str(whole), "prompts=1"]) == 0
    assert main(["figures", str(whole), "only=table07", "mix=code", f"out={tmp_path}"]) == 0
    assert (tmp_path / "table07.csv").is_file()
