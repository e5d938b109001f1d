"""A loaded model with its tokenizer: what the runner and a notebook hold in their hands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedTokenizerBase

from schedules.call import Model


@dataclass(frozen=True)
class LanguageModel:
    """A model that answers calls, and the text around it.

    Attributes:
      name: the name of its config.
      model: answers calls.
      tokenizer: with a chat template.
      eos_ids: token ids that end a response.
      context_length: positions that prompt and response may take together, in tokens.
      adapter: name of its proposal-only adapter, if it has one.
      facts: what a manifest should say about it (dtype, device, attention backend, source, hashes).
    """

    name: str
    model: Model
    tokenizer: PreTrainedTokenizerBase
    eos_ids: frozenset[int]
    context_length: int
    adapter: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, prompt: str) -> Sequence[int]:
        """Token ids of `prompt` as a user's message, with thinking off, up to where the response starts."""
        return self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            enable_thinking=False,
        )["input_ids"]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens without special tokens."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True)
