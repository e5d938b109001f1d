"""Records of other weights, or of another data file, are of something else, whatever name they go by."""

import pytest

import harness
from harness.analysis.study.study import read_study
from harness.cli.main import main
from harness.records.frame import run_folders
from tests.builders.synthetic_runs import responses, write_run

KINDS = ("weights", "data")


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def unlike(tmp_path, kind):
    """Linear and Packed of what goes by one name and is not one thing."""
    write_run(tmp_path / "runs" / "a", responses("linear", 6), **{kind: "1" * 64})
    write_run(tmp_path / "runs" / "b", responses("packed", 6), **{kind: "2" * 64})
    return tmp_path / "runs"


def test_methods_of_other_things_are_not_compared(unlike, kind):
    study = read_study([unlike])
    assert study.main == []
    (notice,) = (one for one in study.notices if "not compared" in one)
    assert f"{kind} differs (linear (W = 31): " in notice
    assert str(unlike / "a") in notice
    assert "mix=" not in notice


def test_they_cannot_be_mixed_by_asking(unlike, kind):
    assert read_study([unlike], mix=["device", "dtype", "code", "engine", "prompts"]).main == []
    assert main(["figures", str(unlike), f"mix={kind}"]) == 2


@pytest.mark.parametrize("verb", ["figures", "compare", "report"])
def test_every_verb_says_what_differs_and_gives_no_ratio(unlike, kind, verb, tmp_path, capsys):
    arguments = [f"out={tmp_path / 'out'}"] if verb != "compare" else []
    main([verb, str(unlike), *arguments])
    said = capsys.readouterr()
    assert f"{kind} differs" in said.err
    assert not (tmp_path / "out" / "table12.csv").exists()


def test_of_two_whole_runs_under_one_name_neither_is_the_one_that_is_meant(tmp_path, kind):
    for name in ("1", "2"):
        both = [*responses("linear", 6), *responses("packed", 6)]
        write_run(tmp_path / name, both, **{kind: name * 64}, started_at=f"2026-01-0{name}T00:00:00.000+00:00")
    study = read_study([tmp_path])
    assert study.main == []
    assert any(f"{kind} differs" in notice for notice in study.notices)


def test_shards_of_other_things_are_never_pooled(tmp_path, kind):
    write_run(tmp_path / "a", responses("packed", 6)[:3], **{kind: "1" * 64})
    write_run(tmp_path / "b", responses("packed", 6)[3:], **{kind: "2" * 64})
    assert read_study([tmp_path]).main == []


def test_the_same_things_in_several_folders_are_compared(tmp_path, kind):
    write_run(tmp_path / "a", responses("linear", 6), **{kind: "1" * 64})
    write_run(tmp_path / "b", responses("packed", 6), **{kind: "1" * 64})
    (cell,) = read_study([tmp_path]).main
    assert cell.ratio("throughput", *cell.methods)


def test_a_run_inside_another_runs_folder_is_one_of_its_own(tmp_path):
    write_run(tmp_path / "a", responses("linear", 3))
    write_run(tmp_path / "a" / "later", responses("packed", 3))
    assert run_folders([tmp_path]) == [tmp_path / "a", tmp_path / "a" / "later"]
    assert len(harness.records(tmp_path)) == 6
