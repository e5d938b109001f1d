"""What an iteration costs by construction: calls and rows of each schedule, from the layouts (table 2, D.1, D.2).

Formulas only; what was measured stands beside them in the tables. None where no formula is known: a schedule or
family that is not the paper's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NEMOTRON = "nemotron"
SETDLM = "setdlm"

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
