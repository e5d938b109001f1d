"""A traced iteration as a grid of tokens, each in one of six states; and the grid as text for a terminal.

Columns are offsets behind the verified prefix. Which token has which state is decided here alone: the report has a
style class, and figure 2 a shade, for each state's name.

    iteration 2: 1 of 3 draft tokens accepted, 2 emitted; 16 rows in 1 call, 4.1 ms
                      +1   +2   +3   +4
    draft      … 24 │  ,   24   +
    verifier           ,   24   -    2
                       =    ≠              = accepted   ≠ corrected   + bonus
    drafter            ·   24   -    2
                            ×    >    >    > kept: the next draft   × discarded

Without colour the marks below a line say what colours do.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.analysis.style import look, model_label, task_label
from harness.records.trace import Proposal, Trace, TracedIteration

PIECE = 9  # characters shown of a token
NAME = 12  # columns of a line's name


class State(NamedTuple):
    """What became of a token.

    Attributes:
      label: for legends.
      mark: below it, without colour.
      ansi: SGR parameters of its colour in a terminal.
    """

    label: str
    mark: str
    ansi: str


STATES = {
    "plain": State("draft or verified prefix", " ", ""),
    "accepted": State("accepted: draft and verifier agree", "=", "34;1"),
    "correction": State("verifier's token: correction or bonus", "≠", "33;1"),
    "unreached": State("computed, not reached", " ", "2"),
    "discarded": State("proposal, discarded", "×", "2"),
    "kept": State("proposal kept: the next draft", ">", "35"),
}
BONUS = "+"


class GridToken(NamedTuple):
    """One token."""

    text: str
    state: str


@dataclass(frozen=True)
class Line:
    """One row of the grid.

    Attributes:
      cells: for the offsets 1, 2, ...; None where there is no token.
      is_marked: whether states are worth marks below it.
    """

    name: str
    cells: Sequence[GridToken | None]
    is_marked: bool = True


@dataclass(frozen=True)
class View:
    """One iteration.

    Attributes:
      prefix: last tokens of the verified prefix.
      bonus: offset of a verifier token behind a full draft; 0 where it corrected one.
    """

    title: str
    prefix: Sequence[str]
    lines: Sequence[Line]
    bonus: int

    @property
    def offsets(self) -> int:
        """Columns of the grid."""
        return max((len(line.cells) for line in self.lines), default=0)


def views(trace: Trace) -> Sequence[View]:
    """All iterations of a trace."""
    last = len(trace.iterations)
    return [_view(number, one, number == last) for number, one in enumerate(trace.iterations, start=1)]


def title(trace: Trace) -> str:
    """What a trace is of, and what it took."""
    calls, rows = (sum(getattr(one, name) or 0 for one in trace.iterations) for name in ("calls", "rows"))
    cost = f", {calls} calls, {rows:,} rows" if calls else ""
    return (
        f"{look(trace.schedule).label} (W = {trace.width}), {model_label(trace.model)} on {task_label(trace.task)}, "
        f"prompt {trace.prompt_id}: {len(trace.tokens)} tokens in {len(trace.iterations)} iterations{cost}"
    )


def shortened(token: str) -> str:
    """A token's text in one line, spaces visible."""
    visible = token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    visible = "".join(character if character.isprintable() else "□" for character in visible)
    return visible if len(visible) <= PIECE else f"{visible[: PIECE - 1]}…"


def as_text(trace: Trace, columns: int, in_colour: bool, iterations: int | None = None) -> str:
    """A trace for a terminal of so many columns; offsets that do not fit go on below.

    Args:
      iterations: how many to show; None shows all.
    """
    shown = views(trace)[:iterations]
    blocks = [title(trace), _legend(in_colour)]
    blocks += ["\n".join(_block(view, columns, in_colour)) for view in shown]
    left_out = len(trace.iterations) - len(shown)
    if left_out:
        blocks.append(f"PARTIAL: {left_out} more iterations")
    return "\n\n".join(blocks)


def outcome(iteration: TracedIteration) -> str:
    """What verification gave, in words."""
    drafts = f"{iteration.accepted_drafts} of {len(iteration.draft)} draft tokens"
    return f"{drafts} accepted, {iteration.accepted} emitted"


