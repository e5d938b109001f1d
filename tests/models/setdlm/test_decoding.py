"""All schedules on same-position models: left to right they equal a serial reference that uses plain calls without a
cache, and in any order they equal the reference that replays their orders (proposition C.1)."""

import math
import random

import pytest
import torch

from harness.models.setdlm.model import SetDlmModel
from schedules import (
    Autoregressive,
    Branches,
    Confidence,
    Greedy,
    LeftToRight,
    Linear,
    Native,
    Packed,
    Quadratic,
    Random,
    Sampling,
    SamplingParams,
    SeededChoices,
    Stop,
)
from tests.builders.setdlm import MASK_ID, PROMPT, VOCAB, masked_query, random_backbone

WIDTHS = [1, 2, 3, 8, 16]


def schedules(width):
    some = sorted({0, width // 2, width - 1})
    return [Linear(width), Packed(width), Quadratic(width), Branches(width, some)]


def model_of(seed, dtype=torch.float32):
    return SetDlmModel(random_backbone(seed, dtype), MASK_ID)


def best_token(backbone, pairs, position):
    return int(masked_query(backbone, PROMPT, pairs, position).argmax())


def serial_tokens(backbone, stop):
    """One token at a time from left to right, each from a plain call without a cache."""
    pairs = []
    for position in range(1, stop.max_new_tokens + 1):
        pairs.append((position, best_token(backbone, pairs, position)))
        tokens = [token for _, token in pairs]
        if tokens[-1] in stop.eos_ids or any(tokens[-len(marker) :] == list(marker) for marker in stop.markers):
            break
    return [token for _, token in pairs]


def replayed_tokens(backbone, response, stop):
    """Proposition C.1's serial reference: the recorded orders and counts, one plain call a token."""
    pairs, end = [], stop.max_new_tokens
    for iteration in response.trace:
        group = []
        for position in iteration.positions:
            group.append((position, best_token(backbone, pairs + group, position)))
        end = min([end, *(position for position, token in group if token in stop.eos_ids)])
        pairs = [pair for pair in pairs + group if pair[0] <= end]
    by_position = dict(pairs)
    return [by_position[position] for position in range(1, end + 1)]


@pytest.mark.parametrize("width", WIDTHS)
def test_left_to_right_equals_the_serial_reference(width):
    rng = random.Random(width)
    for seed in range(2):
        model = model_of(10 * width + seed)
        stop = Stop(rng.randint(1, 30), frozenset(rng.sample(range(VOCAB), k=2)))
        expected = serial_tokens(model.backbone, stop)
        for schedule in [Autoregressive(), *schedules(width)]:
            response = schedule.decode(model, PROMPT, Greedy(), stop)
            assert response.tokens == expected
            assert sum(iteration.accepted for iteration in response.trace) == len(expected)


@pytest.mark.parametrize("order", [Confidence(), Random(1), Random(2)], ids=lambda order: order.name)
@pytest.mark.parametrize("width", WIDTHS)
def test_any_order_equals_the_reference_that_replays_it(width, order):
    rng = random.Random(width)
    for seed in range(3):
        model = model_of(100 + 10 * width + seed)
        # Several likely tokens end the response: in the middle of a window, twice in a group, beyond holes.
        stop = Stop(rng.randint(1, 30), frozenset(rng.sample(range(VOCAB), k=3)))
        for schedule in schedules(width):
            response = schedule.decode(model, PROMPT, Greedy(), stop, order)
            assert response.tokens == replayed_tokens(model.backbone, response, stop)
            assert sum(iteration.accepted for iteration in response.trace) == len(response.tokens)
            assert response.tokens[-1] in stop.eos_ids or len(response.tokens) == stop.max_new_tokens
            assert not set(response.tokens[:-1]) & stop.eos_ids or len(set(iteration_orders(response))) > 1


def iteration_orders(response):
    return [tuple(iteration.positions) for iteration in response.trace]


def test_accepted_pairs_behind_an_end_of_sequence_are_dropped_somewhere():
    # The hard case of algorithm 3, line 12, does occur in the test above.
    losses = 0
    for seed in range(12):
        stop = Stop(24, frozenset({seed % VOCAB, (3 * seed + 5) % VOCAB, 17}))
        response = Packed(8).decode(model_of(seed), PROMPT, Greedy(), stop, Random(seed))
        losses += sum(len(iteration.positions) - iteration.accepted for iteration in response.trace)
    assert losses > 0


def test_native_with_a_window_of_one_is_serial_decoding():
    for seed in range(3):
        model = model_of(seed)
        stop = Stop(20, frozenset({4}))
        response = Native(1).decode(model, PROMPT, Greedy(), stop)
        assert response.tokens == serial_tokens(model.backbone, stop)
        assert response.nfe == len(response.tokens) + 1


def test_native_accepts_what_is_sure_and_always_the_surest():
    model = model_of(3)
    response = Native(4, threshold=0.0).decode(model, PROMPT, Greedy(), Stop(8, frozenset()))
    assert [list(iteration.positions) for iteration in response.trace] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    cautious = Native(4, threshold=1.1).decode(model, PROMPT, Greedy(), Stop(8, frozenset()))
    assert all(len(iteration.positions) == 1 for iteration in cautious.trace)
    assert cautious.nfe == 1 + 8


def test_native_rows_are_pending_tokens_and_window_masks():
    model = model_of(3)
    response = Native(4, threshold=0.0).decode(model, PROMPT, Greedy(), Stop(8, frozenset()))
    # The prompt's call is counted in the first iteration.
    assert [iteration.rows for iteration in response.trace] == [len(PROMPT) + 4, 4 + 4]


@pytest.mark.parametrize("width", [1, 3, 8])
def test_markers_of_several_tokens_end_at_their_last_token(width):
    for seed in range(4):
        model = model_of(seed)
        free = serial_tokens(model.backbone, Stop(20, frozenset()))
        stop = Stop(20, frozenset(), markers=[free[6:9], free[11:13]])
        expected = serial_tokens(model.backbone, stop)
        for schedule in schedules(width):
            response = schedule.decode(model, PROMPT, Greedy(), stop)
            assert response.tokens == expected
            assert response.stop_reason == "marker"
        for schedule in schedules(width):
            response = schedule.decode(model, PROMPT, Greedy(), stop, Random(seed))
            assert response.stop_reason in ("marker", "length")
            ends = [
                end
                for marker in stop.markers
                for end in range(len(marker), len(response.tokens) + 1)
                if response.tokens[end - len(marker) : end] == list(marker)
            ]
            assert min(ends, default=len(response.tokens)) == len(response.tokens)


def test_rows_an_iteration_are_those_of_table_2():
    model, width = model_of(0), 4
    stop = Stop(12, frozenset())
    for schedule, rows in [
        (Linear(width), lambda p, u: p + 3 * u),
        (Packed(width), lambda p, u: p + 3 * u),
        (Quadratic(width), lambda p, u: p + 2 * u + u * u),
    ]:
        trace = schedule.decode(model, PROMPT, Greedy(), stop).trace
        done, pending = 0, 0
        for iteration in trace:
            open_positions = min(width, stop.max_new_tokens - done)
            prompt_rows = len(PROMPT) if iteration is trace[0] else 0
            assert iteration.rows == prompt_rows + rows(pending, open_positions)
            is_accepted_whole = iteration.drafted == iteration.accepted == open_positions
            pending = 0 if is_accepted_whole else 1
            done += iteration.accepted


def test_sampling_left_to_right_reproduces_from_its_seed_and_respects_the_end():
    model = model_of(5)

    def tokens(schedule, seed):
        rule = Sampling(SamplingParams(1.0), SeededChoices(seed, model.device))
        return schedule.decode(model, PROMPT, rule, Stop(25, frozenset({9}))).tokens

    for schedule in schedules(4):
        assert tokens(schedule, 1) == tokens(schedule, 1)
        assert tokens(schedule, 1) != tokens(schedule, 2)


def test_sampling_in_another_order_is_refused_with_the_reason():
    rule = Sampling(SamplingParams(1.0), SeededChoices(0, torch.device("cpu")))
    with pytest.raises(ValueError, match="exact sampling is known left to right only"):
        Packed(4).decode(model_of(0), PROMPT, rule, Stop(5, frozenset()), Confidence())


def test_a_cap_of_zero_makes_no_call():
    response = Packed(4).decode(model_of(0), PROMPT, Greedy(), Stop(0, frozenset()))
    assert (response.tokens, response.nfe) == ([], 0)


class TestConfidence:
    def test_ranks_by_decreasing_score_with_ties_in_textual_order(self):
        assert Confidence().rank([4, 5, 6, 7], {4: 0.2, 5: 0.9, 6: 0.2, 7: 0.5}) == [5, 7, 4, 6]

    def test_positions_without_a_score_come_last_in_textual_order(self):
        assert Confidence().rank([1, 2, 3, 4], {3: 0.1}) == [3, 1, 2, 4]

    def test_the_first_iteration_is_left_to_right(self):
        response = Linear(4).decode(model_of(1), PROMPT, Greedy(), Stop(8, frozenset()), Confidence())
        first = list(response.trace[0].positions)
        assert first == list(range(1, len(first) + 1))

    def test_left_to_right_keeps_the_order_given(self):
        assert LeftToRight().rank([2, 5], {5: 1.0}) == [2, 5]


class TestCacheOrder:
    def test_textual_is_the_default_and_what_positions_are(self):
        assert list(LeftToRight().cache_ranks(5, 8)) == [0, 1, 2, 3, 4]

    def test_random_ranks_are_descending_hitting_times_of_the_noise_schedule(self):
        """Against the published formula at W = 8, with b = .0153994 and k = .339876, draw by draw."""
        b, k, rng = 0.0153994, 0.339876, random.Random(5)
        times = [(1 - b) * (1 - place / 1023) + b * (1 - math.exp(-rng.expovariate(1.0) / k)) for place in range(1024)]
        ranks = LeftToRight("random").seeded(5).cache_ranks(1024, 8)
        scaled = [(1 - b) * (1 - rank / 1023) for rank in ranks]
        assert scaled == pytest.approx(times, abs=1e-6)

    def test_native_caches_a_batch_in_it_and_reproduces_from_the_seed(self):
        def orders(order):
            response = Native(8, threshold=0.0).decode(model_of(3), PROMPT, Greedy(), Stop(24, frozenset()), order)
            return [list(iteration.positions) for iteration in response.trace]

        random_orders = orders(LeftToRight("random").seeded(1))
        assert orders(LeftToRight("random").seeded(1)) == random_orders != orders(LeftToRight("random").seeded(2))
        assert [sorted(batch) for batch in random_orders] == orders(LeftToRight())
        ranks = LeftToRight("random").seeded(1).cache_ranks(24, 8)
        assert random_orders == [sorted(batch, key=lambda one: ranks[one - 1]) for batch in random_orders]

    def test_an_unknown_one_is_refused(self):
        with pytest.raises(ValueError, match="need one of textual, random"):
            Confidence("sideways")
