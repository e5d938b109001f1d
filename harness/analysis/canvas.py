"""What all figures share: size, fonts, the lines under the drawing, and the two files that each is written to.

Works without pyplot, so nothing here depends on a display or leaves state behind.
"""

import io
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.analysis.style import look

T = TypeVar("T")

WIDTH = 7.2  # inches: the text width of a page
DPI = 200
SMALL = 6.5  # points; the smallest text in any figure
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#D0D0D0",
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
}


def styled(work: Callable[[], T]) -> T:
    """Runs `work`, which draws or saves, in our style; matplotlib's own settings stay as they are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        return work()


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure whose parts are laid out without overlap."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def footnotes(drawn: Figure, *lines: str) -> None:
    """Puts caption and provenance under the drawing, wrapped to its width."""
    width = int(drawn.get_figwidth() * 72 / SMALL * 1.75)
    text = "\n".join(part for line in lines for part in textwrap.wrap(line, width))
    drawn.supxlabel(text, x=0.01, ha="left", fontsize=SMALL, color="#404040", parse_math=False)


def legend(drawn: Figure, schedules: Sequence[str], *more: Patch | Line2D, lines: bool = False) -> None:
    """The schedules' legend above the drawing."""
    handles: list[Patch | Line2D] = [line_key(name) if lines else bar_key(name) for name in schedules]
    handles += more
    drawn.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 6), frameon=False)


def bar_key(schedule: str) -> Patch:
    """A schedule's bar in a legend."""
    style = look(schedule)
    return Patch(facecolor=style.colour, hatch=style.hatch, edgecolor="black", linewidth=0.5, label=style.label)


def line_key(schedule: str) -> Line2D:
    """A schedule's line in a legend."""
    style = look(schedule)
    return Line2D(
        [], [], color=_dark(style.colour), linestyle=style.line, marker=style.marker, markersize=4, label=style.label
    )


def plot_line(axes: Axes, schedule: str, x: Sequence[float], y: Sequence[float]) -> None:
    """A schedule's line; markers stay apart however many points there are."""
    style = look(schedule)
    axes.plot(
        x,
        y,
        color=_dark(style.colour),
        linestyle=style.line,
        linewidth=1.1,
        marker=style.marker,
        markersize=3.5,
        markevery=max(len(x) // 8, 1),
    )


def save(drawn: Figure, folder: Path, name: str) -> Sequence[Path]:
    """Writes PNG and PDF without dates or versions in them."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    paths[0].write_bytes(png(drawn))
    drawn.savefig(paths[1], metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return paths


def png(drawn: Figure) -> bytes:
    """The bitmap, without a version in it; the layout of the figure is final then."""
    # Laid out once: the layout takes longer than drawing.
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    file = io.BytesIO()
    drawn.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _dark(colour: str) -> str:
    """Light grey is a fine bar and an invisible line."""
    return "#A0A0A0" if colour == look("autoregressive").colour else colour
