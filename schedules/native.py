"""SetDLM's own decoder, which is diffusion and not speculation: no verifier, one call an iteration (E.6).

Every call predicts all open positions of the window at once. Predictions that are sure enough are accepted wherever
they are, and the surest one always is. Once cached and new rows exceed the model's trained length, the oldest are
forgotten, as in the release.
"""

from collections.abc import Sequence

import torch

from schedules.call import Model
from schedules.decoding import Rule
from schedules.order import CachingOrder, LeftToRight, Order
from schedules.response import Response, Stop
from schedules.width import checked_width
from schedules.window_decoding import WindowDecoding


class Native:
    """The released sliding-window decoder with argmax and a confidence threshold."""

    def __init__(self, width: int, threshold: float = 0.9):
        """Takes the window's size W >= 1, and the probability from which a prediction is accepted.

        Raises:
          ValueError: `width` is not a positive integer.
        """
        self.width = checked_width(width)
        self.threshold = threshold

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response:
        """Generates a response to `prompt` (token ids).

        There is no verification; of `order` only how it caches has a part in it.

        Raises:
          ValueError: the model's family has no same-position predictions, or `rule` samples.
        """
        if not model.is_same_position or not rule.is_greedy:
            raise ValueError("native: decodes same-position families (SetDLM) at temperature 0 only")
        decoding = WindowDecoding(model, prompt, rule, stop, self.width, LeftToRight(), slides=True)
        caching = order if isinstance(order, CachingOrder) else LeftToRight()
        ranks = caching.cache_ranks(stop.max_new_tokens, self.width)
        while not decoding.ended:
            positions = decoding.window
            logits = decoding.evaluate(None, branches=(0,)).proposals.after(0)
            confidence, tokens = logits.softmax(dim=-1).max(dim=-1)
            is_sure = (confidence >= self.threshold).int().scatter(0, confidence.argmax(dim=0, keepdim=True), 1)
            transferred = torch.stack([is_sure, tokens]).tolist()
            rows = [row for row, sure in enumerate(transferred[0]) if sure]
            # Sure rows first, in their order: found where they are, as telling the device would be a transfer.
            sure = tokens[is_sure.sort(descending=True, stable=True).indices[: len(rows)]]
            cached = sorted(range(len(rows)), key=lambda place: ranks[positions[rows[place]] - 1])
            if cached != list(range(len(rows))):
                sure, rows = sure[cached], [rows[place] for place in cached]
            decoding.accept_at(sure, [transferred[1][row] for row in rows], [positions[row] for row in rows])
        return decoding.finish()
