"""What decoding is told about ending, and what it gives: a response with its per-iteration trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from schedules.call import AdapterRows

StopReason = Literal["eos", "length", "marker"]


@dataclass(frozen=True)
class Stop:
    """When a response ends.

    Attributes:
      max_new_tokens: cap L on generated tokens, EOS included; 0 makes no call at all.
      eos_ids: token ids that end a response; the first one accepted is its last token.
      markers: token sequences that end a response too (E.2); recognized once all their tokens are accepted.
    """

    max_new_tokens: int
    eos_ids: frozenset[int]
    markers: Sequence[Sequence[int]] = ()


@dataclass(frozen=True)
class Iteration:
    """What one iteration of a schedule did.

    Attributes:
      calls: forward passes.
      rows: token rows evaluated in them.
      adapter_rows: those of them that an adapter touched.
      drafted: draft tokens that were verified.
      accepted: tokens emitted, the correction or bonus token among them, after cutting at EOS, markers and the cap.
        Any-order decoding may lose tokens behind an EOS that it accepted earlier; they are taken off here, so that
        the sum is the response's length.
      positions: any-order decoding: the output positions accepted before cutting, in verification order.
    """

    calls: int
    rows: int
    adapter_rows: AdapterRows
    drafted: int
    accepted: int
    positions: Sequence[int] = ()


@dataclass(frozen=True)
class Response:
    """A finished response.

    Attributes:
      tokens: generated token ids in textual order, EOS or marker included.
      trace: one entry for each iteration, prompt call included; `accepted` adds up to the tokens.
      stop_reason: "eos", "length" or "marker".
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
