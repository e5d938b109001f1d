"""Tables as lists of columns, kept as frames, and the four forms they are written in: CSV, Markdown, LaTeX and text.

A column is its heading, its unit and the function that gives its cell; a row is an item that all columns are functions
of. The bytes depend on the values alone. CSV is the frame: numbers in full, intervals as three columns; the other
forms round for readers. A missing cell is "-" in all of them.
"""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_numeric_dtype

from harness.records.bootstrap import Estimate
from harness.text import MISSING, aligned

# Digits written to CSV: more than any measurement has, fewer than differ between linear algebra libraries.
CSV_FORMAT = "{:.10g}"
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "²": "$^2$",
    "≤": r"$\leq$",
}

# A text, empty where it is missing; or a number, None where it is missing, with its interval or without.
Value = str | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """One column of a table: its heading, its unit, and the function that gives its cell.

    Attributes:
      unit: shown in brackets behind the heading; empty where there is none.
      value: of a row's item.
      decimals: that a number is shown with; a function of the item where rows differ in it.
      is_interval: value, low and high are columns of their own in the frame and in CSV; every value may be missing.
      is_detail: written to CSV only.
      is_bold: of a row's item.
    """

    heading: str
    unit: str
    value: Callable[[Any], Value]
    _: KW_ONLY
    decimals: int | Callable[[Any], int] = 0
    is_interval: bool = False
    is_detail: bool = False
    is_bold: Callable[[Any], bool] = lambda item: False

    @property
    def name(self) -> str:
        """What stands above it."""
        return f"{self.heading} ({self.unit})" if self.unit else self.heading

    @property
    def names(self) -> Sequence[str]:
        """What it is called in the frame: one name, or three."""
        return [self.name, f"{self.name} low", f"{self.name} high"] if self.is_interval else [self.name]


class ShownEntry(NamedTuple):
    """One cell as readers see it.

    Attributes:
      value: behind the rounded text; None for a number that is missing.
    """

    text: str
    value: str | float | None
    is_number: bool
    is_bold: bool


