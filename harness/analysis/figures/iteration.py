"""Figure 2: one iteration of Packed-SS, drawn from a recorded trace."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from harness.analysis import canvas
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.runs import Facts
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.style import look, model_label, task_label
from harness.errors import UserError
from harness.records.trace import FILE, Proposal, Trace, TracedIteration, read_traces

SCHEDULE = "packed"
MAX_OFFSETS = 9
PREFIX = 2
PIECE = 9  # characters shown of a token


class Shade(NamedTuple):
    """How a token is drawn."""

    face: str
    edge: str
    style: str
    text: str
    label: str


PLAIN = Shade("white", "#808080", "-", "black", "draft or verified prefix")
ACCEPTED = Shade("#CDE5F3", "#0072B2", "-", "black", "accepted: draft and verifier agree")
CORRECTION = Shade("#FBE3B5", "#B36B00", "-", "black", "verifier's token: correction or bonus")
UNREACHED = Shade("white", "#B0B0B0", ":", "#909090", "computed, not reached")
DISCARDED = Shade("#EFEFEF", "#B0B0B0", ":", "#909090", "proposal, position already resolved")
KEPT = Shade("#DDD3EA", "#5B3A8C", "-", "black", "proposal kept: the next draft")
SHADES = (PLAIN, ACCEPTED, CORRECTION, UNREACHED, DISCARDED, KEPT)


def iteration_figure(study: Study) -> Figure:
    """An iteration that keeps some of its draft and corrects it, if the trace has one.

    Raises:
      NotMeasured: no run folder holds a trace of Packed-SS.
    """
    trace, facts = _find(study)
    number, iteration = _telling(trace)
    proposal = iteration.selected
    last = max(len(iteration.draft) + 1, proposal.last_offset)
    shown = min(last, MAX_OFFSETS)
    drawn = canvas.figure(3.1)
    axes = drawn.subplots()
    axes.axis("off")
    prefix = _pieces(iteration.prefix_tail[-PREFIX:])
    axes.set_xlim(-2.15 - len(prefix), shown + 1.3)
    axes.set_ylim(5.45, -0.65)
    for offset in range(1, shown + 1):
        axes.text(offset, -0.35, f"+{offset}", ha="center", va="center", color="#404040")
    if shown < last:
        axes.text(shown + 0.65, -0.35, f"… +{last}", ha="left", va="center", color="#404040", fontsize=canvas.SMALL)
    _reads(axes, f"iteration {number} reads", 0.5, prefix, iteration, shown)
    _verifies(axes, iteration, shown)
    _proposes(axes, iteration, proposal, shown)
    _reads_next(axes, f"iteration {number + 1} reads", prefix, iteration, proposal, shown)
    keys = [
        Patch(facecolor=shade.face, edgecolor=shade.edge, linestyle=shade.style, label=shade.label) for shade in SHADES
    ]
    drawn.legend(handles=keys, loc="outside upper center", ncols=3, frameon=False)
    canvas.footnotes(
        drawn,
        f"One greedy iteration of {look(SCHEDULE).label} (W = {trace.width}). Columns are output positions after the "
        f"verified prefix. One call gives both middle rows. {iteration.accepted} tokens are emitted.",
        f"{model_label(trace.model)} on {task_label(trace.task)}, prompt {trace.prompt_id}, iteration {number} of "
        f"{len(trace.iterations)} · device {facts.device} · dtype {facts.dtype} · code {facts.code} · n = 1 response",
    )
    return drawn


def _find(study: Study) -> tuple[Trace, Facts]:
    problems = []
    for run in study.runs:
        try:
            traces = read_traces(run.path)
        except UserError as error:
            problems.append(str(error))
            continue
        for trace in traces:
            if _is_shown(trace) and run.family != WINDOWED:
                return trace, run.facts[0]
    missing = f"no run folder holds a {FILE} of greedy {look(SCHEDULE).label}; python -m harness replay writes it"
    raise NotMeasured(" ".join([missing, *problems]))


def _is_shown(trace: Trace) -> bool:
    is_greedy_packed = trace.schedule == SCHEDULE and trace.temperature == 0
    return is_greedy_packed and any(iteration.draft and iteration.selected for iteration in trace.iterations)


def _telling(trace: Trace) -> tuple[int, TracedIteration]:
    """The iteration to show, and its number from 1: one that shows everything that can happen."""

    def rank(numbered: tuple[int, TracedIteration]) -> tuple[bool, int]:
        iteration = numbered[1]
        kept = iteration.selected.last_offset - iteration.accepted
        shows_all = 2 <= iteration.accepted <= len(iteration.draft) and kept >= 1
        return not shows_all, abs(iteration.accepted - 3)

    candidates = [
        (number, iteration)
        for number, iteration in enumerate(trace.iterations, start=1)
        if iteration.draft and iteration.selected
    ]
    return min(candidates, key=rank)


def _reads(axes: Axes, name: str, y: float, prefix: Sequence[str], iteration: TracedIteration, shown: int) -> None:
    _name(axes, name, y, len(prefix))
    _prefix(axes, y, prefix)
    for offset, piece in enumerate(_pieces(iteration.draft[:shown]), start=1):
        _token(axes, offset, y, piece, PLAIN)


def _verifies(axes: Axes, iteration: TracedIteration, shown: int) -> None:
    y = 2.0
    _name(axes, "verifier", y, len(iteration.prefix_tail[-PREFIX:]))
    for offset, piece in enumerate(_pieces(iteration.verifier[:shown]), start=1):
        shade = ACCEPTED if offset < iteration.accepted else CORRECTION if offset == iteration.accepted else UNREACHED
        _token(axes, offset, y, piece, shade)
        if offset <= min(iteration.accepted, len(iteration.draft)):
            agrees = iteration.draft[offset - 1] == iteration.verifier[offset - 1]
            axes.text(offset, 1.25, "=" if agrees else "≠", ha="center", va="center", fontsize=9)
    axes.plot(
        2 * [min(iteration.accepted, shown) + 0.5], (0.0, 5.2), color="black", linestyle="--", linewidth=0.7, zorder=0
    )


def _proposes(axes: Axes, iteration: TracedIteration, proposal: Proposal, shown: int) -> None:
    y = 3.15
    _name(axes, "drafter", y, len(iteration.prefix_tail[-PREFIX:]))
    for offset in range(1, shown + 1):
        piece = proposal.at(offset)
        if piece is not None:
            _token(axes, offset, y, _piece(piece), DISCARDED if offset <= iteration.accepted else KEPT)


def _reads_next(
    axes: Axes, name: str, prefix: Sequence[str], iteration: TracedIteration, proposal: Proposal, shown: int
) -> None:
    y = 4.65
    _name(axes, name, y, len(prefix))
    _prefix(axes, y, prefix)
    for offset, piece in enumerate(_pieces(iteration.emitted[:shown]), start=1):
        _token(axes, offset, y, piece, ACCEPTED if offset < iteration.accepted else CORRECTION)
    for offset in range(iteration.accepted + 1, shown + 1):
        piece = proposal.at(offset)
        if piece is not None:
            _token(axes, offset, y, _piece(piece), KEPT)


def _name(axes: Axes, text: str, y: float, prefix: int) -> None:
    axes.text(-2.1 - prefix, y, text, ha="left", va="center", fontsize=7.5)


def _prefix(axes: Axes, y: float, prefix: Sequence[str]) -> None:
    for index, piece in enumerate(prefix):
        _token(axes, index + 1 - len(prefix), y, piece, PLAIN)
    axes.text(-len(prefix) + 0.15, y, "…", ha="right", va="center", color="#606060")


def _token(axes: Axes, x: float, y: float, text: str, shade: Shade) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - 0.46, y - 0.36),
            0.92,
            0.72,
            "round,pad=0,rounding_size=0.08",
            facecolor=shade.face,
            edgecolor=shade.edge,
            linestyle=shade.style,
            linewidth=0.8,
        )
    )
    size = 7.5 if len(text) <= 5 else 5.5
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color=shade.text, parse_math=False)


def _pieces(tokens: Sequence[str]) -> Sequence[str]:
    return [_piece(token) for token in tokens]


def _piece(token: str) -> str:
    """A token's text in one line, spaces visible, what the font lacks shown as a box."""
    visible = token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    visible = "".join(character if ord(character) in _glyphs() else "□" for character in visible)
    return visible if len(visible) <= PIECE else f"{visible[: PIECE - 1]}…"


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap())
