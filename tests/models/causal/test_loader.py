"""Checkpoints of five kinds load as transformers writes them; drafters come from folders; the rest is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from harness.cli.main import main
from harness.errors import UserError
from harness.models.causal.drafter import DESCRIPTION, TENSORS, write_folder
from harness.models.causal.loader import CausalLoader
from harness.records.record import read_records
from schedules import Autoregressive, Greedy, Packed, Stop
from tests.builders.causal import KINDS, checkpoint, random_backbone, vivid_drafter


def loaded(folder, **settings):
    return CausalLoader(**{"name": "mine", "path": str(folder), "dtype": "float32", "device": "cpu"} | settings)


def drafter_folder(folder, base, **changes):
    """The folder of a drafter with random weights for the model in `base`."""
    model = loaded(base).load()
    drafter = vivid_drafter(model.model.backbone)
    described = {"name": "mine", "weights_sha256": model.facts["weights_sha256"]}
    write_folder(folder, drafter, described, {"steps": 0}, torch.float32)
    description = json.loads((folder / DESCRIPTION).read_text()) | changes
    (folder / DESCRIPTION).write_text(json.dumps(description))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_loads_and_decodes_as_transformers_does(tmp_path, kind):
    model = loaded(checkpoint(tmp_path, kind)).load()
    prompt = model.encode("How many apples are left?")
    expected = AutoModelForCausalLM.from_pretrained(tmp_path).generate(
        torch.tensor([prompt]), max_new_tokens=20, do_sample=False
    )
    found = Autoregressive().decode(model.model, prompt, Greedy(), Stop(20, model.eos_ids))
    assert found.tokens == expected[0, len(prompt) :].tolist()


def test_a_drafter_comes_back_from_its_folder_as_it_was(tmp_path):
    base = checkpoint(tmp_path / "base", "Qwen3")
    folder = drafter_folder(tmp_path / "drafter", base)
    model = loaded(base, drafter=str(folder)).load()
    written = load_file(folder / TENSORS)
    assert model.model.drafter.parameters().keys() == written.keys()
    assert all(torch.equal(one, written[name]) for name, one in model.model.drafter.parameters().items())
    assert model.adapter == "drafter"
    assert model.facts["drafter"]["rank"] == 4
    assert model.facts["notices"] == []
    prompt, stop = model.encode("Two and two?"), Stop(30, model.eos_ids)
    expected = Autoregressive().decode(loaded(base).load().model, prompt, Greedy(), stop).tokens
    assert Packed(4).decode(model.model, prompt, Greedy(), stop).tokens == expected


def test_a_drafter_for_other_weights_is_said(tmp_path):
    folder = drafter_folder(tmp_path / "drafter", checkpoint(tmp_path / "base", "Llama"))
    other = loaded(checkpoint(tmp_path / "other", "Llama", seed=1), drafter=str(folder)).load()
    assert "was trained for other weights (mine)" in other.facts["notices"][0]


def test_random_weights_have_a_drafter_that_costs_what_one_costs(tmp_path):
    model = loaded(checkpoint(tmp_path, "Mistral"), weights="random").load()
    assert model.model.drafter.rank == 16
    assert not loaded(tmp_path, weights="random").lacks
    assert loaded(tmp_path, weights="random", drafter=None).lacks
    assert loaded(tmp_path).lacks


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "mixtral"}, "model_type=mixtral, a mixture of experts"),
        ({"num_local_experts": 8}, "a mixture of experts"),
        ({"model_type": "gemma3_text"}, "model_type=gemma3_text, whose attention.*Known: llama, mistral"),
        ({"sliding_window": 128}, "sliding windows .sliding_window=128"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized weights"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "type dynamic"),
        ({"eos_token_id": 10**6}, "eos_token_id=1000000, need ids"),
        ({"hidden_size": None}, "lacks hidden_size"),
    ],
)
def test_what_the_family_does_not_know_is_refused_by_name(tmp_path, changes, said):
    folder = checkpoint(tmp_path, "Mistral")
    # Otherwise it would be read in place of the config's.
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(UserError, match=said):
        loaded(folder)


def test_qwen2_with_sliding_windows_is_refused(tmp_path):
    folder = checkpoint(tmp_path, "Qwen2", use_sliding_window=True, sliding_window=64, max_window_layers=1)
    with pytest.raises(UserError, match="sliding windows"):
        loaded(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"convention": "own"}, "convention own"),
        ({"projections": ["q_proj"]}, "on q_proj; known is next"),
        ({"rank": 0}, "rank 0, need"),
        ({"rank": 8}, "of another shape"),
    ],
)
def test_a_drafter_of_another_kind_is_refused(tmp_path, changes, said):
    base = checkpoint(tmp_path / "base", "Llama")
    folder = drafter_folder(tmp_path / "drafter", base, **changes)
    with pytest.raises(UserError, match=said):
        loaded(base, drafter=str(folder)).load()


def test_a_broken_drafter_is_refused(tmp_path):
    base = checkpoint(tmp_path / "base", "Llama")
    with pytest.raises(UserError, match="no folder there, and no drafter of that name"):
        loaded(base, drafter="nowhere")
    with pytest.raises(UserError, match=r"no drafter\.json there"):
        loaded(base, drafter=str(tmp_path))
    folder = drafter_folder(tmp_path / "drafter", base)
    tensors = load_file(folder / TENSORS)
    tensors["mask_vector"][0] = float("nan")
    save_file(tensors, folder / TENSORS)
    with pytest.raises(UserError, match="mask_vector holds NaN"):
        loaded(base, drafter=str(folder)).load()


def test_a_drafter_of_another_model_is_refused(tmp_path):
    folder = drafter_folder(tmp_path / "drafter", checkpoint(tmp_path / "base", "Llama"))
    with pytest.raises(UserError, match="missing, unexpected or of another shape"):
        loaded(checkpoint(tmp_path / "wide", "Llama", hidden_size=64), drafter=str(folder)).load()


def test_biases_of_the_builder_are_not_zero():
    assert random_backbone("Qwen2").model.layers[0].self_attn.q_proj.bias.any()


def run_words(base, *more):
    small = ("limit=1", "task.max_new_tokens=4", "warmups=0", "drift_prompts=0", "model.device=cpu")
    return ["run", "model=causal", f"model.path={base}", *small, *more]


def test_a_run_that_drafts_without_a_drafter_is_refused_before_anything_is_written(tmp_path, capsys):
    base = checkpoint(tmp_path / "base", "Llama")
    assert main(run_words(base, "schedule=[autoregressive,packed]", f"run_dir={tmp_path / 'run'}")) == 2
    assert "schedule=packed: this model has no drafter" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main(run_words(base, "schedule=autoregressive", f"run_dir={tmp_path / 'run'}")) == 0


def test_records_name_the_drafter_and_count_its_rows(tmp_path):
    base = checkpoint(tmp_path / "base", "Mistral")
    folder = drafter_folder(tmp_path / "mine", base)
    words = run_words(base, "schedule=packed", "schedules.packed.width=4", f"drafter={folder}")
    assert main([*words, "temperature=0.8", f"run_dir={tmp_path / 'run'}"]) == 0
    record = next(read_records(tmp_path / "run" / "records.jsonl"))
    assert record.adapter == "mine"
    assert record.adapter_rows_selected == record.adapter_rows_evaluated > 0
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["model"]["drafter"]["mode"] == "fused"


def test_models_that_draft_by_themselves_take_no_drafter(capsys):
    assert main(["run", "model=tiny_nemotron", "drafter=mine", "limit=1"]) == 2
    assert "drafter=mine: tiny_nemotron takes none" in capsys.readouterr().err
