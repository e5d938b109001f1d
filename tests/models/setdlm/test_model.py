"""Calls on real backbones: every logit of a packed call equals that of one plain query, whatever was accepted."""

import random
from collections.abc import Sequence

import pytest
import torch

from harness.models.setdlm.model import SUPPRESSED, SetDlmModel
from schedules.call import Call, Draft, Output, Window
from tests.builders.setdlm import (
    MASK_ID,
    PROMPT,
    VOCAB,
    all_logits,
    begun_model,
    draft_call,
    masked_query,
    random_backbone,
    verify_call,
)

Pairs = list[tuple[int, int]]


@pytest.fixture(params=[(torch.float64, 1e-9), (torch.float32, 5e-5)], ids=["float64", "float32"])
def precision(request):
    return request.param


def verifiable(draft: Sequence[int | None]) -> int:
    """How many ranks the verifier has a say on."""
    drafted = draft.index(None) if None in draft else len(draft)
    return min(drafted + 1, len(draft))


def plain_logits(
    model: SetDlmModel, accepted: Pairs, positions: Sequence[int], draft: Sequence[int | None], branches: Sequence[int]
) -> torch.Tensor:
    """What the call must give, one plain query for each row; needs drafts without gaps within the branches."""
    stored = [(place, token) for place, token in zip(positions, draft, strict=True) if token is not None]
    queries = [(stored[:rank], positions[rank]) for rank in range(verifiable(draft))]
    queries += [(stored[:branch], position) for branch in branches for position in positions[1:]]
    rows = [masked_query(model.backbone, PROMPT, [*accepted, *seen], place) for seen, place in queries]
    return torch.stack(rows)


def random_draft(rng: random.Random, ranks: int) -> list[int | None]:
    """Drafted up to some rank, as after a verification, with a stray token behind the first gap at times."""
    drafted = rng.choice([0, ranks, rng.randint(0, ranks)])
    draft = [rng.randrange(4, VOCAB) if rank < drafted else None for rank in range(ranks)]
    if drafted < ranks - 1 and rng.random() < 0.5:
        draft[-1] = rng.randrange(4, VOCAB)
    return draft


def next_window(rng: random.Random, accepted: Pairs, width: int) -> list[int]:
    """Unresolved positions among `width` from the leftmost one, in a random order."""
    resolved = {position for position, _ in accepted}
    leftmost = next(position for position in range(1, 1000) if position not in resolved)
    window = [position for position in range(leftmost, leftmost + width) if position not in resolved]
    return rng.sample(window, len(window))


@pytest.mark.parametrize("policy", ["packed", "quadratic", "partial", "autoregressive"])
def test_logits_equal_separate_plain_queries_over_a_whole_decoding(policy, precision):
    dtype, tolerance = precision
    model = begun_model(1, dtype)
    rng = random.Random(policy)
    accepted: Pairs = []
    waiting = 0
    for _ in range(9):
        positions = next_window(rng, accepted, width=5)
        ranks = len(positions)
        draft = random_draft(rng, ranks)
        gapless = verifiable(draft) if None in draft else ranks
        choices = {
            "packed": [0],
            "quadratic": list(range(gapless)),
            "partial": [branch for branch in (0, 2) if branch < gapless],
            "autoregressive": [],
        }
        branches = choices[policy]
        output = model.evaluate(verify_call(positions, draft, branches))
        expected = plain_logits(model, accepted, positions, draft, branches)
        torch.testing.assert_close(all_logits(output), expected, rtol=0, atol=tolerance)
        assert output.verifier.shape[0] == verifiable(draft)
        assert output.rows == waiting + 2 * ranks + ranks * len(branches)

        count = rng.randint(1, verifiable(draft))
        tokens = [*draft[: count - 1], rng.randrange(4, VOCAB)]
        if count == ranks and None not in draft and rng.random() < 0.7:
            tokens[-1] = draft[-1]
        model.commit(torch.tensor(tokens))
        waiting = 0 if count == ranks and tokens[-1] == draft[count - 1] else 1
        accepted += zip(positions, tokens, strict=False)


