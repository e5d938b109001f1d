"""Tokenizers with chat templates, checked against the model that they come with before any weights are read."""

from pathlib import Path

from transformers import PreTrainedTokenizerFast

from harness.errors import UserError
from harness.models.loading.source import EMBEDDED

# Random weights read any token ids; this tokenizer's are valid in every larger vocabulary.
STAND_IN = "embedded:tiny_nemotron"
PROBE = "What is 2 + 2?"


def stand_in_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of STAND_IN, for models that have none of their own here."""
    return PreTrainedTokenizerFast.from_pretrained(EMBEDDED / STAND_IN.removeprefix("embedded:"))


def chat_tokenizer(folder: Path, vocab_size: int, mask_id: int | None, bos_id: int | None) -> PreTrainedTokenizerFast:
    """The tokenizer in `folder`.

    Args:
      vocab_size, mask_id, bos_id: of the model; None for a token that it has not.

    Raises:
      UserError: it is not there, has no chat template, another mask token, or a template that gives ids beyond the
        vocabulary, a mask, a second BOS, or an opened thinking block.
    """
    if not (folder / "tokenizer.json").exists():
        raise UserError(f"model: {folder} has no tokenizer.json. Is it a checkpoint's, or its base model's, folder?")
    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    # Anything, as tokenizers' own errors are of no class but Exception.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"model: cannot read the tokenizer in {folder} ({reason}). Fetch it again.") from None
    if tokenizer.chat_template is None:
        raise UserError(
            f"model: the tokenizer in {folder} has no chat template. Is it an instruct checkpoint, and for SetDLM the "
            "base model's folder?"
        )
    if mask_id is not None and tokenizer.mask_token_id not in (None, mask_id):
        raise UserError(
            f"model: mask token {mask_id} in the checkpoint, {tokenizer.mask_token_id} in the tokenizer of {folder}. "
            "Check that weights and tokenizer belong together."
        )
    _check_prompt(tokenizer, folder, vocab_size, mask_id, bos_id)
    return tokenizer


def _check_prompt(
    tokenizer: PreTrainedTokenizerFast, folder: Path, vocab_size: int, mask_id: int | None, bos_id: int | None
) -> None:
    message = [{"role": "user", "content": PROBE}]
    ids = tokenizer.apply_chat_template(message, add_generation_prompt=True, enable_thinking=False)["input_ids"]
    text = tokenizer.decode(ids)
    problems = {
        f"ids from {vocab_size} on": max(ids) >= vocab_size,
        f"the mask {mask_id}": mask_id in ids,
        f"BOS {bos_id} twice": bos_id is not None and ids.count(bos_id) > 1,
        "thinking not switched off": text.count("<think>") > text.count("</think>"),
    }
    wrong = [what for what, is_so in problems.items() if is_so]
    if wrong:
        raise UserError(
            f"model: the chat template in {folder} gives a prompt with {', '.join(wrong)}. Check that weights and "
            "tokenizer belong together."
        )
