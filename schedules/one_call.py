"""Packed-SS, Quadratic-SS and the schedules between them: verify and draft in one forward pass.

They are one loop (`OneCall`) with different branch policies:

    Packed     {0}                 one proposal, made from the prefix before verification (section 3.1)
    Quadratic  {0, 1, ..., k}      a proposal for every outcome of verification (section 1)
    Branches   any set with 0      the paper's future work (section 5)

The next draft is what the freshest usable branch holds for positions that verification left unresolved.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from schedules.begin import begin
from schedules.call import Model
from schedules.decoding import Rule
from schedules.order import Order
from schedules.response import Response, Stop
from schedules.width import checked_width


class OneCall(ABC):
    """The one-call loop (algorithms 1 and 2); subclasses say which branches each call proposes for.

    A draft is verified by the call that already proposes the next one, so proposals are one call ahead.
    """

    def __init__(self, width: int):
        """`width`: proposals W >= 1 for each branch.

        Raises:
          ValueError: `width` is not a positive integer.
        """
        self.width = checked_width(width)

    @abstractmethod
    def branches(self, outcomes: int) -> Sequence[int]:
        """Branches of a call that accepts up to `outcomes` draft tokens: ascending, with 0, none above that."""

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response:
        """Generates a response to `prompt` (token ids), verifying in `order` (left to right by default)."""
        decoding = begin(model, prompt, rule, stop, self.width, order)
        draft = decoding.first_draft()
        while not decoding.ended:
            output = decoding.evaluate(draft, self.branches(decoding.outcomes(draft)))
            accepted = decoding.accept(draft, output)
            if not decoding.ended:
                draft = decoding.draw(output, accepted)
        return decoding.finish()


class Packed(OneCall):
    """Packed-SS: the only branch assumes that nothing of the draft is accepted; 2B rows a call."""

    def branches(self, outcomes: int) -> Sequence[int]:
        return (0,)


class Quadratic(OneCall):
    """Quadratic-SS: a branch for every possible number of accepted draft tokens; B(B + 1) rows a call."""

    def branches(self, outcomes: int) -> Sequence[int]:
        return range(outcomes + 1)


class Branches(OneCall):
    """Partial branches: a fixed set between Packed's {0} and Quadratic's {0, ..., W}."""

    def __init__(self, width: int, branches: Sequence[int]):
        """`branches`: numbers of accepted draft tokens to prepare for; 0 is always among them.

        Raises:
          ValueError: `width` is not a positive integer, or a branch is not between 0 and `width`.
        """
        super().__init__(width)
        outside = [branch for branch in branches if not 0 <= branch <= width]
        if outside or 0 not in branches:
            raise ValueError(f"branches: got {list(branches)}, need 0 and any of 1 to width={width} beside it")
        self._branches = sorted(set(branches))

    def branches(self, outcomes: int) -> Sequence[int]:
        return [branch for branch in self._branches if branch <= outcomes]
