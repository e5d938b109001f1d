"""One response in the making: what is verified, what it cost so far, and whether it has ended.

Schedules drive a `Decoding`; it owns everything that is the same for all of them: counting calls, cutting accepted
groups at the first EOS and at the cap (algorithm 1, lines 7 and 8), committing, and the per-iteration trace.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from torch import Tensor

from schedules.acceptance import Accepted, UnsoundLogits
from schedules.call import AdapterRows, Call, Draft, Model, Output

StopReason = Literal["eos", "length"]


class Rule(Protocol):
    """How drafts are accepted and drawn: greedily, or by rejection sampling."""

    drafts_in_prompt_call: bool

    def verify(self, draft: Draft, verifier: Tensor) -> Accepted: ...

    def draw(self, logits: Tensor) -> Draft: ...


@dataclass(frozen=True)
class Stop:
    """When a response ends.

    Attributes:
      max_new_tokens: cap L on generated tokens, EOS included; 0 makes no call at all.
      eos_ids: token ids that end a response; the first one accepted is its last token.
    """

    max_new_tokens: int
    eos_ids: frozenset[int]


@dataclass(frozen=True)
class Iteration:
    """What one iteration of a schedule did.

    Attributes:
      calls: forward passes.
      rows: token rows evaluated in them.
      adapter_rows: those of them that an adapter touched.
      drafted: draft tokens that were verified.
      accepted: tokens emitted, after cutting at EOS and the cap.
    """

    calls: int
    rows: int
    adapter_rows: AdapterRows
    drafted: int
    accepted: int


@dataclass(frozen=True)
class Response:
    """A finished response.

    Attributes:
      tokens: generated token ids, EOS included.
      trace: one entry for each iteration, prompt call included; `accepted` adds up to the tokens.
      stop_reason: "eos" or "length".
    """

    tokens: Sequence[int]
    trace: Sequence[Iteration]
    stop_reason: StopReason

    @property
    def nfe(self) -> int:
        """Forward passes, prompt processing included."""
        return sum(iteration.calls for iteration in self.trace)

    @property
    def rows(self) -> int:
        """Token rows evaluated, padding included."""
        return sum(iteration.rows for iteration in self.trace)

    @property
    def adapter_rows(self) -> AdapterRows:
        """Rows that an adapter touched."""
        return sum((iteration.adapter_rows for iteration in self.trace), AdapterRows())


@dataclass
class Decoding:
    """State of one response. Schedules call `evaluate`, `accept` and `draw` until `ended`."""

    model: Model
    rule: Rule
    stop: Stop
    width: int
    tokens: list[int] = field(default_factory=list)
    trace: list[Iteration] = field(default_factory=list)
    stop_reason: StopReason | None = None
    _calls: list[Output] = field(default_factory=list)  # of the iteration under way

    @classmethod
    def begin(cls, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, width: int) -> "Decoding":
        """Hands `prompt` to the model; with a cap of 0 the response has ended already.

        Raises:
          ValueError: the prompt is empty.
        """
        if not prompt:
            raise ValueError("prompt: got no token; a response needs at least one prompt token")
        decoding = cls(model, rule, stop, width)
        if stop.max_new_tokens == 0:
            decoding.stop_reason = "length"
        else:
            model.begin(prompt, stop.max_new_tokens)
        return decoding

    @property
    def ended(self) -> bool:
        """Whether the last token is an EOS or the cap is reached."""
        return self.stop_reason is not None

    def no_draft(self) -> Draft:
        """The empty draft: verifying it asks for the next token alone."""
        return Draft.empty(self.model.device)

    def first_draft(self) -> Draft:
        """What a one-call schedule starts from (E.2, initial calls).

        At temperature 0 the empty draft: the loop's own first call processes the prompt, verifies nothing and
        already proposes. Above 0, one call samples the first token and a second one proposes a full draft.
        """
        draft = self.no_draft()
        if self.ended or self.rule.drafts_in_prompt_call:
            return draft
        self.accept(draft, self.evaluate(draft))
        return draft if self.ended else self.draw(self.evaluate(None, branches=(0,)))

    def evaluate(self, draft: Draft | None, branches: Sequence[int] = ()) -> Output:
        """One counted forward pass."""
        output = self.model.evaluate(Call(self.width, draft, branches))
        self._calls.append(output)
        return output

    def accept(self, draft: Draft, output: Output) -> int:
        """Verifies `draft`, appends what stands, closes the iteration; returns the number of tokens emitted.

        Raises:
          UnsoundLogits: names the call.
        """
        try:
            accepted = self.rule.verify(draft, output.verifier)
        except UnsoundLogits as error:
            calls = len(self._calls) + sum(iteration.calls for iteration in self.trace)
            raise UnsoundLogits(f"call {calls}: {error}") from None
        kept = self._cut(accepted.tokens)
        self.tokens += kept
        self.trace.append(
            Iteration(
                calls=len(self._calls),
                rows=sum(call.rows for call in self._calls),
                adapter_rows=sum((call.adapter_rows for call in self._calls), AdapterRows()),
                drafted=len(draft),
                accepted=len(kept),
            )
        )
        self._calls.clear()
        if not self.ended:
            self.model.commit(accepted.on_device)
        return len(kept)

    def draw(self, output: Output, accepted: int = 0) -> Draft:
        """The draft made from the proposals of `output` that are unresolved after `accepted` tokens."""
        return self.rule.draw(output.proposals.after(accepted))

    def finish(self) -> Response:
        """The response, once it has ended."""
        assert self.stop_reason is not None
        return Response(self.tokens, self.trace, self.stop_reason)

    def _cut(self, accepted: Sequence[int]) -> list[int]:
        room = self.stop.max_new_tokens - len(self.tokens)
        kept = []
        for token in accepted[:room]:
            kept.append(token)
            if token in self.stop.eos_ids:
                self.stop_reason = "eos"
                return kept
        if len(kept) == room:
            self.stop_reason = "length"
        return kept
