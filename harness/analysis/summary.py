"""The closing numbers of a run: ratios of totals for each schedule, and the ratios to Linear-SS (section 4, E.5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.analysis.metrics import METRICS, totals
from harness.records import Record

BASELINE = "linear"
SUMS = ("responses", "tokens", "nfe", "rows", "wall_s")
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
    sums = totals(records)
    return {
        "width": records[0].width,
        **{name: sums[name] for name in SUMS},
        **{name: _ratio(sums[METRICS[name].above], sums[METRICS[name].below]) for name in (*RATIOS, "accuracy")},
        "non_model_s": sums["non_model_s"],
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
