"""Three lines of Python, as in the README."""

import pytest

import harness
from harness.errors import UserError

QUESTION = "Ada has 13 cups. Ben brings 4. Then Ada loses 2 cups. How many cups are left?"


@pytest.fixture(scope="module")
def model():
    return harness.load("tiny_nemotron", device="cpu")


def test_a_prompt_is_answered_with_text_tokens_nfe_and_trace(model):
    response = harness.decode(model, QUESTION, "packed", width=7)
    assert response.text == model.text(response.tokens)
    assert response.nfe == sum(iteration.calls for iteration in response.trace) < len(response.tokens)
    assert sum(iteration.accepted for iteration in response.trace) == len(response.tokens)


def test_all_schedules_give_the_same_text(model):
    texts = {harness.decode(model, QUESTION, name).text for name in ("autoregressive", "linear", "packed", "quadratic")}
    assert len(texts) == 1


def test_the_cap_is_kept(model):
    assert len(harness.decode(model, QUESTION, "linear", max_new_tokens=3).tokens) == 3


def test_unknown_names_and_keys_are_users_mistakes(model):
    with pytest.raises(UserError, match="no such schedule"):
        harness.decode(model, QUESTION, "pakced")
    with pytest.raises(UserError, match="no such key"):
        harness.decode(model, QUESTION, "packed", widht=3)
    with pytest.raises(UserError, match="no such model"):
        harness.load("tiny")
