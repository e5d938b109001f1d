"""Checkpoints in the released layout, `.bin` as published and safetensors: they load, or what is wrong is named."""

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import Qwen3ForCausalLM

from harness.config.compose import compose
from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.models.setdlm.loader import SetDlmLoader
from tests.builders.setdlm import PROMPT, backbone_config, masked_query

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))

from tiny_recipes import RECIPES
from tiny_tokenizer import train_tokenizer

BASE = "someone/base-model"
EMBEDDINGS, HEAD = "backbone.model.model.embed_tokens.weight", "backbone.model.lm_head.weight"
NORM = "backbone.model.model.norm.weight"
Tensors = dict[str, Tensor]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["one and two"], vocab_size=300)


@pytest.fixture
def backbone() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    return Qwen3ForCausalLM(backbone_config(vocab_size=300)).eval()


def released_tensors(backbone: Qwen3ForCausalLM) -> Tensors:
    tensors = {f"backbone.model.{name}": tensor.clone() for name, tensor in backbone.state_dict().items()}
    return tensors | {"static_attention_mask": torch.ones(8, 8, dtype=torch.bool)}


def save_bin(tensors: Tensors, path: Path) -> None:
    torch.save(tensors, path)


def save_safetensors(tensors: Tensors, path: Path) -> None:
    save_file(tensors, path, metadata={"format": "pt"})


FORMATS = {
    "bin": (save_bin, "pytorch_model-{:05}-of-00002.bin", "pytorch_model.bin.index.json"),
    "safetensors": (save_safetensors, "model-{:05}-of-00002.safetensors", "model.safetensors.index.json"),
}


@pytest.fixture(params=FORMATS)
def save(request, tmp_path, tokenizer, backbone) -> Callable[[Tensors], Path]:
    """Writes a checkpoint folder of two shards with an index, and its base model's folder beside it."""
    save_shard, pattern, index = FORMATS[request.param]

    def write(tensors: Tensors) -> Path:
        folder = tmp_path / "checkpoint"
        folder.mkdir()
        names = sorted(tensors)
        weight_map = {}
        for shard, members in enumerate((names[:9], names[9:]), start=1):
            file = pattern.format(shard)
            save_shard({name: tensors[name] for name in members}, folder / file)
            weight_map |= dict.fromkeys(members, file)
        (folder / index).write_text(json.dumps({"weight_map": weight_map}))
        write_configs(folder, tokenizer, backbone)
        return folder

    return write


