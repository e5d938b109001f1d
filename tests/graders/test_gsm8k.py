import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.gsm8k import Gsm8k, SetdlmGsm8k
from graders.math.numbers import value
from graders.verdict import Verdict
from tests.builders.case_files import cases, text


@pytest.fixture(scope="module")
def grader():
    return Gsm8k()


@pytest.mark.parametrize("case", cases("gsm8k"))
def test_number_of_an_answer(grader, case):
    verdict = grader.grade(text(case["input"]), {"gold": text(case["gold"])})

    assert (verdict.correct, verdict.kind) == (case["correct"], case["reason"])


@pytest.mark.parametrize("case", cases("setdlm_gsm8k"))
def test_filters_of_the_setdlm_release(case):
    verdict = SetdlmGsm8k().grade(text(case["input"]), {"gold": case["gold"]})

    assert (verdict.details["strict_match"], verdict.details["flexible_match"]) == (case["strict"], case["flexible"])


def test_setdlm_primary_filter_decides():
    response, reference = "It is 18.", {"gold": "18"}

    assert SetdlmGsm8k("flexible").grade(response, reference).correct is True
    assert SetdlmGsm8k("strict").grade(response, reference) == Verdict(
        False,
        "no answer",
        None,
        {"strict_match": False, "flexible_match": True, "strict_answer": "[invalid]", "flexible_answer": "18."},
    )


def test_setdlm_unknown_filter_is_refused():
    with pytest.raises(ValueError, match="flexible, strict"):
        SetdlmGsm8k("lenient")


def test_strict_differs_by_blanks_only(grader):
    assert grader.grade(r"\boxed{ 1 8 }", {"gold": "18"}).details["strict"] is True
    assert grader.grade(r"\boxed{18.0}", {"gold": "18"}).details["strict"] is False


def test_gold_without_a_number_is_not_scored(grader):
    verdict = grader.grade(r"\boxed{18}", {"gold": "eighteen"})

    assert (verdict.correct, verdict.kind) == (None, "infra")


@given(st.integers(-(10**12), 10**12), st.sampled_from(["{}", "${}", "{:,}", "{}.", "{}.00", "00{}", "{} eggs"]))
def test_every_spelling_of_an_integer_has_its_value(number, spelling):
    written = spelling.format(number).replace("00-", "-00")

    assert value(written) == number


@given(st.text(max_size=60))
def test_any_text_gets_a_verdict(response):
    assert Gsm8k().grade(rf"\boxed{{{response}}} {response}", {"gold": "18"}).correct in (True, False)
