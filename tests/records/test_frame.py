"""Records as a frame: one row a response, typed columns, whichever way a file is read."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import harness
from harness.errors import UserError
from harness.records.frame import COLUMNS, answered, as_frame, read, read_run
from harness.records.record import SKIPPED, Record, read_records, sealed
from tests.builders.synthetic_runs import record, responses, write_run

NOT_GRADED = replace(record(prompt_id="p1"), verdict=None)
SAMPLED = record(prompt_id="p2", temperature=1.0, top_k=20, top_p=0.5, adapter="a", verdict={"correct": None})
NONE = replace(
    record(prompt_id="p3", token_ids=[], accepted=[], text="", tokens=0, nfe=0, rows=0, wall_s=0.0, model_s=0.0),
    stop_reason=SKIPPED,
    verdict={"correct": None, "reason": "skipped: too long"},
)
EVERY_KIND = [record(), NOT_GRADED, SAMPLED, NONE, record(prompt_id="p4", memory_bytes=17 * 10**9)]


def slowly(folder) -> pd.DataFrame:
    """The records of a run, read one by one."""
    return as_frame(read_records(folder / "records.jsonl"), folder)


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    lists = ["token_ids", "accepted"]
    pd.testing.assert_frame_equal(one.drop(columns=lists), other.drop(columns=lists))
    for name in lists:
        assert [array.dtype for array in one[name]] == [np.dtype(np.int64)] * len(one)
        assert [array.tolist() for array in one[name]] == [array.tolist() for array in other[name]]


def test_columns_have_the_types_that_are_documented(tmp_path):
    frame = read(write_run(tmp_path / "run", EVERY_KIND))
    assert list(frame.columns) == list(COLUMNS)
    assert set(frame.columns) - {"run", "correct", "reason"} == set(Record.__annotations__) - {"verdict", "schema"}
    kinds = {"tokens": "int64", "wall_s": "float64", "top_k": "Int64", "top_p": "float64", "correct": "boolean",
             "memory_bytes": "Int64", "model": "str", "adapter": "str", "run": "str", "reason": "str"}  # fmt: skip
    assert {name: str(frame[name].dtype) for name in kinds} == kinds
    assert frame["correct"].tolist() == [True, pd.NA, pd.NA, pd.NA, True]
    assert frame["reason"].isna().tolist() == [False, True, False, False, False]
    assert answered(frame)["prompt_id"].tolist() == ["p0", "p1", "p2", "p4"]


def test_both_ways_of_reading_give_the_same(tmp_path):
    folder = write_run(tmp_path / "run", [*EVERY_KIND, *responses("linear", 20)])
    same(read_run(folder).frame, slowly(folder))


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "half of a pair: \ud800"},
        {"newer": {"a": [1, {"b": None}]}},
        {"temperature": 0},
        {"verdict": {"correct": True, "reason": 'says ", "checksum": "0"', "answer": "3"}},
        {"seed": (1 << 63) - 1},
    ],
)
def test_what_one_parser_does_not_take_the_other_reads_alike(tmp_path, changes):
    folder = write_run(tmp_path / "run", [record()])
    line = sealed(json.loads(record(prompt_id="p1").line()) | changes)
    (folder / "records.jsonl").write_text(record().line() + line, encoding="utf-8")
    run = read_run(folder)
    assert not run.damage
    assert not run.is_torn
    same(run.frame, slowly(folder))
    assert len(run.frame) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [("tokens", -1), ("tokens", True), ("nfe", 2.0), ("wall_s", float("inf")), ("accepted", [1, None]),
     ("token_ids", [1.5]), ("seed", 1 << 63), ("verdict", {"correct": 1.5}), ("text", None)],
)  # fmt: skip
def test_a_value_that_no_record_has_is_damage_whichever_way_it_is_met(tmp_path, field, value):
    folder = write_run(tmp_path / "run", [record()])
    line = sealed(json.loads(record(prompt_id="p1").line()) | {field: value})
    (folder / "records.jsonl").write_text(record().line() + line, encoding="utf-8")
    run = read_run(folder)
    assert f"line 2 is no record: {field} is" in run.damage
    assert len(run.frame) == 1
    with pytest.raises(UserError, match="line 2 is no record"):
        read(tmp_path)


def test_a_torn_end_is_said_and_left_out(tmp_path, caplog):
    folder = write_run(tmp_path / "run", [record(), record(prompt_id="p1")])
    file = folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    assert read(tmp_path)["prompt_id"].tolist() == ["p0"]
    assert "its last line is torn; the 1 records before it are used" in caplog.text


def test_facts_of_the_manifest_become_columns(tmp_path):
    write_run(tmp_path / "a", [record()], device="cpu")
    write_run(tmp_path / "b", [record()], device="cuda:0")
    frame = harness.records(tmp_path, facts=["model.device", "config.task.max_new_tokens", "nothing.there"])
    assert frame["model.device"].tolist() == ["cpu", "cuda:0"]
    assert frame["config.task.max_new_tokens"].tolist() == [128, 128]
    assert frame["nothing.there"].isna().all()
    assert frame["run"].tolist() == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_the_room_and_the_frame_have_one_name(tmp_path):
    write_run(tmp_path / "a", responses("packed", 3))
    same(harness.records(tmp_path), harness.records.read([tmp_path / "a"]))


def test_nothing_to_read_is_an_empty_frame_and_a_wrong_path_is_named(tmp_path):
    assert list(read(tmp_path, facts=["model.device"]).columns) == [*COLUMNS, "model.device"]
    with pytest.raises(UserError, match="nowhere: no such folder"):
        read(tmp_path / "nowhere")
