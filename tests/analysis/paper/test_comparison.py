"""Published values beside ours: verdicts, directions, and the paper's own ranges fed in as records."""

import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from harness.analysis.paper.comparison import compare_published, comparison_table
from harness.analysis.paper.published import Published, read_published
from harness.analysis.paper.quantities import CONSTANTS, OF_A_CELL, OVER_CELLS, STATED
from harness.analysis.study.study import read_study
from harness.errors import UserError
from harness.records.bootstrap import Estimate
from harness.records.metrics import METRICS
from tests.builders.synthetic_runs import record, responses, write_run

TASKS = ("mbpp", "humaneval", "gsm8k", "math500", "writingbench")
MODELS = ("nemotron3b", "nemotron8b")
STATEMENTS = read_published()


def write_cell(folder: Path, gains: Mapping[str, tuple[float, float]], family: str = "nemotron", **changes) -> None:
    """A cell whose methods differ from Linear by fixed factors: (tokens/NFE, throughput) of each method.

    Counts are large, so that rounding to whole calls changes no digit that is shown.
    """
    records = []
    for index in range(8):
        own = np.random.default_rng(index)
        tokens, nfe = int(own.integers(400_000, 900_000)), int(own.integers(80_000, 120_000))
        wall_s = nfe * 0.03
        for schedule, (tokens_per_nfe, throughput) in {"linear": (1, 1), **gains}.items():
            timed = {"wall_s": wall_s / throughput, "model_s": wall_s / throughput * 0.9}
            counts = {"tokens": tokens, "nfe": round(nfe / tokens_per_nfe)}
            records.append(record(schedule=schedule, prompt_id=f"p{index}", **counts, **timed, **changes))
    write_run(folder, records, cap=1024, family=family)


def rows_of(folder: Path, name: str):
    """The rows of one published statement."""
    study = read_study([folder])
    return compare_published(study, [one for one in STATEMENTS if one.id == name])


def test_every_published_number_can_be_read_and_computed():
    known = OF_A_CELL.keys() | OVER_CELLS.keys() | CONSTANTS.keys() | {STATED}
    assert len(STATEMENTS) > 100
    assert {one.quantity for one in STATEMENTS} <= known
    assert {one.metric for one in STATEMENTS} - {""} <= METRICS.keys()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("greedy-throughput-linear", "+3.5 to +9.3 %"),
        ("sampling-time-per-nfe-linear", "+11.9 to +15.4 %"),
        ("adapter-throughput", "0.978 [0.969, 0.987] x"),
        ("adapter-wall-difference", "+0.0513 [+0.0243, +0.0788] s"),
        ("share-model-packed-3b", "0.860 x"),
        ("sampling-quadratic-intervals-above", "3 of 10 settings"),
        ("confidence-nfe-16", "-16.5 %"),
        ("setdlm-accuracy-native-8", "+8.72 [+6.37, +11.07] points"),
    ],
)
def test_published_numbers_read_as_the_paper_prints_them(name, text):
    (one,) = [statement for statement in STATEMENTS if statement.id == name]
    assert one.text() == text


