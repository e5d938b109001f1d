"""What is compared with what: common prompts, pairing, repetitions, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.study.cells import Method, group
from harness.analysis.study.paired import compare
from harness.analysis.study.provenance import provenance
from harness.analysis.study.runs import find_runs
from harness.errors import UserError
from harness.records.bootstrap import resampled_indices
from harness.records.record import stable_seed
from tests.builders.synthetic_runs import record, responses, write_run

LINEAR, PACKED = Method("linear", 31), Method("packed", 31)


def cell_of(tmp_path, *records, mix=(), **run):
    """The cell of all methods among `records`, written as one run."""
    write_run(tmp_path / "run", [one for group in records for one in group], **run)
    (recorded,) = group(find_runs([tmp_path]).runs).cells
    return compare(recorded, list(recorded.methods), mix)


def test_metrics_are_ratios_of_totals_not_means_of_ratios(tmp_path):
    long = record(prompt_id="a", tokens=100, nfe=20, wall_s=2.0)
    short = record(prompt_id="b", tokens=1, nfe=1, wall_s=0.1, verdict={"correct": False})
    cell = cell_of(tmp_path, [long, short])
    assert cell.value("throughput", PACKED) == pytest.approx(101 / 2.1)
    assert cell.value("tokens_per_nfe", PACKED) == pytest.approx(101 / 21)
    assert cell.value("time_per_nfe_s", PACKED) == pytest.approx(2.1 / 21)
    assert cell.value("wall_per_response_s", PACKED) == pytest.approx(1.05)
    assert cell.value("accuracy", PACKED) == 0.5


def test_only_common_prompts_are_compared_and_the_others_are_counted(tmp_path):
    cell = cell_of(tmp_path, responses("linear", 5), responses("packed", 8))
    assert cell.prompt_ids == ["p0", "p1", "p2", "p3", "p4"]
    assert (cell.responses, cell.left_out) == (5, 3)
    assert cell.notices == [
        "PARTIAL: tiny_nemotron, toy_math, T = 0, ltr, cap 128: 5 prompts in common, 3 left out "
        "(prompts of each method: linear (W = 31): 5, packed (W = 31): 8)."
    ]


def test_repetitions_without_a_counterpart_are_left_out_and_said(tmp_path):
    twice = responses("linear", 3, repetitions=2, temperature=1.0)
    cell = cell_of(tmp_path, twice, responses("packed", 3, temperature=1.0))
    assert (cell.responses, cell.left_out) == (3, 0)
    assert "responses without a counterpart left out (linear (W = 31): 3)" in cell.notices[0]


def test_repetitions_of_a_prompt_are_resampled_together(tmp_path):
    records = responses("linear", 4, repetitions=3, temperature=1.0)
    cell = cell_of(tmp_path, records)
    per_prompt = {f"p{i}": sum(one.tokens for one in records if one.prompt_id == f"p{i}") for i in range(4)}
    key = cell.key._replace(order="")
    seed = stable_seed("bootstrap", *map(str, key), str(None))
    indices = np.concatenate(list(resampled_indices(4, seed=seed)))
    expected = np.array([per_prompt[f"p{i}"] for i in range(4)])[indices].sum(axis=1) / 12
    found = cell.statistic("tokens_per_response", Method("linear", 31))
    np.testing.assert_allclose(found.draws, expected, rtol=1e-12)


def test_methods_are_paired_prompt_by_prompt(tmp_path):
    """Packed takes half of Linear's time on every prompt: however prompts are drawn, the ratio is two."""
    linear = responses("linear", 20)
    packed = [replace(one, schedule="packed", wall_s=one.wall_s / 2) for one in linear]
    cell = cell_of(tmp_path, linear, packed)
    estimate = cell.ratio("throughput", PACKED, LINEAR).estimate()
    assert estimate == pytest.approx((2.0, 2.0, 2.0))
    assert cell.statistic("throughput", PACKED).estimate().low < cell.value("throughput", PACKED)


def test_differences_are_of_means(tmp_path):
    linear = responses("linear", 10, accuracy=1.0)
    packed = [replace(one, schedule="packed", wall_s=one.wall_s + 0.5, verdict={"correct": False}) for one in linear]
    cell = cell_of(tmp_path, linear, packed)
    assert cell.difference("wall_per_response_s", PACKED, LINEAR).estimate() == pytest.approx((0.5, 0.5, 0.5))
    assert cell.difference("accuracy", PACKED, LINEAR).estimate() == pytest.approx((-1.0, -1.0, -1.0))


def test_skipped_prompts_and_ungraded_ones_are_not_correctness(tmp_path):
    skipped = record(prompt_id="s", stop_reason="skipped", tokens=0, nfe=0, wall_s=0.0, verdict={"correct": None})
    ungraded = record(prompt_id="u", verdict=None)
    cell = cell_of(tmp_path, [record(prompt_id="a"), ungraded, skipped])
    assert cell.prompt_ids == ["a", "u"]
    assert cell.value("accuracy", PACKED) == 1.0
    assert (cell.skipped, cell.total("graded", PACKED)) == (1, 1)
    assert "1 prompts did not fit" in cell.notices[0]


