"""Theorem 3.3: the continuations of every schedule have the verifier's autoregressive distribution, exactly.

Tolerance: probabilities are float32 in the code under test, so sums of products agree to about 1e-6.
"""

import hashlib

import pytest
import torch

from schedules import (
    Autoregressive,
    Branches,
    Draft,
    Linear,
    Packed,
    Quadratic,
    Sampling,
    SamplingParams,
    SeededChoices,
    Stop,
)
from schedules.distributions import Distributions
from tests.builders.enumeration import autoregressive, continuations, distance
from tests.builders.table_model import TableModel

TOLERANCE = 2e-6
PLAIN = SamplingParams(1.0)
PROMPT = (1,)
EOS = frozenset({0})


def noise(vocab: int, *parts) -> torch.Tensor:
    """Standard normal logits that depend on `parts` alone."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:6], "big"))
    return torch.randn(vocab, generator=generator)


def verifier_of(vocab):
    return lambda prefix: 1.3 * noise(vocab, "p", prefix)


DRAFTERS = {
    # wrong: knows nothing of the verifier, and never proposes some tokens the verifier likes
    "wrong": lambda vocab: lambda context, offset: 2 * noise(vocab, "q", len(context) + offset),
    # overconfident: nearly one-hot, so that most of its mass is above the verifier's
    "overconfident": lambda vocab: lambda context, offset: 6 * noise(vocab, "q", context, offset),
    # stale: right about the next token, ever flatter further on
    "stale": lambda vocab: lambda context, offset: verifier_of(vocab)(context) / offset,
    # unnormalized: the same as some distribution, shifted by huge constants
    "unnormalized": lambda vocab: lambda context, offset: 500.0 * offset + noise(vocab, "q", context, offset),
}

SCHEDULES = {
    "linear": lambda: Linear(2),
    "packed": lambda: Packed(2),
    "quadratic": lambda: Quadratic(2),
    "branches": lambda: Branches(2, [0, 2]),
}


class DrawingModel(TableModel):
    """Knows whether proposals have been asked for and not verified yet: then the next choice is a draft."""

    is_drawing = False

    def evaluate(self, call):
        output = super().evaluate(call)
        self.is_drawing = call.draft is None
        return output

    def commit(self, tokens):
        super().commit(tokens)
        self.is_drawing = bool(self.calls[-1].branches)


def exact(schedule, drafter, vocab, cap, truncation=PLAIN, rule=Sampling, eos=EOS):
    def decode(chance, model):
        return schedule.decode(model, PROMPT, rule(truncation, chance), Stop(cap, eos)).tokens

    return continuations(decode, lambda: DrawingModel(verifier_of(vocab), DRAFTERS[drafter](vocab)))


def expected(vocab, cap, truncation=PLAIN, eos=EOS):
    def probabilities(logits):
        kept = truncation.distributions(logits)
        return kept.dense_row(torch.tensor([0]), vocab)

    return autoregressive(verifier_of(vocab), PROMPT, cap, eos, probabilities)


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_three_tokens_of_three(schedule, drafter):
    found = exact(SCHEDULES[schedule](), drafter, vocab=3, cap=3)
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)
    assert distance(found, expected(3, 3)) < TOLERANCE


@pytest.mark.slow
def test_a_width_beyond_the_cap():
    assert distance(exact(Packed(4), "wrong", vocab=3, cap=3), expected(3, 3)) < TOLERANCE


@pytest.mark.parametrize(("vocab", "cap", "width"), [(5, 2, 1), (4, 3, 1), (3, 4, 1)])
@pytest.mark.parametrize("schedule", [Linear, Packed, Quadratic])
def test_other_sizes(schedule, vocab, cap, width):
    found = exact(schedule(width), "overconfident", vocab, cap)
    assert distance(found, expected(vocab, cap)) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_five_tokens_of_three(schedule, drafter):
    assert distance(exact(SCHEDULES[schedule](), drafter, vocab=3, cap=5), expected(3, 5)) < TOLERANCE


@pytest.mark.parametrize(
    "truncation", [SamplingParams(0.7), SamplingParams(1.0, top_k=2), SamplingParams(1.5, top_p=0.8)]
)
@pytest.mark.parametrize("schedule", ["linear", "packed", "quadratic"])
def test_temperature_and_truncation(schedule, truncation):
    found = exact(SCHEDULES[schedule](), "wrong", 4, 2, truncation)
    assert distance(found, expected(4, 2, truncation)) < TOLERANCE


def test_without_an_end_of_sequence():
    assert distance(exact(Packed(2), "stale", 3, 3, eos=frozenset()), expected(3, 3, eos=frozenset())) < TOLERANCE


def test_autoregressive_sampling_itself():
    assert distance(exact(Autoregressive(), "wrong", 3, 3), expected(3, 3)) < TOLERANCE


class NewestDenominator(Sampling):
    """Mutation: accepts against a distribution other than the one the token was drawn from."""

    def draw(self, logits):
        draft = super().draw(logits)
        newest = draft.distributions.probabilities.roll(1, dims=1)
        return Draft(draft.tokens, Distributions(newest), draft.is_sound)


class ResidualNotRenormalized(Sampling):
    """Mutation: what the residual lacks to 1 goes to the first token."""

    def _correction_weights(self, p, draft, accepted_drafts, vocab):
        weights = super()._correction_weights(p, draft, accepted_drafts, vocab).clone()
        weights[:, 0] += (1 - weights.sum()).clamp(min=0)
        return weights


class BonusFromTheDraft(Sampling):
    """Mutation: after full acceptance the bonus is drawn from the last draft token's distribution."""

    def _correction_weights(self, p, draft, accepted_drafts, vocab):
        if len(draft) and int(accepted_drafts) == len(draft):
            return draft.distributions.dense_row(accepted_drafts - 1, vocab)
        return super()._correction_weights(p, draft, accepted_drafts, vocab)


