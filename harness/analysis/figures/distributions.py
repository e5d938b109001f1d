"""The distributions as small panels, one for each main cell of a temperature."""

import textwrap
from collections.abc import Callable
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.analysis import canvas
from harness.analysis.measures.distributions import acceptance_length_shares, acceptance_rates, rate_over_output
from harness.analysis.study.cells import LEFT_TO_RIGHT, Method
from harness.analysis.study.grid import NotMeasured, cell_label, methods_in_order
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import ORDERS, in_order, model_label

ACROSS = 3
TITLE_CHARACTERS = 28


def acceptance_length_figure(study: Study, temperature: float) -> Figure:
    """Acceptance lengths: how many tokens iterations emit."""

    def plot(axes: Axes, cell: PairedCell, method: Method) -> None:
        shares = acceptance_length_shares(cell, method)
        canvas.plot_line(axes, method.schedule, np.arange(len(shares))[1:], 100 * shares[1:])

    caption = "Tokens that an iteration emits, the correction or bonus token among them; the prompt's call is left out."
    labels = ("tokens emitted in an iteration", "share of iterations (%)")
    return _panels(study, temperature, plot, labels, caption, _drafts)


def acceptance_rate_figure(study: Study, temperature: float) -> Figure:
    """Acceptance rate by draft position."""

    def plot(axes: Axes, cell: PairedCell, method: Method) -> None:
        shares = acceptance_rates(cell, method)
        canvas.plot_line(axes, method.schedule, np.arange(len(shares)) + 1, 100 * shares)

    caption = (
        "Share of iterations in which the draft was accepted up to and including this position; a response's first and "
        "last iterations are left out."
    )
    return _panels(study, temperature, plot, ("draft position", "acceptance rate (%)"), caption, _drafts)


def rate_figure(study: Study, temperature: float) -> Figure:
    """How fast tokens come along the output."""

    def plot(axes: Axes, cell: PairedCell, method: Method) -> None:
        canvas.plot_line(axes, method.schedule, *rate_over_output(cell, method))

    caption = (
        "Rate by output position, from what iterations yield there; all calls of a response are taken to last equally "
        "long, since records hold no time of the single call. Few responses reach the last positions."
    )
    return _panels(study, temperature, plot, ("output position (tokens)", "tokens/s"), caption)


def _panels(
    study: Study,
    temperature: float,
    plot: Callable[[Axes, PairedCell, Method], None],
    labels: tuple[str, str],
    caption: str,
    is_shown: Callable[[Method], bool] = lambda method: True,
) -> Figure:
    cells = study.cells(temperature)
    if not cells:
        raise NotMeasured(f"no records at temperature {temperature:g}")
    lines = ceil(len(cells) / ACROSS)
    drawn = canvas.figure(1.0 + 1.75 * lines)
    axes = drawn.subplots(lines, ACROSS, squeeze=False)
    for one in axes.flat[len(cells) :]:
        one.axis("off")
    for one, cell in zip(axes.flat, cells, strict=False):
        # Narrow first, so that wide lines do not hide the others.
        for method in methods_in_order(method for method in cell.methods if is_shown(method)):
            plot(one, cell, method)
        one.set_title(_title(cell), parse_math=False)
        one.set_xlabel(labels[0])
        one.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        one.set_ylabel(labels[1])
        one.set_ylim(bottom=0)
        one.grid()
        one.set_axisbelow(True)
    shown = in_order(method.schedule for cell in cells for method in cell.methods if is_shown(method))
    canvas.legend(drawn, shown, lines=True)
    canvas.footnotes(drawn, f"Temperature {temperature:g}. {caption}", provenance(cells))
    return drawn


def _drafts(method: Method) -> bool:
    """Whether a method has drafts; without them every iteration emits one token."""
    return method.width > 0


def _title(cell: PairedCell) -> str:
    """What a panel shows, in lines that are no wider than it."""
    order = cell.key.order
    model = model_label(cell.key.model)
    who = model if order == LEFT_TO_RIGHT else f"{model}, {ORDERS.get(order, order).lower()}"
    what = f"{cell_label(cell)} (n = {len(cell.prompt_ids):,})"
    return "\n".join(line for text in (who, what) for line in textwrap.wrap(text, TITLE_CHARACTERS))
