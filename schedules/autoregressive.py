"""Autoregressive decoding: one call, one token. What every schedule must reproduce, and the yardstick for all."""

from collections.abc import Sequence

from schedules.begin import begin
from schedules.call import Model
from schedules.decoding import Rule
from schedules.order import Order
from schedules.response import Response, Stop


class Autoregressive:
    """Verifies empty drafts: NFE equals the number of generated tokens."""

    width = 0

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response:
        """Generates a response to `prompt` (token ids)."""
        decoding = begin(model, prompt, rule, stop, self.width, order)
        while not decoding.ended:
            draft = decoding.no_draft()
            decoding.accept(draft, decoding.evaluate(draft))
        return decoding.finish()
