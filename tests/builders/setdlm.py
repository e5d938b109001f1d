"""Small SetDLM-like models with random weights, and the slow reference for one query."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from harness.models.setdlm.model import SUPPRESSED, SetDlmModel
from schedules.call import Call, Draft, Output, Window

MASK_ID = 3
VOCAB = 40
PROMPT = (7, 11, 5, 23, 8)


def backbone_config(**changes) -> Qwen3Config:
    """Two layers whose query width differs from the hidden size, grouped keys, tied head; vivid logits."""
    fields = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": None,
        "initializer_range": 0.3,
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
        "attn_implementation": "sdpa",
    }
    return Qwen3Config(**fields | changes)


def random_backbone(seed: int, dtype: torch.dtype = torch.float32) -> Qwen3ForCausalLM:
    """A backbone of `backbone_config` with random weights."""
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(backbone_config()).to(dtype).eval()


def begun_model(
    seed: int, dtype: torch.dtype = torch.float32, prompt: Sequence[int] = PROMPT, cap: int = 40
) -> SetDlmModel:
    """A model around `random_backbone` whose prompt is cached."""
    model = SetDlmModel(random_backbone(seed, dtype), MASK_ID)
    model.begin(prompt, cap)
    model.evaluate(Call(8, None))
    return model


def draft_call(positions: Sequence[int]) -> Call:
    """Linear's first call: proposals for `positions`, nothing to verify."""
    return Call(8, None, (0,), Window(positions, [False] * len(positions)))


def verify_call(positions: Sequence[int], draft: Sequence[int | None], branches: Sequence[int] = ()) -> Call:
    """Verifies `draft` (None: no token at that rank) at `positions`; proposes for `branches`."""
    tokens = torch.tensor([0 if token is None else token for token in draft])
    return Call(8, Draft(tokens), branches, Window(positions, [token is not None for token in draft]))


@torch.no_grad()
def masked_query(backbone: Qwen3ForCausalLM, prompt: Sequence[int], pairs: Sequence[tuple[int, int]], position: int):
    """Logits [vocab] of one mask at `position` behind prompt and `pairs` (position, token), all in one plain call.

    No cache: the prompt and then the pairs in their order, causal, and the mask last.
    """
    tokens = [*prompt, *(token for _, token in pairs), MASK_ID]
    places = [*range(len(prompt)), *(len(prompt) + place - 1 for place in [*(place for place, _ in pairs), position])]
    rows = len(tokens)
    logits = backbone(
        input_ids=torch.tensor([tokens]),
        position_ids=torch.tensor([places]),
        attention_mask=torch.ones(1, 1, rows, rows, dtype=torch.bool).tril(),
        use_cache=False,
    ).logits[0, -1]
    logits[MASK_ID] = SUPPRESSED
    return logits


def all_logits(output: Output) -> Tensor:
    """Verifier rows, then proposal rows branch by branch: [rows, vocab]."""
    parts = [output.verifier]
    if output.proposals is not None:
        parts.append(output.proposals.logits.flatten(0, 1))
    return torch.cat(parts)


def paper_mask(ranks: int, context: int, branches: list[int], drafted: list[bool]) -> torch.Tensor:
    """D.2's rules, row by row: rows are (region, branch, rank)."""
    rows = [("N", 0, index) for index in range(context)]
    rows += [(region, 0, rank) for region in "OM" for rank in range(1, ranks + 1)]
    rows += [("R", branch, rank) for branch in branches for rank in range(1, ranks + 1)]

    def sees(row: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
        (region, branch, rank), (seen_region, _, seen_rank) = row, other
        if row == other:
            return True
        if seen_region == "N":
            return region != "N" or seen_rank < rank
        if seen_region == "O" and region != "N":
            return drafted[seen_rank - 1] and (seen_rank <= branch if region == "R" else seen_rank < rank)
        return False

    return torch.tensor([[sees(row, other) for other in rows] for row in rows])
