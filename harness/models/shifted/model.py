"""A family with a causal, shifted verifier as schedules see it: calls in, logits out, on a stock backbone.

Its modules are called with explicit 4D boolean masks, position ids and our cache (`harness.models.execution.forward`).
What a family adds are its layouts.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from harness.models.execution.cache import KeyValueCache
from harness.models.execution.engine import Eager, Engine, bucket
from harness.models.execution.forward import Rows
from harness.models.shifted.adapter import ProposalAdapter
from harness.models.shifted.layout import Layout
from schedules.call import AdapterRows, Call, Output, Proposals


@dataclass(frozen=True)
class _Prepared:
    """A layout's tensors on the device, built once for each shape of call.

    `mask` has all-True columns for the longest cached prefix before the layout's own columns and all-False ones behind
    them, so that the mask for any prefix is a slice. `kept` lists proposal rows first: the verifier rows of a draft of
    k tokens are then a slice too. Token ids are put together from `last`, the draft and `masks`.
    """

    layout: Layout
    offsets: Tensor  # int64 [1, rows]
    mask: Tensor  # bool [1, 1, rows, prefix capacity + rows + unused columns]
    prefix_capacity: int
    kept: Tensor  # int64 [proposals + verifier rows]


class ShiftedModel(ABC):
    """A causal verifier and a drafter that fills in masks, on one backbone. Subclasses say how calls are laid out.

    Batch size 1. Not thread-safe. Calls run without gradients.
    """

    is_same_position = False

    def __init__(
        self,
        backbone: PreTrainedModel,
        mask_id: int,
        adapter: ProposalAdapter | None = None,
        engine: Engine | None = None,
    ):
        """Takes over a backbone.

        Args:
          backbone: on its device.
          mask_id: token id of MASK.
          adapter: the proposal-only adapter that wraps this backbone's projections.
          engine: executes forward passes; eager by default.
        """
        config = backbone.config
        self.backbone = backbone.eval()
        self.mask_id = mask_id
        self.adapter = adapter
        self.engine = engine or Eager()
        self.device = backbone.device
        self.cache = KeyValueCache(
            config.num_hidden_layers,
            config.num_key_value_heads,
            config.head_dim,
            backbone.dtype,
            self.device,
        )
        self._prepared: dict[tuple, _Prepared] = {}
        self._masks = torch.empty(0, dtype=torch.int64, device=self.device)
        self._prompt: Tensor | None = None  # not processed yet
        self._last: Tensor  # int64 [1], the last verified token
        self._length = 0  # of the verified prefix, prompt included

    @staticmethod
    @abstractmethod
    def _regular_layout(width: int, verifies: bool, branches: Sequence[int]) -> Layout:
        """The layout of every call but the first."""

    @staticmethod
    @abstractmethod
    def _prompt_layout(prompt_length: int, width: int, verifies: bool, proposes: bool, padding: int) -> Layout:
        """The layout of the first call, with `padding` rows behind the prompt which no other row sees."""

    def reserve(self, tokens: int) -> None:
        """Told that no prompt and response are longer than `tokens` together; the cache then grows no more."""
        self.cache.promise(tokens)

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Takes `prompt` as the verified prefix."""
        self._prompt = torch.tensor(prompt, device=self.device)
        self._last = self._prompt[-1:]
        self._length = len(prompt)
        self.cache.length = 0
        self.reserve(len(prompt) + max_new_tokens)

    @torch.inference_mode()
    def evaluate(self, call: Call) -> Output:
        """One forward pass; see `schedules.call.Model`."""
        if self._prompt is not None:
            return self._evaluate_prompt(call)
        return self._evaluate_regular(call)

    def commit(self, tokens: Tensor) -> None:
        """Accepts `tokens`: the cache then holds the verified prefix without its last token."""
        self._last = tokens if tokens.shape[0] == 1 else tokens[-1:]
        self._length += tokens.shape[0]
        self.cache.length = self._length - 1

    def _evaluate_prompt(self, call: Call) -> Output:
        engine = self.engine if self.engine.pads_prompts else Eager()
        padding = bucket(self._length) - self._length if engine.pads_prompts else 0
        verifies, proposes = call.draft is not None, bool(call.branches)
        with self.device:  # made there: it is another one for each length of prompt, and would have to be sent
            layout = self._prompt_layout(self._length, call.width, verifies, proposes, padding)
        token_ids = torch.cat([self._prompt, self._masked(layout.rows - self._length)])
        self._prompt = None
        self.cache.make_room(layout.rows - self._length)
        unused = self.cache.capacity - layout.rows if engine.has_fixed_shapes else 0
        prepared = self._prepare(layout, prefix=0, unused=unused)
        output = self._output(prepared, token_ids, call, engine, verifier_rows=layout.verifier_rows)
        self.cache.length = self._length - 1
        return output

    def _evaluate_regular(self, call: Call) -> Output:
        key = (call.width, call.draft is not None, tuple(call.branches))
        prepared = self._prepared.get(key)
        layout = prepared.layout if prepared else self._regular_layout(*key)
        self.cache.make_room(layout.rows)
        if prepared is None or prepared.prefix_capacity < self.cache.capacity:
            prepared = self._prepared[key] = self._prepare(layout, self.cache.capacity, self.cache.capacity)
        drafted = 0 if call.draft is None else len(call.draft)
        token_ids = self._token_ids(layout, call.draft.tokens if drafted else None)
        return self._output(prepared, token_ids, call, self.engine, min(drafted + 1, layout.verifier_rows))

    def _token_ids(self, layout: Layout, draft: Tensor | None) -> Tensor:
        """What a regular call reads, int64 [rows]: the last token, behind its first place the draft, else masks."""
        parts, filled = [], 0
        for row in layout.last_rows:
            if row > filled:
                parts.append(self._masked(row - filled))
            parts.append(self._last)
            filled = row + 1
            if row == 0 and draft is not None:
                parts.append(draft)
                filled += draft.shape[0]
        if filled < layout.rows:
            parts.append(self._masked(layout.rows - filled))
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _output(self, prepared: _Prepared, token_ids: Tensor, call: Call, engine: Engine, verifier_rows: int) -> Output:
        """One forward pass of `engine`, and its logits as the call's answer."""
        layout, proposals = prepared.layout, prepared.layout.proposal_rows.shape[0]
        if self.adapter is not None:
            self.adapter.first_row = layout.proposal_start if call.branches else None
        columns = self.cache.capacity if engine.has_fixed_shapes else self.cache.length + layout.rows
        wanted = proposals + verifier_rows
        rows = Rows(
            token_ids=token_ids[None],
            positions=prepared.offsets + (self._length - 1),
            mask=prepared.mask.narrow(3, prepared.prefix_capacity - self.cache.length, columns),
            kept=prepared.kept if engine.has_fixed_shapes else _first(prepared.kept, wanted),
        )
        shape = (layout.rows, rows.kept.shape[0], layout.proposal_start)
        logits = engine.forward(self.backbone, self.cache, rows, shape)
        return Output(
            verifier=_first(logits, wanted)[proposals:] if proposals else _first(logits, wanted),
            proposals=_by_branch(logits[:proposals], call.branches, layout.first_offset) if call.branches else None,
            rows=layout.rows,
            adapter_rows=self.adapter.rows_of(layout.rows) if self.adapter else AdapterRows(),
        )

    def _masked(self, rows: int) -> Tensor:
        """MASK ids, int64 [rows]."""
        if rows > self._masks.shape[0]:
            self._masks = torch.full((rows,), self.mask_id, device=self.device)
        return self._masks[:rows]

    def _prepare(self, layout: Layout, prefix: int, unused: int) -> _Prepared:
        """The tensors of `layout` behind at most `prefix` cached rows and before at most `unused` others."""
        sees = functional.pad(functional.pad(layout.sees, (prefix, 0), value=True), (0, unused), value=False)
        first = layout.verifier_row
        verifier = torch.arange(first, first + layout.verifier_rows, device=layout.sees.device)
        return _Prepared(
            layout=layout,
            offsets=layout.offsets[None].to(self.device),
            mask=sees[None, None].to(self.device),
            prefix_capacity=prefix,
            kept=torch.cat([layout.proposal_rows, verifier]).to(self.device),
        )


def _first(tensor: Tensor, count: int) -> Tensor:
    """The first `count` rows; the tensor itself where it has no more, which is most calls."""
    return tensor if tensor.shape[0] == count else tensor[:count]


def _by_branch(logits: Tensor, branches: Sequence[int], first_offset: int) -> Proposals:
    """Proposal rows, [branches x kept, vocab], as the call's proposals."""
    kept = logits.shape[0] // len(branches)
    by_branch = logits.view(len(branches), kept, logits.shape[-1])
    return Proposals(by_branch, branches, [branch + first_offset for branch in branches])
