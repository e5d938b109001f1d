"""The host's part of an iteration: few tensor operations, one transfer, whatever the width and what was accepted."""

import pytest
import torch

from harness.bench.embedded import load, prompts
from harness.bench.operations import counts_per_iteration
from harness.bench.stored import StoredModel
from schedules import Autoregressive, Greedy, Linear, Packed, Quadratic, Stop, SyntheticAcceptance

LIMITS = {Linear(31): 40, Packed(31): 40, Quadratic(7): 60, Autoregressive(): 40}


def name(schedule) -> str:
    return f"{type(schedule).__name__}{schedule.width}"


@pytest.fixture(scope="module")
def model():
    return load()


@pytest.fixture(scope="module")
def prompt(model):
    return prompts(model, 1)[0]


@pytest.mark.parametrize(("schedule", "limit"), LIMITS.items(), ids=map(name, LIMITS))
def test_an_iteration_takes_few_operations_and_one_transfer(model, prompt, schedule, limit):
    counts = counts_per_iteration(model.model, model.model.backbone, schedule, prompt)
    assert counts.operations <= limit
    assert counts.transfers <= 1


@pytest.mark.parametrize("kind", [Linear, Packed, Quadratic])
def test_operations_do_not_depend_on_the_width(model, prompt, kind):
    counts = [counts_per_iteration(model.model, model.model.backbone, kind(width), prompt) for width in (3, 7, 15)]
    # Packed's padding is one slice more in iterations with a short draft.
    assert max(one.operations for one in counts) - min(one.operations for one in counts) <= 2


@pytest.mark.parametrize("kind", [Linear, Packed, Quadratic])
def test_operations_do_not_depend_on_how_many_tokens_are_accepted(model, prompt, kind):
    class Accepting:
        """Decodes with the same number of tokens in every iteration."""

        def __init__(self, count):
            self.count, self.width = count, 7

        def decode(self, model, prompt, rule, stop):
            return kind(self.width).decode(model, prompt, SyntheticAcceptance(rule, [self.count]), stop)

    few, many = (counts_per_iteration(model.model, model.model.backbone, Accepting(count), prompt) for count in (2, 6))
    assert abs(few.operations - many.operations) <= 2


def test_the_counter_sees_what_happens():
    class Wasteful:
        width = 1

        def decode(self, model, prompt, rule, stop):
            response = Linear(1).decode(model, prompt, rule, stop)
            for _ in response.trace:
                torch.zeros(3).add(1).tolist()
            return response

    stored = StoredModel(100, width=1)
    plain, wasteful = (counts_per_iteration(stored, None, one, [1]) for one in (Linear(1), Wasteful()))
    assert wasteful.operations - plain.operations == pytest.approx(2)
    assert wasteful.transfers - plain.transfers == pytest.approx(1)


@pytest.mark.parametrize("schedule", [Linear(7), Packed(7), Quadratic(3)], ids=name)
def test_stored_logits_decode_to_the_same_tokens_as_one_by_one(schedule):
    stored = StoredModel(60, width=7)
    one_by_one, other = (
        one.decode(stored, [1], Greedy(), Stop(60, frozenset())) for one in (Autoregressive(), schedule)
    )
    assert other.tokens == one_by_one.tokens
    assert other.nfe < 60
