"""Recorded graphs without a GPU: what must not be recorded is not, and replays give the tokens of eager passes."""

import random

import pytest
import torch

from harness.models.execution.engine import CudaGraphs
from schedules import Greedy, Stop
from tests.builders.device_decoding import SCHEDULES, build
from tests.builders.pretend_accelerator import Refused, device, watched
from tests.builders.pretend_graphs import PretendGraph, graphs, recording

__all__ = ["graphs"]  # a fixture

VOCAB, CAP = 40, 8
ONE_CALL = ("packed", "quadratic", "branches")


def random_prompts(count: int, longest: int = 60) -> list[list[int]]:
    """Of 1 to `longest` tokens."""
    chance = random.Random(0)
    return [[chance.randrange(4, VOCAB) for _ in range(chance.randint(1, longest))] for _ in range(count)]


def decoded(model, schedule: str, prompts):
    return [SCHEDULES[schedule].decode(model, prompt, Greedy(), Stop(CAP, frozenset())).tokens for prompt in prompts]


def recorded_model(adapter: str | None = None):
    model = build("nemotron", adapter, is_on_device=True)
    model.engine = CudaGraphs()
    return model


def test_replays_give_the_tokens_of_eager_passes_for_100_prompts(graphs):
    # The shortest first: it is padded most, and the cache grows no more.
    prompts = [[5], *random_prompts(99)]
    assert decoded(recorded_model(), "packed", prompts) == decoded(build("nemotron"), "packed", prompts)
    # One for prompts of up to 64 tokens, one for the other calls.
    assert len(graphs) == 2
    assert graphs[0].replays == 100
    assert graphs[1].replays > 100


@pytest.mark.parametrize("adapter", [None, "masked", "fused"])
@pytest.mark.parametrize("schedule", ["autoregressive", "linear", "quadratic", "branches"])
def test_every_schedule_can_be_recorded(graphs, schedule, adapter):
    prompts = random_prompts(2)
    expected = decoded(build("nemotron", adapter), schedule, prompts)
    assert decoded(recorded_model(adapter), schedule, prompts) == expected
    assert graphs


def test_an_iteration_of_replays_makes_the_transfers_of_an_eager_one(graphs):
    model, (prompt,) = recorded_model(), random_prompts(1)
    decoded(model, "packed", [prompt])
    with watched() as traffic:
        response = SCHEDULES["packed"].decode(model, prompt, Greedy(), Stop(CAP, frozenset()))
    assert (traffic.to_host, traffic.to_device) == (len(response.trace), 1)


def test_a_cache_that_grows_is_recorded_anew(graphs):
    model, plain = recorded_model(), build("nemotron")
    for prompt in ([5, 9, 11], [5, 9, 11] * 50, [5, 9, 11]):
        assert decoded(model, "packed", [prompt]) == decoded(plain, "packed", [prompt])
    assert len(graphs) == 5  # both shapes, the longer prompt's too with the larger cache


REFUSED = {
    "reading a value": lambda one: one.sum().item(),
    "copying to the host": lambda one: one.cpu(),
    "asking whether": lambda one: bool((one > 0).any()),
    "a tensor from the host": lambda one: one + torch.tensor([1.0, 2.0, 3.0], device=device()),
    "an index from the host": lambda one: one[[0, 1]],
    "a shape that depends on data": lambda one: one.nonzero(),
    "a boolean index": lambda one: one[one > 0],
    "memory that moves": lambda one: one.clone().resize_(7),
}


@pytest.mark.parametrize("region", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_recorded_is_refused(region):
    one = torch.ones(3, device=device())
    region(one)
    with pytest.raises(Refused), recording(PretendGraph()):
        region(one)


def test_a_replay_reads_what_lies_at_the_recorded_addresses_then():
    graph, one = PretendGraph(), torch.ones(3, device=device())
    with recording(graph):
        result = (one[1:] * 2).cumsum(dim=0)
    one.copy_(torch.tensor([0.0, 3.0, 4.0], device=device()))
    assert result.tolist() == [2, 4]
    graph.replay()
    assert result.tolist() == [6, 14]


def test_a_replay_on_memory_that_is_gone_is_refused():
    graph, one = PretendGraph(), torch.ones(3, device=device())
    with recording(graph):
        one * 2
    del one
    with pytest.raises(Refused, match="freed or moved"):
        graph.replay()