def write_configs(folder: Path, tokenizer, backbone: Qwen3ForCausalLM) -> None:
    config = {
        "architectures": ["SetDLM"],
        "model_type": "bd3lm",
        "length": 1024,
        "mask_token_id": tokenizer.mask_token_id,
        "eos_token_id": tokenizer.pad_token_id,
        "backbone_config": {"pretrained_model_name_or_path": BASE, "num_layers": 2},
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    backbone.config.save_pretrained(folder.parent / "base")
    tokenizer.save_pretrained(folder.parent / "base")


def loaded(folder: Path, **changes) -> LanguageModel:
    arguments = {"dtype": "float32", "device": "cpu", "base": str(folder.parent / "base")} | changes
    return SetDlmLoader(name="setdlm", path=str(folder), **arguments).load()


def change_config(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def assert_equal(model: LanguageModel, backbone: Qwen3ForCausalLM) -> None:
    tensors = model.model.backbone.state_dict()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in backbone.state_dict().items())
    assert model.model.backbone.lm_head.weight is model.model.backbone.model.embed_tokens.weight
    mine, other = (masked_query(one, PROMPT, [(2, 9)], 1) for one in (model.model.backbone, backbone))
    assert torch.equal(mine, other)


def test_a_released_folder_loads(save, backbone, tokenizer):
    model = loaded(save(released_tensors(backbone)))
    assert_equal(model, backbone)
    assert (model.model.mask_id, model.eos_ids) == (tokenizer.mask_token_id, {tokenizer.pad_token_id})
    assert model.encode("one")[:1] == [tokenizer.convert_tokens_to_ids("<|im_start|>")]


@pytest.mark.parametrize("absent", ["static_attention_mask", HEAD, EMBEDDINGS])
def test_the_static_mask_and_one_of_the_tied_matrices_may_be_absent(save, backbone, absent):
    tensors = released_tensors(backbone)
    tensors.pop(absent)
    assert_equal(loaded(save(tensors)), backbone)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop(NORM), "1 missing: model.norm.weight"),
        (lambda tensors: tensors.update(surprise=torch.ones(1)), "1 unexpected: surprise"),
        (lambda tensors: tensors.update({NORM: torch.ones(3)}), rf"1 of another shape: {NORM} \[3\] \(need \[32\]\)"),
        (lambda tensors: tensors.update({"model.norm.weight": torch.ones(32)}), "1 unexpected: .*model.norm.weight"),
        (lambda tensors: tensors[HEAD].mul_(2), "1 of other values: lm_head.weight"),
        (lambda tensors: (tensors.pop(HEAD), tensors.pop(EMBEDDINGS)), "2 missing: .*embed_tokens.*, lm_head"),
    ],
    ids=["missing", "extra", "mis-shaped", "twice", "untied", "no embeddings"],
)
def test_tensors_that_do_not_fit_are_named(save, backbone, change, said):
    tensors = released_tensors(backbone)
    change(tensors)
    folder = save(tensors)
    with pytest.raises(UserError, match=said):
        loaded(folder)


def test_a_shard_that_the_index_names_but_nobody_has_is_named(save, backbone):
    folder = save(released_tensors(backbone))
    shard = next(folder.glob("*00002-of*"))
    shard.unlink()
    with pytest.raises(UserError, match=f"lacks {shard.name}"):
        loaded(folder)


def test_a_truncated_shard_is_named(save, backbone):
    folder = save(released_tensors(backbone))
    shard = next(folder.glob("*00001-of*"))
    shard.write_bytes(shard.read_bytes()[:-500])
    with pytest.raises(UserError, match=f"cannot read .*{shard.name}"):
        loaded(folder)


class Hostile:
    """Would write a file when unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("save_hostile", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))])
def test_nothing_but_tensors_is_unpickled(tmp_path, tokenizer, backbone, save_hostile):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    write_configs(folder, tokenizer, backbone)
    save_hostile({"weight": Hostile(tmp_path / "touched")}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"cannot read .*pytorch_model\.bin"):
        loaded(folder)
    assert not (tmp_path / "touched").exists()


@pytest.fixture
def folder(tmp_path, tokenizer, backbone) -> Path:
    """A checkpoint folder with one `.bin` file."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    save_bin(released_tensors(backbone), folder / "pytorch_model.bin")
    write_configs(folder, tokenizer, backbone)
    return folder


def test_a_base_model_inside_the_checkpoint_is_found_by_itself(folder, backbone):
    (folder.parent / "base").rename(folder / "inside")
    change_config(folder / "config.json", backbone_config={"pretrained_model_name_or_path": "inside"})
    assert_equal(loaded(folder, base=None), backbone)


def test_a_base_config_of_the_published_form_gives_the_same(folder, backbone):
    """Qwen's own config.json has rope_theta at the top and no rope_parameters."""
    change_config(folder.parent / "base" / "config.json", rope_parameters=None, rope_theta=1e4, rope_scaling=None)
    assert_equal(loaded(folder), backbone)


def test_end_tokens_may_be_chosen(folder, tokenizer):
    model = loaded(folder, eos_tokens=["<|im_end|>", "<|pad|>"])
    assert model.eos_ids == {tokenizer.eos_token_id, tokenizer.pad_token_id}


