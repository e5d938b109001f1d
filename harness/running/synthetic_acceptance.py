"""What `acceptance=` means: a number, a list of numbers, or a run folder whose recorded counts are given again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records.record import read_records

Key = tuple[str, str, int]  # schedule, prompt id, repetition


@dataclass(frozen=True)
class Acceptance:
    """Tokens emitted in each iteration of each response.

    Attributes:
      given: the same for all responses; empty where they are recorded.
      recorded: of single responses, which end where their counts end.
      origin: where they are from, for messages.
      tokens: of a response with given counts, at most; None leaves it to the task.
    """

    given: Sequence[int] = ()
    recorded: Mapping[Key, Sequence[int]] = field(default_factory=dict)
    origin: str = ""
    tokens: int | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether every response has counts of its own."""
        return not self.given

    def of(self, key: Key) -> Sequence[int]:
        """The counts of one response.

        Raises:
          UserError: it is not recorded.
        """
        if self.given:
            return self.given
        if key not in self.recorded:
            schedule, prompt_id, repetition = key
            raise UserError(
                f"acceptance={self.origin}: has no response of {schedule} to {prompt_id}, repetition {repetition}. "
                "Choose among its prompts and schedules."
            )
        return self.recorded[key]

    def cap(self, key: Key, max_new_tokens: int) -> int:
        """New tokens of one response."""
        return max_new_tokens if self.given else min(max_new_tokens, sum(self.of(key)))


def read_acceptance(value: Any, tokens: int | None = None) -> Acceptance | None:
    """The acceptance that a config means; None for none.

    Args:
      tokens: new tokens of a response with given counts, at most; None leaves it to the task.

    Raises:
      UserError: no number of at least 1, no list of such, no run folder; or no number of tokens.
    """
    if tokens is not None and tokens < 1:
        raise UserError(f"acceptance_tokens={tokens}: need an integer of at least 1, or null.")
    if value is None:
        return None
    if isinstance(value, str):
        return _recorded(Path(value))
    counts = [value] if isinstance(value, int) else value
    if not isinstance(counts, Sequence) or not counts or not all(type(one) is int and one >= 1 for one in counts):
        raise UserError(f"acceptance={value}: need tokens an iteration, at least 1: a number, a list, or a run folder.")
    return Acceptance(given=list(counts), tokens=tokens)


def _recorded(folder: Path) -> Acceptance:
    file = folder / "records.jsonl"
    if not file.is_file():
        raise UserError(f"acceptance={folder}: no run there, it has no records.jsonl.")
    # Any-order decoding may lose as many tokens behind an EOS as an iteration won.
    recorded = {record.key: [max(count, 1) for count in record.accepted] for record in read_records(file)}
    return Acceptance(recorded={key: counts for key, counts in recorded.items() if counts}, origin=str(folder))
