"""Greedy outputs that differ between schedules (F.6): how many, where first, how close the top two logits were there.

In exact arithmetic there are none. Records hold no logits; `python -m harness replay` evaluates the diverging positions
again and writes the gaps beside the records as logit_gaps.json:

    {"schema": 1, "gaps": [{"prompt_id": "...", "position": 17, "gap": 0.03}]}

`position` counts output tokens from 1; the context is the output before it, which both schedules share.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.analysis.appearance import ORDERS, in_order, look, model_label, setting_label
from harness.analysis.cells import Method
from harness.analysis.grid import NotMeasured, provenance
from harness.analysis.settings import BASELINE, Setting
from harness.analysis.study import Study
from harness.analysis.table import Column, Entry, Number, Table
from harness.errors import UserError
from harness.records import Record

GAPS = "logit_gaps.json"
SCHEMA = 1


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


def trajectories(setting: Setting, baseline: Method, method: Method) -> Trajectories:
    """The outputs of `method` beside the baseline's, response by response."""
    gaps = _gaps(setting)
    pairs = list(zip(setting.records(baseline), setting.records(method), strict=True))
    divergences = [
        Divergence(one.prompt_id, position, tokens, gaps.get((one.prompt_id, position)))
        for one, other in pairs
        for position, tokens in first_difference(one.token_ids, other.token_ids)
    ]
    labels = [(_label(one), _label(other)) for one, other in pairs]
    differ = sum(None not in pair and pair[0] != pair[1] for pair in labels)
    return Trajectories(len(pairs), divergences, differ)


def distinct_outputs(setting: Setting, methods: Sequence[Method]) -> int:
    """Responses for which not all of `methods` emitted the same tokens."""
    groups = zip(*(setting.records(method) for method in methods), strict=True)
    return sum(len({tuple(record.token_ids) for record in group}) > 1 for group in groups)


def distinct_labels(setting: Setting, methods: Sequence[Method]) -> int:
    """Responses that some of `methods` have right and others wrong."""
    groups = zip(*(setting.records(method) for method in methods), strict=True)
    return sum(len({_label(record) for record in group} - {None}) > 1 for group in groups)


def first_difference(one: Sequence[int], other: Sequence[int]) -> Sequence[tuple[int, tuple[int | None, int | None]]]:
    """The first position that differs with the tokens there; nothing for equal outputs."""
    for index in range(max(len(one), len(other))):
        tokens = (one[index] if index < len(one) else None, other[index] if index < len(other) else None)
        if tokens[0] != tokens[1]:
            return [(index + 1, tokens)]
    return []


def trajectory_table(study: Study) -> Table:
    """Every greedy setting, every method beside the baseline, which is Linear-SS, or the first method without it."""
    settings = [s for s in study.settings(0.0) if len(s.methods) > 1]
    if not settings:
        raise NotMeasured("no greedy records of two schedules on the same prompts")
    rows: list[Sequence[Entry]] = []
    for setting in settings:
        baseline = _baseline(setting)
        for schedule in in_order(method.schedule for method in setting.methods if method != baseline):
            found = trajectories(setting, baseline, setting.method(schedule))
            positions = [divergence.position for divergence in found.divergences]
            gaps = [divergence.gap for divergence in found.divergences if divergence.gap is not None]
            rows.append(
                (
                    model_label(setting.key.model),
                    setting_label(setting),
                    ORDERS.get(setting.key.order, setting.key.order),
                    f"{look(schedule).label} / {look(baseline.schedule).label}",
                    Number(found.compared),
                    Number(len(positions)),
                    Number(min(positions, default=None)),
                    Number(median(positions) if positions else None, 1),
                    Number(median(gaps) if gaps else None, 4),
                    Number(len(gaps)),
                    Number(found.labels_differ if _is_graded(setting) else None),
                )
            )
    names = (
        "Model",
        "Task",
        "Order",
        "Outputs of",
        "n",
        "Diverge",
        "First",
        "Median position",
        "Median gap",
        "Gaps known",
    )
    return Table(
        name="trajectories",
        title="Output trajectories under greedy decoding (F.6)",
        columns=[Column(name) for name in (*names, "Labels differ")],
        rows=rows,
        notes=[
            "Diverge: responses whose token ids differ; positions count output tokens from 1. Gap: between the top two "
            "logits at the first difference, where it was replayed. Labels differ: right in one, wrong in the other. "
            "Different verification orders are different trajectories even in exact arithmetic.",
            provenance(settings),
        ],
        grouped_by=3,
    )


def divergence_table(study: Study) -> Table:
    """Every first difference: where to look, and what a replay needs."""
    rows: list[Sequence[Entry]] = []
    settings = [s for s in study.settings(0.0) if len(s.methods) > 1]
    for setting in settings:
        baseline = _baseline(setting)
        for schedule in in_order(method.schedule for method in setting.methods if method != baseline):
            for divergence in trajectories(setting, baseline, setting.method(schedule)).divergences:
                rows.append(
                    (
                        model_label(setting.key.model),
                        setting_label(setting),
                        ORDERS.get(setting.key.order, setting.key.order),
                        f"{look(schedule).label} / {look(baseline.schedule).label}",
                        divergence.prompt_id,
                        Number(divergence.position),
                        *(Number(token) for token in divergence.tokens),
                        Number(divergence.gap, 4),
                    )
                )
    if not rows:
        raise NotMeasured(
            "no two greedy outputs for the same prompt differ" if settings else "no two schedules to compare"
        )
    names = ("Model", "Task", "Order", "Outputs of", "Prompt", "Position", "Baseline token", "Token", "Logit gap")
    return Table(
        name="divergences",
        title="First differences between greedy outputs (F.6)",
        columns=[Column(name) for name in names],
        rows=rows,
        notes=["Token ids; a dash where an output has ended, or where no gap was replayed.", provenance(settings)],
        grouped_by=4,
    )


def gaps_json(gaps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Gaps as the value of their file."""
    return {"schema": SCHEMA, "gaps": list(gaps)}


def _baseline(setting: Setting) -> Method:
    return setting.method(BASELINE) or setting.methods[0]


def _is_graded(setting: Setting) -> bool:
    return any(setting.value("accuracy", method) is not None for method in setting.methods)


def _label(record: Record) -> bool | None:
    return None if record.verdict is None else record.verdict.get("correct")


def _gaps(setting: Setting) -> Mapping[tuple[str, int], float]:
    folders = {folder for one in setting.measured.values() for folder in one.folders}
    gaps: dict[tuple[str, int], float] = {}
    for file in sorted(folder / GAPS for folder in folders):
        if file.exists():
            gaps |= _read_gaps(file)
    return gaps


def _read_gaps(file: Path) -> Mapping[tuple[str, int], float]:
    try:
        values = json.loads(file.read_text())
        if values["schema"] != SCHEMA:
            raise UserError(f"{file}: schema {values['schema']}, this version reads {SCHEMA}.")
        return {(gap["prompt_id"], gap["position"]): gap["gap"] for gap in values["gaps"]}
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{file}: no logit gaps ({error!r}). Replay them again.") from None
