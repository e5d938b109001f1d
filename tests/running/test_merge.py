"""Shards of a run put together are the run; what does not belong together is refused by name."""

import json

import pytest

from harness.cli.main import main
from harness.records.record import read_records, sealed
from tests.builders.commands import changed

RUN = [
    *("run", "model=tiny_nemotron", "model.device=cpu", "warmups=0", "drift_prompts=0", "task.max_new_tokens=24"),
    *("schedule=[linear,packed]", "limit=5"),
]
TIMES = {"wall_s", "model_s", "started_at", "checksum"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Three shards as they lie on a disk; tests work on copies."""
    folder = tmp_path_factory.mktemp("sharded")
    for number in (1, 2, 3):
        assert main([*RUN, f"run_dir={folder / 'r'}", f"shard={number}/3"]) == 0
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def copied(shards, tmp_path):
    for place, content in shards.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(content)
    return tmp_path / "r"


def without_times(folder):
    rows = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def error_of(capsys, *arguments) -> str:
    assert main(list(arguments)) == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_merged_shards_equal_the_unsharded_run_and_go_on_as_it(copied, tmp_path, capsys):
    assert main([*RUN, "run_dir=whole"]) == 0
    assert main(["merge", "r"]) == 0
    assert "from 3 shards" in capsys.readouterr().out
    assert without_times(copied) == without_times(tmp_path / "whole")
    assert json.loads((copied / "summary.json").read_text())["schedules"].keys() == {"linear", "packed"}
    assert main([*RUN, "run_dir=r"]) == 0
    assert "going on: 10 of 10 responses are there" in capsys.readouterr().err
    assert main(["merge", "r/shard-1-of-3", "r/shard-3-of-3", "r/shard-2-of-3", "into=other"]) == 0
    assert without_times(tmp_path / "other") == without_times(copied)


def test_gaps_are_named_by_prompt(copied, capsys):
    said = error_of(capsys, "merge", "r/shard-1-of-3", "r/shard-3-of-3", "into=out")
    assert "gaps: 4 of 10 responses are missing, of 2 prompts: toy_math/1, toy_math/4" in said
    assert "Shards given: 1/3, 3/3" in said
    assert not (copied.parent / "out").exists()


def test_overlaps_are_named_by_prompt(copied, capsys):
    assert main([*RUN, "run_dir=r", "shard=1/5"]) == 0
    said = error_of(capsys, "merge", "r")
    assert "overlap: 1 prompts are in several shards: toy_math/0" in said
    assert "shard-1-of-3, r/shard-1-of-5" in said


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("config", "seed", 3), ("code", "commit", "0" * 40), ("data", "sha256", "0"), ("model", "parameters", 1)],
)
def test_parts_of_different_runs_are_told_apart(copied, capsys, part, key, value):
    file = copied / "shard-2-of-3" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest[part][key] = value
    file.write_text(json.dumps(manifest))
    said = error_of(capsys, "merge", "r")
    assert "are no parts of one run" in said
    assert key in said


def test_a_shard_with_somebody_elses_prompt_is_named(copied, capsys):
    file = copied / "shard-2-of-3" / "records.jsonl"
    row = json.loads(file.read_text().splitlines()[0])
    file.write_text(sealed(row | {"prompt_id": "toy_math/0"}))
    assert "has prompts that are not of shard 2/3: toy_math/0" in error_of(capsys, "merge", "r")


def test_a_run_that_was_never_split_is_not_written_over(copied, capsys):
    assert main(changed(RUN, "run_dir=whole", "limit=1")) == 0
    assert "holds a run that was not put together from shards" in error_of(capsys, "merge", "r", "into=whole")
    assert len(list(read_records(copied.parent / "whole" / "records.jsonl"))) == 2
    assert "is a whole run and no shard" in error_of(capsys, "merge", "whole", "into=new")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "names no folder"),
        (["nowhere"], "nowhere: no such folder"),
        (["."], "no shards there"),
        ([".", "."], "several folders"),
        ([".", "onto=x"], "onto"),
    ],
)
def test_mistakes_get_one_line(capsys, arguments, said):
    assert said in error_of(capsys, "merge", *arguments)


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b", "1/3/2", "-1/3", "1.5/3"])
def test_a_shard_that_is_none_is_refused(capsys, shard):
    assert f"shard={shard}: need I/N" in error_of(capsys, *RUN, f"shard={shard}")
