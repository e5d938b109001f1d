"""The closing numbers of a run: ratios of totals for each schedule, and the ratios to Linear-SS (section 4, E.5)."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from harness.records.metrics import BASELINE, METRICS, totals
from harness.records.record import FAILED, SKIPPED, Record

SUMS = ("responses", "tokens", "nfe", "rows", "wall_s")
RATIOS = ("throughput", "tokens_per_nfe", "time_per_nfe_s")
OUTLIER = 3.0  # times the schedule's median time per call


def summarize(records: Iterable[Record], drift: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Totals, rates and agreement of a run's records.

    Args:
      drift: the run's drift check, handed on.

    Returns:
      `schedules`: for each schedule, in the order of the records: passed_over (responses skipped or failed), responses,
        tokens, nfe, rows, wall_s, throughput (tokens/s), tokens_per_nfe, time_per_nfe_s, accuracy (mean correctness;
        null where nothing is graded), non_model_s, memory_bytes (the highest peak of a response; absent where the
        device does not count), and ratios_to_linear where a schedule named linear ran.
      `skipped`, `failed`: ids of prompts that did not fit the context, or the memory.
      `outliers`: responses whose time per call is far above their schedule's median; they are counted all the same.
      `costs_only`: why the responses mean nothing but their costs; null for real ones.
      `agreement`: how many responses all schedules answered with the same token ids, of how many; null where they
        mean nothing.
    """
    by_schedule: dict[str, list[Record]] = {}
    for record in records:
        by_schedule.setdefault(record.schedule, []).append(record)
    schedules = {name: _totals(group) for name, group in by_schedule.items()}
    if BASELINE in schedules:
        for totals in schedules.values():
            totals["ratios_to_linear"] = {key: _ratio(totals[key], schedules[BASELINE][key]) for key in RATIOS}
    every = [record for group in by_schedule.values() for record in group]
    costs_only = next((record.costs_only for record in every if record.costs_only), None)
    return {
        "schedules": schedules,
        "skipped": _prompts(every, SKIPPED),
        "failed": _prompts(every, FAILED),
        "outliers": [outlier for group in by_schedule.values() for outlier in _outliers(group)],
        "drift": drift,
        "costs_only": costs_only,
        "agreement": None if costs_only else _agreement(by_schedule),
    }


def _prompts(records: Iterable[Record], stop_reason: str) -> Sequence[str]:
    return sorted({record.prompt_id for record in records if record.stop_reason == stop_reason})


def _outliers(records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
    times = [(record.wall_s / record.nfe, record) for record in records if record.nfe]
    usual = median(time for time, _ in times) if times else 0.0
    return [
        {
            "schedule": record.schedule,
            "prompt_id": record.prompt_id,
            "repetition": record.repetition,
            "times_median": round(time / usual, 2),
        }
        for time, record in times
        if time > OUTLIER * usual > 0
    ]


def _totals(records: Sequence[Record]) -> dict[str, Any]:
    sums = totals(records)
    peaks = [record.memory_bytes for record in records if record.memory_bytes is not None]
    return {
        "width": records[0].width,
        "passed_over": sum(record.is_skipped for record in records),
        **{name: sums[name] for name in SUMS},
        **{name: _ratio(sums[METRICS[name].above], sums[METRICS[name].below]) for name in (*RATIOS, "accuracy")},
        "non_model_s": sums["non_model_s"],
        **({"memory_bytes": max(peaks)} if peaks else {}),
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
