"""Figures 3 and 4: throughput, tokens/NFE, time/NFE and accuracy against Linear-SS, with paired intervals."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from harness.analysis import canvas
from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.grid import INTERVALS, NotMeasured, Place, grid, schedules_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import DASH, in_order, look, model_label, task_label
from harness.records.bootstrap import Estimate
from harness.records.metrics import BASELINE

BAR = 0.8  # of the distance between bars
INCHES_A_BAR = 0.15


class Panel(NamedTuple):
    """One column of the figure."""

    metric: str
    title: str
    axis: str
    is_difference: bool = False


PANELS = (
    Panel("throughput", "Throughput →", "ratio to Linear-SS"),
    Panel("tokens_per_nfe", "Tokens/NFE →", "ratio to Linear-SS"),
    Panel("time_per_nfe_s", "Time/NFE ←", "ratio to Linear-SS"),
    Panel("accuracy", "Δ accuracy →", "percentage points", is_difference=True),
)


class Row(NamedTuple):
    """A place's vertical position: `y` of its first bar; bars follow downwards, 1 apart."""

    place: Place
    y: float


def ratio_figure(study: Study, temperature: float) -> Figure:
    """Bars of every schedule but the baseline, for each model and task at one temperature.

    Raises:
      NotMeasured: nowhere was a schedule measured beside the baseline.
    """
    cells = study.cells(temperature, LEFT_TO_RIGHT)
    shown = [s for s in cells if s.is_paired and s.method(BASELINE) and len(s.methods) > 1]
    if not shown:
        raise NotMeasured(
            f"no records of {look(BASELINE).label} beside another schedule on two common prompts, "
            f"temperature {temperature:g}"
        )
    places = grid(cells)
    families = list(dict.fromkeys(place.family for place in places))
    blocks = [_rows([p for p in places if p.family == family], cells) for family in families]
    drawn = canvas.figure(0.95 + sum(block.slots * INCHES_A_BAR + 0.45 for block in blocks))
    axes = drawn.subplots(
        len(blocks), len(PANELS), squeeze=False, height_ratios=[block.slots for block in blocks], sharey="row"
    )
    for line, block in zip(axes, blocks, strict=True):
        for one, panel in zip(line, PANELS, strict=True):
            _paint(one, panel, block)
        _label_rows(line[0], block)
    for one, panel in zip(axes[0], PANELS, strict=True):
        one.set_title(panel.title)
    schedules = [name for name in schedules_of(cells) if name != BASELINE]
    baseline = Line2D([], [], color="black", linestyle="--", linewidth=0.8, label=f"{look(BASELINE).label} (baseline)")
    canvas.legend(drawn, schedules, baseline)
    canvas.footnotes(
        drawn,
        f"Temperature {temperature:g}. Ratios to {look(BASELINE).label}; accuracy differences in percentage points. "
        f"Error bars: {INTERVALS}. Arrows point to the better side. N/A: measured for speed only. "
        f"{DASH}: not measured.",
        provenance(cells),
    )
    return drawn


class _Block(NamedTuple):
    """The rows of one family."""

    rows: Sequence[Row]
    headings: Sequence[tuple[str, float]]
    schedules: Sequence[str]
    slots: float


def _rows(places: Sequence[Place], cells: Sequence[PairedCell]) -> _Block:
    of_family = [cell for cell in cells if cell.family == places[0].family]
    schedules = [name for name in in_order(schedules_of(of_family)) if name != BASELINE]
    rows, headings, y = [], [], 0.0
    for index, place in enumerate(places):
        if index == 0 or place.model != places[index - 1].model:
            y += 0.6 if index else 0.0
            headings.append((model_label(place.model), y))
            y += 1.5
        rows.append(Row(place, y))
        y += len(schedules) + 0.6
        if len(schedules) == 1:
            y += 0.4
    return _Block(rows, headings, schedules, y)


