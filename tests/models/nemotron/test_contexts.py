"""Proposals from many contexts in one pass: the drawn layout, and equality with the calls that schedules make."""

import random

import pytest
import torch

from harness.models.nemotron import contexts
from harness.models.nemotron.contexts import Contexts, Region, region_layout
from schedules import Call, Draft, Greedy, Stop
from schedules.autoregressive import Autoregressive
from tests.builders.nemotron import random_model

PROMPT = [5, 9, 7, 30]
WIDTH = 3


def drawing(text: str) -> torch.Tensor:
    """The matrix at the end of each line of a module's drawing."""
    rows = [line.partition("  x")[2] for line in text.splitlines() if "  x" in line]
    return torch.tensor([[mark == "x" for mark in f"x{row}" if mark in "x."] for row in rows])


def test_the_layout_is_the_one_drawn():
    layout = region_layout([Region(2, 1, is_fresh=True), Region(3, 1, is_fresh=False)], prompt_length=0, cached=3)
    assert layout.sees.equal(drawing(contexts.__doc__))
    # Offsets count from the first output token: the second token is at 1, masks after three tokens start at 3.
    assert layout.offsets.tolist() == [1, 2, 3, 4]
    assert (layout.last_rows, layout.last_contexts) == ([0], [2])
    assert layout.proposal_rows.tolist() == [1, 2, 3]


@pytest.fixture(scope="module")
def model():
    return random_model(seed=3, dtype=torch.float64)


@pytest.fixture(scope="module")
def output(model):
    return Autoregressive().decode(model, PROMPT, Greedy(), Stop(12, frozenset())).tokens


def proposed(model, output, *regions: Region) -> list[torch.Tensor]:
    return [logits for _, logits in Contexts(model, PROMPT, output).propose(regions)]


def at(model, output, verified: int):
    """The model after `verified` output tokens."""
    model.begin(PROMPT, 40)
    for token in output[:verified]:
        model.evaluate(Call(0, Draft.empty(model.device)))
        model.commit(torch.tensor([token]))
    return model


def test_fresh_regions_are_linears_drafting_calls(model, output):
    drawn = proposed(model, output, *(Region(verified, WIDTH, is_fresh=True) for verified in range(1, 12)))
    for verified, logits in zip(range(1, 12), drawn, strict=True):
        call = at(model, output, verified).evaluate(Call(WIDTH, None, (0,)))
        torch.testing.assert_close(logits, call.proposals.logits[0])


def test_branch_regions_are_branches_whose_draft_tokens_stand(model, output):
    drawn = proposed(model, output, *(Region(2 + branch, WIDTH, is_fresh=False) for branch in range(WIDTH + 1)))
    draft = Draft(torch.tensor(output[2 : 2 + WIDTH]))
    call = at(model, output, 2).evaluate(Call(WIDTH, draft, range(WIDTH + 1)))
    for logits, proposals in zip(drawn, call.proposals.logits, strict=True):
        torch.testing.assert_close(logits[1:], proposals)


def test_the_branch_region_of_the_bare_prompt_is_the_prompts_own_call(model, output):
    (logits,) = proposed(model, output, Region(0, WIDTH, is_fresh=False))
    model.begin(PROMPT, 40)
    call = model.evaluate(Call(WIDTH, Draft.empty(model.device), (0,)))
    torch.testing.assert_close(logits[1:], call.proposals.logits[0])


def test_the_text_itself_is_predicted_by_the_verifier(model, output):
    assert Contexts(model, PROMPT, output).verifier.argmax(dim=-1).tolist() == output


def test_how_many_regions_share_a_pass_changes_nothing(model, output, monkeypatch):
    rng = random.Random(0)
    regions = [Region(rng.randrange(12), rng.randint(1, 9), rng.random() < 0.5) for _ in range(30)]
    together = proposed(model, output, *regions)
    monkeypatch.setattr(contexts, "ROWS", 16)
    for one, other in zip(together, proposed(model, output, *regions), strict=True):
        torch.testing.assert_close(one, other)
