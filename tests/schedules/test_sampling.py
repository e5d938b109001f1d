"""Rejection sampling where numbers degenerate, and what truncation stores."""

import pytest
import torch

from schedules import Draft, Greedy, Packed, Sampling, SamplingParams, SeededChoices, Stop, UnsoundLogits
from schedules.distributions import Distributions
from tests.builders.table_model import TableModel, one_hot

CPU = torch.device("cpu")
INFINITY = float("inf")
PLAIN = SamplingParams(1.0)


class Chosen:
    """Chance that says yes to everything possible, takes the likeliest entry, and keeps what it was asked."""

    def accepts(self, probabilities):
        self.probabilities = probabilities
        return probabilities > 0

    def choose(self, weights):
        self.weights = weights
        return weights.argmax(dim=1)


def rule(truncation=PLAIN):
    chance = Chosen()
    return Sampling(truncation, chance), chance


def draft_of(tokens, q):
    return Draft(torch.tensor(tokens), Distributions(torch.tensor(q)))


def log(*rows):
    return torch.tensor(rows).log()


def test_equal_distributions_never_reject():
    rows = torch.randn(200, 50, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    sampling = Sampling(SamplingParams(1.0), SeededChoices(0, CPU))
    draft = sampling.draw(rows[:-1].log())
    accepted = sampling.verify(draft, rows.log())
    assert accepted.tokens[:-1] == draft.tokens.tolist()


def test_the_acceptance_probability_is_the_ratio_to_the_stored_distribution():
    sampling, chance = rule()
    sampling.verify(draft_of([0, 1], [[0.8, 0.2], [0.1, 0.9]]), log([0.4, 0.6], [0.5, 0.5], [1.0, 0.0]))
    assert chance.probabilities.tolist() == pytest.approx([0.5, 0.5 / 0.9])


def test_the_correction_is_drawn_from_the_positive_part_of_p_minus_q():
    sampling, chance = rule()
    accepted = sampling.verify(draft_of([2], [[0.1, 0.1, 0.8]]), log([0.3, 0.7, 0.0], [1.0, 0.0, 0.0]))
    assert chance.weights[0].tolist() == pytest.approx([0.2, 0.6, 0.0], abs=1e-6)
    assert accepted.tokens == [1]


def test_the_correction_comes_from_p_when_the_residual_is_zero():
    # q is p but for a token of q alone that p lost in rounding: rejected, and nothing positive is left.
    sampling, chance = rule()
    accepted = sampling.verify(draft_of([2], [[0.5, 0.5, 1e-9]]), log([0.5, 0.5, 0.0], [1.0, 0.0, 0.0]))
    assert chance.weights[0].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert accepted.tokens[0] in (0, 1)


def test_a_q_that_underflowed_is_accepted_only_where_p_is_positive():
    sampling, chance = rule()
    sampling.verify(draft_of([0, 0], [[0.0, 1.0], [0.0, 1.0]]), log([0.5, 0.5], [0.0, 1.0], [1.0, 0.0]))
    assert chance.probabilities.tolist() == [1.0, 0.0]


def test_the_bonus_is_drawn_from_p():
    sampling, chance = rule()
    accepted = sampling.verify(draft_of([0], [[0.9, 0.1]]), log([1.0, 0.0], [0.2, 0.8]))
    assert chance.weights[0].tolist() == pytest.approx([0.2, 0.8])
    assert accepted.tokens == [0, 1]


def test_without_a_row_for_it_there_is_no_bonus():
    sampling, _ = rule()
    assert sampling.verify(draft_of([0], [[0.9, 0.1]]), log([1.0, 0.0])).tokens == [0]
    greedy = Greedy().verify(Draft(torch.tensor([0])), log([1.0, 0.0]))
    assert greedy.tokens == [0]


def test_a_vocabulary_of_one_token():
    model = TableModel(lambda prefix: torch.zeros(1), lambda context, offset: torch.zeros(1))
    sampling = Sampling(SamplingParams(1.0), SeededChoices(0, CPU))
    assert Packed(3).decode(model, [0], sampling, Stop(7, frozenset())).tokens == [0] * 7


@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 1e-45])
def test_a_tiny_temperature_is_greedy(temperature):
    logits = torch.randn(40, 30, generator=torch.Generator().manual_seed(1)) * 10
    sampling = Sampling(SamplingParams(temperature), SeededChoices(3, CPU))
    assert sampling.draw(logits).tokens.equal(Greedy().draw(logits).tokens)


