"""Greedy decoding in float32: every schedule emits the tokens of plain autoregressive decoding (section 8 of theory:
theorem 3.3 at temperature 0), for random and for trained weights, every width, any cap, EOS anywhere."""

import random

import pytest

import harness
from harness.tasks.toy import ToySource
from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.nemotron import plain_greedy, random_backbone, random_model

WIDTHS = range(1, 17)


def schedules(width: int, rng: random.Random):
    """All schedules at one width, with a random branch set."""
    some = [0, *sorted(rng.sample(range(1, width + 1), k=min(2, width)))]
    return [Linear(width), Packed(width), Quadratic(width), Branches(width, some)]


@pytest.mark.parametrize("width", WIDTHS)
def test_random_weights(width):
    rng = random.Random(width)
    model = random_model(seed=width)
    for _ in range(3):
        prompt = [rng.randrange(4, 40) for _ in range(rng.randint(1, 12))]
        # With random weights some token ids occur often: any of them makes an EOS that falls anywhere in a draft.
        stop = Stop(rng.randint(1, 40), frozenset(rng.sample(range(40), k=rng.choice([0, 1, 2]))))
        expected = plain_greedy(model.backbone, prompt, stop.max_new_tokens, stop.eos_ids)
        assert Autoregressive().decode(model, prompt, Greedy(), stop).tokens == expected
        for schedule in schedules(width, rng):
            assert schedule.decode(model, prompt, Greedy(), stop).tokens == expected


@pytest.fixture(scope="module")
def tiny():
    return harness.load("tiny_nemotron", device="cpu")


@pytest.fixture(scope="module")
def prompts(tiny):
    items = [item for task in ("toy_math", "toy_code", "toy_writing") for item in ToySource(task, 40).read().items]
    random.Random(0).shuffle(items)
    return [tiny.encode(item.fields["prompt"]) for item in items]


@pytest.mark.parametrize("width", WIDTHS)
def test_trained_weights(tiny, prompts, width):
    rng = random.Random(width)
    for prompt in prompts[3 * width : 3 * width + 3]:
        full = Autoregressive().decode(tiny.model, prompt, Greedy(), Stop(90, tiny.eos_ids)).tokens
        cap = rng.choice([1, 2, rng.randint(3, 90), 90])
        eos = tiny.eos_ids | {rng.choice(full)}
        expected = full[:cap]
        end = next((place for place, token in enumerate(expected) if token in eos), len(expected))
        for schedule in schedules(width, rng):
            response = schedule.decode(tiny.model, prompt, Greedy(), Stop(cap, eos))
            assert response.tokens == expected[: end + 1]
            assert sum(iteration.accepted for iteration in response.trace) == len(response.tokens)


def test_autoregressive_equals_decoding_without_a_cache(tiny, prompts):
    for prompt in prompts[:2]:
        response = Autoregressive().decode(tiny.model, prompt, Greedy(), Stop(40, tiny.eos_ids))
        assert response.tokens == plain_greedy(tiny.model.backbone, prompt, 40, tiny.eos_ids)
        assert response.nfe == len(response.tokens)


def test_random_backbones_differ_between_seeds():
    assert not random_backbone(0).lm_head.weight.equal(random_backbone(1).lm_head.weight)
