"""A run that was not run to its end is never shown as finished."""

import pytest

from harness.analysis.study.study import read_study
from harness.cli.main import main
from tests.builders.synthetic_runs import responses, write_run

PROMPTS = [f"p{number}" for number in range(12)]


@pytest.fixture
def cut(tmp_path):
    """4 of 12 responses of each schedule."""
    records = [*responses("linear", 4), *responses("packed", 4)]
    return write_run(tmp_path / "runs" / "cut", records, planned=PROMPTS)


def test_it_is_partial_with_its_numbers_wherever_it_is_shown(cut, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["figures", str(cut), f"out={out}"]) == 0
    said = "not run to its end, responses so far: linear (W = 31): 4 of 12, packed (W = 31): 4 of 12."
    assert said in capsys.readouterr().err
    assert said in (out / "index.md").read_text()
    for name in ("table06", "table12", "table02_measured", "trajectories", "wall_percentiles", "comparison"):
        assert "PARTIAL: 8 of 24 responses so far" in (out / f"{name}.md").read_text(), name
    assert main(["compare", str(cut)]) == 0
    assert "PARTIAL: 8 of 24 responses so far" in capsys.readouterr().out
    assert main(["report", str(cut), f"out={tmp_path / 'report.html'}"]) == 0
    assert said in (tmp_path / "report.html").read_text()


def test_a_whole_run_is_not(tmp_path):
    records = [*responses("linear", 12), *responses("packed", 12)]
    write_run(tmp_path / "whole", records, planned=PROMPTS)
    assert read_study([tmp_path]).notices == []


def test_shards_are_partial_until_all_are_there(tmp_path):
    every = responses("packed", 12)
    write_run(tmp_path / "1", every[:6], planned=PROMPTS)
    assert any("6 of 12" in notice for notice in read_study([tmp_path]).notices)
    write_run(tmp_path / "2", every[6:], planned=PROMPTS)
    assert read_study([tmp_path]).notices == []


def test_other_prompts_in_another_run_are_planned_beside_the_first(tmp_path):
    every = responses("packed", 12)
    write_run(tmp_path / "1", every[:6], planned=PROMPTS[:6])
    write_run(tmp_path / "2", every[6:9], planned=PROMPTS[6:])
    assert any("9 of 12" in notice for notice in read_study([tmp_path]).notices)
