"""Accuracy is over the responses that every compared method has a verdict on, and what is left out is said."""

from dataclasses import replace

import pytest

from harness.analysis.study.study import read_study
from harness.cli.closing_table import closing_table
from harness.cli.main import main
from harness.records.frame import as_frame
from harness.records.summary import summarize
from tests.builders.synthetic_runs import responses, write_run

INFRA = {"correct": None, "reason": "infra\nthe sandbox did not start"}


def with_verdict(records, verdict, *prompts):
    return [replace(one, verdict=verdict) if one.prompt_id in prompts else one for one in records]


@pytest.fixture
def half_graded():
    """Both methods have the same verdict on every response; of Packed's, those that are wrong are missing."""
    right = {"correct": True, "reason": "equal"}
    wrong = {"correct": False, "reason": "unequal"}
    linear = with_verdict(responses("linear", 8), right, "p0", "p1", "p2", "p3", "p4")
    linear = with_verdict(linear, wrong, "p5", "p6", "p7")
    packed = [
        replace(one, schedule="packed", verdict=two.verdict)
        for one, two in zip(responses("packed", 8), linear, strict=True)
    ]
    return linear, with_verdict(packed, INFRA, "p5", "p6", "p7")


def test_a_missing_verdict_leaves_both_arms(tmp_path, half_graded):
    linear, packed = half_graded
    write_run(tmp_path / "run", linear + packed)
    (cell,) = read_study([tmp_path]).main
    assert cell.scored == 5
    assert [cell.value("accuracy", method) for method in cell.methods] == [1.0, 1.0]
    difference = cell.difference("accuracy", *cell.methods).estimate()
    assert tuple(difference) == (0.0, 0.0, 0.0)


def test_it_is_said_where_the_numbers_stand(tmp_path, half_graded, capsys):
    linear, packed = half_graded
    write_run(tmp_path / "run", linear + packed)
    assert main(["figures", str(tmp_path), f"out={tmp_path / 'out'}", "only=table06,figure3,table11"]) == 0
    assert "accuracy is over 5 of 8 responses" in capsys.readouterr().err
    for name in ("table06.md", "table11.md"):
        text = (tmp_path / "out" / name).read_text()
        assert "PARTIAL: accuracy over 5 of 8 responses that all methods have a verdict on" in text
    header, first, *_ = (tmp_path / "out" / "table06.csv").read_text().splitlines()
    assert dict(zip(header.split(","), first.split(","), strict=False))["Scored"] == "5"
    assert main(["report", str(tmp_path), f"out={tmp_path / 'report.html'}"]) == 0
    assert "accuracy is over 5 of 8 responses" in (tmp_path / "report.html").read_text()


def test_the_closing_table_and_the_summary_count_what_is_scored(half_graded):
    linear, packed = half_graded
    summary = summarize(as_frame(linear + packed), {})
    assert {name: one["scored"] for name, one in summary["schedules"].items()} == {"linear": 5, "packed": 5}
    assert {one["accuracy"] for one in summary["schedules"].values()} == {1.0}
    shown = closing_table(summary, 8)
    assert (
        "PARTIAL: accuracy is over the responses that every schedule has a verdict on: linear 5 of 8, packed 5 of 8"
        in shown
    )


def test_a_schedule_without_any_verdict_leaves_no_accuracy_to_compare():
    records = [*responses("linear", 4), *with_verdict(responses("packed", 4), INFRA, "p0", "p1", "p2", "p3")]
    summary = summarize(as_frame(records), {})
    assert {one["accuracy"] for one in summary["schedules"].values()} == {None}
    assert "linear 0 of 4, packed 0 of 4" in closing_table(summary, 4)


def test_tasks_that_measure_speed_only_are_not_partial(tmp_path):
    records = [*responses("linear", 4, accuracy=None), *responses("packed", 4, accuracy=None)]
    write_run(tmp_path / "run", records)
    (cell,) = read_study([tmp_path]).main
    assert (cell.is_graded, cell.scored, cell.notices) == (False, 0, [])
    summary = summarize(as_frame(records), {})
    assert {one["scored"] for one in summary["schedules"].values()} == {None}
    assert "PARTIAL" not in closing_table(summary, 4)
