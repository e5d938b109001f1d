"""The closing numbers of a run: ratios of totals for each schedule, and the ratios to Linear-SS (section 4, E.5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.records import Record

BASELINE = "linear"
RATIOS = ("throughput", "tokens_per_nfe", "time_per_nfe_s")


def summarize(records: Iterable[Record]) -> Mapping[str, Any]:
    """Totals, rates and agreement of a run's records.

    Returns:
      `schedules`: for each schedule, in the order of the records: responses, tokens, nfe, rows, wall_s,
        throughput (tokens/s), tokens_per_nfe, time_per_nfe_s, accuracy (mean correctness; null where nothing is
        graded), non_model_s, and ratios_to_linear where a schedule named linear ran.
      `skipped`: ids of prompts that did not fit.
      `agreement`: how many responses all schedules answered with the same token ids, of how many.
    """
    by_schedule: dict[str, list[Record]] = {}
    for record in records:
        by_schedule.setdefault(record.schedule, []).append(record)
    schedules = {name: _totals(group) for name, group in by_schedule.items()}
    if BASELINE in schedules:
        for totals in schedules.values():
            totals["ratios_to_linear"] = {key: _ratio(totals[key], schedules[BASELINE][key]) for key in RATIOS}
    every = [record for group in by_schedule.values() for record in group]
    return {
        "schedules": schedules,
        "skipped": sorted({record.prompt_id for record in every if record.is_skipped}),
        "agreement": _agreement(by_schedule),
    }


def _totals(records: Sequence[Record]) -> dict[str, Any]:
    decoded = [record for record in records if not record.is_skipped]
    tokens = sum(record.tokens for record in decoded)
    nfe = sum(record.nfe for record in decoded)
    wall_s = sum(record.wall_s for record in decoded)
    graded = [
        record.verdict["correct"]
        for record in decoded
        if record.verdict is not None and record.verdict["correct"] is not None
    ]
    return {
        "width": records[0].width,
        "responses": len(decoded),
        "tokens": tokens,
        "nfe": nfe,
        "rows": sum(record.rows for record in decoded),
        "wall_s": wall_s,
        "throughput": _ratio(tokens, wall_s),
        "tokens_per_nfe": _ratio(tokens, nfe),
        "time_per_nfe_s": _ratio(wall_s, nfe),
        "accuracy": _ratio(sum(graded), len(graded)),
        "non_model_s": wall_s - sum(record.model_s for record in decoded),
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _agreement(by_schedule: Mapping[str, Sequence[Record]]) -> Mapping[str, int] | None:
    """Only prompts that every schedule answered count; None for a single schedule."""
    if len(by_schedule) < 2:
        return None
    answers: dict[tuple[str, int], list[Sequence[int]]] = {}
    for group in by_schedule.values():
        for record in group:
            if not record.is_skipped:
                key = (record.prompt_id, record.repetition)
                answers.setdefault(key, []).append(record.token_ids)
    complete = [given for given in answers.values() if len(given) == len(by_schedule)]
    same = sum(all(answer == given[0] for answer in given) for given in complete)
    return {"identical": same, "compared": len(complete)}
