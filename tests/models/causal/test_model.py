"""A plain causal model with a drafter: its own weights verify, bit for bit, and every schedule emits its own tokens."""

import random

import pytest
import torch

from harness.errors import UserError
from harness.models.causal.model import CausalModel
from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass
from schedules import Autoregressive, Branches, Call, Draft, Greedy, Linear, Packed, Quadratic, Stop
from schedules.call import AdapterRows
from tests.builders.causal import KINDS, random_backbone, vivid_drafter

PROMPT = [5, 9, 11, 4, 30]
WIDTH = 3
CALLS = {
    "packed": Call(WIDTH, Draft(torch.tensor([8, 15])), (0,)),
    "quadratic": Call(WIDTH, Draft(torch.tensor([8, 15, 21])), range(4)),
    "linear draft": Call(WIDTH, None, (0,)),
    "linear verify": Call(WIDTH, Draft(torch.tensor([8, 15]))),
}


def drafting_model(kind, mode="fused", seed=0):
    backbone = random_backbone(kind, seed)
    return CausalModel(backbone, vivid_drafter(backbone, mode))


def outputs(model, calls):
    """The outputs of the prompt's call and of calls after it, on the same prefix."""
    model.begin(PROMPT, 20)
    first = model.evaluate(Call(WIDTH, Draft.empty(model.device), (0,)))
    model.commit(torch.tensor([12]))
    return [first, *(model.evaluate(call) for call in calls)]


def bare(kind, tokens, cached):
    """Logits of the backbone alone for `tokens` behind cached ones, causally; all rows in one pass each."""
    backbone = random_backbone(kind)
    config = backbone.config
    cache = KeyValueCache(config.num_hidden_layers, config.num_key_value_heads, config.head_dim, backbone.dtype, "cpu")
    cache.reserve(64)
    for part in (cached, tokens):
        if part:
            rows = len(part)
            sees = torch.ones(rows, cache.length + rows, dtype=torch.bool).tril(cache.length)
            positions = torch.arange(cache.length, cache.length + rows)
            with torch.inference_mode():
                logits = forward_pass(
                    backbone, cache, Rows(torch.tensor([part]), positions[None], sees[None, None], torch.arange(rows))
                )
            cache.length += rows
    return logits


@pytest.mark.parametrize("kind", KINDS)
def test_autoregressive_decoding_equals_transformers_generate(kind):
    backbone = random_backbone(kind, seed=1)
    expected = backbone.generate(torch.tensor([PROMPT]), max_new_tokens=30, do_sample=False, eos_token_id=2)
    found = Autoregressive().decode(CausalModel(backbone), PROMPT, Greedy(), Stop(30, frozenset([2])))
    assert found.tokens == expected[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("mode", ["masked", "fused"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_schedules_emit_the_bare_models_tokens(kind, mode):
    rng = random.Random(kind)
    plain, drafting = CausalModel(random_backbone(kind)), drafting_model(kind, mode)
    for width in range(1, 9) if mode == "fused" else (1, 8):
        prompt = [rng.randrange(3, 40) for _ in range(rng.randint(1, 12))]
        stop = Stop(rng.randint(1, 24), frozenset(rng.sample(range(40), k=rng.choice([0, 1, 2]))))
        expected = Autoregressive().decode(plain, prompt, Greedy(), stop)
        some = [0, *sorted(rng.sample(range(1, width + 1), k=min(2, width)))]
        for schedule in (Autoregressive(), Linear(width), Packed(width), Quadratic(width), Branches(width, some)):
            response = schedule.decode(drafting, prompt, Greedy(), stop)
            assert (response.tokens, response.stop_reason) == (expected.tokens, expected.stop_reason)


@pytest.mark.parametrize("mode", ["masked", "fused"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_drafter_changes_no_bit_of_a_verifier_row(kind, mode):
    trained = outputs(drafting_model(kind, mode), CALLS.values())
    silent = drafting_model(kind, mode)
    for parameter in silent.drafter.parameters().values():
        parameter.data.zero_()
    for with_updates, without in zip(trained, outputs(silent, CALLS.values()), strict=True):
        assert torch.equal(with_updates.verifier, without.verifier)
        if without.proposals is not None:
            # The first proposal of Linear's drafting call is the bare model's own.
            assert not torch.allclose(with_updates.proposals.logits, without.proposals.logits, atol=1e-2)
    # One row, as in autoregressive decoding: the very pass of the model without a drafter.
    one = Call(0, Draft.empty(torch.device("cpu")))
    bare_model = CausalModel(random_backbone(kind))
    for model in (bare_model, drafting := drafting_model(kind, mode)):
        model.begin(PROMPT, 20)
    for _ in range(4):
        expected, found = bare_model.evaluate(one).verifier, drafting.evaluate(one).verifier
        assert torch.equal(expected, found)
        for model in (bare_model, drafting):
            model.commit(expected.argmax(dim=-1))


@pytest.mark.parametrize("kind", KINDS)
def test_verifier_rows_are_those_of_the_bare_model(kind):
    packed = outputs(drafting_model(kind), [CALLS["packed"]])[1]
    expected = bare(kind, [12, 8, 15], PROMPT)
    assert torch.allclose(packed.verifier, expected, atol=1e-4)
    drafted = outputs(drafting_model(kind), [CALLS["linear draft"]])[1]
    assert torch.allclose(drafted.proposals.logits[0, 0], expected[0], atol=1e-4)


def test_both_modes_propose_the_same():
    masked, fused = (outputs(drafting_model("Llama", mode), CALLS.values()) for mode in ("masked", "fused"))
    for one, other in zip(masked, fused, strict=True):
        if one.proposals is not None:
            assert torch.allclose(one.proposals.logits, other.proposals.logits, atol=1e-4)


def test_rows_and_the_drafters_share_of_them():
    found = outputs(drafting_model("Qwen3"), CALLS.values())
    assert [one.rows for one in found] == [len(PROMPT) + 3, 4 + 3, 4 + 4 * 3, 3, 4]
    assert [one.adapter_rows.selected for one in found] == [3, 3, 12, 2, 0]
    assert all(one.adapter_rows.evaluated == one.adapter_rows.selected for one in found)
    masked = outputs(drafting_model("Qwen3", "masked"), CALLS.values())
    assert [one.adapter_rows.evaluated for one in masked] == [len(PROMPT) + 3, 7, 16, 3, 0]
    assert outputs(drafting_model("Qwen3"), [CALLS["linear verify"]])[1].adapter_rows == AdapterRows()


def test_a_model_without_a_drafter_says_what_is_missing():
    model = CausalModel(random_backbone("Llama"))
    for schedule in (Linear(2), Packed(2), Quadratic(2)):
        with pytest.raises(UserError, match=r"no drafter.*train-drafter"):
            schedule.decode(model, PROMPT, Greedy(), Stop(5, frozenset()))


@pytest.mark.parametrize("width", [1, 4])
def test_masks_see_the_verified_prefix_and_each_other(width):
    """A packed call's proposals equal those of masks right behind the verified text, in a pass of their own."""
    model = drafting_model("Mistral")
    model.begin(PROMPT, 20)
    first = model.evaluate(Call(width, Draft.empty(model.device), (0,))).proposals.logits[0]
    model.begin(PROMPT[:-1], 20)
    model.evaluate(Call(0, Draft.empty(model.device)))
    model.commit(torch.tensor(PROMPT[-1:]))
    packed = model.evaluate(Call(width, Draft(torch.tensor([8] * width)), (0,))).proposals.logits[0]
    assert torch.allclose(first, packed, atol=1e-4)
