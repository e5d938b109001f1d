"""What every acceptance rule gives back, and the error for logits that are no numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

# From the number of accepted drafts, int64 [1] on the device, to numbers that the host wants besides, int64 [n].
Along = Callable[[Tensor], Tensor]


def all_finite(values: Tensor) -> Tensor:
    """Whether no entry of `values`, float [n], is infinite or NaN: bool [1] on their device, in few operations."""
    return (values - values).sum(dim=0, keepdim=True) == 0  # inf - inf and NaN - NaN are NaN


class UnsoundLogits(ArithmeticError):
    """Logits hold NaN, positive infinity, or nothing finite at all."""


@dataclass(frozen=True)
class Accepted:
    """The tokens that one verification emits: accepted draft tokens, then the verifier's correction or bonus token.

    There is none of these last two where the verifier has no row behind a full draft.

    Attributes:
      tokens: token ids on the host.
      on_device: the same, int64 [accepted].
      accepted_drafts: how many of them are draft tokens.
      along: what came in the same transfer.
    """

    tokens: Sequence[int]
    on_device: Tensor
    accepted_drafts: int
    along: Sequence[int] = ()


def emitted(transferred: Sequence[int], rows: int, on_device: Tensor) -> Accepted:
    """Unpacks an iteration's one transfer: [verifier is sound, drafter is sound, accepted drafts, tokens, along].

    Args:
      rows: verifier rows; the tokens emitted are the accepted drafts and one more where there is a row for it.
      on_device: the same tokens, int64 [tokens].

    Raises:
      UnsoundLogits: says whose.
    """
    verifier_is_sound, drafter_is_sound, accepted_drafts, *rest = transferred
    tokens, along = rest[: on_device.shape[0]], rest[on_device.shape[0] :]
    for whose, is_sound in (("verifier", verifier_is_sound), ("drafter", drafter_is_sound)):
        if not is_sound:
            raise UnsoundLogits(f"{whose} logits hold NaN or infinity")
    count = min(accepted_drafts + 1, rows)
    return Accepted(tokens[:count], on_device if len(tokens) == count else on_device[:count], accepted_drafts, along)
