"""Starts decoding a prompt in the way that the model's family needs."""

from collections.abc import Sequence

from schedules.call import Model
from schedules.decoding import Decoding, PrefixDecoding, Rule
from schedules.order import LeftToRight, Order
from schedules.response import Stop
from schedules.window_decoding import ScoreSource, WindowDecoding


def begin(
    model: Model,
    prompt: Sequence[int],
    rule: Rule,
    stop: Stop,
    width: int,
    order: Order | None = None,
    scores_from: ScoreSource = "draft",
) -> Decoding:
    """The state of a new response.

    Args:
      order: verification order; None is left to right.
      scores_from: what a confidence order looks at.

    Raises:
      ValueError: the prompt is empty, or the family cannot decode in this order or at this temperature.
    """
    order = order or LeftToRight()
    if model.is_same_position:
        return WindowDecoding(model, prompt, rule, stop, width, order, scores_from)
    if not isinstance(order, LeftToRight):
        raise ValueError(f"order: got {order.name}; this model's verifier is causal and decodes left to right only")
    return PrefixDecoding(model, prompt, rule, stop, width)