def test_minus_infinity_is_a_token_that_never_comes():
    logits = torch.tensor([[0.0, -INFINITY, 1.0]]).repeat(500, 1)
    drawn = Sampling(SamplingParams(1.0), SeededChoices(0, CPU)).draw(logits)
    assert set(drawn.tokens.tolist()) == {0, 2}
    assert bool(drawn.is_sound)


@pytest.mark.parametrize("bad", [float("nan"), INFINITY])
@pytest.mark.parametrize("whose", ["verifier", "drafter"])
@pytest.mark.parametrize("make_rule", [Greedy, lambda: Sampling(SamplingParams(1.0), SeededChoices(0, CPU))])
def test_logits_that_are_no_numbers_name_the_call(make_rule, whose, bad):
    def verifier(prefix):
        logits = one_hot(1, 4)
        if whose == "verifier" and len(prefix) > 5:
            logits[2] = bad
        return logits

    def drafter(context, offset):
        logits = one_hot(3, 4)
        if whose == "drafter" and len(context) > 5:
            logits[2] = bad
        return logits

    with pytest.raises(UnsoundLogits, match=rf"call \d+: {whose} logits hold NaN or infinity"):
        Packed(2).decode(TableModel(verifier, drafter), [0], make_rule(), Stop(30, frozenset()))


def test_a_row_without_any_finite_logit_is_unsound():
    with pytest.raises(UnsoundLogits):
        Greedy().verify(Draft.empty(CPU), torch.full((1, 4), -INFINITY))


def test_a_sampled_draft_must_know_its_distributions():
    sampling, _ = rule()
    with pytest.raises(ValueError, match="without the distributions"):
        sampling.verify(Draft(torch.tensor([1])), log([0.5, 0.5], [0.5, 0.5]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"temperature": -1.0}, "temperature: got -1.0"),
        ({"temperature": float("nan")}, "temperature: got nan"),
        ({"temperature": 1.0, "top_k": -3}, "top_k: got -3"),
        ({"temperature": 1.0, "top_k": 0}, "top_k: got 0"),
        ({"temperature": 1.0, "top_p": 0}, "top_p: got 0"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p: got 1.5"),
    ],
)
def test_settings_that_make_no_distribution_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        SamplingParams(**arguments)


def test_top_k_keeps_the_likeliest_and_breaks_ties_by_token_id():
    kept = SamplingParams(1.0, top_k=2).distributions(torch.tensor([[1.0, 2.0, 2.0, 2.0]]))
    assert kept.ids.tolist() == [[1, 2]]
    assert kept.probabilities.tolist() == [[0.5, 0.5]]


def test_top_p_keeps_the_fewest_tokens_that_reach_it():
    logits = log([0.5, 0.25, 0.15, 0.1], [0.97, 0.01, 0.01, 0.01])
    kept = SamplingParams(1.0, top_p=0.8).distributions(logits)
    expected = torch.tensor([[0.5, 0.25, 0.15, 0.0], [0.9, 0.0, 0.0, 0.0]])
    expected = expected / expected.sum(dim=1, keepdim=True)
    assert torch.allclose(kept.probabilities, expected)


def test_dense_and_stored_rows_say_the_same():
    logits = torch.randn(5, 12, generator=torch.Generator().manual_seed(2))
    kept = SamplingParams(0.9, top_k=4).distributions(logits)
    for row in range(5):
        dense = kept.dense_row(torch.tensor([row]), 12)[0]
        assert dense.sum() == pytest.approx(1)
        assert torch.allclose(dense[kept.ids[row]], kept.probabilities[row])
        tokens = torch.arange(12)
        assert torch.allclose(kept.first(row + 1).dense_row(torch.tensor([row]), 12)[0], dense)
        each = torch.stack([kept.of(torch.full((5,), int(token)))[row] for token in tokens])
        assert torch.allclose(each, dense)
    assert kept.dense_row(torch.tensor([5]), 12).sum() == 0


def test_truncated_drafts_store_their_nonzero_entries_alone():
    # Section 3.2: top-k = 20 of 151,936 tokens.
    logits = torch.randn(31, 151_936, generator=torch.Generator().manual_seed(0))
    stored = SamplingParams(1.0, top_k=20).distributions(logits)
    assert stored.probabilities.shape == stored.ids.shape == (31, 20)