class Table:
    """Items by columns.

    Attributes:
      name: of its files.
      title: what it shows, with its place in the paper.
      columns: in the order in which they stand.
      items: one for each row; what it is, the columns' functions know.
      notes: said below it: provenance, what is partial.
      grouped_by: LaTeX draws a rule where one of the first columns changes; this many of them.
      frame: a row for each item; columns are named as in CSV, where a heading may stand more than once. Texts are
        `object`: str, or None where missing. Numbers are `Int64` where all of a column's are integers, else
        `float64`; missing ones are NA and NaN. Intervals are three columns of `float64`, the latter two with " low"
        and " high" behind their names; both are NaN where a value has no interval.
    """

    def __init__(
        self,
        name: str,
        title: str,
        columns: Sequence[Column],
        items: Sequence[Any],
        notes: Sequence[str] = (),
        grouped_by: int = 1,
    ):
        self.name, self.title = name, title
        self.columns, self.items = tuple(columns), tuple(items)
        self.notes, self.grouped_by = tuple(notes), grouped_by
        parts = [part for column in self.columns for part in _in_full(column, self.items)]
        # Not by name: a heading may repeat.
        self.frame = pd.DataFrame(dict(enumerate(parts)))
        self.frame.columns = [name for column in self.columns for name in column.names]

    def csv(self) -> str:
        """Comma-separated values."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.frame.columns)
        writer.writerows([_written(value) for value in row] for row in self.frame.itertuples(index=False, name=None))
        return text.getvalue()

    def markdown(self) -> str:
        """A GitHub-flavoured table with its title and notes."""
        names, rows = self.shown_names(), self.shown_rows()
        lines = [f"**{self.title}**", ""]
        lines.append("| " + " | ".join(names) + " |")
        lines.append("|" + "|".join(" --- " if left else " ---: " for left in self._is_left(rows)) + "|")
        for row in rows:
            cells = [f"**{entry.text}**" if entry.is_bold else entry.text.replace("|", "\\|") for entry in row]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """A floating table; needs the package booktabs."""
        names, rows = self.shown_names(), self.shown_rows()
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering\\small",
            f"\\caption{{{_escaped(self.title)}. {_escaped(' '.join(self.notes))}}}",
            f"\\label{{tab:{self.name}}}",
            f"\\begin{{tabular}}{{{''.join('l' if left else 'r' for left in self._is_left(rows))}}}",
            "\\toprule",
            " & ".join(map(_escaped, names)) + r" \\",
            "\\midrule",
        ]
        before = rows[0][: self.grouped_by] if rows else []
        for row in rows:
            if row[: self.grouped_by] != before:
                lines.append("\\midrule")
                before = row[: self.grouped_by]
            cells = [_escaped(entry.text) for entry in row]
            cells = [f"\\textbf{{{cell}}}" if entry.is_bold else cell for cell, entry in zip(cells, row, strict=True)]
            lines.append(" & ".join(cells) + r" \\")
        lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """Aligned columns for a terminal."""
        names, rows = self.shown_names(), self.shown_rows()
        lines = aligned([names, *([entry.text for entry in row] for row in rows)], self._is_left(rows))
        return "\n".join([self.title, "", *lines, *self.notes])

    def shown_names(self) -> Sequence[str]:
        """Names of the columns that readers are shown."""
        return [column.name for column in self.columns if not column.is_detail]

    def shown_rows(self) -> Sequence[Sequence[ShownEntry]]:
        """The entries below them, rounded."""
        shown, first = [], 0
        for column in self.columns:
            cells = self.frame.iloc[:, first : first + len(column.names)]
            first += len(column.names)
            if not column.is_detail:
                is_number = is_numeric_dtype(cells.dtypes.iloc[0])
                values = cells.itertuples(index=False, name=None)
                shown.append(
                    [_shown(column, item, is_number, *cell) for item, cell in zip(self.items, values, strict=True)]
                )
        return list(zip(*shown, strict=True))

    def _is_left(self, rows: Sequence[Sequence[ShownEntry]]) -> Sequence[bool]:
        return [not any(row[index].is_number for row in rows) for index in range(len(self.shown_names()))]


def _in_full(column: Column, items: Sequence[Any]) -> Sequence[pd.Series]:
    """The frame's columns that a table's column becomes."""
    values = [column.value(item) for item in items]
    if column.is_interval:
        every = [value if isinstance(value, Estimate) else Estimate(value, None, None) for value in values]
        return [pd.Series([value[part] for value in every], dtype="float64") for part in range(len(column.names))]
    if any(isinstance(value, Estimate) for value in values):
        raise TypeError(f"column {column.name!r} has intervals; say so by is_interval=True.")
    if any(isinstance(value, str) for value in values):
        return [pd.Series([value or None for value in values], dtype=object)]
    numbers = [value for value in values if value is not None]
    is_whole = bool(numbers) and all(isinstance(number, Integral) for number in numbers)
    return [pd.Series(values, dtype="Int64" if is_whole else "float64")]


def _shown(column: Column, item: Any, is_number: bool, value: Any, *interval: float) -> ShownEntry:
    """One cell of the frame as readers see it, with its interval where it has one."""
    is_bold = column.is_bold(item)
    if not is_number:
        return ShownEntry(value or MISSING, value or "", is_number, is_bold)
    if pd.isna(value):
        return ShownEntry(MISSING, None, is_number, is_bold)
    decimals = column.decimals(item) if callable(column.decimals) else column.decimals
    if not interval or pd.isna(interval[0]):
        return ShownEntry(f"{value:,.{decimals}f}", value, is_number, is_bold)
    one, low, high = (f"{number:.{decimals}f}" for number in (value, *interval))
    return ShownEntry(f"{one} [{low}, {high}]", value, is_number, is_bold)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return MISSING if pd.isna(value) else CSV_FORMAT.format(value)


def _escaped(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)
