"""The Nemotron family as schedules see it: causal verifier and block-masked drafter in one set of weights."""

from harness.models.nemotron.layout import prompt_layout, regular_layout
from harness.models.shifted.model import ShiftedModel


class NemotronModel(ShiftedModel):
    """A tri-mode model on a stock Ministral3 backbone."""

    _regular_layout = staticmethod(regular_layout)
    _prompt_layout = staticmethod(prompt_layout)
