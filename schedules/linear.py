"""Linear-SS: draft from the newest prefix, then verify; two calls an iteration (section 1, figure 1)."""

from collections.abc import Sequence

from schedules.begin import begin
from schedules.call import Model
from schedules.decoding import Rule
from schedules.order import Order
from schedules.response import Response, Stop
from schedules.width import checked_width


class Linear:
    """The two-call schedule: NFE = 1 + 2 x iterations, the prompt's call gives the first token."""

    def __init__(self, width: int):
        """`width`: draft tokens W >= 1 of an iteration.

        Raises:
          ValueError: `width` is not a positive integer.
        """
        self.width = checked_width(width)

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response:
        """Generates a response to `prompt` (token ids), verifying in `order` (left to right by default)."""
        decoding = begin(model, prompt, rule, stop, self.width, order, scores_from="verifier")
        if decoding.prompt_predicts and not decoding.ended:
            draft = decoding.no_draft()
            decoding.accept(draft, decoding.evaluate(draft))
        while not decoding.ended:
            draft = decoding.draw(decoding.evaluate(None, branches=(0,)))
            decoding.accept(draft, decoding.evaluate(draft))
        return decoding.finish()
