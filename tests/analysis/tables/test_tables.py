"""The tables' contents."""

from dataclasses import replace

import pytest

from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import read_study
from harness.analysis.table import Table
from harness.analysis.tables import absolute as measurement_tables
from harness.analysis.tables import cost as cost_tables
from harness.analysis.tables import paired as paired_tables
from tests.builders.synthetic_runs import record, responses, write_run


def shown(table: Table) -> list[list[str]]:
    """Rows of a table as Markdown shows them."""
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_table2_has_the_papers_counts_without_any_records(tmp_path):
    table = cost_tables.table2(read_study([tmp_path]))
    assert shown(table) == [
        ["Linear-SS", "2", "2B", "25", "49", "p + 3u"],
        ["Quadratic-SS", "1", "B(B + 1)", "81", "289", "p + 2u + u²"],
        ["Packed-SS", "1", "2B", "25", "49", "p + 3u"],
    ]


def test_table2_measured_sets_recorded_calls_and_rows_beside_the_formula(tmp_path):
    one = record(schedule="linear", width=3, prompt_tokens=10, nfe=5, rows=10 + 2 * 8, accepted=[1, 2, 3])
    write_run(tmp_path / "a", [one, replace(one, prompt_id="p1")])
    assert shown(cost_tables.table2_measured(read_study([tmp_path]))) == [
        ["tiny_nemotron", "toy_math", "0", "Linear-SS", "3", "2", "2.000", "8", "8.0"]
    ]


@pytest.mark.parametrize(
    ("temperature", "nfe", "rows"), [(0.0, 1 + 4, (10 + 8) + 4 * 72), (1.0, 2 + 4, 10 + 8 + 4 * 72)]
)
def test_first_drafts_belong_to_no_iteration(tmp_path, temperature, nfe, rows):
    one = record(schedule="quadratic", width=7, temperature=temperature, nfe=nfe, rows=rows, accepted=[1] * 5)
    ended_at_once = replace(one, prompt_id="p1", nfe=1, rows=10, accepted=[1])
    write_run(tmp_path / "a", [one, ended_at_once])
    ((*_, calls, formula, measured),) = shown(cost_tables.table2_measured(read_study([tmp_path])))
    assert (calls, formula, measured) == ("1.000", "72", "72.0")


def test_setdlm_counts_iterations_from_the_call_after_the_prompts(tmp_path):
    one = record(schedule="packed", width=8, prompt_tokens=10, nfe=4, rows=10 + 24 + 2 * 25, accepted=[1, 2, 3])
    write_run(tmp_path / "a", [one], family="setdlm")
    ((*_, calls, formula, measured),) = shown(cost_tables.table2_measured(read_study([tmp_path])))
    assert (calls, formula, measured) == ("1.000", "25", "24.7")


def test_table3_lists_every_width_and_marks_each_methods_fastest(tmp_path):
    records = [one for width, ms in ((7, 20), (15, 10)) for one in responses("packed", 3, width=width, ms_per_call=ms)]
    write_run(tmp_path / "a", records + responses("quadratic", 3, width=3))
    rows = shown(cost_tables.table3(read_study([tmp_path])))
    assert [(row[3], row[4], row[5]) for row in rows] == [
        ("Quadratic-SS", "4", "20"),
        ("Packed-SS", "8", "16"),
        ("Packed-SS", "16", "32"),
    ]
    assert [row[10].startswith("**") for row in rows] == [True, False, True]


def test_tables_4_and_5_set_adapter_beside_base(tmp_path):
    iteration = {"schedule": "packed", "model": "nemotron8b", "task": "gsm8k", "nfe": 11, "accepted": [1] + [2] * 10}
    base = [record(prompt_id=f"p{i}", model_s=0.11, wall_s=0.2, **iteration) for i in range(2)]
    adapted = [
        # The prompt's call has the adapter on 32 proposal rows and computes it for 10 + 32; so E.2 and F.2.
        replace(
            one,
            adapter="lora",
            model_s=0.22,
            adapter_rows_selected=32 + 320,
            adapter_rows_evaluated=42 + 640,
        )
        for one in base
    ]
    write_run(tmp_path / "base", base, cap=512)
    write_run(tmp_path / "lora", adapted, cap=512)
    study = read_study([tmp_path])
    times = [(row[3], row[9], row[10]) for row in shown(measurement_tables.table4(study))]
    assert times == [("none", "0.110", "0.090"), ("lora", "0.220", "-0.020")]
    assert shown(cost_tables.table5(study)) == [
        ["Nemotron 8B", "GSM8K", "0", "Packed-SS", "31", "10.00", "64", "32", "64", "32.0", "64.0", "10.00", "20.00"]
    ]


