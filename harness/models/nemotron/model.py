"""The Nemotron family as schedules see it: calls in, logits out, on a stock Ministral3 backbone.

The backbone is called with explicit 4D boolean masks, position ids and our cache. SDPA attention is required: eager
attention adds a boolean mask to the scores and is silently wrong (transformers 5.24).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Ministral3ForCausalLM

from harness.models.cache import KeyValueCache
from harness.models.nemotron.adapter import ProposalAdapter
from harness.models.nemotron.layout import Layout, prompt_layout, regular_layout
from schedules.call import AdapterRows, Call, Output, Proposals


@dataclass(frozen=True)
class _Prepared:
    """A layout's tensors on the device, built once for each shape of call.

    `mask` has all-True columns for the longest cached prefix before the layout's own, so that the mask for any
    prefix is a slice. `kept` lists proposal rows first: the verifier rows of a draft of k tokens are then a slice too.
    """

    layout: Layout
    token_ids: Tensor  # int64 [rows], masks everywhere
    offsets: Tensor  # int64 [rows]
    mask: Tensor  # bool [rows, prefix capacity + rows]
    kept: Tensor  # int64 [proposals + verifier rows]


class NemotronModel:
    """A tri-mode model: causal verifier and block-masked drafter in one set of weights.

    Batch size 1. Not thread-safe. Calls run without gradients.
    """

    is_same_position = False

    def __init__(self, backbone: Ministral3ForCausalLM, mask_id: int, adapter: ProposalAdapter | None = None):
        """Takes over a backbone.

        Args:
          backbone: on its device, with SDPA attention.
          mask_id: token id of MASK.
          adapter: the proposal-only adapter that wraps this backbone's projections.

        Raises:
          ValueError: the backbone was built for another attention backend.
        """
        attention = backbone.config._attn_implementation
        if attention != "sdpa":
            raise ValueError(f"attention backend: got {attention}, the layouts need sdpa")
        config = backbone.config
        self.backbone = backbone.eval()
        self.mask_id = mask_id
        self.adapter = adapter
        self.device = backbone.device
        self.cache = KeyValueCache(
            config.num_hidden_layers,
            config.num_key_value_heads,
            config.head_dim,
            backbone.dtype,
            self.device,
        )
        self._prepared: dict[tuple, _Prepared] = {}
        self._prompt: Tensor | None = None  # not processed yet
        self._last: Tensor  # int64 [1], the last verified token
        self._length = 0  # of the verified prefix, prompt included

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Takes `prompt` as the verified prefix; reserves cache for it and the new tokens."""
        self._prompt = torch.tensor(prompt, device=self.device)
        self._last = self._prompt[-1:]
        self._length = len(prompt)
        self.cache.length = 0
        self.cache.reserve(len(prompt) + max_new_tokens)

    @torch.inference_mode()
    def evaluate(self, call: Call) -> Output:
        """One forward pass; see `schedules.call.Model`."""
        if self._prompt is not None:
            return self._evaluate_prompt(call)
        return self._evaluate_regular(call)

    def commit(self, tokens: Tensor) -> None:
        """Accepts `tokens`: the cache then holds the verified prefix without its last token."""
        self._last = tokens[-1:]
        self._length += tokens.shape[0]
        self.cache.length = self._length - 1

    def _evaluate_prompt(self, call: Call) -> Output:
        layout = prompt_layout(self._length, call.width, call.draft is not None, proposes=bool(call.branches))
        prepared = self._prepare(layout, prefix_capacity=0)
        prepared.token_ids[: self._length] = self._prompt
        self._prompt = None
        output = self._forward(prepared, prepared.token_ids, call, verifier_count=1)
        self.cache.length = self._length - 1
        return output

    def _evaluate_regular(self, call: Call) -> Output:
        key = (call.width, call.draft is not None, tuple(call.branches))
        prepared = self._prepared.get(key)
        if prepared is None or prepared.mask.shape[1] < self.cache.length + prepared.layout.rows:
            prepared = self._prepare(regular_layout(*key), prefix_capacity=self.cache.capacity)
            self._prepared[key] = prepared
        token_ids = prepared.token_ids.clone()
        for row in prepared.layout.last_rows:
            token_ids[row : row + 1] = self._last
        drafted = 0
        if call.draft is not None:
            drafted = len(call.draft)
            token_ids[1 : drafted + 1] = call.draft.tokens
        return self._forward(prepared, token_ids, call, verifier_count=drafted + 1)

    def _forward(self, prepared: _Prepared, token_ids: Tensor, call: Call, verifier_count: int) -> Output:
        layout = prepared.layout
        proposals = layout.proposal_rows.shape[0]
        verifier_count = min(verifier_count, layout.verifier_rows)
        self.cache.reserve(self.cache.length + layout.rows)
        if self.adapter is not None:
            self.adapter.first_row = layout.proposal_start if call.branches else None
        prefix_columns = prepared.mask.shape[1] - layout.rows - self.cache.length
        logits = self.backbone(
            input_ids=token_ids[None],
            attention_mask=prepared.mask[None, None, :, prefix_columns:],
            position_ids=(prepared.offsets + (self._length - 1))[None],
            cache=self.cache,
            use_cache=True,
            logits_to_keep=prepared.kept[: proposals + verifier_count],
        ).logits[0]
        return Output(
            verifier=logits[proposals:],
            proposals=_by_branch(logits[:proposals], call.branches, layout.first_offset),
            rows=layout.rows,
            adapter_rows=self.adapter.rows_of(layout.rows) if self.adapter else AdapterRows(),
        )

    def _prepare(self, layout: Layout, prefix_capacity: int) -> _Prepared:
        prefix = torch.ones(layout.rows, prefix_capacity, dtype=torch.bool)
        first = layout.verifier_row
        verifier = torch.arange(first, first + layout.verifier_rows)
        return _Prepared(
            layout=layout,
            token_ids=torch.full((layout.rows,), self.mask_id, device=self.device),
            offsets=layout.offsets.to(self.device),
            mask=torch.cat([prefix, layout.sees], dim=1).to(self.device),
            kept=torch.cat([layout.proposal_rows, verifier]).to(self.device),
        )


def _by_branch(logits: Tensor, branches: Sequence[int], first_offset: int) -> Proposals | None:
    """Proposal rows, [branches x kept, vocab], as the call's proposals; None without branches."""
    if not branches:
        return None
    kept = logits.shape[0] // len(branches)
    by_branch = logits.view(len(branches), kept, logits.shape[-1])
    return Proposals(by_branch, branches, [branch + first_offset for branch in branches])
