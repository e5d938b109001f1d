"""Replays of made-up atlases: equal to decoding a table model that proposes the same, for every schedule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.atlas.simulation import Simulation
from harness.errors import UserError
from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.atlases import EOS, PROMPT, made_atlas, made_prompt, table_model


@st.composite
def made(draw):
    """A width, and prompts of different lengths with any proposals right or wrong."""
    width = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.floats(0, 1))
    lengths = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4))
    ends = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    prompts = [
        made_prompt(rng.random((length, width + 1)) < share, ends=end)
        for length, end in zip(lengths, ends, strict=True)
    ]
    return width, prompts, sorted({0, *draw(st.sets(st.integers(0, width)))})


@settings(max_examples=150, deadline=None)
@given(made())
def test_calls_and_accepted_tokens_are_those_of_decoding(case):
    width, prompts, branches = case
    simulation = Simulation(made_atlas(*prompts))
    schedules = [Packed(width), Quadratic(width), Branches(width, branches)]
    simulated = [(Autoregressive(), simulation.autoregressive()), (Linear(width), simulation.linear(width))]
    simulated += [(schedule, simulation.one_call(width, schedule.branches)) for schedule in schedules]
    for schedule, found in simulated:
        for index, prompt in enumerate(prompts):
            stop = Stop(len(prompt.tokens), frozenset({EOS}))
            response = schedule.decode(table_model(prompt), PROMPT, Greedy(), stop)
            assert found.accepted[index] == [iteration.accepted for iteration in response.trace]
            assert (found.nfe[index], found.iterations[index]) == (response.nfe, len(response.trace))
            assert found.tokens[index] == len(response.tokens)


@pytest.mark.parametrize("branches", [[1], [0, 2, 1], [0, 9], []])
def test_branches_that_make_no_call_are_refused(branches):
    simulation = Simulation(made_atlas(made_prompt(np.ones((4, 4), dtype=bool))))
    with pytest.raises(UserError, match="branches"):
        simulation.one_call(3, lambda drafted: branches)


def test_a_width_that_was_not_recorded_is_refused_with_those_that_were():
    simulation = Simulation(made_atlas(made_prompt(np.ones((4, 4), dtype=bool))))
    with pytest.raises(UserError, match=r"width=2: not in the atlas, which has 3\."):
        simulation.linear(2)
