"""Calls on real backbones: a packed call's logits equal those of separate calls, and committing copies nothing."""

import pytest
import torch

from harness.models.nemotron.model import NemotronModel
from schedules.call import Call, Draft
from tests.builders.nemotron import MASK_ID, random_backbone, random_model

PROMPT = [5, 9, 11, 4, 30, 22, 7]
PREFIX = [*PROMPT, 12]
DRAFT = [8, 15, 21]
WIDTH = 4


@pytest.fixture(params=[(torch.float64, 1e-9), (torch.float32, 5e-5)], ids=["float64", "float32"])
def precision(request):
    return request.param


def model_at_prefix(backbone) -> NemotronModel:
    """A model that has processed the prompt and accepted one token."""
    model = NemotronModel(backbone, MASK_ID)
    model.begin(PROMPT, 30)
    model.evaluate(Call(WIDTH, Draft.empty(model.device)))
    model.commit(torch.tensor([PREFIX[-1]]))
    return model


@torch.no_grad()
def plain_logits(backbone, tokens, sees=None, positions=None):
    """One call without cache; causal unless `sees` says otherwise."""
    rows = len(tokens)
    sees = torch.ones(rows, rows).tril().bool() if sees is None else sees
    positions = torch.arange(rows) if positions is None else positions
    return backbone(
        input_ids=torch.tensor([tokens]),
        attention_mask=sees[None, None],
        position_ids=positions[None],
        use_cache=False,
    ).logits[0]


def draft_logits(backbone, context, causal_last, masks):
    """Drafting in a call of its own: causal `context`, then [last |] masks that see it all and each other."""
    tokens = [*context, *[MASK_ID] * masks]
    causal = len(context) if causal_last else len(context) - 1
    sees = torch.ones(len(tokens), len(tokens)).tril().bool()
    sees[causal:, causal:] = True
    return plain_logits(backbone, tokens, sees)[len(context) :]


def test_packed_call_equals_separate_verify_and_draft_calls(precision):
    dtype, tolerance = precision
    backbone = random_backbone(0, dtype)
    output = model_at_prefix(backbone).evaluate(Call(WIDTH, Draft(torch.tensor(DRAFT)), (0,)))
    verifier = plain_logits(backbone, PREFIX + DRAFT)[len(PREFIX) - 1 :]
    assert torch.allclose(output.verifier, verifier, atol=tolerance, rtol=0)
    proposals = draft_logits(backbone, PREFIX, causal_last=False, masks=WIDTH)
    assert torch.allclose(output.proposals.after(1), proposals[1:], atol=tolerance, rtol=0)
    assert output.rows == 2 * (WIDTH + 1)


def test_quadratic_call_equals_one_draft_call_for_each_branch(precision):
    dtype, tolerance = precision
    backbone = random_backbone(1, dtype)
    draft = [*DRAFT, 33]
    output = model_at_prefix(backbone).evaluate(Call(WIDTH, Draft(torch.tensor(draft)), range(WIDTH + 1)))
    verifier = plain_logits(backbone, PREFIX + draft)[len(PREFIX) - 1 :]
    assert torch.allclose(output.verifier, verifier, atol=tolerance, rtol=0)
    for branch in range(WIDTH + 1):
        alone = draft_logits(backbone, PREFIX + draft[:branch], causal_last=True, masks=WIDTH + 1)
        kept = output.proposals.after(branch + 1)
        assert torch.allclose(kept, alone[1:], atol=tolerance, rtol=0)


def test_linear_calls_equal_plain_calls(precision):
    dtype, tolerance = precision
    backbone = random_backbone(2, dtype)
    model = model_at_prefix(backbone)
    drafted = model.evaluate(Call(WIDTH, None, (0,)))
    expected = draft_logits(backbone, PREFIX, causal_last=False, masks=WIDTH)
    assert torch.allclose(drafted.proposals.after(0), expected, atol=tolerance, rtol=0)
    assert drafted.verifier.shape[0] == 0
    verified = model.evaluate(Call(WIDTH, Draft(torch.tensor(DRAFT))))
    expected = plain_logits(backbone, PREFIX + DRAFT)[len(PREFIX) - 1 :]
    assert torch.allclose(verified.verifier, expected, atol=tolerance, rtol=0)


