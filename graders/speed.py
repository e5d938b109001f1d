"""The grader of tasks that measure speed only, such as WritingBench: it scores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graders.verdict import Verdict


class SpeedOnly:
    """Leaves every response unscored."""

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """`correct` None, whatever the response."""
        return Verdict(correct=None, reason="not scored")
