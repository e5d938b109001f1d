"""Code answers: extract the program, run it against the tests, say how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graders.programs.execution import Limits, execute
from graders.programs.extraction import extract
from graders.programs.reference import CodeReference
from graders.verdict import Verdict

TRIAL = {"prompt": "answer = 0", "tests": ["assert answer == 1"]}


class Program:
    """Judges a program by its tests, in a sandbox.

    Args:
      cpu_s: processor seconds per program, and for its tests.
      wall_s: seconds on the clock, not counting those in which the program was ready and had no core.
      memory_bytes: memory per program.
      disk_bytes: room for the files it writes.
      processes: processes and threads it may have.
      isolation: `full` takes away all the kernel allows; `limits` leaves resource limits only.
    """

    def __init__(
        self,
        cpu_s: int = 20,
        wall_s: float = 40.0,
        memory_bytes: int = 2 << 30,
        disk_bytes: int = 64 << 20,
        processes: int = 64,
        isolation: str = "full",
    ) -> None:
        self.limits = Limits(cpu_s, wall_s, memory_bytes, disk_bytes, processes, isolation)

    def problem(self) -> str | None:
        """Why no program can be judged here; None where all can."""
        outcome = execute("answer = 1", CodeReference.read(TRIAL), self.limits)
        return outcome.detail or outcome.kind if outcome.kind == "infra" else None

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """Judges the program in a response.

        Args:
          response: the model's text: a program in fences or without, with prose or without, or only the body that
            continues `prompt`.
          reference: `tests` (statements), and where the task has them `prompt`, `entry_point` and `setup`.

        Returns:
          Reason `passed`, `failed`, `timeout`, `memory`, `crashed`, `no code` or `infra`, then detail lines; the
          extracted program as the answer.
        """
        try:
            task = CodeReference.read(reference)
        except ValueError as error:
            return Verdict(None, f"infra\nreference: {error}")
        program = extract(response, task)
        if program is None:
            return Verdict(False, "no code")
        outcome = execute(program, task, self.limits)
        correct = None if outcome.kind == "infra" else outcome.kind == "passed"
        return Verdict(correct, "\n".join(filter(None, [outcome.kind, outcome.detail])), program)
