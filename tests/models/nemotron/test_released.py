"""Checkpoints in the released layout: they load and compute what they should, or what is wrong is named."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.ministral3.modeling_ministral3 import Ministral3RotaryEmbedding

from harness.config.compose import compose
from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.models.nemotron.loader import NemotronLoader
from harness.running.build import find_model
from schedules import Autoregressive, Branches, Call, Draft, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.released_nemotron import (
    CONFIG,
    EOS,
    MASK,
    TOKENIZER,
    logits_by_hand,
    released_tensors,
    write_checkpoint,
)

PROMPT = [5, 80, 301, 44, 12, 700, 9, 33, 250, 61, 17, 402]
SHARD = "model-00002-of-00003.safetensors"
NORM = "encoder.norm.weight"


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    return released_tensors()


@pytest.fixture
def checkpoint(tmp_path, tensors) -> Path:
    return write_checkpoint(tmp_path / "checkpoint", tensors)


def load(folder: Path, name: str = "nemotron8b", **settings) -> LanguageModel:
    given = {"path": folder, "device": "cpu", "dtype": "float32"} | settings
    return find_model(
        compose([f"model={name}", *(f"model.{key}={value}" for key, value in given.items())]).model
    ).load()


def assert_close(logits: Tensor, expected: Tensor) -> None:
    assert (logits - expected).abs().max() < 2e-5 * expected.abs().max()


def test_prompt_and_draft_logits_are_those_of_the_description(checkpoint, tensors):
    """Rows [prompt | 4 masks] of a first call, then verification of a draft on the cache (D.1, E.2)."""
    model = load(checkpoint).model
    rows, ids = len(PROMPT) + 4, torch.tensor([*PROMPT, *[MASK] * 4])
    sees = torch.ones(rows, rows, dtype=torch.bool).tril()
    sees[len(PROMPT) :] = True
    by_hand = logits_by_hand(tensors, ids, torch.arange(rows), sees)
    model.begin(PROMPT, 20)
    first = model.evaluate(Call(3, Draft.empty(model.device), (0,)))
    assert_close(first.verifier, by_hand[len(PROMPT) - 1][None])
    assert_close(first.proposals.logits[0], by_hand[len(PROMPT) + 1 :])

    draft = [600, 14, 9]
    text = torch.tensor([*PROMPT, 77, *draft])
    causal = torch.ones(len(text), len(text), dtype=torch.bool).tril()
    by_hand = logits_by_hand(tensors, text, torch.arange(len(text)), causal)
    model.commit(torch.tensor([77]))
    output = model.evaluate(Call(3, Draft(torch.tensor(draft)), (0,)))
    assert_close(output.verifier, by_hand[len(PROMPT) :])


def test_greedy_tokens_are_equal_across_schedules_and_computed_by_hand(checkpoint, tensors):
    model = load(checkpoint)
    stop = Stop(24, model.eos_ids)
    text = list(PROMPT)
    while len(text) < len(PROMPT) + stop.max_new_tokens and EOS not in text[len(PROMPT) :]:
        causal = torch.ones(len(text), len(text), dtype=torch.bool).tril()
        text.append(int(logits_by_hand(tensors, torch.tensor(text), torch.arange(len(text)), causal)[-1].argmax()))
    for schedule in (Autoregressive(), Linear(7), Packed(7), Quadratic(3), Branches(5, [0, 2])):
        assert schedule.decode(model.model, PROMPT, Greedy(), stop).tokens == text[len(PROMPT) :], schedule


def test_the_config_is_translated_and_not_the_stock_default(checkpoint):
    model = load(checkpoint)
    config = model.model.backbone.config
    assert (config.pad_token_id, config.eos_token_id, config.sliding_window) == (None, EOS, None)
    assert (model.eos_ids, model.model.mask_id, model.context_length) == ({EOS}, MASK, 1024)
    assert model.model.backbone.lm_head.weight is not model.model.backbone.model.embed_tokens.weight
    assert model.facts["unlike_expected"]["hidden_size"] == {"expected": 4096, "found": 48}


def test_a_tied_head_may_be_stored_once_or_twice(tmp_path, tensors):
    tied = {**tensors, "diffusion_head.weight": tensors["encoder.embed_tokens.weight"].clone()}
    once = {name: tensor for name, tensor in tied.items() if name != "diffusion_head.weight"}
    for name, stored in (("twice", tied), ("once", once)):
        folder = write_checkpoint(tmp_path / name, stored, CONFIG | {"tie_word_embeddings": True})
        backbone = load(folder).model.backbone
        assert backbone.lm_head.weight is backbone.model.embed_tokens.weight


def test_bfloat16_stays_bfloat16_bit_for_bit_but_for_the_rotary_frequencies(checkpoint, tensors):
    backbone = load(checkpoint, dtype="bfloat16").model.backbone
    assert torch.equal(backbone.model.norm.weight, tensors[NORM])
    assert backbone.model.rotary_emb.inv_freq.dtype == torch.float32


def changed_shard(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        shard = load_file(folder / SHARD)
        change(shard)
        save_file(shard, folder / SHARD, metadata={"format": "pt"})

    return spoil


def infinite(shard: dict[str, Tensor]) -> None:
    shard[next(name for name in sorted(shard) if "mlp" in name)][0, 0] = torch.inf


def spoil_bytes(start: int) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        content = bytearray((folder / SHARD).read_bytes())
        content[start : start + 40] = b"\xff" * 40
        (folder / SHARD).write_bytes(content)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / SHARD).unlink(), f"lacks {SHARD}"),
        (
            lambda folder: shutil.copy(folder / SHARD, folder / "model-9.safetensors"),
            "holds model-9.safetensors, which",
        ),
        (changed_shard(lambda shard: shard.pop(min(shard))), "1 missing: "),
        (changed_shard(lambda shard: shard.update(surprise=torch.ones(1))), f"1 unexpected: surprise in {SHARD}"),
        (changed_shard(lambda s: s.update({min(s): torch.ones(3)})), rf"of another shape: .* \[3\] .* in {SHARD}"),
        (
            changed_shard(lambda s: s.update({min(s): s[min(s)].to(torch.int8)})),
            rf"of another kind: .*int8.* in {SHARD}",
        ),
        (changed_shard(infinite), f"1 with NaN or infinity: encoder.* in {SHARD}"),
        (lambda folder: (folder / SHARD).write_bytes((folder / SHARD).read_bytes()[:-100]), f"cannot read .*{SHARD}"),
        (lambda folder: (folder / SHARD).write_bytes(b""), f"cannot read .*{SHARD}"),
        (spoil_bytes(8), f"cannot read .*{SHARD}"),
        (spoil_bytes(0), f"cannot read .*{SHARD}"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("{"), "is no index of weights"),
    ],
    ids=[
        "missing shard",
        "extra shard",
        "missing tensor",
        "extra tensor",
        "mis-shaped",
        "integers",
        "infinite",
        "truncated",
        "empty",
        "corrupted header",
        "corrupted length",
        "corrupted index",
    ],
)
def test_shards_that_do_not_fit_are_refused_by_name(checkpoint, spoil, said):
    spoil(checkpoint)
    with pytest.raises(UserError, match=said):
        load(checkpoint)


def change_config(**changes) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / "config.json").write_text(json.dumps(CONFIG | changes))

    return change


def spoil_template(old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        template = folder / "chat_template.jinja"
        template.write_text(template.read_text().replace(old, new, 1))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (change_config(model_type="llama"), "has model_type=llama"),
        (change_config(dlm_paradigm="autoregressive"), "has dlm_paradigm=autoregressive"),
        (change_config(sliding_window=4096), "has sliding_window=4096"),
        (change_config(quantization_config={"bits": 4}), "has quantization_config="),
        (lambda folder: (folder / "chat_template.jinja").unlink(), "has no chat template"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "cannot read the tokenizer"),
        (change_config(rope_parameters=None), "lacks rope_parameters"),
        (change_config(rope_parameters={"rope_type": "yarn"}), "config.json describes no network .*factor"),
        (change_config(num_attention_heads="eight"), "config.json describes no network .*num_attention_heads"),
        (change_config(num_attention_heads=0), "config.json describes no network"),
        (change_config(hidden_act="none"), "config.json describes no network .*none"),
        (change_config(eos_token_id=None), "lacks eos_token_id"),
        (change_config(eos_token_id=[EOS, 800]), "eos_token_id=.*, need ids from 0 to 799"),
        (change_config(mask_token_id=-1), "mask_token_id=-1, need ids from 0 to 799"),
        (change_config(vocab_size="many"), "vocab_size=many, need an integer"),
        (change_config(mask_token_id=100), "mask token 100 in the checkpoint, 3 in the tokenizer"),
        (change_config(vocab_size=200), "a prompt with ids from 200 on"),
        (spoil_template("assistant", "<|mask|>"), f"a prompt with the mask {MASK}"),
        (spoil_template("assistant", "assistant<think>"), "a prompt with thinking not switched off"),
    ],
)
def test_a_config_or_tokenizer_that_the_layouts_do_not_fit_is_refused_before_weights_are_read(checkpoint, spoil, said):
    for shard in checkpoint.glob("*.safetensors"):
        shard.write_bytes(b"not read")
    spoil(checkpoint)
    with pytest.raises(UserError, match=said):
        load(checkpoint)


def test_a_second_bos_is_refused(checkpoint):
    bos = json.loads((TOKENIZER / "tokenizer.json").read_text())["model"]["vocab"]["!"]
    change_config(bos_token_id=bos)(checkpoint)
    spoil_template("{%", "!!{%")(checkpoint)
    with pytest.raises(UserError, match=f"BOS {bos} twice"):
        load(checkpoint)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory from /proc")
def test_loading_holds_the_checkpoint_in_memory_no_more_than_once(tmp_path):
    """Peak resident memory of loading, above what the process had before, stays below 1.3 times the files."""
    config = CONFIG | {"hidden_size": 512, "intermediate_size": 4096, "num_hidden_layers": 16, "vocab_size": 32768}
    folder = write_checkpoint(tmp_path / "large", released_tensors(config), config)
    program = """
