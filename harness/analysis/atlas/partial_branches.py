"""Partial branches between Packed and Quadratic (section 5): which sets are worth their rows.

A budget of k branches makes calls of B(1 + k) rows at most. Sets of each budget:

    even        0 and multiples of W / k
    geometric   0 and W / 2, W / 4, ...
    searched    one branch after another, each the one that most lowers the calls of the prompts searched on
    confident   chosen anew for each draft by the drafter's own probabilities of its tokens

The last kind is known by simulation alone. As a schedule it needs one more transfer an iteration: branches decide how
many rows a call has, so the host must know the probabilities of a draft before the call that verifies it, and what one
iteration transfers is on its way before that draft is drawn.

Sets are chosen on every second prompt and compared on the others, so that searching cannot flatter itself. The rivals
are the Packed and the Quadratic of any recorded width whose calls have no more rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.analysis.atlas.methods import ENDS, method
from harness.analysis.atlas.simulation import Ints, Simulated, Simulation, tokens_per_nfe_ratio
from harness.analysis.measures.layout_rows import NEMOTRON, cost
from harness.analysis.study.grid import INTERVALS
from harness.analysis.table import Column, Table
from harness.records.bootstrap import Estimate

PARTIAL = "branches"
BUDGETS = (2, 3, 4, 6)
ROWS = (16, 32, 64, 128, 256)  # a call at most, for the comparison


@dataclass(frozen=True)
class Candidate:
    """A schedule with its size.

    Attributes:
      rows: of its largest call.
      label: of its branches, where it has a choice.
      simulate: on any atlas.
    """

    family: str
    width: int
    rows: int
    label: str
    simulate: Callable[[Simulation], Simulated]


def rival(schedule: str, width: int) -> Candidate:
    """Packed or Quadratic."""
    return Candidate(schedule, width, _rows(schedule, width, {}), "", method(schedule, width).simulate)


def fixed(family: str, width: int, branches: Sequence[int]) -> Candidate:
    """Partial branches, the same for every draft that is long enough."""
    config = {"branches": branches}
    rows, simulate = _rows(PARTIAL, width, config), method(PARTIAL, width, config).simulate
    return Candidate(family, width, rows, "+".join(map(str, branches)), simulate)


def confident(width: int, budget: int) -> Candidate:
    """Branches where the drafter itself expects verification to end."""
    choose = partial(likely_branches, budget)
    rows = (width + 1) * (1 + budget)
    return Candidate(
        "confident", width, rows, f"any {budget}", lambda simulation: simulation.one_call_by_confidence(width, choose)
    )


def likely_branches(budget: int, drafted: Ints, probabilities: NDArray[np.float32]) -> NDArray[np.bool_]:
    """A `Chooser`: 0 and up to budget - 1 branches that most raise the expected context of the next draft.

    At least b tokens are accepted with the product of the first b probabilities, S(b), if the drafter knows itself.
    Adding b between the chosen neighbours a and c raises the expected selected branch by (b - a)(S(b) - S(c)).
    """
    drafts, width = probabilities.shape
    outcomes = np.arange(width + 1)
    survival = np.concatenate([np.ones((drafts, 1)), np.cumprod(probabilities, axis=1)], axis=1)
    chosen = np.zeros((drafts, width + 1), dtype=bool)
    chosen[:, 0] = True
    rows = np.arange(drafts)
    for _ in range(budget - 1):
        below = np.maximum.accumulate(np.where(chosen, outcomes, 0), axis=1)
        behind = np.where(chosen, survival, 0)
        # Survival falls, so the nearest chosen branch above has the largest of those above.
        above = np.maximum.accumulate(behind[:, ::-1], axis=1)[:, ::-1]
        gain = (outcomes - below) * (survival - above)
        best = gain.argmax(axis=1)
        chosen[rows, best] |= gain[rows, best] > 0
    return chosen


def candidates(search_on: Simulation) -> Iterator[Candidate]:
    """Partial sets of every recorded width and budget."""
    for width in search_on.atlas.widths:
        for budget in BUDGETS:
            if budget <= width:
                yield fixed("even", width, sorted({round(index * width / budget) for index in range(budget)}))
                yield fixed("geometric", width, sorted({0, *(-(-width // 2**step) for step in range(1, budget))}))
                yield fixed("searched", width, searched(search_on, width, budget))
                yield confident(width, budget)


def searched(simulation: Simulation, width: int, budget: int) -> Sequence[int]:
    """Branches added one by one, each the best beside those before it; ties go to the smallest."""
    branches = [0]
    for _ in range(budget - 1):
        others = [branch for branch in range(1, width + 1) if branch not in branches]
        sets = [sorted([*branches, branch]) for branch in others]
        branches = min(sets, key=lambda one: fixed("searched", width, one).simulate(simulation).nfe.sum())
    return branches


def halves(simulation: Simulation) -> tuple[Simulation, Simulation]:
    """Every second prompt, and the others."""
    atlas = simulation.atlas
    return tuple(
        Simulation(replace(atlas, prompts=atlas.prompts[start::2], expected=len(atlas.prompts[start::2])))
        for start in (0, 1)
    )


class Contestant(NamedTuple):
    """A schedule with what it reaches on the prompts that are compared on."""

    candidate: Candidate
    simulated: Simulated

    @property
    def tokens_per_nfe(self) -> float:
        """Ratio of totals."""
        return self.simulated.tokens_per_nfe


class Contest(NamedTuple):
    """The best of each kind among those whose calls have no more than `limit` rows; None where nothing fits."""

    limit: int
    packed: Contestant | None
    quadratic: Contestant | None
    partial: Contestant | None

    @property
    def ratio(self) -> Estimate | None:
        """Tokens/NFE of the partial set over those of the better rival."""
        rivals = [one for one in (self.packed, self.quadratic) if one]
        if not self.partial or not rivals:
            return None
        best = max(rivals, key=lambda one: one.tokens_per_nfe)
        return tokens_per_nfe_ratio(self.partial.simulated, best.simulated).estimate()


def _width(kind: str) -> Column:
    def width(contest: Contest) -> int | None:
        one = getattr(contest, kind)
        return one and one.candidate.width

    return Column(f"{kind.capitalize()} W", "", width)


def _tokens_per_nfe(kind: str) -> Column:
    def reached(contest: Contest) -> float | None:
        one = getattr(contest, kind)
        return one and one.tokens_per_nfe

    return Column("Tokens/NFE", "", reached, decimals=3)


# Of a `Contest`.
CONTESTS = (
    Column("Rows a call, at most", "", lambda contest: contest.limit),
    _width("packed"),
    _tokens_per_nfe("packed"),
    _width("quadratic"),
    _tokens_per_nfe("quadratic"),
    _width("partial"),
    Column("Branches", "", lambda contest: contest.partial.candidate.label if contest.partial else ""),
    Column("How chosen", "", lambda contest: contest.partial.candidate.family if contest.partial else ""),
    _tokens_per_nfe("partial"),
    Column("Partial / better of both", "", lambda contest: contest.ratio, decimals=3, is_interval=True),
)


def partial_table(simulation: Simulation) -> Table:
    """For each number of rows: the best Packed, Quadratic and partial set that fit, and the last against both.

    Raises:
      UserError: fewer than four prompts.
    """
    search_on, compare_on = halves(simulation)
    widths = simulation.atlas.widths
    rivals = [[rival(name, width) for width in widths] for name in ENDS]
    sets = list(candidates(search_on))
    kinds = [[one for one in sets if (one.family == "confident") == is_confident] for is_confident in (False, True)]
    return Table(
        name="partial_branches",
        title="Partial branches at equal rows",
        columns=CONTESTS,
        items=[
            Contest(limit, *(_best(group, limit, search_on, compare_on) for group in (*rivals, kind)))
            for limit, kind in product(ROWS, kinds)
        ],
        notes=[
            f"Chosen on {len(search_on.atlas.prompts)} prompts, compared on {len(compare_on.atlas.prompts)} others. "
            f"Brackets: {INTERVALS}.",
            simulation.atlas.label,
        ],
    )


def _rows(schedule: str, width: int, config: Mapping[str, Any]) -> int:
    return cost(NEMOTRON, schedule, width, config).rows_per_call


def _best(group: Sequence[Candidate], limit: int, search_on: Simulation, compare_on: Simulation) -> Contestant | None:
    fitting = [one for one in group if one.rows <= limit]
    best = max(fitting, key=lambda one: one.simulate(search_on).tokens_per_nfe, default=None)
    return best and Contestant(best, best.simulate(compare_on))
