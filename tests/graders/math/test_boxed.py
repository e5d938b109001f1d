import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graders.math.boxed import last_boxed
from tests.builders.case_files import cases, text


@pytest.mark.parametrize("case", cases("boxed"))
def test_last_boxed_answer(case):
    assert last_boxed(text(case["input"])) == text(case["expected"])


def slow_last_boxed(response: str) -> str | None:
    """The obvious way for responses of braces, letters and `\\boxed{` without empty boxes: try all, count braces."""
    for start in range(len(response) - 1, -1, -1):
        if response.startswith(r"\boxed{", start):
            depth = 0
            for end in range(start + 6, len(response)):
                depth += {"{": 1, "}": -1}.get(response[end], 0)
                if depth == 0:
                    return response[start + 7 : end].strip()
    return None


@given(st.lists(st.sampled_from([r"\boxed{", "{", "}", "a", " "]), max_size=30).map("".join))
def test_agrees_with_counting_braces_from_every_box(response):
    assume(not re.search(r"\\boxed\{ *\}", response))

    assert last_boxed(response) == slow_last_boxed(response)
