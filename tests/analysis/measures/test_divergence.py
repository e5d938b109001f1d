"""Greedy outputs that differ, and labels that do."""

import json

import pandas as pd
import pytest

from harness.analysis.measures.divergence import Divergence, distinct_labels, distinct_outputs, trajectories
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import read_study
from harness.analysis.tables.divergence import divergence_table, trajectory_table
from harness.errors import UserError
from tests.builders.synthetic_runs import record, write_run

LINEAR, PACKED = Method("linear", 31), Method("packed", 31)


def write_pairs(folder, *pairs, **changes):
    """A run with the token ids of Linear and Packed for each prompt."""
    records = []
    for index, tokens in enumerate(pairs):
        for schedule, token_ids in zip(("linear", "packed"), tokens, strict=True):
            records.append(record(prompt_id=f"p{index}", schedule=schedule, token_ids=token_ids, **changes))
    return write_run(folder, records)


def test_the_first_difference_is_found_for_each_prompt(tmp_path):
    write_pairs(tmp_path / "a", ([1, 2, 3], [1, 2, 3]), ([1, 2, 3], [1, 9, 3]), ([1, 2], [1, 2, 3]), ([4], [5, 6]))
    (cell,) = read_study([tmp_path]).main
    found = trajectories(cell, LINEAR, PACKED)
    assert found.compared == 4
    assert found.divergences == [
        Divergence("p1", 2, (2, 9), None),
        Divergence("p2", 3, (None, 3), None),
        Divergence("p3", 1, (4, 5), None),
    ]


def test_gaps_are_read_from_beside_the_records(tmp_path):
    folder = write_pairs(tmp_path / "a", ([1, 2], [1, 3]), ([1], [1]))
    gaps = {"schema": 1, "gaps": [{"prompt_id": "p0", "position": 2, "gap": 0.125}]}
    (folder / "logit_gaps.json").write_text(json.dumps(gaps))
    study = read_study([tmp_path])
    assert trajectories(study.main[0], LINEAR, PACKED).divergences[0].gap == 0.125
    assert "| 0.1250 | 1 |" in trajectory_table(study).markdown()


def test_broken_gaps_are_refused_by_name(tmp_path):
    folder = write_pairs(tmp_path / "a", ([1, 2], [1, 3]), ([1], [1]))
    (folder / "logit_gaps.json").write_text('{"schema": 1}')
    with pytest.raises(UserError, match=r"logit_gaps\.json: no logit gaps"):
        trajectory_table(read_study([tmp_path]))


def test_labels_that_differ_are_counted_only_where_both_are_graded(tmp_path):
    write_pairs(tmp_path / "a", *[([1], [1])] * 3)
    study = read_study([tmp_path])
    (cell,) = study.main
    records = cell.measured[PACKED].records
    records.loc[[("p0", 0)], "correct"] = False
    records.loc[[("p1", 0)], "correct"] = pd.NA
    assert trajectories(cell, LINEAR, PACKED).labels_differ == 1
    assert distinct_labels(cell, [LINEAR, PACKED]) == 1
    assert distinct_outputs(cell, [LINEAR, PACKED]) == 0


def test_the_tables_name_counts_and_places(tmp_path):
    write_pairs(tmp_path / "a", ([1, 2, 3], [1, 2, 4]), ([1, 2], [1, 2]), ([7], [8]))
    study = read_study([tmp_path])
    row = "| tiny_nemotron | toy_math | LTR | Packed-SS / Linear-SS | 3 | 2 | 1 | 2.0 | - | 0 | 0 |"
    assert row in trajectory_table(study).markdown()
    assert "| Packed-SS / Linear-SS | p0 | 3 | 3 | 4 | - |" in divergence_table(study).markdown()


def test_sampled_outputs_are_not_compared(tmp_path):
    write_pairs(tmp_path / "a", ([1], [2]), ([1], [2]), temperature=1.0)
    with pytest.raises(NotMeasured, match="no greedy records"):
        trajectory_table(read_study([tmp_path]))