def test_prompt_call_verifies_and_drafts(precision):
    dtype, tolerance = precision
    backbone = random_backbone(3, dtype)
    model = NemotronModel(backbone, MASK_ID)
    model.begin(PROMPT, 10)
    output = model.evaluate(Call(WIDTH, Draft.empty(model.device), (0,)))
    assert torch.allclose(output.verifier, plain_logits(backbone, PROMPT)[-1:], atol=tolerance, rtol=0)
    expected = draft_logits(backbone, PROMPT, causal_last=True, masks=WIDTH + 1)[1:]
    assert torch.allclose(output.proposals.after(1), expected, atol=tolerance, rtol=0)
    assert output.rows == len(PROMPT) + WIDTH + 1


def test_accepted_keys_and_values_are_those_of_a_plain_causal_call():
    backbone = random_backbone(4, torch.float64)
    model = model_at_prefix(backbone)
    model.evaluate(Call(WIDTH, Draft(torch.tensor(DRAFT)), (0,)))
    model.commit(torch.tensor([*DRAFT[:2], 17]))
    after = model.evaluate(Call(WIDTH, Draft(torch.tensor([6])), (0,)))
    tokens = [*PREFIX, *DRAFT[:2], 17, 6]
    expected = plain_logits(backbone, tokens)[-2:]
    assert torch.allclose(after.verifier, expected, atol=1e-9, rtol=0)


def test_evaluating_twice_changes_nothing():
    model = model_at_prefix(random_backbone(5))
    call = Call(WIDTH, Draft(torch.tensor(DRAFT)), (0,))
    first = model.evaluate(call)
    model.evaluate(Call(WIDTH, None, (0,)))
    again = model.evaluate(call)
    assert torch.equal(first.verifier, again.verifier)
    assert torch.equal(first.proposals.logits, again.proposals.logits)


def test_a_draft_token_may_itself_be_the_mask_token():
    backbone = random_backbone(6, torch.float64)
    output = model_at_prefix(backbone).evaluate(Call(WIDTH, Draft(torch.tensor([MASK_ID, 8])), (0,)))
    expected = plain_logits(backbone, [*PREFIX, MASK_ID, 8])[len(PREFIX) - 1 :]
    assert torch.allclose(output.verifier, expected, atol=1e-9, rtol=0)


def test_committing_moves_an_integer_and_keeps_the_buffers():
    model = model_at_prefix(random_backbone(7))
    model.evaluate(Call(WIDTH, Draft(torch.tensor(DRAFT)), (0,)))
    buffers = [tensor.data_ptr() for tensor in (*model.cache._keys, *model.cache._values)]
    contents = [tensor.clone() for tensor in model.cache._keys]
    length = model.cache.length
    model.commit(torch.tensor([8, 15, 30]))
    assert model.cache.length == length + 3
    assert buffers == [tensor.data_ptr() for tensor in (*model.cache._keys, *model.cache._values)]
    assert all(torch.equal(a, b) for a, b in zip(contents, model.cache._keys, strict=True))


def test_the_next_response_starts_from_nothing():
    model = random_model(8)
    call = Call(WIDTH, Draft.empty(model.device), (0,))
    model.begin(PROMPT, 10)
    first = model.evaluate(call)
    model.commit(torch.tensor([9]))
    model.evaluate(Call(WIDTH, Draft(torch.tensor(DRAFT)), (0,)))
    model.begin(PROMPT, 10)
    again = model.evaluate(call)
    assert torch.equal(first.verifier, again.verifier)
