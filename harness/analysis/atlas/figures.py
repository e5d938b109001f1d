"""Figures from a draft atlas: assumption 3.1, what rows buy, and which schedule wins where."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.analysis import canvas
from harness.analysis.atlas.cost_model import DEVICES, CostModel
from harness.analysis.atlas.methods import ENDS
from harness.analysis.atlas.monotonicity import BIN, dominance, turns
from harness.analysis.atlas.partial_branches import PARTIAL, Candidate, candidates, halves, rival
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.atlas.winners import Map
from harness.analysis.style import SUBJECT, look, row_of
from harness.records.metrics import BASELINE

LEAST = 50  # right proposals behind a point of the figure
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))  # one a width, and no more widths than these


def monotonicity_figure(simulation: Simulation) -> Figure:
    """How often one more token turns a right proposal wrong, by distance and position; calls of each prompt."""
    widths = _some([width for width in simulation.atlas.widths if width > 1])
    drawn = canvas.figure(2.9)
    by_distance, by_position, by_prompt = drawn.subplots(1, 3)
    for width, shade, line in zip(widths, np.linspace(0.75, 0.0, len(widths)), _LINES, strict=False):
        counted = turns(simulation.atlas.prompts, width)
        style = {"color": _lightened(look(SUBJECT).colour, shade), "linestyle": line, "linewidth": 1.2}
        _shares(by_distance, np.arange(2, width + 1), counted.right, counted.wrong, label=f"W = {width}", **style)
        middles = (np.arange(len(counted.right_at)) + 0.5) * BIN
        _shares(by_position, middles, counted.right_at, counted.wrong_at, **style)
    by_distance.set(
        xlabel="distance ahead of the context", ylabel="right proposals turned wrong (%)", title="By distance"
    )
    by_position.set(xlabel="output position", title="By position")
    for axes in (by_distance, by_position):
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
    widest = widths[-1]
    compared = dominance(simulation, widest)
    _calls(by_prompt, compared.linear, compared.packed, widest)
    by_distance.legend(frameon=False, fontsize=canvas.SMALL)
    canvas.footnotes(
        drawn,
        "Assumption 3.1: a right proposal stays right as its context grows by a token. Points with fewer than "
        f"{LEAST} right proposals are left out. On the right, a dot is a prompt; theorem 3.2 puts it on or below the "
        f"line: {100 * compared.holds:.1f} % are; for {100 * compared.is_ahead.mean():.1f} % Packed is never behind.",
        simulation.atlas.label,
    )
    return drawn


def rows_figure(simulation: Simulation) -> Figure:
    """Tokens/NFE over the rows of a call: Packed, Quadratic, and the best partial sets of each way of choosing."""
    search_on, compare_on = halves(simulation)
    drawn = canvas.figure(3.3)
    axes = drawn.subplots()
    for schedule in ENDS:
        group = [rival(schedule, width) for width in simulation.atlas.widths]
        reached = [one.simulate(compare_on).tokens_per_nfe for one in group]
        canvas.plot_line(axes, schedule, [one.rows for one in group], reached)
    colour = look(PARTIAL).colour
    families: dict[str, list[Candidate]] = {}
    for one in candidates(search_on):
        families.setdefault(one.family, []).append(one)
    keys: list[Line2D] = [canvas.line_key(schedule) for schedule in ENDS]
    for (family, group), marker in zip(families.items(), "o^P*", strict=False):
        best = _frontier(group, search_on)
        reached = [one.simulate(compare_on).tokens_per_nfe for one in best]
        style = {"marker": marker, "color": colour, "markersize": 5, "markeredgecolor": "black", "markeredgewidth": 0.4}
        axes.plot([one.rows for one in best], reached, linestyle="", **style)
        keys.append(Line2D([], [], linestyle="", label=f"{look(PARTIAL).label}: {family}", **style))
    drawn.legend(handles=keys, loc="outside upper center", ncols=3, frameon=False)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="rows of a call (largest)", ylabel="tokens / NFE")
    axes.grid()
    canvas.footnotes(
        drawn,
        "Every recorded width. Partial sets: those that no smaller set of their kind matches, chosen on "
        f"{len(search_on.atlas.prompts)} prompts; all points show the {len(compare_on.atlas.prompts)} others.",
        simulation.atlas.label,
    )
    return drawn


def winners_figure(found: Map, cost: CostModel | None) -> Figure:
    """Which schedule has the highest throughput, each at its best width, over tau / delta and acceptance."""
    drawn = canvas.figure(3.4)
    marks = {device.name: device.peak / device.bandwidth for device in DEVICES}
    if cost and 0 < cost.rows_a_call < np.inf:
        marks["fitted"] = cost.rows_a_call
    shades = ListedColormap([look(name).colour for name in found.schedules])
    every = np.arange(len(found.schedules))
    # The paper's are those of its comparison, and autoregressive decoding.
    is_own = np.array([not row_of(name).role and row_of(name).drafts for name in found.schedules])
    titles = (
        "The paper's schedules",
        f"With {', '.join(_as_simulated(found.schedules[one]) for one in every[is_own])}",
    )
    for axes, title, shown in zip(drawn.subplots(1, 2, sharey=True), titles, (every[~is_own], every), strict=True):
        winners = shown[found.throughput[:, shown].argmax(axis=1)]
        style = {"cmap": shades, "vmin": -0.5, "vmax": len(every) - 0.5, "shading": "nearest"}
        axes.pcolormesh(found.ratios, found.accepted, winners, **style)
        for name, ratio in marks.items():
            axes.axvline(ratio, color="white", linewidth=1.6)
            axes.axvline(ratio, color="black", linewidth=0.7, linestyle="--")
            axes.text(ratio, axes.get_ylim()[1], f"{name} ", rotation=90, va="top", ha="right", fontsize=canvas.SMALL)
        axes.set_xscale("log")
        axes.set(xlabel="tau / delta (rows)", title=title)
    drawn.axes[0].set_ylabel(f"tokens an iteration, {look(BASELINE).label} at W = {found.width}")
    keys = [
        Patch(facecolor=look(name).colour, edgecolor="black", linewidth=0.5, label=look(name).label)
        for name in found.schedules
    ]
    drawn.legend(handles=keys, loc="outside upper center", ncols=len(keys), frameon=False)
    fitted = ", and as fitted to calls" if "fitted" in marks else ""
    canvas.footnotes(
        drawn,
        "PREDICTION. Made-up drafters that satisfy assumption 3.1: a proposal is right up to a random distance, "
        "geometric and independent of others. Colours: the highest throughput, each schedule at its best W of "
        f"{', '.join(map(str, found.widths))}. Dashed: tau / delta at a device's published peaks{fitted}. Time on the "
        "host is left out.",
    )
    return drawn


def _as_simulated(schedule: str) -> str:
    """A schedule within a sentence, with what it was set to."""
    row = row_of(schedule)
    name = row.look.label[0].lower() + row.look.label[1:]
    return f"{name} {row.example.says}" if row.example else name


def _shares(axes: Axes, x: np.ndarray, right: np.ndarray, wrong: np.ndarray, **style: object) -> None:
    known = right >= LEAST
    axes.plot(x[known], 100 * wrong[known] / right[known], **style)


def _calls(axes: Axes, linear: np.ndarray, packed_calls: np.ndarray, width: int) -> None:
    top = max(linear.max(), packed_calls.max()) * 1.05
    axes.plot([0, top], [0, top], color="black", linewidth=0.7, linestyle="--")
    axes.plot(linear, packed_calls, "s", color=look(SUBJECT).colour, markersize=2.5, alpha=0.6)
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal", title=f"Calls of a prompt, W = {width}")
    axes.set(xlabel=look(BASELINE).label, ylabel=look(SUBJECT).label)


def _frontier(group: Sequence[Candidate], simulation: Simulation) -> Sequence[Candidate]:
    """Those that are better than everything with no more rows."""
    best, kept = 0.0, []
    by_rows: Mapping[int, list] = {}
    for one in sorted(group, key=lambda one: one.rows):
        by_rows.setdefault(one.rows, []).append((one.simulate(simulation).tokens_per_nfe, one))
    for alike in by_rows.values():
        reached, one = max(alike, key=lambda pair: pair[0])
        if reached > best:
            best = reached
            kept.append(one)
    return kept


def _lightened(colour: str, share: float) -> tuple[float, ...]:
    return tuple(channel + (1 - channel) * share for channel in to_rgb(colour))


def _some(widths: Sequence[int]) -> Sequence[int]:
    """As many widths as there are lines to tell apart, the smallest and the largest among them."""
    places = np.linspace(0, len(widths) - 1, min(len(widths), len(_LINES))).round().astype(int)
    return [widths[place] for place in places]