def test_table6_shows_means_rates_and_the_fastest_in_bold(tmp_path):
    packed = [record(prompt_id="a", tokens=30, nfe=10, wall_s=0.5), record(prompt_id="b", tokens=10, nfe=6, wall_s=0.3)]
    linear = [replace(one, schedule="linear", wall_s=one.wall_s * 2) for one in packed]
    write_run(tmp_path / "a", packed + linear)
    table = measurement_tables.table6(read_study([tmp_path]))
    assert [row[2:] for row in shown(table)] == [
        ["Linear-SS", "31", "2", "20.0", "0.800", "8.00", "25.0", "2.500", "100.00", "100.00", "2"],
        ["Packed-SS", "31", "2", "20.0", "0.400", "8.00", "**50.0**", "2.500", "50.00", "100.00", "2"],
    ]
    assert table.csv().splitlines()[2].endswith(",2,128,cpu (CPU x 2),float32,-,0123456789")
    assert "device cpu (CPU x 2) · dtype float32 · code 0123456789 · cap 128 tokens · n = 2 prompts" in table.notes[-1]


def test_cells_that_were_not_run_are_dashes(tmp_path):
    write_run(tmp_path / "a", responses("linear", 3, model="nemotron3b", task="gsm8k"))
    write_run(tmp_path / "b", responses("linear", 3, model="nemotron3b", task="mbpp"))
    write_run(tmp_path / "c", responses("linear", 3, model="nemotron8b", task="mbpp"))
    rows = shown(measurement_tables.table6(read_study([tmp_path])))
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("Nemotron 3B", "MBPP", "31"),
        ("Nemotron 3B", "GSM8K", "31"),
        ("Nemotron 8B", "MBPP", "31"),
        ("Nemotron 8B", "GSM8K", "-"),
    ]
    assert set(rows[3][3:]) == {"-"}


def test_tables_8_to_10_are_about_windows_and_orders(tmp_path):
    for order in ("ltr", "confidence"):
        names = ("linear", "quadratic", "packed", "native") if order == "ltr" else ("linear", "quadratic", "packed")
        records = [one for name in names for one in responses(name, 3, width=8, order=order, model="tiny_setdlm")]
        write_run(tmp_path / order, records, family="setdlm")
    study = read_study([tmp_path])
    left_to_right = ["Linear-SS", "Quadratic-SS", "Packed-SS", "Native"]
    assert [row[3] for row in shown(measurement_tables.table8(study))] == left_to_right
    orders = [(row[0], row[4]) for row in shown(measurement_tables.table9(study))]
    assert orders == [("LTR", name) for name in left_to_right] + [("Confidence", name) for name in left_to_right[:3]]
    rows = shown(paired_tables.table10(study))
    assert [(row[3], row[4]) for row in rows] == [
        (order, name) for order in ("LTR", "Confidence") for name in ("Linear-SS", "Quadratic-SS")
    ]
    with pytest.raises(NotMeasured):
        measurement_tables.table6(study)


def test_tables_11_and_12_compare_packed_with_both_baselines(tmp_path):
    linear = responses("linear", 20, accuracy=1.0)
    quadratic = [replace(one, schedule="quadratic", width=7, wall_s=one.wall_s * 4) for one in linear]
    packed = [replace(one, schedule="packed", wall_s=one.wall_s / 2, verdict={"correct": False}) for one in linear]
    write_run(tmp_path / "a", linear + quadratic + packed)
    study = read_study([tmp_path])
    assert shown(paired_tables.table11(study)) == [
        ["0", "tiny_nemotron", "toy_math", *["-100.00 [-100.00, -100.00]"] * 2]
    ]
    ratios = [(row[2], row[5]) for row in shown(paired_tables.table12(study))]
    assert ratios == [("Linear-SS", "2.000 [2.000, 2.000]"), ("Quadratic-SS", "8.000 [8.000, 8.000]")]


@pytest.mark.parametrize("make", [paired_tables.table11, paired_tables.table12])
def test_one_method_alone_has_no_comparison(tmp_path, make):
    write_run(tmp_path / "a", responses("packed", 5))
    with pytest.raises(NotMeasured, match="no records of Packed-SS and Linear-SS or Quadratic-SS"):
        make(read_study([tmp_path]))


def test_mixing_that_was_asked_for_is_said_below(tmp_path):
    write_run(tmp_path / "a", responses("linear", 3))
    write_run(tmp_path / "b", responses("packed", 3), dtype="bfloat16")
    table = measurement_tables.table6(read_study([tmp_path], mix=["dtype"]))
    assert "MIXED dtype within a comparison, as asked for" in table.notes[-1]
