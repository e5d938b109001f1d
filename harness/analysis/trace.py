"""Traces: what one decode read, predicted and kept, iteration by iteration, as pieces of text.

Records hold only how many tokens each iteration emitted; a trace, written on request beside them as trace.json, holds
the tokens of a single response. All offsets count output positions after the verified prefix, from 1.

    {"schema": 1, "model": "...", "task": "...", "prompt_id": "...", "schedule": "packed", "width": 7,
     "iterations": [
       {"prefix_tail": ["=", "24"],            last pieces of the verified prefix that the iteration starts from
        "draft": [",", "24", "+"],             draft tokens for offsets 1, 2, ...
        "verifier": [",", "24", "-", "2"],     verifier predictions for offsets 1 .. draft + 1
        "accepted": 3,                         tokens emitted, the verifier's own included
        "proposals": [                         one entry a branch, in ascending order
          {"branch": 0,                        draft tokens it assumes to stand
           "first_offset": 1,                  offset of its first token
           "tokens": [",", "24", "-", "9"]}]}]}
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import UserError

SCHEMA = 1
FILE = "trace.json"


@dataclass(frozen=True)
class Proposal:
    """Proposed tokens of one branch."""

    branch: int
    first_offset: int
    tokens: Sequence[str]

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
    accepted: int
    proposals: Sequence[Proposal]

    @property
    def emitted(self) -> Sequence[str]:
        """The tokens that the iteration adds to the prefix: draft tokens that stand, then the verifier's."""
        standing = self.accepted - 1
        return [*self.draft[:standing], *self.verifier[standing : self.accepted]]

    @property
    def selected(self) -> Proposal | None:
        """The proposals that the next draft is taken from: the largest branch that assumes no more than stands."""
        fitting = [proposal for proposal in self.proposals if proposal.branch <= max(self.accepted - 1, 0)]
        return max(fitting, key=lambda proposal: proposal.branch, default=None)


@dataclass(frozen=True)
class Trace:
    """A traced response."""

    model: str
    task: str
    prompt_id: str
    schedule: str
    width: int
    iterations: Sequence[TracedIteration]
    schema: int = SCHEMA

    def json(self) -> str:
        """The trace as the text of its file."""
        return json.dumps(asdict(self), indent=1) + "\n"


def read_trace(file: Path) -> Trace:
    """The trace in `file`.

    Raises:
      UserError: it is no trace of this schema.
    """
    try:
        values = json.loads(file.read_text())
        if values["schema"] != SCHEMA:
            raise UserError(f"{file}: schema {values['schema']}, this version reads {SCHEMA}. Record the trace again.")
        return Trace(
            **{name: values[name] for name in ("model", "task", "prompt_id", "schedule", "width")},
            iterations=[_iteration(values) for values in values["iterations"]],
        )
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: no trace ({error!r}). Record it again.") from None


def _iteration(values: dict) -> TracedIteration:
    names = ("prefix_tail", "draft", "verifier", "accepted")
    proposals = [
        Proposal(**{name: proposal[name] for name in ("branch", "first_offset", "tokens")})
        for proposal in values["proposals"]
    ]
    return TracedIteration(**{name: values[name] for name in names}, proposals=proposals)
