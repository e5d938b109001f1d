"""Tables as lists of columns: their frame, and the exact text of their four forms."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from harness.analysis.study.study import read_study
from harness.analysis.table import Column, Table, Value
from harness.analysis.tables import absolute
from harness.records.bootstrap import Estimate
from tests.builders.synthetic_runs import responses, write_run


class Item(NamedTuple):
    """What the rows of small tables are."""

    model: str
    rate: float | None
    ratio: Estimate | None
    code: str


COLUMNS = (
    Column("Model", "", lambda item: item.model),
    Column("Rate", "tokens/s", lambda item: item.rate, decimals=1, is_bold=lambda item: item.model == "a_b"),
    Column("Ratio", "", lambda item: item.ratio, decimals=2, is_interval=True),
    Column("Code", "", lambda item: item.code, is_detail=True),
)
ITEMS = (Item("a_b", 1234.56, Estimate(1.05, 1.01, 1.1), "abc"), Item("c", None, None, ""))


def small_table(*more: Column) -> Table:
    """One of each kind of entry."""
    return Table("table99", "Rates & ratios", [*COLUMNS, *more], ITEMS, notes=["n = 2"])


def of(*values: Value, **how) -> Table:
    """One column with these values."""
    return Table("one", "One", [Column("x", "", lambda value: value, **how)], values)


def test_csv_has_numbers_in_full_intervals_apart_and_dashes():
    assert small_table().csv() == (
        "Model,Rate (tokens/s),Ratio,Ratio low,Ratio high,Code\na_b,1234.56,1.05,1.01,1.1,abc\nc,-,-,-,-,-\n"
    )


def test_markdown_is_rounded_bold_and_noted():
    assert small_table().markdown() == (
        "**Rates & ratios**\n\n"
        "| Model | Rate (tokens/s) | Ratio |\n| --- | ---: | ---: |\n"
        "| a_b | **1,234.6** | 1.05 [1.01, 1.10] |\n| c | - | - |\n\nn = 2\n"
    )


def test_latex_is_escaped_and_ruled_between_groups():
    assert small_table().latex() == (
        "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\\small\n"
        "\\caption{Rates \\& ratios. n = 2}\n\\label{tab:table99}\n"
        "\\begin{tabular}{lrr}\n\\toprule\nModel & Rate (tokens/s) & Ratio \\\\\n\\midrule\n"
        "a\\_b & \\textbf{1,234.6} & 1.05 [1.01, 1.10] \\\\\n\\midrule\nc & - & - \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def test_latex_rules_nothing_between_rows_of_one_group():
    table = Table("t", "T", COLUMNS[:2], [*ITEMS[1:], *ITEMS[1:]], grouped_by=2)
    assert table.latex().count("\\midrule") == 1


def test_text_stands_in_columns():
    assert small_table().text().splitlines()[2:5] == [
        "Model  Rate (tokens/s)              Ratio",
        "a_b            1,234.6  1.05 [1.01, 1.10]",
        "c                    -                  -",
    ]


def test_the_frame_has_numbers_in_full_and_intervals_as_three_columns():
    frame = small_table(Column("n", "", lambda item: len(item.model))).frame
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "Model": "object",
        "Rate (tokens/s)": "float64",
        "Ratio": "float64",
        "Ratio low": "float64",
        "Ratio high": "float64",
        "Code": "object",
        "n": "Int64",
    }
    assert frame.iloc[0].tolist() == ["a_b", 1234.56, 1.05, 1.01, 1.1, "abc", 3]
    assert frame.iloc[1].isna().tolist() == [False, True, True, True, True, True, False]


def test_missing_texts_are_none_and_missing_integers_na():
    assert of("", "a").frame["x"].tolist() == [None, "a"]
    whole = of(3, None, np.int64(4)).frame["x"]
    assert (str(whole.dtype), whole.tolist()) == ("Int64", [3, pd.NA, 4])


def test_an_interval_whose_every_value_is_missing_is_still_three_columns():
    assert of(None, None, is_interval=True).csv() == "x,x low,x high\n-,-,-\n-,-,-\n"


def test_a_value_without_an_interval_may_stand_among_intervals():
    table = of(Estimate(2, 1, 3), 20_000.0, decimals=1, is_interval=True)
    assert table.csv() == "x,x low,x high\n2,1,3\n20000,-,-\n"
    assert [row[0].text for row in table.shown_rows()] == ["2.0 [1.0, 3.0]", "20,000.0"]


def test_intervals_in_a_column_that_says_nothing_of_them_are_a_defect():
    with pytest.raises(TypeError, match="column 'x' has intervals"):
        of(Estimate(2, 1, 3))


def test_decimals_may_differ_by_row():
    assert [row[0].text for row in of(1.0, 2.0, decimals=lambda value: int(value)).shown_rows()] == ["1.0", "2.00"]


def test_headings_may_repeat():
    table = small_table(Column("Model", "", lambda item: item.model.upper()))
    assert table.frame["Model"].values.tolist() == [["a_b", "A_B"], ["c", "C"]]
    assert table.csv().splitlines()[1] == "a_b,1234.56,1.05,1.01,1.1,abc,A_B"


def test_a_table_without_rows_has_its_headings():
    table = Table("t", "T", COLUMNS, [])
    assert table.csv() == "Model,Rate (tokens/s),Ratio,Ratio low,Ratio high,Code\n"
    assert table.markdown().splitlines()[2:] == ["| Model | Rate (tokens/s) | Ratio |", "| --- | --- | --- |"]


def test_shown_entries_keep_the_value_behind_the_text():
    shown = small_table().shown_rows()
    assert shown[0] == (
        ("a_b", "a_b", False, False),
        ("1,234.6", 1234.56, True, True),
        ("1.05 [1.01, 1.10]", 1.05, True, False),
    )
    assert shown[1] == (("c", "c", False, False), ("-", None, True, False), ("-", None, True, False))


def test_a_column_added_from_outside_is_in_every_form(tmp_path, monkeypatch):
    write_run(tmp_path / "a", responses("linear", 3) + responses("packed", 3))
    column = Column("Seconds of all", "s", lambda line: line.cell.total("wall_s", line.method), decimals=2)
    monkeypatch.setattr(absolute, "MEASURED", (*absolute.MEASURED, column))
    study = read_study([tmp_path])
    (cell,) = study.main
    table = absolute.table6(study)
    seconds = [cell.total("wall_s", cell.method(name)) for name in ("linear", "packed")]
    assert table.frame["Seconds of all (s)"].tolist() == seconds
    heading, *rows = (line.split(",")[-1] for line in table.csv().splitlines())
    assert (heading, rows) == ("Seconds of all (s)", [f"{value:.10g}" for value in seconds])
    heading, _, *rows = (line.split(" | ")[-1] for line in table.markdown().splitlines() if line.startswith("|"))
    assert (heading, rows) == ("Seconds of all (s) |", [f"{value:.2f} |" for value in seconds])
