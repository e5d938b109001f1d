"""A records file: what is whole is read, what was changed or damaged is named, a torn end is no record."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.records.record import read_records, sealed, torn_bytes
from tests.builders.records import RECORD


@pytest.fixture
def file(tmp_path):
    return tmp_path / "records.jsonl"


def test_what_is_written_is_read(file):
    file.write_text(RECORD.line() * 2)
    assert list(read_records(file)) == [RECORD, RECORD]


def test_memory_is_kept_and_records_from_before_it_was_measured_are_read(file):
    measured = replace(RECORD, memory_bytes=17 * 10**9)
    before = {name: value for name, value in json.loads(RECORD.line()).items() if name != "memory_bytes"}
    file.write_text(measured.line() + sealed(before))
    assert list(read_records(file)) == [measured, RECORD]


def test_keys_of_newer_versions_and_of_other_writers_are_passed_over(file):
    values = json.loads(RECORD.line())
    file.write_text(sealed(values | {"newer": 1}))
    assert list(read_records(file)) == [RECORD]
    del values["checksum"]
    file.write_text(json.dumps(values) + "\n")
    assert list(read_records(file)) == [RECORD]


@given(cut=st.integers(min_value=1))
def test_a_torn_last_line_is_no_record(cut, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "torn.jsonl"
    line = RECORD.line()
    cut = 1 + cut % (len(line) - 2)
    file.write_text(line + line[:cut])
    assert torn_bytes(line[:cut].encode()) == cut
    assert list(read_records(file)) == [RECORD]


def test_a_last_line_that_only_lacks_its_newline_is_a_record(file):
    file.write_text(RECORD.line() + RECORD.line().rstrip())
    assert list(read_records(file)) == [RECORD, RECORD]


@pytest.mark.parametrize("change", [("0.25", "0.26"), ('"nfe": 2', '"nfe": 1')])
def test_a_changed_line_is_named(file, change):
    file.write_text(RECORD.line() + RECORD.line().replace(*change) + RECORD.line())
    with pytest.raises(UserError, match=r"records\.jsonl: line 2 was changed or damaged"):
        list(read_records(file))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokens", None),
        ("tokens", -1),
        ("nfe", "2"),
        ("wall_s", float("nan")),
        ("token_ids", [1, None]),
        ("accepted", "11"),
        ("verdict", {"correct": "yes"}),
        ("prompt_id", 3),
    ],
)
def test_a_value_that_no_record_has_is_named(file, field, value):
    file.write_text(sealed(json.loads(RECORD.line()) | {field: value}))
    with pytest.raises(UserError, match=rf"line 1 is no record: {field} is"):
        list(read_records(file))


@pytest.mark.parametrize("line", ["[]", "3", "{}", '{"schema": 1}', "nonsense", "\x00" * 40, "[" * 100_000])
def test_a_line_that_is_something_else_is_named(file, line):
    file.write_text(line + "\n" + RECORD.line())
    with pytest.raises(UserError, match="line 1 is no record"):
        list(read_records(file))


def test_another_schema_is_named(file):
    file.write_text(sealed(json.loads(RECORD.line()) | {"schema": 2}))
    with pytest.raises(UserError, match="line 1 has schema 2, this version reads 1"):
        list(read_records(file))