def test_speed_only_tasks_have_no_accuracy(tmp_path):
    cell = cell_of(tmp_path, responses("linear", 3, accuracy=None), responses("packed", 3, accuracy=None))
    assert cell.value("accuracy", PACKED) is None
    assert cell.difference("accuracy", PACKED, LINEAR) is None


def test_accuracy_without_a_graded_prompt_in_some_resample_has_no_interval(tmp_path):
    cell = cell_of(tmp_path, [record(prompt_id="a"), record(prompt_id="b", verdict=None)])
    assert cell.value("accuracy", PACKED) == 1.0
    assert cell.statistic("accuracy", PACKED) is None


def test_a_single_prompt_has_values_but_no_intervals(tmp_path):
    cell = cell_of(tmp_path, responses("linear", 1), responses("packed", 1))
    assert cell.methods == [LINEAR, PACKED]
    assert not cell.is_paired
    assert cell.value("throughput", PACKED) > 0
    assert cell.statistic("throughput", PACKED) is None
    assert cell.ratio("throughput", PACKED, LINEAR) is None
    assert any("one prompt only, so no intervals" in notice for notice in cell.notices)


def test_a_method_without_common_prompts_does_not_spoil_the_others(tmp_path):
    strangers = [replace(one, prompt_id=f"x{i}") for i, one in enumerate(responses("quadratic", 2))]
    cell = cell_of(tmp_path, responses("linear", 5), responses("packed", 5), strangers)
    assert cell.methods == [LINEAR, PACKED]
    assert len(cell.prompt_ids) == 5
    assert "quadratic (W = 7)" in cell.notices[0]


@pytest.mark.parametrize("zero", [{"nfe": 0}, {"wall_s": 0.0}, {"tokens": 0}])
def test_methods_without_calls_time_or_tokens_are_left_out_by_name(tmp_path, zero):
    broken = [replace(one, **zero) for one in responses("packed", 4)]
    cell = cell_of(tmp_path, responses("linear", 4), broken)
    assert cell.methods == [LINEAR]
    assert "packed (W = 31)" in cell.notices[0]
    assert "no tokens, no calls or no time in 4 responses" in cell.notices[0]


def test_a_cell_in_which_nothing_was_decoded_is_refused(tmp_path):
    with pytest.raises(UserError, match="nothing was decoded"):
        cell_of(tmp_path, [replace(one, nfe=0) for one in responses("packed", 3)])


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"processor": "CPU x 64"}, "device"), ({"dtype": "bfloat16"}, "dtype"), ({"commit": "fedcba98765"}, "code")],
)
def test_records_that_were_not_measured_alike_are_refused_unless_asked_for(tmp_path, changes, name):
    write_run(tmp_path / "a", responses("linear", 4))
    write_run(tmp_path / "b", responses("packed", 4), **changes)
    (recorded,) = group(find_runs([tmp_path]).runs).cells
    with pytest.raises(UserError, match=f"not compared. {name} differs .*linear.*packed.*mix={name}"):
        compare(recorded, list(recorded.methods))
    cell = compare(recorded, list(recorded.methods), mix=[name])
    assert cell.ratio("throughput", PACKED, LINEAR) is not None


def test_all_that_differs_is_named(tmp_path):
    write_run(tmp_path / "a", responses("linear", 4))
    write_run(tmp_path / "b", responses("packed", 4), dtype="bfloat16", commit="fedcba98765")
    (recorded,) = group(find_runs([tmp_path]).runs).cells
    with pytest.raises(UserError, match="mix=dtype,code"):
        compare(recorded, list(recorded.methods))
    with pytest.raises(UserError, match="mix=code"):
        compare(recorded, list(recorded.methods), mix=["dtype"])


@pytest.mark.parametrize(("rotary", "said"), [(None, False), ("float32", False), ("as_cast", True)])
def test_provenance_names_the_rounding_of_rotary_frequencies_only_where_there_is_one(tmp_path, rotary, said):
    cell = cell_of(tmp_path, responses("packed", 3), rotary=rotary)
    assert ("rotary as_cast" in provenance([cell])) == ("rotary" in provenance([cell])) == said


def test_runs_with_rounded_rotary_frequencies_are_not_compared_with_others(tmp_path):
    write_run(tmp_path / "exact", responses("linear", 3), rotary="float32")
    write_run(tmp_path / "rounded", responses("packed", 3), rotary="as_cast")
    (cell,) = group(find_runs([tmp_path]).runs).cells
    with pytest.raises(UserError, match=r"rotary differs .*mix=rotary"):
        compare(cell, list(cell.methods))