import re, sys
from pathlib import Path
from harness.models.nemotron.loader import NemotronLoader
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text()).group(1))
loader = NemotronLoader(name="large", path=sys.argv[1], dtype="bfloat16", device="cpu")
before = peak()
model = loader.load()
size = sum(file.stat().st_size for file in Path(sys.argv[1]).glob("*.safetensors"))
print(size, (peak() - before) / size)
"""
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    size, ratio = done.stdout.split()
    assert int(size) > 200e6
    assert 0.5 < float(ratio) < 1.3


@pytest.fixture
def much_memory(monkeypatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=10**12, total=10**12))


def found(name: str) -> NemotronLoader:
    return find_model(compose([f"model={name}", "weights=random", "model.device=cpu"]).model)


@pytest.mark.parametrize(
    ("name", "parameters", "tensors"), [("nemotron3b", 3_831_659_520, 237), ("nemotron8b", 8_489_553_920, 309)]
)
@pytest.mark.usefixtures("much_memory")
def test_the_known_architectures_have_the_released_sizes(name, parameters, tensors):
    backbone = found(name).backbone
    assert sum(parameter.numel() for parameter in backbone.parameters()) == parameters
    assert len(backbone.state_dict()) == tensors


@pytest.mark.usefixtures("much_memory")
def test_rotary_frequencies_of_the_8b_are_the_published_ones():
    """Anchors of its yarn parameters: unchanged up to pair 20, one sixteenth from pair 37 on."""
    frequencies = Ministral3RotaryEmbedding(found("nemotron8b").backbone.config).inv_freq
    anchors = {0: 1.0, 8: 0.177828, 16: 0.0316228, 20: 0.0133352, 24: 0.00438295, 28: 0.00132518, 32: 3.38235e-4,
               36: 4.96113e-5, 40: 1.11142e-5, 63: 7.75586e-8}  # fmt: skip
    assert {pair: float(frequencies[pair]) for pair in anchors} == pytest.approx(anchors, rel=1e-5)


def test_a_model_that_does_not_fit_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=8 * 10**9, total=16 * 10**9))
    with pytest.raises(UserError, match=r"nemotron8b: needs about 17.0 GB of memory .* cpu has 8.0 of 16.0 GB free"):
        found("nemotron8b")
