"""Strict reading of checkpoints in the released layout: what is wrong is named."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import harness
from harness.errors import UserError
from harness.models.loading.source import EMBEDDED


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """A copy of the embedded model that a test may break."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(EMBEDDED / "tiny_nemotron", folder)
    return folder


def change_tensors(folder: Path, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load(folder: Path):
    return harness.load("tiny_nemotron", path=str(folder), device="cpu")


def test_the_embedded_model_is_in_the_released_layout():
    tensors = load_file(EMBEDDED / "tiny_nemotron" / "model.safetensors")
    config = json.loads((EMBEDDED / "tiny_nemotron" / "config.json").read_text())
    assert len(tensors) == 9 * config["num_hidden_layers"] + 3
    assert {name.split(".")[0] for name in tensors} == {"encoder", "diffusion_head"}


def test_a_shard_may_prefix_names_and_hold_adapters(checkpoint):
    expected = load(checkpoint).model.backbone.state_dict()

    def prefix(tensors):
        for name in list(tensors):
            tensors["model." + name if name.startswith("encoder.") else name] = tensors.pop(name)
        tensors["encoder.layers.0.self_attn.o_proj.lora_A.weight"] = torch.ones(2, 2)

    change_tensors(checkpoint, prefix)
    loaded = load(checkpoint).model.backbone.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())


def test_shards_named_by_an_index_are_read_together(checkpoint):
    expected = load(checkpoint).model.backbone.state_dict()
    tensors = load_file(checkpoint / "model.safetensors")
    (checkpoint / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[:10], "model-2.safetensors": names[10:]}
    for file, members in shards.items():
        save_file({name: tensors[name] for name in members}, checkpoint / file)
    weight_map = {name: file for file, members in shards.items() for name in members}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    loaded = load(checkpoint).model.backbone.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop("encoder.norm.weight"), "1 missing: model.norm.weight"),
        (lambda tensors: tensors.update(surprise=torch.ones(1)), "1 unexpected: surprise"),
        (
            lambda tensors: tensors.update({"encoder.norm.weight": torch.ones(3)}),
            r"1 of another shape: encoder.norm.weight \[3\] \(need \[192\]\)",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(checkpoint, change, said):
    change_tensors(checkpoint, change)
    with pytest.raises(UserError, match=said):
        load(checkpoint)


def test_a_truncated_file_is_named(checkpoint):
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"cannot read .*model\.safetensors"):
        load(checkpoint)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not JSON"),
        (lambda folder: (folder / "config.json").write_text("{}"), "lacks bos_token_id"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"lacks any \*\.safetensors file"),
        (shutil.rmtree, "no folder"),
    ],
)
def test_a_folder_that_is_no_checkpoint_is_refused(checkpoint, spoil, said):
    spoil(checkpoint)
    with pytest.raises(UserError, match=said):
        load(checkpoint)


def test_stock_defaults_that_would_be_wrong_are_overridden():
    loaded = harness.load("tiny_nemotron", device="cpu")
    assert loaded.model.backbone.config.pad_token_id is None
    assert loaded.eos_ids == {loaded.tokenizer.eos_token_id}
    assert loaded.model.mask_id == loaded.tokenizer.mask_token_id