def test_linear_caches_the_waiting_token_between_its_calls(precision):
    dtype, tolerance = precision
    model = begun_model(2, dtype)
    model.evaluate(verify_call([1, 2], [9, 10]))
    model.commit(torch.tensor([9, 12]))
    accepted, positions, draft = [(1, 9), (2, 12)], [4, 3, 5], [6, 7, 8]

    drafting = model.evaluate(draft_call(positions))
    queries = [masked_query(model.backbone, PROMPT, accepted, position) for position in positions]
    torch.testing.assert_close(all_logits(drafting), torch.stack(queries), rtol=0, atol=tolerance)
    verifying = model.evaluate(verify_call(positions, draft))
    expected = plain_logits(model, accepted, positions, draft, [])
    torch.testing.assert_close(all_logits(verifying), expected, rtol=0, atol=tolerance)
    assert (drafting.rows, verifying.rows) == (1 + 3, 2 * 3)
    assert (drafting.verifier.shape, verifying.proposals) == ((0, VOCAB), None)


def test_tokens_taken_from_proposals_are_processed_by_the_next_call(precision):
    dtype, tolerance = precision
    model = begun_model(3, dtype)
    accepted: Pairs = []
    waiting = 0
    for pairs in ([(2, 9), (1, 30), (4, 17)], [(3, 21)], [(5, 6), (8, 7)]):
        positions = next_window(random.Random(0), accepted, width=4)
        output = model.evaluate(draft_call(positions))
        queries = [masked_query(model.backbone, PROMPT, accepted, position) for position in positions]
        torch.testing.assert_close(all_logits(output), torch.stack(queries), rtol=0, atol=tolerance)
        assert output.rows == waiting + len(positions)
        waiting = len(pairs)
        accepted += pairs
        model.commit_at(torch.tensor([token for _, token in pairs]), [position for position, _ in pairs])


def test_committing_copies_nothing():
    model = begun_model(4)
    model.evaluate(verify_call([2, 1, 3], [9, 10, 11], [0]))
    before = [buffer.clone() for buffer in (*model.cache._keys, *model.cache._values)]
    places = [buffer.data_ptr() for buffer in (*model.cache._keys, *model.cache._values)]
    model.commit(torch.tensor([9, 10, 12]))
    after = [*model.cache._keys, *model.cache._values]
    assert model.cache.length == len(PROMPT) + 2
    assert [buffer.data_ptr() for buffer in after] == places
    assert all(map(torch.equal, before, after))


def test_a_fully_accepted_window_leaves_nothing_waiting():
    for accepted_drafts in (None, 2):
        model = begun_model(5)
        model.evaluate(verify_call([1, 2], [9, 10]))
        model.commit(torch.tensor([9, 10]), accepted_drafts)
        assert model.evaluate(draft_call([3])).rows == 1
    model = begun_model(5)
    model.evaluate(verify_call([1, 2], [9, 10]))
    model.commit(torch.tensor([9, 11]))
    assert model.evaluate(draft_call([3])).rows == 2


def test_forgetting_what_nobody_saw_equals_never_having_accepted_it(precision):
    dtype, tolerance = precision
    model = begun_model(6, dtype)
    model.evaluate(verify_call([2, 5, 4], [9, 10, 11]))
    model.commit(torch.tensor([9, 10, 2]))  # 5 stands behind 2 and in front of the waiting 4
    model.forget_after(4)
    output = model.evaluate(draft_call([1, 3]))
    expected = [masked_query(model.backbone, PROMPT, [(2, 9), (4, 2)], position) for position in (1, 3)]
    torch.testing.assert_close(all_logits(output), torch.stack(expected), rtol=0, atol=tolerance)
    model.forget_after(2)
    assert model.cache.length == len(PROMPT) + 1


def test_what_saw_a_forgotten_token_is_computed_again_without_it(precision):
    dtype, tolerance = precision
    model = begun_model(7, dtype)
    model.evaluate(verify_call([2, 6, 5, 1], [9, 10, 11, 12]))
    model.commit(torch.tensor([9, 10, 11, 12]))
    cached = len(PROMPT) + 1  # the prompt and position 2, which nothing dropped stands in front of
    before = [buffer[:, :, :cached].clone() for buffer in (*model.cache._keys, *model.cache._values)]
    model.forget_after(4)
    output = model.evaluate(draft_call([3, 4]))
    expected = [masked_query(model.backbone, PROMPT, [(2, 9), (1, 12)], position) for position in (3, 4)]
    torch.testing.assert_close(all_logits(output), torch.stack(expected), rtol=0, atol=tolerance)
    assert output.rows == 1 + 2
    after = [buffer[:, :, :cached] for buffer in (*model.cache._keys, *model.cache._values)]
    assert all(map(torch.equal, before, after))


