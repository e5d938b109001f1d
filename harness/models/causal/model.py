"""The causal family as schedules see it: a plain causal model verifies, and its drafter proposes."""

from transformers import PreTrainedModel

from harness.errors import UserError
from harness.models.causal.drafter import Drafter
from harness.models.causal.layout import prompt_layout, regular_layout
from harness.models.execution.engine import Engine
from harness.models.shifted.model import ShiftedModel
from schedules.call import Call, Output

NO_DRAFTER = (
    "this model has no drafter, and decodes autoregressively alone. Use schedule=autoregressive, give one with "
    "drafter=DIR, or train one: python -m harness train-drafter model=NAME out=DIR."
)


class CausalModel(ShiftedModel):
    """A stock causal model; with a drafter around it, one that proposes too."""

    _regular_layout = staticmethod(regular_layout)
    _prompt_layout = staticmethod(prompt_layout)

    def __init__(self, backbone: PreTrainedModel, drafter: Drafter | None = None, engine: Engine | None = None):
        """Takes over a backbone.

        Args:
          backbone: on its device.
          drafter: that was put on this backbone.
          engine: executes forward passes; eager by default.
        """
        # The id behind the vocabulary's last: no token has it. The drafter gives it its vector.
        mask_id = backbone.config.vocab_size
        super().__init__(backbone, mask_id, drafter.adapter if drafter else None, engine)
        self.drafter = drafter

    def evaluate(self, call: Call) -> Output:
        """One forward pass; see `schedules.call.Model`.

        Raises:
          UserError: the call has masks, and there is no drafter.
        """
        if self.drafter is None and call.width:
            raise UserError(f"schedule: {NO_DRAFTER}")
        return super().evaluate(call)
