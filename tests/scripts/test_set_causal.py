"""The set-causal objective against an obvious reference that walks over single rows."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from set_causal import BEYOND_END, HORIZONS, WINDOW, SetCausalBatch, set_causal_batch
from tiny_objectives import TokenizedExample

PAD, EOS, MASK = 0, 2, 3
PROMPT_LENGTHS, RESPONSE_LENGTHS = (5, 9, 1, 7, 3, 4), (12, 1, 30, 7, 25, 19)


def examples() -> list[TokenizedExample]:
    """Sequences whose tokens are all different, so that a row can be told by its token."""
    result = []
    for prompt, response in zip(PROMPT_LENGTHS, RESPONSE_LENGTHS, strict=True):
        tokens = list(range(10, 10 + prompt + response - 1))
        result.append(TokenizedExample(tokens[:prompt], [*tokens[prompt:], EOS]))
    return result


@pytest.fixture(scope="module", params=range(8))
def batch(request) -> SetCausalBatch:
    return set_causal_batch(examples(), PAD, MASK, torch.Generator().manual_seed(request.param))


def generation_order(batch: SetCausalBatch, index: int, length: int) -> list[int]:
    """Positions of one sequence in its order, read off how many tokens each token row sees.

    Behind the prompt and up to the end; what lies beyond an EOS is hidden and says nothing about the order.
    """
    seen = batch.mask[index, 0, :length, :length].sum(dim=1)
    return seen.argsort(stable=True).tolist()


def test_token_rows_hold_the_sequence_at_its_textual_positions_and_eos_beyond_its_end(batch):
    for index, example in enumerate(examples()):
        sequence = [*example.prompt, *example.response, *[EOS] * BEYOND_END]
        assert batch.input_ids[index, : len(sequence)].tolist() == sequence
        assert batch.position_ids[index, : len(sequence)].tolist() == list(range(len(sequence)))


def test_prompt_is_causal_and_never_sees_the_response(batch):
    for index, length in enumerate(PROMPT_LENGTHS):
        sees = batch.mask[index, 0, :length]
        assert sees[:, :length].tolist() == torch.ones(length, length).tril().bool().tolist()
        assert not sees[:, length:].any()


def test_every_token_row_sees_the_prompt_and_is_ordered_within_the_longest_horizon(batch):
    for index, (prompt, response) in enumerate(zip(PROMPT_LENGTHS, RESPONSE_LENGTHS, strict=True)):
        end = prompt + response - 1
        sees = batch.mask[index, 0, prompt:end, :end]
        assert sees[:, :prompt].all()
        among = sees[:, prompt:]
        assert among.diagonal().all()
        assert not (among & among.T & ~torch.eye(response - 1, dtype=torch.bool)).any()
        assert (among | among.T).all()
        order = generation_order(batch, index, end)
        assert all(abs(rank - position) < max(HORIZONS) for rank, position in enumerate(order))


def reference_visible(batch: SetCausalBatch, index: int, cut: int, keys: list[int]) -> set[int]:
    """The `cut` first positions of the order, without what lies beyond the leftmost EOS among them."""
    first_end = PROMPT_LENGTHS[index] + RESPONSE_LENGTHS[index] - 1
    earlier = keys[:cut]
    ends = [position for position in earlier if position >= first_end]
    return {position for position in earlier if position <= min(ends, default=10**9)}


def mask_rows(batch: SetCausalBatch, index: int):
    """Rows of masks with a loss: (row, is_drafter, position, target, token rows it sees)."""
    for is_drafter, targets in ((False, batch.verifier_targets), (True, batch.drafter_targets)):
        for row in (targets[index] != -100).nonzero().flatten().tolist():
            seen = batch.mask[index, 0, row].nonzero().flatten().tolist()
            assert seen.pop() == row
            yield row, is_drafter, int(batch.position_ids[index, row]), int(targets[index, row]), set(seen)


def test_mask_rows_predict_their_own_token_from_tokens_earlier_in_the_order(batch):
    for index, (prompt, response) in enumerate(zip(PROMPT_LENGTHS, RESPONSE_LENGTHS, strict=True)):
        end = prompt + response - 1
        order = generation_order(batch, index, end)
        for row, is_drafter, position, target, seen in mask_rows(batch, index):
            assert batch.input_ids[index, row] == MASK
            assert target == batch.input_ids[index, position]
            assert position not in seen
            inside = {key for key in seen if key < end}
            assert inside == set(order[: len(inside)])  # an initial part of the order
            if position < end:
                own_rank = order.index(position)
                assert len(inside) == own_rank or (is_drafter and prompt <= len(inside) < own_rank)


def test_nothing_is_seen_or_asked_for_to_the_right_of_a_seen_eos(batch):
    for index, (prompt, response) in enumerate(zip(PROMPT_LENGTHS, RESPONSE_LENGTHS, strict=True)):
        end = prompt + response - 1
        for *_, position, _, seen in mask_rows(batch, index):
            ends = sorted(key for key in seen if key >= end)
            assert len(ends) <= 1
            assert all(position < key for key in ends)
            assert position <= end + BEYOND_END


def test_masks_are_asked_for_positions_within_the_window_of_the_leftmost_unresolved_one(batch):
    for index, prompt in enumerate(PROMPT_LENGTHS):
        for *_, position, _, seen in mask_rows(batch, index):
            leftmost = min(set(range(prompt, position + 1)) - seen)
            assert position - leftmost < WINDOW


def test_every_response_position_has_a_verifier_and_a_drafter_when_the_order_is_left_to_right():
    found = 0
    for seed in range(4):
        batch = set_causal_batch(examples(), PAD, MASK, torch.Generator().manual_seed(seed))
        for index, (prompt, response) in enumerate(zip(PROMPT_LENGTHS, RESPONSE_LENGTHS, strict=True)):
            end = prompt + response - 1
            if response < 8 or generation_order(batch, index, end) != list(range(end)):
                continue
            found += 1
            rows = list(mask_rows(batch, index))
            verified = sorted(position for _, is_drafter, position, *_ in rows if not is_drafter)
            drafted = sorted(position for _, is_drafter, position, *_ in rows if is_drafter)
            assert verified == list(range(prompt, end + 1))
            assert drafted[: response - 1] == list(range(prompt, end))
    assert found > 2


def test_batches_repeat_for_the_same_seed():
    first, second = (set_causal_batch(examples(), PAD, MASK, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first.mask, second.mask)
    assert torch.equal(first.drafter_targets, second.drafter_targets)
