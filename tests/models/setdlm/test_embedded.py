"""tiny_setdlm on its toy tasks: left to right it is serial decoding, and Packed-SS saves calls in both orders."""

import pytest

import harness
from harness.tasks.toy import ToySource
from schedules import Branches, Confidence, Greedy, LeftToRight, Linear, Native, Packed, Quadratic, Stop
from tests.builders.setdlm import MASK_ID, masked_query

CAP = 64


@pytest.fixture(scope="module")
def tiny():
    return harness.load("tiny_setdlm", device="cpu")


@pytest.fixture(scope="module")
def prompts(tiny):
    items = [item for task in ("toy_math", "toy_code", "toy_writing") for item in ToySource(task, 40).read().items]
    return [tiny.encode(item.fields["prompt"]) for item in items[::3]]


def serial(tiny, prompt, cap):
    """One token at a time, each from a plain call without a cache."""
    tokens = []
    while len(tokens) < cap and not set(tokens[-1:]) & tiny.eos_ids:
        pairs = list(enumerate(tokens, start=1))
        tokens.append(int(masked_query(tiny.model.backbone, prompt, pairs, len(tokens) + 1).argmax()))
    return tokens


def schedules(width):
    return [Linear(width), Packed(width), Quadratic(width), Branches(width, [0, width // 2])]


def assert_serial(tiny, prompts, width):
    for number, prompt in enumerate(prompts):
        cap = 1 + (17 * number) % CAP
        expected = serial(tiny, prompt, cap)
        for schedule in [*schedules(width), *([Native(1)] if width == 1 else [])]:
            assert schedule.decode(tiny.model, prompt, Greedy(), Stop(cap, tiny.eos_ids)).tokens == expected


def test_the_builders_query_asks_with_this_models_mask(tiny):
    assert tiny.tokenizer.mask_token_id == MASK_ID


@pytest.mark.parametrize("width", [1, 2, 3, 8, 16])
def test_left_to_right_schedules_equal_serial_decoding(tiny, prompts, width):
    assert_serial(tiny, prompts[width : width + 2], width)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 3, 8, 16])
def test_left_to_right_schedules_equal_serial_decoding_on_a_hundred_prompts(tiny, width):
    items = [item for task in ("toy_math", "toy_code", "toy_writing") for item in ToySource(task, 34).read().items]
    assert_serial(tiny, [tiny.encode(item.fields["prompt"]) for item in items[:100]], width)


@pytest.mark.parametrize("order", [LeftToRight(), Confidence()], ids=lambda order: order.name)
def test_packed_needs_fewer_calls_than_linear(tiny, prompts, order):
    calls = {}
    for schedule in (Linear(8), Packed(8)):
        responses = [
            schedule.decode(tiny.model, prompt, Greedy(), Stop(CAP, tiny.eos_ids), order) for prompt in prompts[:8]
        ]
        calls[type(schedule)] = sum(response.nfe for response in responses) / sum(
            len(response.tokens) for response in responses
        )
    assert calls[Packed] < calls[Linear]
