"""The proposal-only adapter: proposals change, verifier rows do not change in a single bit (F.2, table 5)."""

import json

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

import harness
from harness.errors import UserError
from harness.models.nemotron.adapter import load_adapter
from harness.models.nemotron.model import NemotronModel
from harness.tasks.toy import ToySource
from schedules import Call, Draft, Greedy, Linear, Packed, Quadratic, Stop
from schedules.call import AdapterRows
from tests.builders.nemotron import MASK_ID, random_backbone

PROMPT = [5, 9, 11, 4, 30]
WIDTH = 3
CONFIG = {"r": 4, "lora_alpha": 8, "target_modules": ["o_proj"], "use_rslora": False, "bias": "none"}


def write_adapter(folder, prefix="encoder.", zero=False, **changes):
    """A peft folder with random weights for `random_backbone`, under the released or other names."""
    generator = torch.Generator().manual_seed(0)
    folder.mkdir()
    tensors = {}
    for layer in range(2):
        name = f"base_model.model.{prefix}layers.{layer}.self_attn.o_proj"
        tensors[f"{name}.lora_A.weight"] = torch.randn(4, 64, generator=generator)
        tensors[f"{name}.lora_B.weight"] = torch.randn(32, 4, generator=generator) * (not zero)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG | changes))
    return folder


def adapted_model(folder, mode="masked", seed=0):
    backbone = random_backbone(seed)
    return NemotronModel(backbone, MASK_ID, load_adapter(backbone, folder, mode))


def outputs(model, calls):
    """The outputs of calls after the prompt's, on the same prefix."""
    model.begin(PROMPT, 20)
    first = model.evaluate(Call(WIDTH, Draft.empty(model.device), (0,)))
    model.commit(torch.tensor([12]))
    return [first, *(model.evaluate(call) for call in calls)]


CALLS = {
    "packed": Call(WIDTH, Draft(torch.tensor([8, 15])), (0,)),
    "quadratic": Call(WIDTH, Draft(torch.tensor([8, 15, 21])), range(4)),
    "linear draft": Call(WIDTH, None, (0,)),
    "linear verify": Call(WIDTH, Draft(torch.tensor([8, 15]))),
}


@pytest.mark.parametrize("mode", ["masked", "fused"])
def test_verifier_rows_are_bit_for_bit_those_without_the_adapter(tmp_path, mode):
    with_adapter = outputs(adapted_model(write_adapter(tmp_path / "a"), mode), CALLS.values())
    without = outputs(NemotronModel(random_backbone(0), MASK_ID), CALLS.values())
    for adapted, plain in zip(with_adapter, without, strict=True):
        assert torch.equal(adapted.verifier, plain.verifier)
        if plain.proposals is not None:
            assert not torch.allclose(adapted.proposals.logits, plain.proposals.logits, atol=1e-2)


def test_both_modes_propose_the_same(tmp_path):
    folder = write_adapter(tmp_path / "a")
    masked, fused = (outputs(adapted_model(folder, mode), CALLS.values()) for mode in ("masked", "fused"))
    for one, other in zip(masked, fused, strict=True):
        if one.proposals is not None:
            assert torch.allclose(one.proposals.logits, other.proposals.logits, atol=1e-5)


def test_selected_and_evaluated_rows_are_those_of_table_5(tmp_path):
    block = WIDTH + 1
    folder = write_adapter(tmp_path / "a")
    counts = [output.adapter_rows for output in outputs(adapted_model(folder), CALLS.values())]
    assert counts == [
        AdapterRows(block, len(PROMPT) + block),
        AdapterRows(block, 2 * block),
        AdapterRows(block * block, block * (block + 1)),
        AdapterRows(block, block),
        AdapterRows(0, 0),
    ]
    fused = [output.adapter_rows for output in outputs(adapted_model(folder, "fused"), CALLS.values())]
    assert all(rows.evaluated == rows.selected for rows in fused)
    assert [rows.selected for rows in fused] == [rows.selected for rows in counts]


def test_a_draft_call_equals_peft_on_every_row(tmp_path):
    folder = write_adapter(tmp_path / "a")
    drafted = outputs(adapted_model(folder), [CALLS["linear draft"]])[1].proposals.logits[0]
    backbone = random_backbone(0)
    adapter = adapted_model(folder).adapter
    model = get_peft_model(backbone, LoraConfig(r=4, lora_alpha=8, target_modules=["o_proj"], bias="none"))
    for layer, adapted in zip(backbone.model.layers, adapter.projections.values(), strict=True):
        layer.self_attn.o_proj.lora_A["default"].weight.data.copy_(adapted.lora_A)
        layer.self_attn.o_proj.lora_B["default"].weight.data.copy_(adapted.lora_B)
    # The cached prompt is adapter-free; behind it every row of the draft call is adapted.
    cached = NemotronModel(random_backbone(0), MASK_ID)
    outputs(cached, [])
    tokens = torch.tensor([[12, *[MASK_ID] * WIDTH]])
    rows, length = tokens.shape[1], len(PROMPT)
    with torch.no_grad():
        expected = model(
            input_ids=tokens,
            attention_mask=torch.ones(1, 1, rows, length + rows, dtype=torch.bool),
            position_ids=torch.arange(length, length + rows)[None],
            cache=cached.cache,
            use_cache=True,
        ).logits[0, 1:]
    assert torch.allclose(drafted, expected, atol=1e-4)


@pytest.mark.parametrize("prefix", ["encoder.", "model.", "model.encoder."])
def test_released_and_stock_names_both_load(tmp_path, prefix):
    model = adapted_model(write_adapter(tmp_path / "a", prefix))
    assert all(layer.lora_B.any() for layer in model.adapter.projections.values())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prefix": "somewhere."}, "4 tensors|8 tensors"),
        ({"zero": True}, "its update is zero everywhere"),
        ({"target_modules": ["q_proj"]}, "adapts q_proj"),
        ({"use_dora": True}, "with use_dora"),
        ({"r": 8}, "missing, unexpected or of another shape"),
    ],
)
def test_an_adapter_that_would_do_nothing_or_something_else_is_refused(tmp_path, changes, said):
    with pytest.raises(UserError, match=said):
        adapted_model(write_adapter(tmp_path / "a", **changes))


@pytest.fixture(scope="module")
def tiny():
    return harness.load("tiny_nemotron", device="cpu", adapter="linear_spec_lora"), harness.load("tiny_nemotron")


def test_the_embedded_adapter_keeps_greedy_tokens_and_lengthens_drafts(tiny):
    adapted, base = tiny
    iterations = {"adapted": 0, "base": 0}
    tokens = 0
    for item in ToySource("toy_math", 12).read().items:
        prompt = base.encode(item.fields["prompt"])
        stop = Stop(100, base.eos_ids)
        for schedule in (Linear(15), Packed(15), Quadratic(7)):
            plain = schedule.decode(base.model, prompt, Greedy(), stop)
            changed = schedule.decode(adapted.model, prompt, Greedy(), stop)
            assert changed.tokens == plain.tokens
            if isinstance(schedule, Linear):
                iterations["base"] += len(plain.trace) - 1
                iterations["adapted"] += len(changed.trace) - 1
                tokens += len(plain.tokens) - 1
    assert iterations["base"] / iterations["adapted"] >= 1.05