class CorrectionFromP(Sampling):
    """Mutation: a rejection draws from p instead of the residual."""

    def _correction_weights(self, p, draft, accepted_drafts, vocab):
        return p.dense_row(accepted_drafts, vocab)


class SampledBeforeSelection(Quadratic):
    """Mutation: draft tokens come from branch 0, the distributions stored with them from the selected branch."""

    def decode(self, model, prompt, rule, stop):
        draw = rule.draw

        def draw_early(logits):
            draft = draw(logits)
            if model.first_branch is None or not len(draft):
                return draft
            early = draw(model.first_branch[-len(draft) :])
            return Draft(early.tokens, draft.distributions, draft.is_sound)

        rule.draw = draw_early
        return super().decode(model, prompt, rule, stop)


@pytest.mark.parametrize("mutation", [NewestDenominator, ResidualNotRenormalized, BonusFromTheDraft, CorrectionFromP])
@pytest.mark.parametrize("schedule", [Linear, Packed, Quadratic])
def test_the_test_notices_a_wrong_rule(schedule, mutation):
    found = exact(schedule(1), "wrong", 3, 3, rule=mutation)
    assert distance(found, expected(3, 3)) > 1e-3


def test_the_test_notices_a_draft_sampled_before_its_branch_is_selected():
    class Model(DrawingModel):
        first_branch = None

        def evaluate(self, call):
            output = super().evaluate(call)
            self.first_branch = output.proposals.logits[0] if output.proposals and len(call.branches) > 1 else None
            return output

    def decode(chance, model):
        rule = Sampling(SamplingParams(1.0), chance)
        return SampledBeforeSelection(1).decode(model, PROMPT, rule, Stop(4, EOS)).tokens

    found = continuations(decode, lambda: Model(verifier_of(3), DRAFTERS["overconfident"](3)))
    assert distance(found, expected(3, 4)) > 1e-3


def test_a_seed_reproduces_a_response_and_another_seed_gives_another():
    def tokens(seed):
        model = TableModel(verifier_of(5), DRAFTERS["stale"](5))
        rule = Sampling(SamplingParams(1.0), SeededChoices(seed, model.device))
        return Packed(3).decode(model, PROMPT, rule, Stop(30, frozenset())).tokens

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)


def test_first_calls_above_temperature_zero():
    # E.2: one call for the prompt, a second one for a full draft, then the loop.
    model = TableModel(verifier_of(5), DRAFTERS["stale"](5))
    rule = Sampling(SamplingParams(1.0), SeededChoices(0, model.device))
    response = Packed(3).decode(model, PROMPT, rule, Stop(8, frozenset()))
    drafted = [None if call.draft is None else len(call.draft) for call in model.calls[:3]]
    assert drafted == [0, None, 3]
    assert [list(call.branches) for call in model.calls[:3]] == [[], [0], [0]]
    assert response.nfe == 1 + len(response.trace)
