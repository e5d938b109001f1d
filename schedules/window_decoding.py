"""Decoding with a same-position verifier, in any order (appendix C, algorithm 3; D.2, E.2, E.6).

Every call is about a window: the open ones of W consecutive output positions from the leftmost open one, in
verification order. Accepted tokens are position-token pairs, so later positions may be accepted while earlier ones
are open. An accepted EOS (or a whole marker) shrinks the response to its position E; pairs behind it are dropped and
holes before it are filled before the response ends.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

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
        self._asked: Draft | None = None  # the last call's draft, a token for each rank
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
            return self._call(None, branches, Window(positions, [False] * len(positions), self._slides))
        drafted = [position in self._draft_positions for position in positions]
        self._asked = self._aligned(draft, positions)
        return self._call(self._asked, branches, Window(positions, drafted))

    def accept(self, draft: Draft, output: Output) -> int:
        positions = self._last_window
        verifiable = next(
            (rank for rank, position in enumerate(positions) if position not in self._draft_positions), len(positions)
        )
        accepted = self._verify(self._asked.first(verifiable), output)
        self._note_scores("verifier", output.verifier, positions)
        self.model.commit(accepted.on_device, accepted.accepted_drafts)
        self._add(accepted.tokens, positions[: len(accepted.tokens)], verifiable)
        return len(accepted.tokens)

    def accept_at(self, tokens: Tensor, on_host: Sequence[int], positions: Sequence[int]) -> None:
        """Accepts `tokens` (int64 [n], and `on_host`) at `positions` without verification, closing the iteration."""
        self.model.commit_at(tokens, positions)
        self._add(on_host, positions, drafted=0)

    def draw(self, output: Output, accepted: int = 0) -> Draft:
        logits, positions = output.proposals.after(accepted), self._last_window[accepted:]
        open_rows = [row for row, position in enumerate(positions) if position <= self._end]
        if len(open_rows) < len(positions):
            logits, positions = logits[open_rows], [positions[row] for row in open_rows]
        self._draft_positions = positions
        self._note_scores("draft", logits, positions)
        return self.rule.draw(logits)

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

    def _aligned(self, draft: Draft, positions: Sequence[int]) -> Draft:
        """`draft` with a token for each of `positions`; an arbitrary one where it has none."""
        if list(self._draft_positions) == list(positions):
            return draft
        if not len(draft):
            return Draft(torch.zeros(len(positions), dtype=torch.int64, device=self.model.device))
        row_of = {position: row for row, position in enumerate(self._draft_positions)}
        return draft.take([row_of.get(position, 0) for position in positions])

    def _note_scores(self, source: ScoreSource, logits: Tensor, positions: Sequence[int]) -> None:
        """Keeps the probability of each row's most likely token as its position's score."""
        if self._order.needs_scores and source == self.scores_from:
            scores = logits.float().softmax(dim=-1).amax(dim=-1).tolist()
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
