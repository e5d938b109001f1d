"""What an iteration costs by construction: calls and rows of each schedule, from the layouts (table 2, D.1, D.2).

Formulas only; what was measured stands beside them in the tables. None where no formula is known: a schedule or
family that is not the paper's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NEMOTRON = "nemotron"
SETDLM = "setdlm"

_ONE_CALL = ("packed", "quadratic", "branches")
CALLS = {"autoregressive": 1, "linear": 2, "packed": 1, "quadratic": 1, "branches": 1, "native": 1}


class Cost(NamedTuple):
    """Rows of one iteration once the prompt is cached; SetDLM's are the largest, with a full window.

    Attributes:
      rows: evaluated in the iteration, padding included.
      rows_per_call: in its largest call.
      selected: rows that a proposal-only adapter changes.
      updated: rows that the adapter's update is computed for (F.2).
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

    Of schedules and families that are not the paper's, nothing but the prompt's call is known.
    """
    if family == SETDLM:
        # The prompt is cached by a call that predicts nothing; the first iteration has the next calls.
        return Start(calls=1, iterations=0)
    block = width + 1
    if family != NEMOTRON or schedule not in _ONE_CALL:
        return Start(calls=1, iterations=1)
    # W + 1 masks in the prompt's call; above temperature 0 the last token and W masks in a call of their own.
    return Start(calls=1 if is_greedy else 2, iterations=1, rows=block, selected=block, updates_prompt=is_greedy)


def cost(family: str, schedule: str, width: int, config: Mapping[str, Any]) -> Cost | None:
    """The cost of one iteration.

    Args:
      config: of the schedule; partial branches name their branches there.
    """
    if schedule == "autoregressive":
        return Cost(1, 1, 0, 0)
    if family == NEMOTRON:
        return _nemotron(schedule, width + 1, config.get("branches") or [0])
    if family == SETDLM:
        return _setdlm(schedule, width)
    return None


def _nemotron(schedule: str, block: int, branches: Sequence[int]) -> Cost | None:
    # The rows of D.1: a verifier region of one block, and one block of proposal rows for each branch.
    if schedule == "linear":
        return Cost(2 * block, block, block, block)
    proposals = {"packed": block, "quadratic": block * block, "branches": block * len(branches)}.get(schedule)
    return None if proposals is None else Cost(block + proposals, block + proposals, proposals, block + proposals)


def _setdlm(schedule: str, window: int) -> Cost | None:
    # The rows of D.2 with u = W unresolved positions and the one token that was accepted but not yet cached.
    linear, quadratic = 1 + 3 * window, 1 + 2 * window + window**2
    return {
        "linear": Cost(linear, max(1 + window, 2 * window), 1 + window, 1 + window),
        "packed": Cost(linear, linear, window, linear),
        "quadratic": Cost(quadratic, quadratic, window**2, quadratic),
    }.get(schedule)