def _paint(axes: Axes, panel: Panel, block: _Block) -> None:
    zero = 0.0 if panel.is_difference else 1.0
    drawn: list[Estimate] = []
    texts: list[tuple[float, str]] = []
    for row in block.rows:
        cell = row.place.cell
        if cell is None:
            texts.append((row.y + (len(block.schedules) - 1) / 2, DASH))
            continue
        for offset, schedule in enumerate(block.schedules):
            estimate = _estimate(cell, panel, schedule)
            if estimate is None:
                texts.append((row.y + offset, _why_empty(cell, panel, schedule)))
                continue
            drawn.append(estimate)
            _bar(axes, schedule, estimate, row.y + offset, zero)
    _frame(axes, panel, block, zero, drawn)
    for y, text in texts:
        axes.annotate(
            text, (zero, y), (4, 0), textcoords="offset points", va="center", fontsize=canvas.SMALL, color="#606060"
        )


def _bar(axes: Axes, schedule: str, estimate: Estimate, y: float, zero: float) -> None:
    style = look(schedule)
    axes.barh(
        y,
        estimate.value - zero,
        BAR,
        left=zero,
        color=style.colour,
        hatch=style.hatch,
        edgecolor="black",
        linewidth=0.4,
    )
    below, above = estimate.value - estimate.low, estimate.high - estimate.value
    # A percentile interval need not hold the value; a whisker has no negative length.
    axes.errorbar(
        estimate.value,
        y,
        xerr=[[max(below, 0)], [max(above, 0)]],
        color="black",
        linewidth=0.8,
        capsize=1.5,
        marker="o",
        markersize=1.8,
        capthick=0.8,
    )


def _frame(axes: Axes, panel: Panel, block: _Block, zero: float, drawn: Sequence[Estimate]) -> None:
    low = min([zero, *(min(estimate) for estimate in drawn)])
    high = max([zero, *(max(estimate) for estimate in drawn)])
    # An empty or flat panel still needs a scale, and room for the texts that stand right of the line.
    room = max(high - low, 2.0 if panel.is_difference else 0.05)
    axes.set_xlim(low - 0.08 * room, max(high + 0.08 * room, zero + 0.25 * room))
    axes.axvline(zero, color="black", linestyle="--", linewidth=0.8)
    axes.set_ylim(block.slots - 0.4, -0.9)
    axes.set_xlabel(panel.axis)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="y", length=0)


def _label_rows(axes: Axes, block: _Block) -> None:
    middle = (len(block.schedules) - 1) / 2
    ticks = [(y, heading, True) for heading, y in block.headings]
    ticks += [(row.y + middle, _row_label(row.place), False) for row in block.rows]
    axes.set_yticks([y for y, _, _ in ticks], [text for _, text, _ in ticks])
    for label, (_, _, is_heading) in zip(axes.get_yticklabels(), ticks, strict=True):
        label.set_fontweight("bold" if is_heading else "normal")
        label.set_parse_math(False)


def _row_label(place: Place) -> str:
    window = f", W = {place.window}" if place.window else ""
    cell = place.cell
    count = f"  n = {len(cell.prompt_ids):,}" if cell else ""
    if cell and cell.is_graded and cell.scored < cell.responses:
        count += f", PARTIAL: {cell.scored:,} of {cell.responses:,} scored"
    return f"{task_label(place.task)}{window}{count}"


def _estimate(cell: PairedCell, panel: Panel, schedule: str) -> Estimate | None:
    compare = cell.difference if panel.is_difference else cell.ratio
    statistic = compare(panel.metric, cell.method(schedule), cell.method(BASELINE))
    if statistic is None:
        return None
    return (statistic.scaled(100) if panel.is_difference else statistic).estimate()


def _why_empty(cell: PairedCell, panel: Panel, schedule: str) -> str:
    """Speed only, or not measured."""
    is_measured = cell.method(schedule) is not None and cell.method(BASELINE) is not None
    ungraded = panel.metric == "accuracy" and not any(cell.value("accuracy", m) is not None for m in cell.methods)
    return "N/A" if is_measured and ungraded else DASH
