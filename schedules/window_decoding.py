"""Decoding with a same-position verifier, in any order (appendix C, algorithm 3; D.2, E.2, E.6).

Every call is about a window: the open ones of W consecutive output positions from the leftmost open one, in
verification order. Accepted tokens are position-token pairs, so later positions may be accepted while earlier ones
are open. An accepted EOS (or a whole marker) shrinks the response to its position E; pairs behind it are dropped and
holes before it are filled before the response ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from schedules.acceptance import Accepted, Along
from schedules.call import Call, Draft, Model, Output, Window
from schedules.decoding import Decoding, Rule
from schedules.order import LeftToRight, Order
from schedules.response import Stop

ScoreSource = Literal["draft", "verifier"]


class WindowDecoding(Decoding):
    """Algorithm 3's state: accepted pairs, the end E, the window under way, and the draft's positions.

    Attributes:
      scores_from: what the confidence order looks at: the draft's probabilities or the verifier's (E.6).
    """

    prompt_predicts = False

    def __init__(
        self,
        model: Model,
        prompt: Sequence[int],
        rule: Rule,
        stop: Stop,
        width: int,
        order: Order,
        scores_from: ScoreSource = "draft",
        slides: bool = False,
    ):
        """As for `Decoding`; the prompt is cached by one counted call (E.2).

        Args:
          slides: see `Window`. Only native decoding does: a verifier that has forgotten part of the prefix would not
            give the tokens of serial decoding, so the others see everything, beyond the trained length too.

        Raises:
          ValueError: sampling in an order other than left to right: which positions are ranked early depends on the
            draft, so accepted tokens would not follow any fixed autoregressive distribution.
        """
        if not rule.is_greedy and not isinstance(order, LeftToRight):
            raise ValueError(
                f"order: got {order.name} at temperature > 0; exact sampling is known left to right only, "
                "so use order=ltr or temperature=0"
            )
        super().__init__(model, prompt, rule, stop, max(width, 1))
        self.scores_from = scores_from
        self._order = order
        self._slides = slides
        self._accepted: dict[int, int] = {}  # output position -> token
        self._end = stop.max_new_tokens
        self._end_reason = "length"
        self._window: Sequence[int] | None = None  # positions in rank order, of the iteration under way
        self._last_window: Sequence[int] = ()  # of the last call
        self._draft_positions: Sequence[int] = ()
        self._scores: Mapping[int, float] = {}
        order.begin()
        if not self.ended:
            self._calls.append(model.evaluate(Call(self.width, None)))

    @property
    def tokens(self) -> Sequence[int]:
        end = next(position for position in range(1, self._end + 2) if position not in self._accepted)
        return [self._accepted[position] for position in range(1, end)]

    def outcomes(self, draft: Draft) -> int:
        return len(self._positions()) - 1

    def evaluate(self, draft: Draft | None, branches: Sequence[int] = ()) -> Output:
        positions = self._positions()
        self._last_window = positions
        if draft is None:
            return self._call(None, branches, Window(positions, [False] * len(positions), slides=self._slides))
        row_of = {position: row for row, position in enumerate(self._draft_positions)}
        drafted = [position in row_of for position in positions]
        return self._call(draft, branches, Window(positions, drafted, [row_of.get(place, 0) for place in positions]))

    def accept(self, draft: Draft, output: Output) -> int:
        positions = self._last_window
        verifiable = next(
            (rank for rank, position in enumerate(positions) if position not in self._draft_positions), len(positions)
        )
        # A draft that was sampled is in the order of ranks: above temperature 0 there is no other order.
        asked = replace(draft.first(verifiable), tokens=output.draft[:verifiable])
        accepted = self._verify(asked, output, self._scores_of(output))
        self._note_scores(accepted, output)
        self.model.commit(accepted.on_device, accepted.accepted_drafts)
        self._add(accepted.tokens, positions[: len(accepted.tokens)], verifiable)
        return len(accepted.tokens)

    def accept_at(self, tokens: Tensor, on_host: Sequence[int], positions: Sequence[int]) -> None:
        """Accepts `tokens` (int64 [n], and `on_host`) at `positions` without verification, closing the iteration."""
        self.model.commit_at(tokens, positions)
        self._add(on_host, positions, drafted=0)

    def draw(self, output: Output, accepted: int = 0) -> Draft:
        self._draft_positions = self._last_window[accepted:]
        return self.rule.draw(output.proposals.after(accepted))

    @property
    def window(self) -> Sequence[int]:
        """The open positions of the iteration under way, in verification order."""
        return self._positions()

    def _positions(self) -> Sequence[int]:
        """Fixed by the first call of an iteration, for all its calls (E.6)."""
        if self._window is None:
            positions = range(1, self._end + 1)
            first = next(position for position in positions if position not in self._accepted)
            last = min(self._end, first + self.width - 1)
            unresolved = [position for position in range(first, last + 1) if position not in self._accepted]
            self._window = self._order.rank(unresolved, self._scores)
        return self._window

    def _scores_of(self, output: Output) -> Along | None:
        """The probability of each row's most likely token, as a float32's bits; None where no order asks for it.

        Travels with the verification's result, and says which branch the next draft is from before the host knows.
        """
        if not self._order.needs_scores:
            return None
        if self.scores_from == "verifier":
            return lambda _: _likeliest(output.verifier)
        proposals = output.proposals
        return proposals and (lambda accepted_drafts: _likeliest(proposals.freshest(accepted_drafts)))

    def _note_scores(self, accepted: Accepted, output: Output) -> None:
        """Keeps the scores that came with `accepted`, each as its position's."""
        if not accepted.along:
            self._scores = {}
            return
        scores = np.array(accepted.along, dtype=np.int32).view(np.float32).tolist()
        positions = self._last_window
        if self.scores_from == "draft":
            emitted = len(accepted.tokens)
            positions, scores = positions[emitted:], scores[output.proposals.resolved(emitted) :]
        self._scores = dict(zip(positions, scores, strict=False))

    def _add(self, tokens: Sequence[int], positions: Sequence[int], drafted: int) -> None:
        before = len(self._accepted)
        pairs = dict(zip(positions, tokens, strict=True))
        self._accepted |= pairs
        self._shrink(pairs)
        self._close_iteration(drafted, len(self._accepted) - before, list(positions))
        self._window = None
        if all(position in self._accepted for position in range(1, self._end + 1)):
            self.stop_reason = self._end_reason

    def _shrink(self, pairs: Mapping[int, int]) -> None:
        """Moves E to the earliest end that the new `pairs` complete, and drops what lies behind it."""
        ends = [(position, "eos") for position, token in pairs.items() if token in self.stop.eos_ids]
        ends += [(end, "marker") for end in self._marker_ends(pairs)]
        end, reason = min(ends, default=(self._end + 1, "length"))
        if end > self._end or (end == self._end and self._end_reason != "length"):
            return
        self._end, self._end_reason = end, reason
        behind = [position for position in self._accepted if position > end]
        for position in behind:
            del self._accepted[position]
        if behind:
            self.model.forget_after(end)

    def _marker_ends(self, pairs: Mapping[int, int]) -> Sequence[int]:
        """Last positions of the markers that are accepted as a whole, with one of the new `pairs` in them."""
        return [
            start + len(marker) - 1
            for marker in self.stop.markers
            for position in pairs
            for start in range(position - len(marker) + 1, position + 1)
            if all(self._accepted.get(start + place) == token for place, token in enumerate(marker))
        ]


def _likeliest(logits: Tensor) -> Tensor:
    """The probability of each row's most likely token: float [n, vocab] -> bits of float32, int64 [n]."""
    return logits.float().softmax(dim=-1).amax(dim=-1).view(torch.int32).long()
