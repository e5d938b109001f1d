"""Masks behind many contexts at once say what a schedule's own calls get, and gradients reach the drafter alone."""

import torch

from harness.models.causal.contexts import mask_logits
from harness.models.causal.model import CausalModel
from harness.training.objective import NO_TARGET, Example, drawn_contexts, evaluated, loss, targets
from schedules import Call, Draft
from tests.builders.causal import random_backbone, vivid_drafter

TEXT = [5, 9, 11, 4, 30, 12, 8, 15, 21]
WIDTH = 3


def drafting_model(kind="Qwen2"):
    backbone = random_backbone(kind)
    return CausalModel(backbone, vivid_drafter(backbone))


def test_they_equal_the_proposals_of_single_calls():
    model, contexts = drafting_model(), [4, 6, 9]
    with torch.no_grad():
        together = mask_logits(model, TEXT, contexts, WIDTH)
    for context, logits in zip(contexts, together, strict=True):
        model.begin(TEXT[:context], 20)
        single = model.evaluate(Call(WIDTH, Draft.empty(model.device), (0,)))
        assert torch.allclose(logits, single.proposals.logits[0], atol=1e-4)


def test_targets_are_the_tokens_behind_the_verifiers_own():
    found = targets(Example(TEXT[:5], TEXT[5:]), [5, 7], WIDTH)
    assert found.tolist() == [[8, 15, 21], [21, NO_TARGET, NO_TARGET]]


def test_contexts_are_drawn_where_a_mask_has_something_to_say():
    rng = torch.Generator().manual_seed(0)
    assert sorted(drawn_contexts(Example(TEXT[:5], TEXT[5:]), rng)) == [5, 6, 7]
    assert drawn_contexts(Example(TEXT[:5], TEXT[5:6]), rng) == []


def test_the_loss_moves_every_part_of_the_drafter_and_nothing_else():
    model = drafting_model("Mistral")
    model.backbone.requires_grad_(False)
    parameters = model.drafter.parameters()
    for parameter in parameters.values():
        parameter.requires_grad_()
    loss(model, Example(TEXT[:5], TEXT[5:]), [5, 6], WIDTH).backward()
    assert all(parameter.grad.any() for parameter in parameters.values())
    learned = {id(parameter) for parameter in parameters.values()}
    assert all(one.grad is None for one in model.backbone.parameters() if id(one) not in learned)


def test_an_evaluation_counts_right_masks_in_a_row():
    model = drafting_model()
    example = Example(TEXT[:3], TEXT[3:])
    found = evaluated(model, [example], WIDTH)
    logits = mask_logits(model, TEXT, [3], WIDTH)
    right = (logits[0].argmax(dim=-1) == torch.tensor(TEXT[4:7])).tolist()
    assert found["contexts"] == 1
    assert found["right"] == [float(one) for one in right]
    assert found["accepted"] == sum(all(right[: place + 1]) for place in range(WIDTH))
    assert evaluated(model, [Example(TEXT, [4])], WIDTH)["contexts"] == 0
