"""The one-call loop on made-up distributions: what is asked, what is kept, what is dropped."""

import pytest
import torch

from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.table_model import TableModel, one_hot

VOCAB = 50
PROMPT = [7]
NEVER = frozenset({VOCAB - 1})


def counting_model(correct_up_to: int) -> TableModel:
    """Greedy continuation 1, 2, 3, ...; proposals are right for the first `correct_up_to` offsets of a context."""

    def verifier(prefix):
        return one_hot(len(prefix), VOCAB)

    def drafter(context, offset):
        return one_hot(len(context) + offset - 1 if offset <= correct_up_to else 0, VOCAB)

    return TableModel(verifier, drafter)


def decode(schedule, model, cap, eos=NEVER):
    return schedule.decode(model, PROMPT, Greedy(), Stop(cap, frozenset(eos)))


def test_packed_keeps_the_unresolved_suffix_of_its_proposals():
    model = counting_model(correct_up_to=3)
    decode(Packed(4), model, cap=8)
    drafts = [call.draft.tokens.tolist() for call in model.calls]
    # Call 1 proposes offsets 1..5 from the prompt and emits token 1: offsets 2 and 3 are right, 4 and 5 are not.
    # Call 2 emits 2, 3 and the correction 4; of its proposals for tokens 2..5 only the one for 5 is unresolved.
    assert drafts == [[], [2, 3, 0, 0], [0], [6, 7, 0]]


def test_quadratic_continues_the_branch_that_verification_selects():
    model = counting_model(correct_up_to=3)
    decode(Quadratic(3), model, cap=7)
    drafts = [call.draft.tokens.tolist() for call in model.calls]
    # Branch 2 is right in call 2; its context ends at token 3, so offset 1 (token 4) is the correction, dropped.
    assert drafts == [[], [2, 3, 0], [5, 6, 0]]
    assert [list(call.branches) for call in model.calls] == [[0], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_partial_branches_fall_back_to_the_largest_branch_that_came_true():
    model = counting_model(correct_up_to=3)
    decode(Branches(5, [0, 1]), model, cap=8)
    drafts = [call.draft.tokens.tolist() for call in model.calls]
    # Call 2 accepts 2 drafts and a correction (2, 3, 4); branch 1 knew token 2 and holds tokens 4..8, of which
    # token 4 is resolved and token 5 is its third offset: right.
    assert drafts[2] == [5, 0, 0, 0]
    assert list(model.calls[2].branches) == [0, 1]


def test_branches_beyond_the_draft_are_not_asked_for():
    assert list(Branches(5, [0, 3, 5]).branches(4)) == [0, 3]


def test_partial_branches_with_only_zero_are_packed():
    for correct in range(5):
        packed = decode(Packed(4), counting_model(correct), cap=20)
        partial = decode(Branches(4, [0]), counting_model(correct), cap=20)
        assert packed == partial


@pytest.mark.parametrize("schedule", [Linear(4), Packed(4), Quadratic(4), Branches(4, [0, 2])])
def test_all_proposals_wrong_still_gives_one_token_a_call(schedule):
    response = decode(schedule, counting_model(0), cap=10)
    assert list(response.tokens) == list(range(1, 11))
    assert all(iteration.accepted == 1 for iteration in response.trace)


def test_all_proposals_right_accepts_the_whole_draft_and_a_bonus():
    response = decode(Linear(4), counting_model(100), cap=16)
    assert [iteration.accepted for iteration in response.trace] == [1, 5, 5, 5]
    assert response.nfe == 1 + 2 * 3


@pytest.mark.parametrize("schedule", [Autoregressive(), Linear(4), Packed(4), Quadratic(4), Branches(4, [0, 2])])
class TestStopping:
    def test_cap_zero_makes_no_call(self, schedule):
        model = counting_model(3)
        response = decode(schedule, model, cap=0)
        assert (response.tokens, response.nfe, response.stop_reason) == ([], 0, "length")
        assert model.calls == []

    @pytest.mark.parametrize("cap", range(1, 14))
    def test_never_more_tokens_than_the_cap(self, schedule, cap):
        response = decode(schedule, counting_model(3), cap)
        assert list(response.tokens) == list(range(1, cap + 1))
        assert response.stop_reason == "length"
        assert sum(iteration.accepted for iteration in response.trace) == cap

    @pytest.mark.parametrize("eos", range(1, 14))
    def test_eos_is_the_last_token_wherever_it_falls(self, schedule, eos):
        response = decode(schedule, counting_model(3), cap=40, eos={eos, 45})
        assert list(response.tokens) == list(range(1, eos + 1))
        assert response.stop_reason == "eos"

    def test_eos_at_the_cap_counts_as_eos(self, schedule):
        response = decode(schedule, counting_model(3), cap=6, eos={6})
        assert (len(response.tokens), response.stop_reason) == (6, "eos")

    def test_an_empty_prompt_is_refused(self, schedule):
        with pytest.raises(ValueError, match="at least one prompt token"):
            schedule.decode(counting_model(3), [], Greedy(), Stop(5, NEVER))


def test_nfe_accounting_of_the_first_calls():
    # E.2 at temperature 0: Linear 1 + 2 I, Packed and Quadratic 1 + I, I iterations after the prompt's call.
    linear = decode(Linear(4), counting_model(2), cap=10)
    assert [iteration.calls for iteration in linear.trace] == [1, 2, 2, 2]
    packed = decode(Packed(4), counting_model(2), cap=10)
    assert {iteration.calls for iteration in packed.trace} == {1}
    assert packed.nfe == len(packed.trace)
    assert Autoregressive().decode(counting_model(2), PROMPT, Greedy(), Stop(10, NEVER)).nfe == 10


@pytest.mark.parametrize("width", [0, -1, 1.5, "4", None, True])
@pytest.mark.parametrize("schedule", [Linear, Packed, Quadratic, lambda width: Branches(width, [0])])
def test_a_width_below_one_is_refused(schedule, width):
    with pytest.raises(ValueError, match="width: got"):
        schedule(width)


@pytest.mark.parametrize("branches", [[], [1, 2], [0, 5], [-1, 0]])
def test_branch_sets_need_zero_and_stay_within_the_width(branches):
    with pytest.raises(ValueError, match="branches: got"):
        Branches(4, branches)


def test_greedy_ties_go_to_the_lowest_token_id():
    tied = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    assert Greedy().draw(tied).tokens.tolist() == [1, 0]
    assert Greedy().verify(Greedy().draw(tied[:1]), tied).tokens == [1, 0]
