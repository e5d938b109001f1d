"""What of a program stays: all that the tests need, through whatever it is made."""

import pytest

from graders.programs.pruning import prune
from tests.builders.case_files import cases


@pytest.mark.parametrize("case", cases("effects"))
def test_a_statement_stays_if_it_changes_what_is_needed(case):
    kept = prune("\n".join(case["program"]), {"f"})

    assert [line for line in kept.split("\n") if line.strip()] == case["kept"]
