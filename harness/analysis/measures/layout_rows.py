"""What an iteration costs by construction: the rows of its calls in each family's layout (table 2, D.1, D.2).

The calls of an iteration stand in the schedule's row (`harness.analysis.style`). Formulas only; what was measured
stands beside them in the tables. None where no formula is known: a schedule without a row, or a family of somebody
else's.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.analysis.style import CallShape, row_of

NEMOTRON = "nemotron"
SETDLM = "setdlm"
CAUSAL = "causal"


class Cost(NamedTuple):
    """Rows of one iteration once the prompt is cached; SetDLM's are the largest, with a full window.

    Attributes:
      rows: evaluated in the iteration, padding included.
      rows_per_call: in its largest call.
      selected: rows that a proposal-only adapter changes.
      updated: rows that the adapter's update is computed for (F.2); a causal model's drafter is fused.
    """

    rows: int
    rows_per_call: int
    selected: int
    updated: int


class Start(NamedTuple):
    """What a response spends before its first regular iteration (E.2).

    Attributes:
      calls: forward passes.
      iterations: entries of a record's `accepted` that these calls have to themselves.
      rows: evaluated, without the prompt's own.
      selected: rows that a proposal-only adapter changes.
      updates_prompt: whether such an adapter, where it is computed for all rows of a call, is computed for the
        prompt's too.
    """

    calls: int
    iterations: int
    rows: int = 0
    selected: int = 0
    updates_prompt: bool = False


def start(family: str, schedule: str, width: int, is_greedy: bool) -> Start:
    """What stands before the first regular iteration.

    Of schedules without a row and families of somebody else's, nothing but the prompt's call is known.
    """
    if family == SETDLM:
        # The prompt is cached by a call that predicts nothing; the first iteration has the next calls.
        return Start(calls=1, iterations=0)
    block = width + 1
    if family not in (NEMOTRON, CAUSAL) or row_of(schedule).branches is None:
        return Start(calls=1, iterations=1)
    if family == CAUSAL:
        # W masks in the prompt's call; above temperature 0 the last token and W - 1 masks in a call of their own.
        return Start(calls=1 if is_greedy else 2, iterations=1, rows=width, selected=width - (not is_greedy))
    # W + 1 masks in the prompt's call; above temperature 0 the last token and W masks in a call of their own.
    return Start(calls=1 if is_greedy else 2, iterations=1, rows=block, selected=block, updates_prompt=is_greedy)


def cost(family: str, schedule: str, width: int, config: Mapping[str, Any]) -> Cost | None:
    """The cost of one iteration.

    Args:
      config: of the schedule; partial branches name their branches there.
    """
    row = row_of(schedule)
    if not row.iteration or not row.has_formula:
        return None
    # Without a draft there is one row in a block, and one open position in a window.
    width = width if row.drafts else 0
    if family == NEMOTRON:
        calls = [_nemotron(call, width, config) for call in row.iteration]
    elif family == CAUSAL:
        calls = [_causal(call, width, config) for call in row.iteration]
    elif family == SETDLM:
        calls = [_setdlm(call, max(width, 1), config, number == 0) for number, call in enumerate(row.iteration)]
    else:
        return None
    return Cost(
        rows=sum(call.rows for call in calls),
        rows_per_call=max(call.rows for call in calls),
        selected=sum(call.selected for call in calls),
        updated=sum(call.selected if family == CAUSAL else call.rows for call in calls if call.selected),
    )


class _Rows(NamedTuple):
    """Of one call: all, and those that a proposal-only adapter changes."""

    rows: int
    selected: int


def _nemotron(call: CallShape, width: int, config: Mapping[str, Any]) -> _Rows:
    # The rows of D.1: a verifier region of one block, and one block of proposal rows for each branch.
    block = width + 1
    proposals = block * _branches(call, config, outcomes=width)
    return _Rows(call.verifies * block + proposals, proposals)


def _causal(call: CallShape, width: int, config: Mapping[str, Any]) -> _Rows:
    # A verifier region of one block, or the last token alone, which then gives the first of W proposals itself; and
    # masks for each branch, all of whose predictions can survive.
    masks = (width if call.verifies else width - 1) * _branches(call, config, outcomes=width)
    return _Rows((width + 1 if call.verifies else 1) + masks, masks)


def _setdlm(call: CallShape, window: int, config: Mapping[str, Any], is_first: bool) -> _Rows:
    # The rows of D.2 with u = W unresolved positions, one of which every verification resolves. The iteration's first
    # call has the one token that was accepted but not yet cached, and drafts from it where it does nothing else.
    proposals = window * _branches(call, config, outcomes=window - 1)
    return _Rows(is_first + call.verifies * 2 * window + proposals, proposals + (is_first and not call.verifies))


def _branches(call: CallShape, config: Mapping[str, Any], outcomes: int) -> int:
    return len(call.branches(config, outcomes)) if call.branches else 0
