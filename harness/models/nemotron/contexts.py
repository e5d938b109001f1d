"""Proposals from many contexts of a known text in few forward passes (Nemotron family, appendix D.1).

Once the text is known, nothing has to be verified, and what a drafter proposes from a context of c output tokens
depends on these tokens alone. So the text's keys and values are computed once, causally, and regions of masks from
any contexts, of any widths, are evaluated side by side: each sees the cached text up to its own context, and itself.

    fresh   [last, MASK x W]      sees the text before its last token; that token's copy sees the masks.
                                  Linear's drafting call, and the sole branch {0} of Packed's calls
    branch  [MASK x (W + 1)]      sees the text with its last token, a causal row.
                                  A branch of several, and the masks of the prompt's call

Example: text t1 t2 t3 cached; regions at W = 1, fresh from a context of 2 and branch from one of 3:

                     t1 t2 t3 | last M | M  M
        fresh  last  x  .  .  |  x   x | .  .
        c = 2  M     x  .  .  |  x   x | .  .
        branch M     x  x  x  |  .   . | x  x
        c = 3  M     x  x  x  |  .   . | x  x

Trade-off: rows of one pass differ from those of a schedule's own calls in number, so logits differ from theirs in the
last bits, as they do between two schedules.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass
from harness.models.nemotron.model import NemotronModel

ROWS = 512  # of one pass, at most; more than one region where they are short


@dataclass(frozen=True)
class Region:
    """Masks after a context.

    Attributes:
      context: output tokens that it sees.
      width: speculative width W.
      is_fresh: whether it begins with a copy of the last token that sees the masks.
    """

    context: int
    width: int
    is_fresh: bool

    @property
    def rows(self) -> int:
        """Token rows: W + 1 in both layouts."""
        return self.width + 1

    @property
    def proposals(self) -> int:
        """Predicted offsets 1, 2, ..."""
        return self.width if self.is_fresh else self.width + 1


@dataclass(frozen=True)
class RegionLayout:
    """Rows of one pass.

    Attributes:
      sees: bool [rows, cached + rows].
      offsets: int64 [rows]; positions relative to the text's first output token.
      last_rows: rows that hold the last token of their region's context.
      last_contexts: the context of each of these.
      proposal_rows: int64; mask rows, region by region, offsets ascending.
    """

    sees: Tensor
    offsets: Tensor
    last_rows: Sequence[int]
    last_contexts: Sequence[int]
    proposal_rows: Tensor


def region_layout(regions: Sequence[Region], prompt_length: int, cached: int) -> RegionLayout:
    """The layout of `regions` behind `cached` rows of text, `prompt_length` of which are the prompt's."""
    rows = sum(region.rows for region in regions)
    sees = torch.zeros(rows, cached + rows, dtype=torch.bool)
    offsets, last_rows, proposal_rows = [], [], []
    start = 0
    for region in regions:
        end = start + region.rows
        copied = int(region.is_fresh)
        sees[start:end, : prompt_length + region.context - copied] = True
        sees[start:end, cached + start : cached + end] = True
        offsets.append(torch.arange(region.rows) + region.context - copied)
        proposal_rows.append(torch.arange(start + copied, end))
        if region.is_fresh:
            last_rows.append(start)
        start = end
    contexts = [region.context for region in regions if region.is_fresh]
    return RegionLayout(sees, torch.cat(offsets), last_rows, contexts, torch.cat(proposal_rows))


class Contexts:
    """A prompt with its continuation, cached, to propose from any context of it.

    Attributes:
      verifier: float [output, vocab]; logits for each output token given those before it.
    """

    def __init__(self, model: NemotronModel, prompt: Sequence[int], output: Sequence[int]):
        """Evaluates prompt and output causally in one pass.

        Args:
          output: token ids that follow the prompt, at least one.
        """
        backbone, config = model.backbone, model.backbone.config
        self._backbone, self._adapter, self._mask_id = backbone, model.adapter, model.mask_id
        self._prompt_length = len(prompt)
        # Nothing is proposed from a whole response, so its last token is never seen.
        self._text = torch.tensor([*prompt, *output[:-1]], device=model.device)
        self._cached = self._text.shape[0]
        self._cache = KeyValueCache(
            config.num_hidden_layers, config.num_key_value_heads, config.head_dim, backbone.dtype, model.device
        )
        causal = torch.ones(self._cached, self._cached, dtype=torch.bool).tril()
        rows = torch.arange(self._prompt_length - 1, self._cached)
        positions = torch.arange(self._cached)
        self.verifier = self._forward(self._text, causal, positions, rows, proposes=False)
        self._cache.length = self._cached

    def propose(self, regions: Sequence[Region]) -> Iterator[tuple[Region, Tensor]]:
        """Each region with its logits, float [proposals, vocab], as many regions a pass as fit."""
        for chunk in _chunks(regions):
            layout = region_layout(chunk, self._prompt_length, self._cached)
            tokens = torch.full((layout.offsets.shape[0],), self._mask_id, device=self._text.device)
            contexts = torch.tensor(layout.last_contexts, dtype=torch.int64, device=tokens.device)
            tokens[layout.last_rows] = self._text[contexts + (self._prompt_length - 1)]
            positions = layout.offsets + self._prompt_length
            logits = self._forward(tokens, layout.sees, positions, layout.proposal_rows, proposes=True)
            yield from zip(chunk, logits.split([region.proposals for region in chunk]), strict=True)

    @torch.inference_mode()
    def _forward(self, tokens: Tensor, sees: Tensor, positions: Tensor, kept: Tensor, proposes: bool) -> Tensor:
        device = tokens.device
        self._cache.reserve(self._cache.length + tokens.shape[0])
        if self._adapter is not None:
            self._adapter.first_row = 0 if proposes else None
        rows = Rows(
            token_ids=tokens[None],
            positions=positions[None].to(device),
            mask=sees[None, None].to(device),
            kept=kept.to(device),
        )
        return forward_pass(self._backbone, self._cache, rows)


def _chunks(regions: Sequence[Region]) -> Iterator[Sequence[Region]]:
    chunk: list[Region] = []
    for region in regions:
        if chunk and sum(one.rows for one in chunk) + region.rows > ROWS:
            yield chunk
            chunk = []
        chunk.append(region)
    if chunk:
        yield chunk
