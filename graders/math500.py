r"""MATH-500: does the boxed answer match, notation aside?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graders.math.boxed import last_boxed
from graders.math.latex import canonical, is_same
from graders.math.symbolic import SecondOpinions
from graders.turns import first_turn
from graders.verdict import Verdict


class Math500:
    """Whether the last boxed answer says what the reference says (`graders.math.latex`); only a box counts."""

    def __init__(self) -> None:
        self.opinions = SecondOpinions()

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """Judges a response to a MATH problem.

        Args:
          response: the model's text.
          reference: `gold`, the data set's `answer`.

        Returns:
          Reason `boxed` or `no answer`; details `strict` (equal but for blanks) and, with math-verify
          installed, `symbolic`.
        """
        gold = str(reference["gold"])
        if not canonical(gold):
            return Verdict(None, f"infra\ngold {gold[:80]!r} states no answer; correct the reference.")
        answer = last_boxed(first_turn(response))
        if answer is None:
            return Verdict(False, "no answer")
        return Verdict(is_same(answer, gold), "boxed", answer, self.opinions.compare(answer, gold))
