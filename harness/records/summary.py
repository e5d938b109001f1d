"""The closing numbers of a run: ratios of totals for each schedule, and the ratios to Linear-SS (section 4, E.5)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from harness.records.frame import answered
from harness.records.metrics import BASELINE, METRICS, has_verdicts, totals
from harness.records.record import FAILED, SKIPPED

SUMS = ("responses", "tokens", "nfe", "rows", "wall_s")
WHOLE = ("responses", "tokens", "nfe", "rows")
RATIOS = ("throughput", "tokens_per_nfe", "time_per_nfe_s")
PLACE = ["prompt_id", "repetition"]
OUTLIER = 3.0  # times the schedule's median time per call


def summarize(records: pd.DataFrame, drift: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Totals, rates and agreement of a run's records.

    Args:
      records: as in `harness.records.frame`.
      drift: the run's drift check, handed on.

    Returns:
      `schedules`: for each schedule, in the order of the records: passed_over (responses skipped or failed), responses,
        tokens, nfe, rows, wall_s, throughput (tokens/s), tokens_per_nfe, time_per_nfe_s, accuracy (mean correctness of
        the responses that every schedule has a verdict on; null where there are none), scored (how many these are; null
        where the task has no right answers), non_model_s, memory_bytes (the highest peak of a response; absent where
        the device does not count), and ratios_to_linear where a schedule named linear ran.
      `skipped`, `failed`: ids of prompts that did not fit the context, or the memory.
      `outliers`: responses whose time per call is far above their schedule's median; they are counted all the same.
      `costs_only`: why the responses mean nothing but their costs; null for real ones.
      `agreement`: how many responses all schedules answered with the same token ids, of how many; null where they
        mean nothing.
    """
    by_schedule = dict(iter(records.groupby("schedule", sort=False)))
    scored = _scored_by_all(by_schedule.values())
    schedules = {name: _totals(group, scored) for name, group in by_schedule.items()}
    if BASELINE in schedules:
        for totals in schedules.values():
            totals["ratios_to_linear"] = {key: _ratio(totals[key], schedules[BASELINE][key]) for key in RATIOS}
    costs_only = next(iter(records["costs_only"].dropna()), None)
    return {
        "schedules": schedules,
        "skipped": _prompts(records, SKIPPED),
        "failed": _prompts(records, FAILED),
        "outliers": [outlier for group in by_schedule.values() for outlier in _outliers(group)],
        "drift": drift,
        "costs_only": costs_only,
        "agreement": None if costs_only else _agreement(by_schedule),
    }


def _prompts(records: pd.DataFrame, stop_reason: str) -> Sequence[str]:
    return sorted(set(records.loc[records["stop_reason"] == stop_reason, "prompt_id"]))


def _outliers(records: pd.DataFrame) -> Sequence[Mapping[str, Any]]:
    called = records[records["nfe"] > 0]
    times = called["wall_s"] / called["nfe"]
    usual = float(times.median()) if len(times) else 0.0
    slow = called.assign(times_median=times / usual if usual else 0.0)
    return [
        {
            "schedule": one.schedule,
            "prompt_id": one.prompt_id,
            "repetition": one.repetition,
            "times_median": round(one.times_median, 2),
        }
        for one in slow[slow["times_median"] > OUTLIER].itertuples()
    ]


def _scored_by_all(groups: Iterable[pd.DataFrame]) -> pd.MultiIndex:
    """Prompts and repetitions that every schedule has a verdict on."""
    scored = [one.loc[one["correct"].notna()].set_index(PLACE).index for one in groups]
    return reduce(lambda one, other: one[one.isin(other)], scored) if scored else pd.MultiIndex.from_arrays([[], []])


def _totals(records: pd.DataFrame, scored: pd.MultiIndex) -> dict[str, Any]:
    responses = answered(records)
    sums, peaks = totals(responses), records["memory_bytes"].dropna()
    verdicts = responses.set_index(PLACE)["correct"]
    compared = verdicts[verdicts.index.isin(scored)]
    return {
        "width": int(records["width"].iloc[0]),
        "passed_over": len(records) - len(responses),
        **{name: int(sums[name]) if name in WHOLE else sums[name] for name in SUMS},
        **{name: _ratio(sums[METRICS[name].above], sums[METRICS[name].below]) for name in RATIOS},
        "accuracy": float(compared.mean()) if len(compared) else None,
        "scored": len(compared) if has_verdicts(responses) else None,
        "non_model_s": sums["non_model_s"],
        **({"memory_bytes": int(peaks.max())} if len(peaks) else {}),
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _agreement(by_schedule: Mapping[str, pd.DataFrame]) -> Mapping[str, int] | None:
    """Only prompts that every schedule answered count; None for a single schedule."""
    if len(by_schedule) < 2:
        return None
    outputs = [answered(group).set_index(PLACE)["token_ids"] for group in by_schedule.values()]
    complete = pd.concat(outputs, axis=1, join="inner")
    same = sum(all(np.array_equal(one[0], other) for other in one[1:]) for one in complete.itertuples(index=False))
    return {"identical": same, "compared": len(complete)}
