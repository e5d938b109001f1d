"""Sample outputs of a cell: text, verdict and, token by token, where each came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from harness.analysis.study.cells import NATIVE, Method
from harness.analysis.study.grid import methods_in_order
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import look
from harness.analysis.trace_grid import View, outcome, verified_state, views
from harness.errors import UserError
from harness.records.trace import Trace, read_traces

SAMPLES = 3

PREDICTED = "predicted"


class Piece(NamedTuple):
    """One token of an output.

    Attributes:
      kind: the token's state in the grid, accepted or correction; or predicted, accepted without verification.
      is_first: whether an iteration's tokens begin here.
      tip: which iteration it came from, and what that did.
    """

    text: str
    kind: str
    is_first: bool
    tip: str


@dataclass(frozen=True)
class Sample:
    """One method's output for a prompt; `pieces` and `iterations` are empty where it was not traced."""

    label: str
    colour: str
    record: pd.Series
    verdict: str
    pieces: Sequence[Piece]
    iterations: Sequence[View]


class Prompt(NamedTuple):
    """All methods' outputs for one prompt."""

    prompt_id: str
    samples: Sequence[Sample]


def prompts_of(cell: PairedCell) -> tuple[Sequence[Prompt], Sequence[str]]:
    """The first traced prompts of a cell, then others, and what is to be said about unreadable traces."""
    traces, notices = _traces(cell)
    traced = [prompt_id for prompt_id in cell.prompt_ids if any(prompt_id == key[1] for key in traces)]
    # Prompts are numbered; ids sort as texts, so the shortest come first.
    others = sorted(set(cell.prompt_ids) - set(traced), key=lambda prompt_id: (len(prompt_id), prompt_id))
    chosen = [*traced, *others][:SAMPLES]
    first = {
        method: cell.records(method).groupby(level="prompt_id").head(1).droplevel("repetition")
        for method in cell.methods
    }
    return [
        Prompt(
            prompt_id,
            [
                _sample(method, first[method].loc[prompt_id], traces.get((method, prompt_id)))
                for method in methods_in_order(cell.methods)
            ],
        )
        for prompt_id in chosen
    ], notices


def _traces(cell: PairedCell) -> tuple[Mapping[tuple[Method, str], Trace], Sequence[str]]:
    """By method and prompt, from the folders that the cell's records come from."""
    found: dict[tuple[Method, str], Trace] = {}
    notices = []
    for folder in sorted({folder for one in cell.measured.values() for folder in one.folders}):
        try:
            for trace in read_traces(folder):
                found[Method(trace.schedule, trace.width), trace.prompt_id] = trace
        except UserError as error:
            notices.append(str(error))
    return found, notices


def _sample(method: Method, record: pd.Series, trace: Trace | None) -> Sample:
    style = look(method.schedule)
    # A replay on another machine may have decoded something else; its colours would be wrong.
    is_same = trace is not None and len(trace.tokens) == record["tokens"]
    return Sample(
        label=f"{style.label} (W = {method.width})" if method.width else style.label,
        colour=style.colour,
        record=record,
        verdict=_verdict(record),
        pieces=_pieces(trace) if is_same else [],
        iterations=views(trace) if is_same else [],
    )


def _verdict(record: pd.Series) -> str:
    if pd.isna(record["correct"]):
        return "not graded"
    return "right" if record["correct"] else "wrong"


def _pieces(trace: Trace) -> Sequence[Piece]:
    pieces: dict[int, Piece] = {}
    for number, iteration in enumerate(trace.iterations, start=1):
        tip = f"iteration {number}: {outcome(iteration)}"
        for offset, position in enumerate(iteration.positions, start=1):
            kind = PREDICTED if trace.schedule == NATIVE else verified_state(offset, iteration)
            pieces[position] = Piece(trace.tokens[position - 1], kind, offset == 1, tip)
    return [pieces[position] for position in sorted(pieces)]
