"""Tables as values, and the four forms they are written in: CSV, Markdown, LaTeX and plain text.

The bytes depend on the values alone. CSV carries numbers in full and intervals as three columns; the other forms
round for readers. A missing cell is "-" in all of them.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.analysis.bootstrap import Estimate
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


class Number(NamedTuple):
    """A number with the decimals it is shown with; None is missing."""

    value: float | None
    decimals: int = 0
    bold: bool = False


class Ranged(NamedTuple):
    """A value with its interval; None is missing."""

    estimate: Estimate | None
    decimals: int


Entry = str | Number | Ranged


class Column(NamedTuple):
    """A column's heading.

    Attributes:
      is_interval: CSV splits it into value, low and high.
      is_detail: written to CSV only.
    """

    name: str
    is_interval: bool = False
    is_detail: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
      name: of its files.
      title: what it shows, with its place in the paper.
      rows: one entry for each column.
      notes: said below it: provenance, what is partial.
      grouped_by: LaTeX draws a rule where one of the first columns changes; this many of them.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Entry]]
    notes: Sequence[str] = ()
    grouped_by: int = 1

    def csv(self) -> str:
        """Comma-separated values."""
        heading = []
        for column in self.columns:
            heading += (
                [column.name, f"{column.name} low", f"{column.name} high"] if column.is_interval else [column.name]
            )
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(heading)
        for row in self.rows:
            writer.writerow(
                [cell for column, entry in zip(self.columns, row, strict=True) for cell in _in_full(entry, column)]
            )
        return text.getvalue()

    def markdown(self) -> str:
        """A GitHub-flavoured table with its title and notes."""
        lines = [f"**{self.title}**", ""]
        names, rows = self._shown()
        is_left = [all(isinstance(row[i], str) for row in rows) for i in range(len(names))]
        lines.append("| " + " | ".join(names) + " |")
        lines.append("|" + "|".join(" --- " if left else " ---: " for left in is_left) + "|")
        for row in rows:
            cells = [f"**{_short(entry)}**" if _is_bold(entry) else _short(entry).replace("|", "\\|") for entry in row]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """A floating table; needs the package booktabs."""
        names, rows = self._shown()
        is_left = [all(isinstance(row[i], str) for row in rows) for i in range(len(names))]
        lines = [
            "% needs \\usepackage{booktabs}",
            "\\begin{table}",
            "\\centering\\small",
            f"\\caption{{{_escaped(self.title)}. {_escaped(' '.join(self.notes))}}}",
            f"\\label{{tab:{self.name}}}",
            f"\\begin{{tabular}}{{{''.join('l' if left else 'r' for left in is_left)}}}",
            "\\toprule",
            " & ".join(map(_escaped, names)) + r" \\",
            "\\midrule",
        ]
        before = rows[0][: self.grouped_by] if rows else []
        for row in rows:
            if row[: self.grouped_by] != before:
                lines.append("\\midrule")
                before = row[: self.grouped_by]
            cells = [_escaped(_short(entry)) for entry in row]
            cells = [f"\\textbf{{{cell}}}" if _is_bold(entry) else cell for cell, entry in zip(cells, row, strict=True)]
            lines.append(" & ".join(cells) + r" \\")
        lines += ["\\bottomrule", "\\end{tabular}", "\\end{table}"]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """Aligned columns for a terminal."""
        names, rows = self._shown()
        is_left = [all(isinstance(row[i], str) for row in rows) for i in range(len(names))]
        lines = aligned([names, *([_short(entry) for entry in row] for row in rows)], is_left)
        return "\n".join([self.title, "", *lines, *self.notes])

    def shown_names(self) -> Sequence[str]:
        """Names of the columns that readers are shown."""
        return self._shown()[0]

    def shown_rows(self) -> Sequence[Sequence[tuple[Entry, str]]]:
        """The entries below them, each with its rounded text."""
        return [[(entry, _short(entry)) for entry in row] for row in self._shown()[1]]

    def _shown(self) -> tuple[Sequence[str], Sequence[Sequence[Entry]]]:
        kept = [index for index, column in enumerate(self.columns) if not column.is_detail]
        return [self.columns[i].name for i in kept], [[row[i] for i in kept] for row in self.rows]


def _short(entry: Entry) -> str:
    if isinstance(entry, Number):
        return MISSING if entry.value is None else f"{entry.value:,.{entry.decimals}f}"
    if isinstance(entry, Ranged):
        if entry.estimate is None:
            return MISSING
        value, low, high = (f"{number:.{entry.decimals}f}" for number in entry.estimate)
        return f"{value} [{low}, {high}]"
    return entry or MISSING


def _in_full(entry: Entry, column: Column) -> Sequence[str]:
    if isinstance(entry, Ranged):
        return [MISSING] * 3 if entry.estimate is None else [CSV_FORMAT.format(number) for number in entry.estimate]
    if isinstance(entry, Number):
        text = MISSING if entry.value is None else CSV_FORMAT.format(entry.value)
    else:
        text = entry or MISSING
    return [text, MISSING, MISSING] if column.is_interval else [text]


def _is_bold(entry: Entry) -> bool:
    return isinstance(entry, Number) and entry.bold


def _escaped(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)
