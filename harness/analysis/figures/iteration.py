"""Figure 2: one iteration of Packed-SS, drawn from a recorded trace.

What became of each token is decided by the trace's grid; here each state has a shade.
"""

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
from harness.analysis.style import SUBJECT, look, model_label, task_label
from harness.analysis.trace_grid import STATES, GridToken, View, views
from harness.errors import UserError
from harness.records.trace import FILE, Trace, TracedIteration, read_traces

MAX_OFFSETS = 9
PREFIX = 2


class Shade(NamedTuple):
    """How tokens of one state are drawn."""

    face: str
    edge: str
    style: str
    text: str


SHADES = {
    "plain": Shade("white", "#808080", "-", "black"),
    "accepted": Shade("#CDE5F3", "#0072B2", "-", "black"),
    "correction": Shade("#FBE3B5", "#B36B00", "-", "black"),
    "unreached": Shade("white", "#B0B0B0", ":", "#909090"),
    "discarded": Shade("#EFEFEF", "#B0B0B0", ":", "#909090"),
    "kept": Shade("#DDD3EA", "#5B3A8C", "-", "black"),
}
Tokens = Sequence[GridToken | None]


class Numbered(NamedTuple):
    """An iteration, its number from 1, and its grid."""

    number: int
    iteration: TracedIteration
    view: View


def iteration_figure(study: Study) -> Figure:
    """An iteration that keeps some of its draft and corrects it, if the trace has one.

    Raises:
      NotMeasured: no run folder holds a trace of Packed-SS.
    """
    trace, facts = _find(study)
    number, iteration, view = _telling(trace)
    draft, verifier, drafter = (line.cells for line in view.lines)
    last = view.offsets
    shown = min(last, MAX_OFFSETS)
    drawn = canvas.figure(3.1)
    axes = drawn.subplots()
    axes.axis("off")
    prefix = [GridToken(piece, "plain") for piece in view.prefix[-PREFIX:]]
    axes.set_xlim(-2.15 - len(prefix), shown + 1.3)
    axes.set_ylim(5.45, -0.65)
    for offset in range(1, shown + 1):
        axes.text(offset, -0.35, f"+{offset}", ha="center", va="center", color="#404040")
    if shown < last:
        axes.text(shown + 0.65, -0.35, f"… +{last}", ha="left", va="center", color="#404040", fontsize=canvas.SMALL)
    lines = (
        (0.5, f"iteration {number} reads", prefix, draft),
        (2.0, "verifier", [], verifier),
        (3.15, "drafter", [], drafter),
        (4.65, f"iteration {number + 1} reads", prefix, _reads_next(verifier, drafter)),
    )
    for y, name, before, tokens in lines:
        axes.text(-2.1 - len(prefix), y, name, ha="left", va="center", fontsize=7.5)
        _tokens(axes, y, before, tokens[:shown])
    _marks(axes, verifier[: min(len(draft), shown)])
    emitted = 2 * [min(iteration.accepted, shown) + 0.5]
    axes.plot(emitted, (0.0, 5.2), color="black", linestyle="--", linewidth=0.7, zorder=0)
    rotary = f" · rotary {facts.rotary}" if facts.rotary else ""
    keys = [
        Patch(facecolor=shade.face, edgecolor=shade.edge, linestyle=shade.style, label=STATES[state].label)
        for state, shade in SHADES.items()
    ]
    drawn.legend(handles=keys, loc="outside upper center", ncols=3, frameon=False)
    canvas.footnotes(
        drawn,
        f"One greedy iteration of {look(SUBJECT).label} (W = {trace.width}). Columns are output positions after the "
        f"verified prefix. One call gives both middle rows. {iteration.accepted} tokens are emitted.",
        f"{model_label(trace.model)} on {task_label(trace.task)}, prompt {trace.prompt_id}, iteration {number} of "
        f"{len(trace.iterations)} · device {facts.device} · dtype {facts.dtype}{rotary} · code {facts.code} "
        "· n = 1 response",
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
    missing = f"no run folder holds a {FILE} of greedy {look(SUBJECT).label}; python -m harness replay writes it"
    raise NotMeasured(" ".join([missing, *problems]))


def _is_shown(trace: Trace) -> bool:
    is_greedy_packed = trace.schedule == SUBJECT and trace.temperature == 0
    return is_greedy_packed and any(iteration.draft and iteration.selected for iteration in trace.iterations)


def _telling(trace: Trace) -> Numbered:
    """The iteration to show: one that shows everything that can happen."""

    def rank(one: Numbered) -> tuple[bool, int]:
        states = {token.state for line in one.view.lines for token in line.cells if token}
        return states != STATES.keys(), abs(one.iteration.accepted - 3)

    candidates = [
        Numbered(number, iteration, view)
        for number, (iteration, view) in enumerate(zip(trace.iterations, views(trace), strict=True), start=1)
        if iteration.draft and iteration.selected
    ]
    return min(candidates, key=rank)


def _reads_next(verifier: Tokens, drafter: Tokens) -> Tokens:
    """What the next iteration starts from: what this one emits, and the proposals that it keeps."""
    emitted = [token for token in verifier if token and token.state in ("accepted", "correction")]
    return [*emitted, *(token if token and token.state == "kept" else None for token in drafter[len(emitted) :])]


def _marks(axes: Axes, verifier: Tokens) -> None:
    """Between the draft and what the verifier says to it."""
    for offset, token in enumerate(verifier, start=1):
        axes.text(offset, 1.25, STATES[token.state].mark, ha="center", va="center", fontsize=9)


def _tokens(axes: Axes, y: float, prefix: Tokens, tokens: Tokens) -> None:
    """One line; its prefix ends left of offset 1."""
    for offset, token in enumerate([*prefix, *tokens], start=1 - len(prefix)):
        if token is not None:
            _token(axes, offset, y, _drawable(token.text), SHADES[token.state])
    if prefix:
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


def _drawable(text: str) -> str:
    """`text`, with a box for what the font lacks."""
    return "".join(character if ord(character) in _glyphs() else "□" for character in text)


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap())
