"""Partial branch sets: chosen as they say, and compared where they were not chosen."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.atlas.partial_branches import candidates, halves, likely_branches, partial_table, searched
from harness.analysis.atlas.simulation import Simulation
from tests.builders.atlases import made_atlas, made_prompt, threshold_prompt

probability = st.floats(0.0625, 1.0, width=32)


def expected_branch(chosen: list[int], probabilities: list[float]) -> float:
    """By enumeration: the mean of the largest chosen branch that stands."""
    survival = np.concatenate([[1.0], np.cumprod(probabilities)])
    stands = survival - np.append(survival[1:], 0.0)
    return sum(chance * max(b for b in chosen if b <= count) for count, chance in enumerate(stands))


@settings(max_examples=200, deadline=None)
@given(st.lists(probability, min_size=1, max_size=6))
def test_one_more_branch_is_where_it_raises_the_expected_context_most(probabilities):
    (chosen,) = likely_branches(2, np.array([len(probabilities)]), np.array([probabilities], dtype=np.float32))
    found = np.flatnonzero(chosen).tolist()
    best = max(expected_branch([0, branch], probabilities) for branch in range(len(probabilities) + 1))
    assert found[0] == 0
    assert len(found) <= 2
    assert expected_branch(found, probabilities) >= best * (1 - 1e-5)


@settings(max_examples=100, deadline=None)
@given(st.lists(probability, min_size=2, max_size=6), st.integers(1, 6), st.integers(1, 6))
def test_branches_stay_within_budget_and_draft(probabilities, drafted, budget):
    row = np.array([*probabilities[:drafted], *[0.0] * (6 - len(probabilities[:drafted]))], dtype=np.float32)
    (chosen,) = likely_branches(budget, np.array([drafted]), row[None])
    found = np.flatnonzero(chosen)
    assert found[0] == 0
    assert len(found) <= budget
    assert found[-1] <= len(probabilities[:drafted])


def replay_of(count: int, width: int = 4) -> Simulation:
    rng = np.random.default_rng(5)
    prompts = [threshold_prompt(rng.integers(0, 7, 30).tolist(), width) for _ in range(count)]
    return Simulation(made_atlas(*prompts))


def test_the_search_finds_the_best_single_branch():
    simulation = replay_of(4)
    calls = {
        branch: simulation.one_call(4, lambda drafted, b=branch: [0, b] if b <= drafted else [0]).nfe.sum()
        for branch in range(1, 5)
    }
    _, found = searched(simulation, width=4, budget=2)
    assert calls[found] == min(calls.values())


def test_candidates_are_branches_of_their_width_within_their_budget():
    for one in candidates(replay_of(2)):
        assert one.rows <= (one.width + 1) * 7
        if one.family != "confident":
            branches = [int(part) for part in one.label.split("+")]
            assert branches[0] == 0
            assert branches == sorted(set(branches))
            assert branches[-1] <= one.width


def test_prompts_are_searched_on_or_compared_on_and_never_both():
    simulation = Simulation(made_atlas(*(made_prompt(np.ones((3, 3), bool), prompt_id=str(n)) for n in range(5))))
    one, other = (half.atlas for half in halves(simulation))
    assert [prompt.prompt_id for prompt in one.prompts] == ["0", "2", "4"]
    assert [prompt.prompt_id for prompt in other.prompts] == ["1", "3"]


def test_confidence_in_every_token_alike_needs_no_model_to_replay():
    simulation = replay_of(3)
    every = simulation.one_call(4, lambda drafted: range(drafted + 1))
    assert (simulation.one_call_by_confidence(4, lambda drafted, sure: sure_of_all(sure)).nfe == every.nfe).all()


def sure_of_all(sure: np.ndarray) -> np.ndarray:
    """A branch for every drafted token."""
    return np.concatenate([np.ones((len(sure), 1), bool), sure > 0], axis=1)


def test_the_table_compares_what_fits_the_rows():
    table = partial_table(replay_of(6))
    assert table.frame["Rows a call, at most"].tolist()[::2] == [16, 32, 64, 128, 256]
    for row in table.shown_rows():
        assert row[2].value is None or row[2].value >= 1


def test_every_pair_of_a_small_budget_is_at_most_as_good_as_all_branches():
    simulation = replay_of(4)
    every = simulation.one_call(4, lambda drafted: range(drafted + 1)).nfe.sum()
    for pair in combinations(range(1, 5), 2):
        some = simulation.one_call(4, lambda drafted, p=pair: [0, *(b for b in p if b <= drafted)]).nfe.sum()
        assert some >= every
