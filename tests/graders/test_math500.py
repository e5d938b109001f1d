import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.math.latex import canonical
from graders.math500 import Math500
from graders.verdict import Verdict
from tests.builders.case_files import cases, text


@pytest.fixture(scope="module")
def grader():
    return Math500()


@pytest.mark.parametrize("case", cases("math500"))
def test_boxed_answer(grader, case):
    verdict = grader.grade(rf"so \boxed{{{text(case['answer'])}}}", {"gold": text(case["gold"])})

    assert verdict.correct is case["correct"]


@pytest.mark.parametrize("response", ["The answer is 5.", "", r"$5$", r"\boxed{5", "#### 5"])
def test_only_a_box_counts(grader, response):
    assert grader.grade(response, {"gold": "5"}) == Verdict(False, "no answer")


def test_strict_differs_by_blanks_only(grader):
    assert grader.grade(r"\boxed{ \frac{1}{2} }", {"gold": r"\frac{1}{2}"}).details["strict"] is True
    assert grader.grade(r"\boxed{\dfrac{1}{2}}", {"gold": r"\frac{1}{2}"}).details["strict"] is False


PIECES = [r"\frac", r"\sqrt", "{", "}", "1", "2", "x", "/", ",", ".", "-", "+", " ", r"\text{a}", r"\left(", ")", "^"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_the_canonical_spelling_only_depends_on_what_blanks_leave(answer):
    assert canonical(f"  {answer}  ") == canonical(answer)


@given(st.text(max_size=80))
def test_any_text_has_a_canonical_spelling(answer):
    assert isinstance(canonical(answer), str)