def verified_state(offset: int, iteration: TracedIteration) -> str:
    """The state of the verifier's token at an offset; that of the emitted token, where one is emitted."""
    if offset <= iteration.accepted_drafts:
        return "accepted"
    return "correction" if offset <= iteration.accepted else "unreached"


def _view(number: int, iteration: TracedIteration, is_last: bool) -> View:
    accepted, drafted = iteration.accepted, len(iteration.draft)
    parts = [f"iteration {number}: {outcome(iteration)}"]
    if iteration.rows is not None:
        calls = f"{iteration.calls} call{'' if iteration.calls == 1 else 's'}"
        parts.append(f"{iteration.rows} rows in {calls}, {1000 * iteration.seconds:.1f} ms")
    verified = [
        GridToken(shortened(token), verified_state(offset, iteration))
        for offset, token in enumerate(iteration.verifier, start=1)
    ]
    lines = [
        Line("draft", [GridToken(shortened(token), "plain") for token in iteration.draft], is_marked=False),
        Line("verifier", verified),
    ]
    proposals = [proposal for proposal in iteration.proposals if not proposal.is_draft]
    selected = None if is_last else iteration.selected
    for proposal in proposals:
        name = "drafter" if len(proposals) == 1 else f"branch {proposal.branch}"
        lines.append(Line(name, _proposed(proposal, accepted, proposal is selected)))
    if not iteration.draft:
        # Native decoding verifies nothing; which of its predictions were accepted is a matter of positions.
        unverified = [proposal.tokens for proposal in iteration.proposals if proposal.is_draft]
        lines += [
            Line("predicted", [GridToken(shortened(token), "plain") for token in tokens], is_marked=False)
            for tokens in unverified
        ]
    has_bonus = accepted == drafted + 1 == iteration.accepted_drafts + 1
    return View("; ".join(parts), [shortened(token) for token in iteration.prefix_tail], lines, accepted * has_bonus)


def _proposed(proposal: Proposal, accepted: int, is_selected: bool) -> Sequence[GridToken | None]:
    cells: list[GridToken | None] = []
    for offset in range(1, proposal.last_offset + 1):
        token = proposal.at(offset)
        state = "kept" if is_selected and offset > accepted else "discarded"
        cells.append(None if token is None else GridToken(shortened(token), state))
    return cells


def _block(view: View, columns: int, in_colour: bool) -> Iterator[str]:
    offsets = view.offsets
    prefix = f"… {' '.join(view.prefix)} │"
    texts = [cell.text for line in view.lines for cell in line.cells if cell]
    size = max([len(text) for text in texts] + [len(f"+{offsets}")], default=1) + 2
    band = max((columns - NAME - len(prefix)) // size, 1)
    yield _painted(view.title, "1") if in_colour else view.title
    for number in range(max(math.ceil(offsets / band), 1)):
        shown = range(number * band, min((number + 1) * band, offsets))
        margin = " " * (NAME + len(prefix))
        yield (margin + "".join(f"+{offset + 1}".center(size) for offset in shown)).rstrip()
        for line in view.lines:
            cells = [line.cells[offset] if offset < len(line.cells) else None for offset in shown]
            if number and not any(cells):
                continue
            before = prefix if line.name == "draft" and number == 0 else " " * len(prefix)
            yield (line.name.ljust(NAME) + before + "".join(_shown(cell, size, in_colour) for cell in cells)).rstrip()
            if line.is_marked and not in_colour and any(cells):
                marks = (_mark(cell, offset + 1, view) for cell, offset in zip(cells, shown, strict=True))
                yield (margin + "".join(mark.center(size) for mark in marks)).rstrip()


def _shown(cell: GridToken | None, size: int, in_colour: bool) -> str:
    if cell is None:
        return " " * size
    text = cell.text.center(size)
    return _painted(text, STATES[cell.state].ansi) if in_colour else text


def _mark(cell: GridToken | None, offset: int, view: View) -> str:
    if cell is None:
        return ""
    return BONUS if cell.state == "correction" and offset == view.bonus else STATES[cell.state].mark


def _legend(in_colour: bool) -> str:
    if in_colour:
        return "   ".join(_painted(state.label, state.ansi) for state in STATES.values())
    return "= accepted   ≠ the verifier's correction   + its bonus   > kept: the next draft   × discarded"


def _painted(text: str, ansi: str) -> str:
    return f"\x1b[{ansi}m{text}\x1b[0m" if ansi else text