# (tokens/NFE, throughput) over Linear-SS and throughput over Quadratic-SS, time/NFE being the first divided by the
# second: the ends of the published ranges, each in one of ten cells, and last what the other six have.
GREEDY = [(1.134, 1.035, 1.034), (1.203, 1.093, 1.323), (1.15, 1.15 / 1.089, 1.2), (1.16, 1.16 / 1.101, 1.1)]
SAMPLING = [(1.148, 1.02, 1.1), (1.215, 1.063, 1.1), (1.16, 1.16 / 1.119, 1.1), (1.2, 1.2 / 1.154, 0.9)]
RANGES = {
    "greedy": (0.0, [*GREEDY, *[(1.16, 1.06, 1.1)] * 6]),
    "sampling": (1.0, [*SAMPLING, *[(1.17, 1.035, 1.1)] * 6]),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_published_ranges_come_back_from_records_that_have_them(tmp_path, name):
    temperature, triples = RANGES[name]
    for (model, task), triple in zip(product(MODELS, TASKS), triples, strict=True):
        tokens_per_nfe, throughput, quadratic = triple
        gains = {"packed": (tokens_per_nfe, throughput), "quadratic": (1.0, throughput / quadratic)}
        write_cell(tmp_path / f"{model}-{task}", gains, model=model, task=task, temperature=temperature)
    ranges = [one for one in STATEMENTS if one.id.startswith(f"{name}-") and one.kind == "range"]
    assert len(ranges) == {"greedy": 4, "sampling": 3}[name]
    by_id = comparison_table(read_study([tmp_path]), STATEMENTS).frame.set_index("Id")
    for one in ranges:
        rows = by_id.loc[one.id]
        values = rows["Ours"]
        assert len(values) == 10
        assert rows["Ours low"].notna().all()
        assert set(rows["Verdict"]) == {"inside"}
        assert (round(min(values), 1), round(max(values), 1)) == (one.low, one.high)
    above = by_id.loc[f"{name}-intervals-above"]
    assert (above["Ours"], above["Verdict"]) == (10, "inside")


def test_the_published_setdlm_gains_come_back_from_records_that_have_them(tmp_path):
    for model, width, throughput in (("setdlm_smax16", 8, 1.06), ("setdlm_smax32", 16, 1.015)):
        gains = {"packed": (1.087, throughput), "quadratic": (1.0, 0.5)}
        names = {"model": model, "task": "gsm8k", "width": width}
        write_cell(tmp_path / model, gains, family="setdlm", **names)
    for width, gain in ((8, 6.0), (16, 1.5)):
        (row,) = rows_of(tmp_path, f"setdlm-throughput-{width}")
        assert (row.verdict, round(row.value.value, 1)) == ("inside", gain)


def test_the_published_shares_come_back_from_records_that_have_them(tmp_path):
    for task, extra in (("gsm8k", 0.01), ("math500", -0.01)):
        records = []
        for index in range(4):
            wall_s = 2.0 + index
            linear = record(schedule="linear", wall_s=wall_s, model_s=0.9 * wall_s, prompt_id=f"p{index}")
            packed = record(wall_s=(0.951 + extra) * wall_s, model_s=(0.854 + extra) * wall_s, prompt_id=f"p{index}")
            records += [linear, packed]
        named = [r.__class__(**{**r.__dict__, "model": "nemotron8b", "task": task}) for r in records]
        write_run(tmp_path / task, named, cap=1024)
    for name, value in (("share-model-packed-8b", 0.854), ("share-total-packed-8b", 0.951)):
        (row,) = rows_of(tmp_path, name)
        assert (row.verdict, row.where) == ("inside", "Nemotron 8B, GSM8K + MATH-500")
        assert row.value.value == pytest.approx(value)


def test_values_outside_are_called_outside(tmp_path):
    write_cell(tmp_path / "a", {"packed": (1.3, 1.2)}, model="nemotron8b", task="gsm8k")
    row, missing = rows_of(tmp_path, "greedy-throughput-linear")
    assert (row.verdict, row.where, row.prompts) == ("outside", "Nemotron 8B, GSM8K", 8)
    assert row.value == pytest.approx((20.0, 20.0, 20.0), abs=0.01)
    assert (missing.verdict, missing.where, missing.value) == ("not run", "1 of 10 settings run", None)


def test_tiny_models_are_compared_in_direction_only(tmp_path):
    write_cell(tmp_path / "a", {"packed": (1.3, 1.2)})
    write_cell(tmp_path / "b", {"packed": (1.3, 0.8)}, task="toy_code")
    verdicts = [(row.where, row.verdict) for row in rows_of(tmp_path, "greedy-throughput-linear")]
    assert verdicts == [
        ("", "not run"),
        ("tiny_nemotron, toy_code", "direction only: opposite"),
        ("tiny_nemotron, toy_math", "direction only: same"),
    ]


def test_a_direction_that_our_interval_leaves_open_is_undecided(tmp_path):
    write_run(tmp_path / "a", responses("linear", 20, mean_accepted=4) + responses("packed", 20, mean_accepted=1.9))
    (_, row) = rows_of(tmp_path, "greedy-throughput-linear")
    assert row.value.low < 0 < row.value.high
    assert row.verdict == "direction only: undecided, our interval includes 0"


def test_absolute_values_of_another_model_are_not_compared(tmp_path):
    write_run(tmp_path / "a", responses("packed", 5))
    write_run(tmp_path / "b", responses("packed", 5, adapter="tiny"))
    (row,) = rows_of(tmp_path, "adapter-wall-packed")
    assert row.verdict == "not run"


def test_the_published_cell_with_another_cap_is_a_direction_only(tmp_path):
    for name in ("linear", "packed"):
        write_run(tmp_path / name, responses(name, 5, model="nemotron8b", task="gsm8k", adapter="lora"), cap=64)
    missing, row = rows_of(tmp_path, "adapter-nfe")
    assert missing.verdict == "not run"
    assert row.verdict.startswith("direction only")


def test_counts_need_all_their_cells(tmp_path):
    write_cell(tmp_path / "a", {"packed": (1.2, 1.1)}, model="nemotron8b", task="gsm8k")
    (row,) = rows_of(tmp_path, "greedy-intervals-above")
    assert (row.verdict, row.value) == ("not run", None)


def test_orders_of_the_same_prompts_are_paired(tmp_path):
    """Confidence order takes 4.1 % less time on every prompt, so the interval has no width."""
    names = {"schedule": "packed", "model": "setdlm_smax16", "task": "gsm8k", "width": 8}
    for order, factor in (("ltr", 1.0), ("confidence", 0.959)):
        records = [record(prompt_id=f"p{i}", order=order, wall_s=factor * (1 + i), **names) for i in range(6)]
        write_run(tmp_path / order, records, family="setdlm")
    (row,) = rows_of(tmp_path, "order-wall-8")
    assert row.verdict == "inside"
    assert row.value == pytest.approx((-4.1, -4.1, -4.1))


def test_differing_outputs_and_labels_are_counted_over_the_three_schedules(tmp_path):
    records = [
        record(prompt_id=f"p{i}", schedule=name, width=8, model="setdlm_smax16", task="gsm8k",
               token_ids=[9] if (name, i) == ("packed", 0) else [i])
        for name in ("linear", "quadratic", "packed") for i in range(4)
    ]  # fmt: skip
    write_run(tmp_path / "a", records, family="setdlm")
    (outputs,), (labels,) = (rows_of(tmp_path, name) for name in ("setdlm-outputs-8", "setdlm-labels-8"))
    assert (outputs.value, outputs.verdict) == (1.0, "outside")
    assert (labels.value, labels.verdict) == (0.0, "inside")


def test_a_window_that_is_not_the_published_one_is_not_the_published_cell(tmp_path):
    names = {"model": "setdlm_smax16", "task": "gsm8k", "width": 4}
    write_run(tmp_path / "a", responses("linear", 5, **names) + responses("packed", 5, **names), family="setdlm")
    assert rows_of(tmp_path, "setdlm-throughput-8")[0].verdict == "not run"


def statement(**changes) -> Published:
    values = {"id": "x", "place": "p", "says": "s", "quantity": "mean", "kind": "exact", "decimals": 2, "unit": "s"}
    return Published(**values | {"value": 1.25} | changes)


def test_an_exact_number_stands_for_all_that_rounds_to_it():
    assert statement().span == pytest.approx((1.245, 1.255))
    assert statement(kind="range", low=1.0, high=2.0).span == (1.0, 2.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entries: [{id: a}]", "entry a: .*missing"),
        ("entries: [{id: a, colour: red}]", "entry a: unknown keys colour"),
        (
            "entries: [{id: a, place: p, says: s, quantity: mean, kind: range, decimals: 1, unit: s, low: 1}]",
            "entry a: kind range without high",
        ),
        ("entries: {}", None),
        ("others: []", "no list of published values"),
    ],
)
def test_broken_published_files_are_refused_by_file_and_entry(tmp_path, text, message):
    (tmp_path / "a.yaml").write_text(text)
    if message is None:
        assert read_published(tmp_path) == []
        return
    with pytest.raises(UserError, match=rf"a\.yaml: {message}"):
        read_published(tmp_path)


def test_the_table_has_a_row_for_every_statement(tmp_path):
    write_cell(tmp_path / "a", {"packed": (1.2, 1.1)})
    table = comparison_table(read_study([tmp_path]), STATEMENTS)
    assert set(table.frame["Id"]) == {one.id for one in STATEMENTS}
    estimates = [row.value for row in table.items if isinstance(row.value, Estimate)]
    assert estimates
    assert all(math.isfinite(one.value) for one in estimates)
