"""Atlases that are made up, and the table model that proposes what they hold."""

import numpy as np

from harness.records.atlas import KINDS, Atlas, PromptAtlas, Proposed
from tests.builders.table_model import TableModel, one_hot

RIGHT, WRONG, EOS = 1, 0, 2
PROMPT = [7]


def made_prompt(
    correct: np.ndarray, ends: bool = False, prompt_id: str = "p0", width: int | None = None
) -> PromptAtlas:
    """A response of as many tokens as `correct` has contexts: bool [contexts, W + 1], right from offset 1 on.

    Args:
      ends: whether its last token is EOS.
    """
    contexts, offsets = correct.shape
    tokens = np.full(contexts, RIGHT, dtype=np.int32)
    if ends and contexts:
        tokens[-1] = EOS
    positions = np.arange(contexts)[:, None] + np.arange(offsets)
    emitted = np.concatenate([tokens, np.full(offsets, RIGHT, dtype=np.int32)])[positions]
    proposed = np.where(correct, emitted, WRONG).astype(np.int32)
    width = offsets - 1
    regions = {kind: proposed[:, : width + (kind == "branch")] for kind in KINDS}
    return PromptAtlas(
        prompt_id=prompt_id,
        prompt_tokens=len(PROMPT),
        tokens=tokens,
        gaps=np.ones(contexts, dtype=np.float32),
        proposed={(kind, width): Proposed(one, np.ones(one.shape, np.float32)) for kind, one in regions.items()},
    )


def threshold_prompt(lags: list[int], width: int) -> PromptAtlas:
    """Position k, from 1, is proposed right from contexts of at least k - lags[k - 1] tokens (assumption 3.1)."""
    length = len(lags)
    reach = np.array([*lags, *[0] * (width + 1)])
    distance = np.arange(1, width + 2)
    return made_prompt(distance <= reach[np.arange(length)[:, None] + distance - 1])


def made_atlas(*prompts: PromptAtlas) -> Atlas:
    return Atlas("made", "up", prompts, len(prompts))


def table_model(prompt: PromptAtlas) -> TableModel:
    """Emits a made prompt's tokens, then RIGHT for ever; proposes what it holds, WRONG where it holds nothing."""
    (width,) = prompt.widths
    proposed = prompt.proposed["branch", width].tokens

    def verifier(prefix):
        known = len(prefix) - len(PROMPT)
        return one_hot(int(prompt.tokens[known]) if known < len(prompt.tokens) else RIGHT, 3)

    def drafter(context, offset):
        known = len(context) - len(PROMPT)
        return one_hot(int(proposed[known, offset - 1]) if known < len(proposed) else WRONG, 3)

    return TableModel(verifier, drafter)
