"""Traces: what single responses read, predicted and kept, iteration by iteration, as pieces of text.

Records hold only how many tokens each iteration emitted; `python -m harness replay` decodes some prompts of a run
again and writes what it saw beside the records as traces.json. Offsets count output positions after the verified
prefix, from 1; with a window (SetDLM), they count its ranks, in verification order. A file's key `standing` is
`accepted_drafts` here.

    {"schema": 1, "traces": [
      {"model": "...", "task": "...", "prompt_id": "...", "schedule": "packed", "width": 7, "temperature": 0.0,
       "tokens": ["=", "24", ...],              pieces of the whole response
       "iterations": [
         {"prefix_tail": ["=", "24"],           last pieces of the verified prefix that the iteration starts from
          "draft": [",", "24", "+"],            draft tokens for offsets 1, 2, ...
          "verifier": [",", "24", "-", "2"],    verifier predictions for offsets 1 .. draft + 1; what was emitted, where
                                                they are sampled
          "positions": [7, 8, 9],               output positions of the emitted tokens, in verification order
          "standing": 2,                        how many of these are draft tokens; the rest are the verifier's
          "calls": 1,                           forward passes of the iteration
          "rows": 16,                           token rows in them
          "seconds": 0.004,                     inside them; these three are null in files of earlier versions
          "proposals": [                        one entry a branch, in ascending order
            {"branch": 0,                       draft tokens it assumes to be accepted
             "first_offset": 1,                 offset of its first token
             "is_draft": false,                 whether it is what this very iteration verifies, as in Linear-SS
             "tokens": [",", "24", "-", "9"]}]}]}]}
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError

SCHEMA = 1
FILE = "traces.json"
KEYS = {"accepted_drafts": "standing"}  # fields that go by another name in files


@dataclass(frozen=True)
class Proposal:
    """Proposed tokens of one branch."""

    branch: int
    first_offset: int
    tokens: Sequence[str]
    is_draft: bool = False

    def at(self, offset: int) -> str | None:
        """The token proposed for an offset."""
        index = offset - self.first_offset
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    @property
    def last_offset(self) -> int:
        """The last offset that has a token."""
        return self.first_offset + len(self.tokens) - 1


@dataclass(frozen=True)
class TracedIteration:
    """One iteration; see the module's text."""

    prefix_tail: Sequence[str]
    draft: Sequence[str]
    verifier: Sequence[str]
    positions: Sequence[int]
    accepted_drafts: int
    proposals: Sequence[Proposal]
    calls: int | None = None
    rows: int | None = None
    seconds: float | None = None

    @property
    def accepted(self) -> int:
        """Tokens emitted, the correction or bonus token among them."""
        return len(self.positions)

    @property
    def emitted(self) -> Sequence[str]:
        """The tokens that the iteration adds to the prefix: accepted draft tokens, then the verifier's."""
        return [*self.draft[: self.accepted_drafts], *self.verifier[self.accepted_drafts : self.accepted]]

    @property
    def selected(self) -> Proposal | None:
        """What the next draft is taken from: the largest branch that assumes no more than was accepted."""
        accepted_drafts = max(self.accepted - 1, 0)
        fitting = [one for one in self.proposals if one.branch <= accepted_drafts and not one.is_draft]
        return max(fitting, key=lambda proposal: proposal.branch, default=None)


@dataclass(frozen=True)
class Trace:
    """A traced response."""

    model: str
    task: str
    prompt_id: str
    schedule: str
    width: int
    temperature: float
    tokens: Sequence[str]
    iterations: Sequence[TracedIteration]


def traces_json(traces: Iterable[Trace]) -> dict:
    """Traces as the value of their file."""
    return {"schema": SCHEMA, "traces": [asdict(trace, dict_factory=_in_file) for trace in traces]}


def _in_file(fields: Iterable[tuple[str, Any]]) -> dict:
    return {KEYS.get(name, name): value for name, value in fields}


def read_traces(folder: Path) -> Sequence[Trace]:
    """The traces beside a run's records; none where it was not replayed.

    Raises:
      UserError: the file is none of this schema.
    """
    file = folder / FILE
    if not file.exists():
        return []
    try:
        values = json.loads(file.read_text())
        if values["schema"] != SCHEMA:
            raise UserError(f"{file}: schema {values['schema']}, this version reads {SCHEMA}. Replay the run again.")
        return [_trace(trace) for trace in values["traces"]]
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: no traces ({error!r}). Replay the run again.") from None


def _trace(values: dict) -> Trace:
    return Trace(**values | {"iterations": [_iteration(iteration) for iteration in values["iterations"]]})


def _iteration(values: dict) -> TracedIteration:
    named = {name: values[key] for name, key in KEYS.items()}
    rest = {key: value for key, value in values.items() if key not in KEYS.values()}
    return TracedIteration(**rest | named | {"proposals": [Proposal(**proposal) for proposal in values["proposals"]]})
