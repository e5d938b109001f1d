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
      has_random_weights: whether nothing that it says means anything; what it costs does.
      facts: what a manifest should say about it (dtype, device, attention backend, source, hashes).
    """

    name: str
    model: Model
    tokenizer: PreTrainedTokenizerBase
    eos_ids: frozenset[int]
    context_length: int
    adapter: str | None = None
    has_random_weights: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def encode(self, prompt: str, thinking: bool = False) -> Sequence[int]:
        """Token ids of `prompt` as a user's message, up to where the response starts.

        Args:
          thinking: what the chat template is told about it; Qwen3's puts an empty think block where it is off.
        """
        return self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            enable_thinking=thinking,
        )["input_ids"]

    def markers(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Token ids of texts that end a response, each tokenized on its own."""
        return [self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens without special tokens."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True)
