"""The one value every grader returns, and the shape of a grader.

A verdict says whether an answer is correct (`None`: not scored), why, and which part of the response was
judged. How verdicts are stored, counted or printed is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

INFRA = "infra"  # the kind of a verdict where the grader itself failed
RESERVED = frozenset({"correct", "reason", "answer"})


@dataclass(frozen=True)
class Verdict:
    """Judgement on one response.

    Attributes:
      correct: True or False; None where the response is not scored, either because its task has no right
        answer or because the grader itself failed (reason `infra`). None never counts as wrong.
      reason: a short stable word or two (`passed`, `boxed`, `no answer`, ...) on the first line, detail on the
        lines after it.
      answer: what was extracted from the response and judged, None if nothing was found.
      details: further findings under their own names, plain JSON values (`strict`, `symbolic`, ...).

    Raises:
      ValueError: a detail uses the name of a field.
    """

    correct: bool | None
    reason: str
    answer: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clash = RESERVED.intersection(self.details)
        if clash:
            raise ValueError(f"details: names {sorted(clash)} belong to the verdict itself; rename them.")

    @property
    def kind(self) -> str:
        """First line of the reason, the part that is stable and may be counted."""
        return self.reason.partition("\n")[0]

    def record(self) -> dict[str, Any]:
        """The verdict as plain values that any JSON writer and any UTF-8 file takes.

        Lone surrogates, which UTF-8 cannot hold, are written as backslash escapes.
        """
        fields = {"correct": self.correct, "reason": self.reason, "answer": self.answer}
        return {name: storable(value) for name, value in (fields | dict(self.details)).items()}


class Grader(Protocol):
    """What a task asks of its grader."""

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """Judges `response` against what `reference` holds for this kind of task."""
        ...


def storable(value: Any) -> Any:
    """`value` with every string encodable as UTF-8; containers are copied."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {storable(name): storable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(item) for item in value]
    return value
