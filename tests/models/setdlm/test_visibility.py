"""What a row must not see does not change a bit of it, and what it must see does: for every pair of rows."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from harness.models.execution.forward import Rows, forward_pass
from harness.models.setdlm.model import SetDlmModel
from schedules.call import Call
from tests.builders.setdlm import PROMPT, begun_model, draft_call, paper_mask, verify_call

POSITIONS, DRAFT, BRANCHES = [4, 2, 5, 3], [9, None, 13, 14], [0, 1, 3]
DRAFTED = [token is not None for token in DRAFT]


def waiting_model() -> SetDlmModel:
    """A model with position 6 cached and position 1 in N."""
    model = begun_model(21)
    model.evaluate(verify_call([6, 1], [30, 31]))
    model.commit(torch.tensor([30, 25]))
    return model


def hidden_rows(model: SetDlmModel, call: Call, perturb: Callable[[Rows], None] | None = None) -> Tensor:
    """The last hidden state of every row of `call`, [rows, hidden], its inputs perturbed just before the layers."""
    seen = {}

    def perturbed_pass(backbone, cache, rows):
        rows = replace(rows, token_ids=rows.token_ids.clone(), positions=rows.positions.clone())
        if perturb:
            perturb(rows)
        return forward_pass(backbone, cache, rows)

    def after(_, __, output):
        seen["hidden"] = output[0].clone()

    handle = model.backbone.model.norm.register_forward_hook(after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.models.setdlm.model.forward_pass", perturbed_pass)
        model.evaluate(call)
    handle.remove()
    return seen["hidden"]


def other_token(row: int) -> Callable[[Rows], None]:
    def perturb(rows: Rows) -> None:
        rows.token_ids[0, row] = 39

    return perturb


def other_position(row: int) -> Callable[[Rows], None]:
    def perturb(rows: Rows) -> None:
        rows.positions[0, row] += 3

    return perturb


CALLS = {
    "[N|O|M|R0|R1|R3]": (verify_call(POSITIONS, DRAFT, BRANCHES), paper_mask(4, 1, BRANCHES, DRAFTED)),
    "[N|O|M|R]": (verify_call(POSITIONS, DRAFT, [0]), paper_mask(4, 1, [0], DRAFTED)),
    "[N|O|M]": (verify_call(POSITIONS, DRAFT), paper_mask(4, 1, [], DRAFTED)),
}


@pytest.mark.parametrize("perturbation", [other_token, other_position])
@pytest.mark.parametrize("call", CALLS)
def test_perturbing_a_row_changes_those_that_see_it_and_no_bit_of_the_others(call, perturbation):
    call, sees = CALLS[call]
    expected = hidden_rows(waiting_model(), call)
    assert expected.shape[0] == sees.shape[0]
    for row in range(sees.shape[0]):
        hidden = hidden_rows(waiting_model(), call, perturbation(row))
        changed = (hidden != expected).any(dim=1)
        assert torch.equal(changed, sees[:, row]), row


def test_linears_draft_rows_see_the_context_and_themselves_alone():
    sees = torch.eye(5, dtype=torch.bool)
    sees[:, 0] = True
    expected = hidden_rows(waiting_model(), draft_call(POSITIONS))
    for row in range(5):
        for perturbation in (other_token, other_position):
            hidden = hidden_rows(waiting_model(), draft_call(POSITIONS), perturbation(row))
            assert torch.equal((hidden != expected).any(dim=1), sees[:, row])


@pytest.mark.parametrize("place", range(len(PROMPT)))
def test_every_row_sees_every_token_of_the_prompt(place):
    call, _ = CALLS["[N|O|M|R0|R1|R3]"]
    prompt = [*PROMPT[:place], 39, *PROMPT[place + 1 :]]
    plain, perturbed = (hidden_rows(begun_model(21, prompt=tokens), call) for tokens in (PROMPT, prompt))
    assert (plain != perturbed).any(dim=1).all()


@pytest.mark.parametrize("position", [1, 6])
def test_every_row_sees_every_accepted_token_and_its_position(position):
    """Position 6 is cached, position 1 in N; both with other tokens, then at other positions."""
    call, _ = CALLS["[N|O|M|R0|R1|R3]"]

    def accepted(pairs: dict[int, int]) -> Tensor:
        model = begun_model(21)
        model.evaluate(verify_call(list(pairs), list(pairs.values())))
        model.commit(torch.tensor(list(pairs.values())), accepted_drafts=1)
        return hidden_rows(model, call)

    plain = accepted({6: 30, 1: 25})
    other = {6: 30, 1: 25} | {position: 39}
    moved = {(place + 10 if place == position else place): token for place, token in {6: 30, 1: 25}.items()}
    for changed in (other, moved):
        assert (accepted(changed) != plain).any(dim=1).all()