def test_other_number_types_are_converted(folder, backbone):
    model = loaded(folder, dtype="float64")
    assert model.model.backbone.dtype == torch.float64
    assert torch.equal(model.model.backbone.model.norm.weight.float(), backbone.model.norm.weight)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": None}, f"names the base model {BASE}, which is no folder"),
        ({"base": "/nowhere"}, "model.base=/nowhere: no folder there"),
        ({"dtype": "float8"}, "model.dtype=float8: no such dtype"),
        ({"eos_tokens": ["<|nothing|>"]}, "all in the vocabulary"),
        ({"eos_tokens": []}, "at least one token"),
    ],
)
def test_impossible_settings_are_refused(folder, changes, said):
    with pytest.raises(UserError, match=said.replace("|", r"\|")):
        loaded(folder, **changes)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder, base: change_config(folder / "config.json", mask_token_id=7), "mask token 7 in the checkpoint"),
        (lambda folder, base: change_config(folder / "config.json", mask_token_id=None), "lacks mask_token_id"),
        (lambda folder, base: change_config(folder / "config.json", backbone_config=[]), r"backbone_config=\[\]"),
        (lambda folder, base: change_config(folder / "config.json", backbone_config={"num_layers": "2"}), "num_layers"),
        (
            lambda folder, base: change_config(
                folder / "config.json", backbone_config={"pretrained_model_name_or_path": 3}
            ),
            "need num_layers and a path",
        ),
        (lambda folder, base: change_config(base / "config.json", head_dim=None), "lacks head_dim"),
        (lambda folder, base: change_config(base / "config.json", head_dim="x"), "describes no network"),
        (lambda folder, base: change_config(base / "config.json", num_attention_heads="two"), "describes no network"),
        (lambda folder, base: change_config(base / "config.json", hidden_size=[32]), "describes no network"),
        (lambda folder, base: change_config(base / "config.json", hidden_act="sharp"), "describes no network"),
        (lambda folder, base: change_config(base / "config.json", rope_parameters=[1]), "has rope_parameters="),
        (
            lambda folder, base: change_config(base / "config.json", rope_parameters={"rope_theta": "x"}),
            "no network|rope",
        ),
        (lambda folder, base: change_config(base / "config.json", vocab_size="x"), "vocab_size=x, need an integer"),
        (lambda folder, base: change_config(base / "config.json", rope_parameters=None), "lacks rope_theta"),
        (lambda folder, base: change_config(base / "config.json", use_sliding_window=True), "sliding window"),
        (lambda folder, base: (base / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder, base: (base / "chat_template.jinja").unlink(), "has no chat template"),
        (lambda folder, base: (folder / "pytorch_model.bin").unlink(), r"lacks any .* or pytorch_model\*\.bin file"),
        (lambda folder, base: torch.save([1], folder / "pytorch_model.bin"), r"cannot read .*pytorch_model\.bin"),
    ],
)
def test_folders_that_do_not_fit_are_refused(folder, spoil, said):
    spoil(folder, folder.parent / "base")
    with pytest.raises(UserError, match=said):
        loaded(folder)


def test_a_trained_model_is_exported_in_a_layout_that_loads(tmp_path, tokenizer):
    torch.manual_seed(0)
    recipe = RECIPES["tiny_setdlm"]
    backbone = recipe.build(tokenizer).eval()
    recipe.export(backbone, tokenizer, tmp_path)
    model = SetDlmLoader(name="tiny_setdlm", path=str(tmp_path), dtype="float32", device="cpu").load()
    assert_equal(model, backbone)
    assert model.eos_ids == {tokenizer.eos_token_id}
    assert sum(file.stat().st_size for file in tmp_path.rglob("*")) < 12 * 2**20


@pytest.mark.parametrize(("name", "width"), [("tiny_setdlm", 8), ("setdlm_smax16", 8), ("setdlm_smax32", 16)])
def test_configs_give_the_papers_windows(name, width):
    config = compose([f"model={name}", "task=toy_math", "schedule=[linear,packed]"]).model
    assert set(config.widths.values()) == {width}
    assert config.dtype == "float32"
