"""Greedy outputs that differ between schedules (F.6): how many, where first, how close the top two logits were there.

In exact arithmetic there are none. Records hold no logits; where a run was replayed, the gaps lie beside its records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.records.logit_gaps import GAPS, first_difference, read_gaps


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
    one, other = cell.records(baseline), cell.records(method)
    outputs = zip(one.index, one["token_ids"], other["token_ids"], strict=True)
    divergences = [
        Divergence(prompt_id, position, tokens, gaps.get((prompt_id, position)))
        for (prompt_id, _), *pair in outputs
        for position, tokens in first_difference(*pair)
    ]
    return Trajectories(len(one), divergences, distinct_labels(cell, (baseline, method)))


def distinct_outputs(cell: PairedCell, methods: Sequence[Method]) -> int:
    """Responses for which not all of `methods` emitted the same tokens."""
    groups = zip(*(cell.records(method)["token_ids"] for method in methods), strict=True)
    return sum(any(not np.array_equal(group[0], other) for other in group[1:]) for group in groups)


def distinct_labels(cell: PairedCell, methods: Sequence[Method]) -> int:
    """Responses that some of `methods` have right and others wrong."""
    labels = pd.concat([cell.records(method)["correct"] for method in methods], axis=1)
    return int((labels.any(axis=1) & (~labels).any(axis=1)).sum())


def _gaps(cell: PairedCell) -> Mapping[tuple[str, int], float]:
    folders = {folder for one in cell.measured.values() for folder in one.folders}
    gaps: dict[tuple[str, int], float] = {}
    for file in sorted(folder / GAPS for folder in folders):
        if file.exists():
            gaps |= read_gaps(file)
    return gaps
