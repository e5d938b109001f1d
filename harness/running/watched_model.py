"""Decoding with eyes open: the same response as ever, and what each of its iterations read, predicted and kept.

Looking costs transfers, so only the calls themselves can be timed here, below the looking. What records hold comes
from `harness.running.runner`; this is for replays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from harness.records.trace import Proposal, TracedIteration
from schedules.call import Call, Model, Output
from schedules.response import Iteration, Response

TAIL = 3  # pieces of the prefix that a trace keeps


@dataclass(frozen=True)
class Seen:
    """One call, on the host.

    Attributes:
      draft: token ids; None where the call verified nothing.
      verifier: most likely token ids.
      gap: between the verifier's two largest logits at the first offset; None where there are none.
      proposals: (branch, first offset, most likely token ids) of each branch.
    """

    draft: Sequence[int] | None
    verifier: Sequence[int]
    gap: float | None
    proposals: Sequence[tuple[int, int, Sequence[int]]]


class WatchedModel:
    """A model whose calls are remembered."""

    def __init__(self, model: Model):
        self._model = model
        self.seen: list[Seen] = []

    def __getattr__(self, name: str) -> Any:
        """Everything but `evaluate` is the model's."""
        return getattr(self._model, name)

    def evaluate(self, call: Call) -> Output:
        """One forward pass, remembered."""
        output = self._model.evaluate(call)
        self.seen.append(_seen(call, output))
        return output


def _seen(call: Call, output: Output) -> Seen:
    top = output.verifier[:1].float().topk(2).values.flatten().tolist()
    proposals = output.proposals
    branches = (proposals.branches, proposals.first_offsets, _most_likely(proposals.logits)) if proposals else ([],)
    return Seen(
        draft=None if call.draft is None else call.draft.tokens.tolist(),
        verifier=_most_likely(output.verifier),
        gap=top[0] - top[1] if top else None,
        proposals=list(zip(*branches, strict=True)),
    )


def _most_likely(logits: Tensor) -> list:
    return logits.argmax(dim=-1).tolist()


def traced_iterations(
    response: Response,
    seen: Sequence[Seen],
    seconds: Sequence[float],
    prompt: Sequence[int],
    piece: Callable[[int], str],
    is_greedy: bool,
) -> Sequence[TracedIteration]:
    """What each iteration of a watched response did.

    Args:
      seen: all calls of the response.
      seconds: of each call.
      prompt: token ids.
      piece: the text of a token id.
      is_greedy: whether verifier predictions are their most likely tokens.
    """
    tokens = list(response.tokens)
    traced, first_call, emitted = [], 0, 0
    for iteration in response.trace:
        last_call = first_call + iteration.calls
        calls, calls_s = seen[first_call:last_call], seconds[first_call:last_call]
        first_call = last_call
        positions = _positions(iteration, emitted, len(tokens))
        emitted += iteration.accepted
        kept = [tokens[position - 1] for position in positions]
        draft = _draft(calls, iteration)
        before = [*prompt, *tokens[: min(positions, default=1) - 1]]
        traced.append(
            TracedIteration(
                prefix_tail=[piece(token) for token in before[-TAIL:]],
                draft=[piece(token) for token in draft],
                verifier=[piece(token) for token in (_verifier(calls) if is_greedy else kept)],
                positions=positions,
                accepted_drafts=_agreeing(draft, kept),
                proposals=[
                    Proposal(branch, first, [piece(token) for token in ids], is_draft=call.draft is None)
                    for call in calls
                    for branch, first, ids in call.proposals
                ],
                calls=iteration.calls,
                rows=iteration.rows,
                seconds=sum(calls_s),
            )
        )
    return traced


def _positions(iteration: Iteration, emitted: int, total: int) -> Sequence[int]:
    """Output positions that the iteration filled, without those behind the end."""
    if iteration.positions:
        return [position for position in iteration.positions if position <= total]
    return list(range(emitted + 1, emitted + iteration.accepted + 1))


def _draft(calls: Sequence[Seen], iteration: Iteration) -> Sequence[int]:
    """The draft that the iteration verified; windows carry tokens at ranks that have none."""
    drafts = [call.draft for call in calls if call.draft is not None]
    return drafts[-1][: iteration.drafted] if drafts else []


def _verifier(calls: Sequence[Seen]) -> Sequence[int]:
    return next((call.verifier for call in reversed(calls) if call.verifier), [])


def _agreeing(draft: Sequence[int], kept: Sequence[int]) -> int:
    """How many emitted tokens are draft tokens: a correction never equals what it corrects (section 2.2)."""
    differing = (index for index, (one, other) in enumerate(zip(draft, kept, strict=False)) if one != other)
    return next(differing, min(len(draft), len(kept)))
