"""A model's own greedy responses to prompts, many at a time; and the prompts that it writes itself.

Both are kept as they come, one line a batch, so that work goes on where it was killed: a torn last line is taken away.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from harness.models.language_model import LanguageModel
from harness.training.prompts import requests

BATCH = 24
QUESTION_TOKENS = 128  # of a question that the model writes, at most
SAMPLING = {"do_sample": True, "temperature": 0.8, "top_p": 0.9, "top_k": 0}
LONGEST_PROMPT = 512  # tokens


@dataclass(frozen=True)
class Example:
    """Token ids of a prompt, and of the model's response to it, which ends with EOS unless it was cut."""

    prompt: Sequence[int]
    response: Sequence[int]


class Lines:
    """A file of JSON lines that is added to."""

    def __init__(self, path: Path):
        """Takes away a last line that a killed process did not finish."""
        self.path = path
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            path.write_bytes(whole)
        self.read: list[Any] = [json.loads(line) for line in whole.splitlines()]

    def append(self, value: Any) -> None:
        """Adds one line."""
        with self.path.open("a") as file:
            file.write(json.dumps(value) + "\n")
        self.read.append(value)


class Speaker:
    """A loaded model that answers many prompts at a time, by the decoding loop of transformers."""

    def __init__(self, model: LanguageModel, seed: int):
        """`seed`: of what is sampled."""
        self._model, self._seed = model, seed

    def write_prompts(self, number: int) -> Sequence[str]:
        """The prompts of batch `number` that the model writes itself: at most BATCH of them."""
        batch = requests(BATCH, f"{self._seed}/{number}")
        openings = [self._model.tokenizer(request.opening, add_special_tokens=False)["input_ids"] for request in batch]
        asked = [[*self._model.encode(one.text), *opening] for one, opening in zip(batch, openings, strict=True)]
        digest = hashlib.sha256(f"{self._seed}/{number}".encode()).digest()
        with torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(digest[:7]))
            written = self._generate(asked, QUESTION_TOKENS, **SAMPLING)
        prompts = [request.prompt(self._model.text(tokens)) for request, tokens in zip(batch, written, strict=True)]
        return [prompt for prompt in prompts if prompt]

    def answer(self, prompts: Sequence[str], max_new_tokens: int) -> Sequence[Example]:
        """The model's greedy responses, of `max_new_tokens` at most; prompts that are too long have none."""
        asked = [self._model.encode(prompt) for prompt in prompts]
        asked = [ids for ids in asked if len(ids) <= LONGEST_PROMPT]
        if not asked:
            return []
        answered = self._generate(asked, max_new_tokens, do_sample=False)
        return [Example(prompt, response) for prompt, response in zip(asked, answered, strict=True)]

    @torch.inference_mode()
    def _generate(self, asked: Sequence[Sequence[int]], max_new_tokens: int, **how: Any) -> Sequence[Sequence[int]]:
        backbone, ends = self._model.model.backbone, self._model.eos_ids
        pad = min(ends)
        longest = max(map(len, asked))
        ids = torch.tensor([[pad] * (longest - len(one)) + list(one) for one in asked], device=backbone.device)
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in asked], device=backbone.device)
        found = backbone.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=max_new_tokens,
            eos_token_id=sorted(ends),
            pad_token_id=pad,
            **how,
        )
        return [_to_eos(row, ends) for row in found[:, longest:].tolist()]


def _to_eos(tokens: Sequence[int], ends: frozenset[int]) -> Sequence[int]:
    end = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
    return tokens[: end + 1]
