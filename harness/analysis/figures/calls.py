"""Figure 1: the calls of one iteration of each schedule, with prediction and row counts."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from harness.analysis import canvas
from harness.analysis.measures.iterations import recorded
from harness.analysis.measures.layout_rows import CALLS, NEMOTRON, cost
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.style import DASH, look, model_label, task_label

# Section 4.1: the widths of the paper's main cells, shown where nothing was measured.
PAPER_WIDTHS = {"linear": 31, "quadratic": 7, "packed": 31}


class Schematic(NamedTuple):
    """What a schedule's calls do.

    Attributes:
      calls: the regions of each call.
      predictions: drafter and verifier predictions of an iteration (figure 1), unused ones included.
      layout: rows of an iteration in the Nemotron layout (table 2).
    """

    calls: Sequence[Sequence[str]]
    predictions: str
    layout: str


SCHEMATICS = {
    "linear": Schematic((("verify the draft:\nsome are accepted",), ("draft after the\nnew tokens",)), "2W + 1", "2B"),
    "quadratic": Schematic(
        (("verify the draft", "draft as if 0 accepted", "draft as if 1 accepted", "draft as if W accepted"),),
        "(W + 1)²",
        "B(B + 1)",
    ),
    "packed": Schematic((("verify the draft", "draft after the\nold prefix"),), "≤ 2W", "2B"),
}
_HEIGHTS = {"linear": 1.0, "quadratic": 1.95, "packed": 1.25}
_LEFT, _CALL, _GAP = 1.55, 1.75, 0.3
_COLUMNS = (5.75, 6.85, 8.3)


def calls_figure(study: Study) -> Figure:
    """The schematic; measured calls and rows are those of the greedy cell with most prompts, if there is one."""
    cell = _measured_cell(study)
    drawn = canvas.figure(3.3)
    axes = drawn.subplots()
    axes.axis("off")
    axes.set_xlim(0, 9.4)
    total = sum(_HEIGHTS.values()) + 0.3 * len(_HEIGHTS)
    axes.set_ylim(total + 0.05, -0.75)
    first, second = _LEFT + _CALL / 2, _LEFT + _CALL + _GAP + _CALL / 2
    for x, text in zip((first, second, *_COLUMNS), _headings(cell), strict=True):
        axes.text(x, -0.4, text, ha="center", va="center", fontsize=7.5, color="#404040")
    y = 0.0
    for schedule, schematic in SCHEMATICS.items():
        height = _HEIGHTS[schedule]
        axes.text(0.0, y + height / 2, look(schedule).label, va="center", fontweight="bold")
        for index, regions in enumerate(schematic.calls):
            _call(axes, _LEFT + index * (_CALL + _GAP), y, height, regions, schedule)
        if len(schematic.calls) == 2:
            arrow = {"arrowstyle": "-|>", "linewidth": 0.9, "color": "black", "shrinkA": 0, "shrinkB": 0}
            ends = (_LEFT + _CALL + _GAP - 0.03, y + height / 2), (_LEFT + _CALL + 0.03, y + height / 2)
            axes.annotate("", *ends, arrowprops=arrow)
        for x, text in zip(_COLUMNS, _counts(schedule, schematic, cell), strict=True):
            axes.text(x, y + height / 2, text, ha="center", va="center", linespacing=1.35)
        y += height + 0.3
    canvas.footnotes(drawn, *_notes(cell))
    return drawn


def _headings(cell: PairedCell | None) -> Sequence[str]:
    rows = "rows by layout\n(B = W + 1)"
    return ("first model call", "second model call", "predictions\nan iteration", rows, "measured\nan iteration")


def _call(axes: Axes, x: float, y: float, height: float, regions: Sequence[str], schedule: str) -> None:
    """One outlined box with the call's regions below each other; the verifier's is white, drafts are in colour."""
    outline = "round,pad=0,rounding_size=0.06"
    axes.add_patch(FancyBboxPatch((x, y), _CALL, height, outline, facecolor="white", edgecolor="black"))
    has_gap = len(regions) > 3
    slot = (height - 0.12) / (len(regions) + has_gap * 0.6)
    top = y + 0.06
    for index, text in enumerate(regions):
        if has_gap and index == len(regions) - 1:
            axes.text(x + _CALL / 2, top + 0.3 * slot, "⋮", ha="center", va="center", fontsize=8)
            top += 0.6 * slot
        is_draft = text.startswith("draft")
        colour = look(schedule).colour if is_draft else "white"
        axes.add_patch(
            FancyBboxPatch(
                (x + 0.06, top + 0.03),
                _CALL - 0.12,
                slot - 0.06,
                "round,pad=0,rounding_size=0.04",
                facecolor=(*_rgb(colour), 0.3) if is_draft else "white",
                edgecolor="#808080",
                linewidth=0.5,
            )
        )
        axes.text(x + _CALL / 2, top + slot / 2, text, ha="center", va="center", fontsize=canvas.SMALL + 0.5)
        top += slot


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))


def _counts(schedule: str, schematic: Schematic, cell: PairedCell | None) -> Sequence[str]:
    method = cell.method(schedule) if cell else None
    width = method.width if method else PAPER_WIDTHS[schedule]
    family = cell.family if method else NEMOTRON
    by_layout = cost(family, schedule, width, {})
    formula = f"{schematic.layout} = " if family == NEMOTRON else "at most "
    layout = f"{formula}{by_layout.rows}\nW = {width}" if by_layout else DASH
    if not method:
        return schematic.predictions, layout, DASH
    measured = recorded(cell, method)
    if measured is None:
        return schematic.predictions, layout, DASH
    return (
        schematic.predictions,
        layout,
        f"{measured.calls:.2f} calls, {measured.rows:.1f} rows\n{measured.tokens:.2f} tokens",
    )


def _measured_cell(study: Study) -> PairedCell | None:
    """The one with most of the three schedules, then with most prompts."""
    candidates = [s for s in study.cells(0.0) if s.family != WINDOWED] or list(study.cells(0.0))
    with_any = [s for s in candidates if any(s.method(schedule) for schedule in CALLS if schedule in SCHEMATICS)]
    return max(
        with_any,
        key=lambda s: (sum(s.method(name) is not None for name in SCHEMATICS), len(s.prompt_ids)),
        default=None,
    )


def _notes(cell: PairedCell | None) -> Sequence[str]:
    what = (
        "Outlined boxes are model calls. Predictions are the drafter's and the verifier's, unused ones included; rows "
        "are token rows evaluated, padding and duplicates included."
    )
    if cell is None:
        return [what, f"By construction, at the paper's widths; {DASH}: no greedy records."]
    where = f"{model_label(cell.key.model)} on {task_label(cell.key.task)}, temperature 0"
    return [f"{what} Measured on {where}, after the prompt's call and the first draft.", provenance([cell])]
