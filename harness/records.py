"""Records: one JSON object a line, one line a response; what every figure and table is made from.

Appended and flushed as responses complete. Reading ignores unknown keys, so newer files stay readable.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import UserError

SCHEMA = 1
SKIPPED = "skipped"


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
      wall_s, model_s: seconds; see `harness.clock`.
      rows: token rows evaluated, padding included.
      adapter_rows_selected, adapter_rows_evaluated: rows that got an adapter's update, and rows that it was computed
        for.
      accepted: tokens emitted in each iteration, the prompt's call first.
      stop_reason: "eos", "length" or "marker"; "skipped" where the prompt did not fit the model's context.
      verdict: null before grading.
      started_at: UTC, ISO 8601.
    """

    model: str
    task: str
    schedule: str
    width: int
    order: str
    adapter: str | None
    temperature: float
    top_k: int | None
    top_p: float | None
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
    adapter_rows_selected: int
    adapter_rows_evaluated: int
    accepted: Sequence[int]
    stop_reason: str
    verdict: Mapping[str, Any] | None
    started_at: str
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[str, str, int]:
        """What a response is called within its run: schedule, prompt and repetition."""
        return self.schedule, self.prompt_id, self.repetition

    @property
    def is_skipped(self) -> bool:
        """Whether the prompt was passed over."""
        return self.stop_reason == SKIPPED

    def line(self) -> str:
        """The record as a line of a records file, newline included."""
        return json.dumps(asdict(self)) + "\n"


def stable_seed(*parts: str | int) -> int:
    """A 63-bit seed that depends on `parts` alone: the same on every machine, in any order of work."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, in the order in which they were written.

    Raises:
      UserError: a line is not a record of this schema, with its number.
    """
    known = [field.name for field in fields(Record)]
    for number, line in enumerate(path.read_text().split("\n"), start=1):
        if not line:
            continue
        try:
            values = json.loads(line)
            if values["schema"] != SCHEMA:
                raise UserError(f"{path}: line {number} has schema {values['schema']}, this version reads {SCHEMA}.")
            yield Record(**{name: values[name] for name in known})
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(f"{path}: line {number} is no record ({error!r}).") from None
