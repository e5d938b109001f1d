"""Greedy outputs that differ between schedules (F.6): how many, where first, how close the top two logits were there.

In exact arithmetic there are none. Records hold no logits; where a run was replayed, the gaps lie beside its records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.records.logit_gaps import GAPS, first_difference, read_gaps
from harness.records.record import Record


@dataclass(frozen=True)
class Divergence:
    """Two outputs for one prompt that are not the same.

    Attributes:
      position: of the first token that differs, from 1; one output may end before it.
      tokens: the token ids there, the baseline's first; None where an output has ended.
      gap: between the top two logits there, where it was replayed.
    """

    prompt_id: str
    position: int
    tokens: tuple[int | None, int | None]
    gap: float | None


@dataclass(frozen=True)
class Trajectories:
    """How the outputs of two methods compare.

    Attributes:
      compared: responses.
      labels_differ: responses that one method has right and the other wrong.
    """

    compared: int
    divergences: Sequence[Divergence]
    labels_differ: int


def trajectories(cell: PairedCell, baseline: Method, method: Method) -> Trajectories:
    """The outputs of `method` beside the baseline's, response by response."""
    gaps = _gaps(cell)
    pairs = list(zip(cell.records(baseline), cell.records(method), strict=True))
    divergences = [
        Divergence(one.prompt_id, position, tokens, gaps.get((one.prompt_id, position)))
        for one, other in pairs
        for position, tokens in first_difference(one.token_ids, other.token_ids)
    ]
    labels = [(_label(one), _label(other)) for one, other in pairs]
    differ = sum(None not in pair and pair[0] != pair[1] for pair in labels)
    return Trajectories(len(pairs), divergences, differ)


def distinct_outputs(cell: PairedCell, methods: Sequence[Method]) -> int:
    """Responses for which not all of `methods` emitted the same tokens."""
    groups = zip(*(cell.records(method) for method in methods), strict=True)
    return sum(len({tuple(record.token_ids) for record in group}) > 1 for group in groups)


def distinct_labels(cell: PairedCell, methods: Sequence[Method]) -> int:
    """Responses that some of `methods` have right and others wrong."""
    groups = zip(*(cell.records(method) for method in methods), strict=True)
    return sum(len({_label(record) for record in group} - {None}) > 1 for group in groups)


def _label(record: Record) -> bool | None:
    return None if record.verdict is None else record.verdict.get("correct")


def _gaps(cell: PairedCell) -> Mapping[tuple[str, int], float]:
    folders = {folder for one in cell.measured.values() for folder in one.folders}
    gaps: dict[tuple[str, int], float] = {}
    for file in sorted(folder / GAPS for folder in folders):
        if file.exists():
            gaps |= read_gaps(file)
    return gaps
