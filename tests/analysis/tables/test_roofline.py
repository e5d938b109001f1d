"""The table that sets a forward pass beside what its device's memory would allow."""

import csv

import pytest

from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import read_study
from harness.analysis.tables.roofline import roofline
from tests.builders.synthetic_runs import record, write_run


def cells(folder, *schedules, **options):
    made = [record(schedule=schedule, prompt_id=f"p{index}") for schedule in schedules for index in range(2)]
    write_run(folder / "-".join(schedules), made, **options)
    return list(csv.DictReader(roofline(read_study([folder])).csv().splitlines()))


def test_the_limit_reads_weights_and_the_cache_at_the_middle_of_the_response_once(tmp_path):
    # 1 GB of weights and 11.5 tokens of 1 MB, at 100 GB/s; 15 ms of model time for 2 calls in 20 ms.
    (row,) = cells(tmp_path, "packed")
    names = ("Limit (ms)", "Time/NFE (ms)", "Model (ms)", "Host (ms)", "Model / limit", "Rows/NFE", "Memory (GB/s)")
    assert [float(row[name]) for name in names] == pytest.approx(
        [10.115, 10, 7.5, 2.5, 7.5 / 10.115, 15, 100], rel=0.01
    )


def test_records_of_before_the_limit_was_noted_are_missing_and_say_so(tmp_path):
    with pytest.raises(NotMeasured, match="what the device's memory delivers"):
        cells(tmp_path, "packed", reads=None)


def test_a_manifest_with_nonsense_in_it_has_no_limit(tmp_path):
    with pytest.raises(NotMeasured):
        cells(tmp_path, "packed", reads=(0, -1, "much"))