def test_forgetting_drops_a_waiting_token_beyond_the_end():
    model = begun_model(8)
    model.evaluate(verify_call([1, 4, 2], [9, None, None]))
    model.commit(torch.tensor([9, 30]))
    model.forget_after(3)
    assert model.evaluate(draft_call([2, 3])).rows == 2


def test_the_prompts_call_gives_no_logits_and_counts_the_prompts_rows():
    model = SetDlmModel(random_backbone(0), MASK_ID)
    model.begin(PROMPT, 8)
    output = model.evaluate(Call(8, None))
    assert (output.verifier.shape, output.proposals, output.rows) == ((0, VOCAB), None, len(PROMPT))


def test_a_new_response_remembers_nothing_of_the_last_one():
    def first_logits(model: SetDlmModel) -> Output:
        return all_logits(model.evaluate(verify_call([1, 2, 3], [9, 10, None], [0])))

    model = begun_model(9)
    expected = first_logits(model)
    model.commit(torch.tensor([9, 4]))
    model.begin(PROMPT, 3)
    model.evaluate(Call(8, None))
    assert torch.equal(first_logits(model), expected)


def test_evaluating_twice_gives_the_same():
    model = begun_model(10)
    model.evaluate(verify_call([1, 2], [9, None]))
    model.commit(torch.tensor([9, 4]))
    call = verify_call([3, 4], [8, None], [0])
    first, second = model.evaluate(call), model.evaluate(call)
    torch.testing.assert_close(all_logits(second), all_logits(first), rtol=0, atol=5e-5)
    assert (first.rows, second.rows) == (7, 6)


def test_the_mask_token_is_never_predicted_and_no_softmax_suffers():
    model = begun_model(11)
    logits = all_logits(model.evaluate(verify_call([1, 2, 3], [9, 10, 11], [0, 1])))
    assert (logits[:, MASK_ID] == SUPPRESSED).all()
    for temperature in (0.1, 1.0, 10.0):
        probabilities = torch.softmax(logits / temperature, dim=-1)
        assert torch.isfinite(probabilities).all()
        assert (probabilities[:, MASK_ID] == 0).all()


def test_a_cache_that_grows_in_mid_response_changes_nothing():
    roomy, tight = begun_model(12, cap=400), begun_model(12, cap=1)
    for model in (roomy, tight):
        for start in range(1, 40, 4):
            model.evaluate(verify_call(range(start, start + 4), [9, 10, 11, 12], range(4)))
            model.commit(torch.tensor([9, 10, 11, 12]))
    first, second = (all_logits(model.evaluate(draft_call([41, 42]))) for model in (roomy, tight))
    torch.testing.assert_close(first, second, rtol=0, atol=5e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call(8, None), "no window"),
        (draft_call([]), "different positions"),
        (draft_call([2, 2]), "different positions"),
        (draft_call([0, 1]), "different positions"),
        (Call(8, None, (0,), Window([1, 2], [True])), "a flag for each"),
        (Call(8, Draft(torch.tensor([5])), (), Window([1, 2], [True, True])), "1 tokens for a window of 2"),
        (verify_call([1, 2], [5, 6], [2]), "branches"),
    ],
)
def test_improper_calls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        begun_model(13).evaluate(call)


def test_a_first_call_that_asks_for_more_than_the_prompt_is_refused():
    model = SetDlmModel(random_backbone(0), MASK_ID)
    model.begin(PROMPT, 8)
    with pytest.raises(ValueError, match="the prompt alone"):
        model.evaluate(draft_call([1]))


def test_more_tokens_than_were_verified_are_refused():
    model = begun_model(14)
    model.evaluate(verify_call([1, 2, 3], [9, None, None]))
    with pytest.raises(ValueError, match="got 3 tokens, can accept from 2"):
        model.commit(torch.tensor([9, 10, 11]))
    model.evaluate(draft_call([1]))
    with pytest.raises(ValueError, match="no call that verified"):
        model.commit(torch.tensor([9]))
