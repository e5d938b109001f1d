"""Records: one JSON object a line, one line a response; what every figure and table is made from.

Appended and flushed as responses complete. Reading ignores unknown keys, so newer files stay readable. A line ends
with a checksum of what stands before it; what was changed or damaged since is named and never used.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from harness.errors import UserError

SCHEMA = 1
SKIPPED = "skipped"
FAILED = "failed"
CHECKSUM = "checksum"
_MARK = f', "{CHECKSUM}": '.encode()
INTEGERS = "q"  # array's code for 64 bits


@dataclass(frozen=True)
class Record:
    """One response.

    Attributes:
      schedule: name of the schedule in the run's config.
      width: speculative width W; 0 for autoregressive decoding.
      order: verification order.
      adapter: name of the proposal-only adapter, or null.
      temperature, top_k, top_p: 0 is greedy decoding; null keeps all tokens.
      seed: of this response's random generator.
      prompt_tokens, tokens: counts; EOS and special tokens included.
      nfe: forward passes, prompt processing included.
      wall_s, model_s: seconds; see `harness.system.clock`.
      memory_bytes: peak of the device's memory during the response, weights included; null where it does not count.
      rows: token rows evaluated, padding included.
      adapter_rows_selected, adapter_rows_evaluated: rows that got an adapter's update, and rows that it was computed
        for.
      accepted: tokens emitted in each iteration, the prompt's call first.
      stop_reason: "eos", "length" or "marker"; "skipped" where the prompt did not fit the model's context, "failed"
        where memory ran out.
      verdict: null before grading; where there is no response, its reason says why.
      started_at: UTC, ISO 8601.
      costs_only: null for a real response; else why tokens, text and lengths mean nothing: "random weights",
        "replayed acceptance", or both.
    """

    model: str
    task: str
    schedule: str
    width: int
    order: str
    adapter: str | None
    temperature: float
    prompt_id: str
    repetition: int
    seed: int
    prompt_tokens: int
    token_ids: Sequence[int]
    text: str
    tokens: int
    nfe: int
    wall_s: float
    model_s: float
    rows: int
    accepted: Sequence[int]
    stop_reason: str
    verdict: Mapping[str, Any] | None
    started_at: str
    costs_only: str | None = None
    top_k: int | None = None
    top_p: float | None = None
    adapter_rows_selected: int = 0
    adapter_rows_evaluated: int = 0
    memory_bytes: int | None = None
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[str, str, int]:
        """What a response is called within its run: schedule, prompt and repetition."""
        return self.schedule, self.prompt_id, self.repetition

    @property
    def is_skipped(self) -> bool:
        """Whether there is no response: the prompt did not fit, or memory ran out."""
        return self.stop_reason in (SKIPPED, FAILED)

    def line(self) -> str:
        """The record as a line of a records file, newline included."""
        return sealed(asdict(self))


def stable_seed(*parts: str | int) -> int:
    """A 63-bit seed that depends on `parts` alone: the same on every machine, in any order of work."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def sealed(values: Mapping[str, Any]) -> str:
    """`values` as a line of a records file, checksum and newline included."""
    body = json.dumps({name: value for name, value in values.items() if name != CHECKSUM})
    return f'{body[:-1]}, "{CHECKSUM}": "{_checksum(body.encode())}"}}\n'


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, in the order in which they were written; a torn last line is none.

    Raises:
      UserError: a line is not a record of this schema, or was changed or damaged; with its number.
    """
    lines = path.read_bytes().split(b"\n")
    torn = torn_bytes(lines[-1])
    for number, line in enumerate(lines[:-1] if torn else lines, start=1):
        if line:
            yield _record(line, path, number)


def last_line(path: Path) -> bytes:
    """What stands after a file's last newline: nothing in the file of a run that was not killed."""
    return path.read_bytes().rpartition(b"\n")[2]


def torn_bytes(last_line: bytes) -> int:
    """Length in bytes of what a killed run left of its last line; 0 where that is whole, but for its newline."""
    try:
        _record(last_line, Path(), 0)
    except UserError:
        return len(last_line)
    return 0


def _record(line: bytes, path: Path, number: int) -> Record:
    place = f"{path}: line {number}"
    try:
        values = json.loads(line)
        if values["schema"] != SCHEMA:
            raise UserError(f"{place} has schema {values['schema']}, this version reads {SCHEMA}.")
        if CHECKSUM in values and unsealed(line) is None:
            raise UserError(
                f"{place} was changed or damaged, its checksum does not match. "
                "Take it out; the run, started again, decodes that response anew."
            )
        known = {name: values[name] for name in _kinds() if name in values}
        wrong = [name for name, value in known.items() if not _kinds()[name](value)]
        if wrong:
            raise UserError(f"{place} is no record: {wrong[0]} is {str(known[wrong[0]])[:40]!r}.")
        return Record(**known)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UserError(f"{place} is no record ({error!r}).") from None


def unsealed(line: bytes) -> bytes | None:
    """The JSON object that a line holds, without its checksum; None where that is missing or another one's."""
    body, mark, seal = line.rpartition(_MARK)
    body += b"}"
    return body if mark and seal.rstrip() == f'"{_checksum(body)}"}}'.encode() else None


@cache
def _kinds() -> Mapping[str, Callable[[Any], bool]]:
    """For each field of a record, whether a JSON value can be one."""
    return {name: KINDS[kind] for name, kind in get_type_hints(Record).items()}


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


def _is_integers(values: Sequence[Any]) -> bool:
    try:
        array(INTEGERS, values)  # several times as fast as looking at each type
    except (TypeError, OverflowError):
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_verdict(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and value.get("correct") in (True, False, None) and _is_text(value.get("reason", ""))
    )


KINDS: Mapping[Any, Callable[[Any], bool]] = {
    str: _is_text,
    int: _is_count,
    float: _is_number,
    str | None: lambda value: value is None or _is_text(value),
    int | None: lambda value: value is None or _is_count(value),
    float | None: lambda value: value is None or _is_number(value),
    Sequence[int]: lambda value: isinstance(value, list) and _is_integers(value),
    Mapping[str, Any] | None: _is_verdict,
}


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
