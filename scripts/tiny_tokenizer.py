"""The byte-level BPE tokenizer of the embedded models, trained on their toy languages.

Every byte is a token, so any text can be encoded; digits always stand alone, so that numbers cost the same to read
and to write whatever their value.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, TURN_START, TURN_END, MASK = "<|pad|>", "<|im_start|>", "<|im_end|>", "<|mask|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with the chat template, end-of-turn token and mask token of the tiny models.

    Args:
      texts: training texts without chat markup; the roles' names are added here.
      vocab_size: size including the 256 bytes and the four special tokens.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\d"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, TURN_START, TURN_END, MASK],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, *["system\n", "user\n", "assistant\n"] * 1000], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=TURN_END,
        mask_token=MASK,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
