"""One response in the making: what is verified, what it cost so far, and whether it has ended.

Schedules drive a `Decoding`; it owns everything that is the same for all of them: counting calls, cutting at EOS and
at the cap, committing, and the per-iteration trace. There is one kind for verifiers that are shifted and causal
(`PrefixDecoding`, here) and one for same-position verifiers (`WindowDecoding`); schedules cannot tell them apart.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from schedules.acceptance import Accepted, Along, UnsoundLogits
from schedules.call import AdapterRows, Call, Draft, Model, Output, Window
from schedules.response import Iteration, Response, Stop, StopReason


class Rule(Protocol):
    """How drafts are accepted and drawn: greedily, or by rejection sampling."""

    is_greedy: bool

    def verify(self, draft: Draft, verifier: Tensor, along: Along | None = None) -> Accepted: ...

    def draw(self, logits: Tensor) -> Draft: ...


class Decoding(ABC):
    """State of one response. Schedules call `evaluate`, `accept` and `draw` until `ended`.

    Attributes:
      stop_reason: why it has ended; None while it has not.
    """

    def __init__(self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, width: int):
        """Hands `prompt` to the model; with a cap of 0 the response has ended already.

        Raises:
          ValueError: the prompt is empty.
        """
        if not prompt:
            raise ValueError("prompt: got no token; a response needs at least one prompt token")
        self.model, self.rule, self.stop, self.width = model, rule, stop, width
        self.stop_reason: StopReason | None = None
        self._no_draft = Draft.empty(model.device)
        self._trace: list[Iteration] = []
        self._calls: list[Output] = []  # of the iteration under way
        if stop.max_new_tokens == 0:
            self.stop_reason = "length"
        else:
            model.begin(prompt, stop.max_new_tokens)

    @property
    @abstractmethod
    def prompt_predicts(self) -> bool:
        """Whether processing the prompt gives the first token's distribution (a shifted verifier)."""

    @abstractmethod
    def outcomes(self, draft: Draft) -> int:
        """The most draft tokens that may be accepted and still leave positions to propose for."""

    @abstractmethod
    def evaluate(self, draft: Draft | None, branches: Sequence[int] = ()) -> Output:
        """One counted forward pass."""

    @abstractmethod
    def accept(self, draft: Draft, output: Output) -> int:
        """Verifies `draft`, commits what is emitted, closes the iteration; returns the number of emitted tokens.

        Raises:
          UnsoundLogits: names the call.
        """

    @abstractmethod
    def draw(self, output: Output, accepted: int = 0) -> Draft:
        """The draft made from the proposals of `output` that are unresolved after `accepted` tokens."""

    @property
    @abstractmethod
    def tokens(self) -> Sequence[int]:
        """Generated tokens so far that no gap precedes."""

    @property
    def ended(self) -> bool:
        """Whether the response is complete."""
        return self.stop_reason is not None

    def no_draft(self) -> Draft:
        """The empty draft: verifying it asks for the next token alone."""
        return self._no_draft

    def first_draft(self) -> Draft:
        """What a one-call schedule starts from (E.2, initial calls).

        The empty draft, as in algorithm 1. But with a shifted verifier above temperature 0, one call samples the
        first token and a second one proposes a full draft.
        """
        draft = self.no_draft()
        if self.ended or self.rule.is_greedy or not self.prompt_predicts:
            return draft
        self.accept(draft, self.evaluate(draft))
        return draft if self.ended else self.draw(self.evaluate(None, branches=(0,)))

    def finish(self) -> Response:
        """The response, once it has ended."""
        assert self.stop_reason is not None
        return Response(self.tokens, self._trace, self.stop_reason)

    def _call(self, draft: Draft | None, branches: Sequence[int], window: Window | None = None) -> Output:
        output = self.model.evaluate(Call(self.width, draft, branches, window))
        self._calls.append(output)
        return output

    def _verify(self, draft: Draft, output: Output, along: Along | None = None) -> Accepted:
        try:
            return self.rule.verify(draft, output.verifier, along)
        except UnsoundLogits as error:
            calls = len(self._calls) + sum(iteration.calls for iteration in self._trace)
            raise UnsoundLogits(f"call {calls}: {error}") from None

    def _close_iteration(self, drafted: int, accepted: int, positions: Sequence[int] = ()) -> None:
        self._trace.append(
            Iteration(
                calls=len(self._calls),
                rows=sum(call.rows for call in self._calls),
                adapter_rows=sum((call.adapter_rows for call in self._calls), AdapterRows()),
                drafted=drafted,
                accepted=accepted,
                positions=positions,
            )
        )
        self._calls.clear()


class PrefixDecoding(Decoding):
    """Decoding from left to right with a shifted, causal verifier (sections 3.1 and 3.2, D.1)."""

    prompt_predicts = True

    def __init__(self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, width: int):
        """As for `Decoding`.

        Raises:
          ValueError: stop markers, which only same-position families are evaluated with.
        """
        if stop.markers:
            raise ValueError(f"markers: got {len(stop.markers)}; a causal verifier ends at EOS or the cap alone")
        self._tokens: list[int] = []
        super().__init__(model, prompt, rule, stop, width)

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    def outcomes(self, draft: Draft) -> int:
        return len(draft)

    def evaluate(self, draft: Draft | None, branches: Sequence[int] = ()) -> Output:
        return self._call(draft, branches)

    def accept(self, draft: Draft, output: Output) -> int:
        accepted = self._verify(draft, output)
        kept = self._cut(accepted.tokens)
        self._tokens += kept
        self._close_iteration(len(draft), len(kept))
        if not self.ended:
            self.model.commit(accepted.on_device)
        return len(kept)

    def draw(self, output: Output, accepted: int = 0) -> Draft:
        return self.rule.draw(output.proposals.after(accepted))

    def _cut(self, accepted: Sequence[int]) -> list[int]:
        """The accepted tokens up to the first EOS and the cap (algorithm 1, lines 7 and 8)."""
        room = self.stop.max_new_tokens - len(self._tokens)
        kept = []
        for token in accepted[:room]:
            kept.append(token)
            if token in self.stop.eos_ids:
                self.stop_reason = "eos"
                return kept
        if len(kept) == room:
            self.stop_reason = "length"
        return kept
