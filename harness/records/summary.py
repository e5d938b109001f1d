"""The closing numbers of a run: ratios of totals for each schedule, and the ratios to Linear-SS (section 4, E.5)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from harness.records.bootstrap import Statistic, resampled_totals
from harness.records.frame import answered
from harness.records.metrics import BASELINE, METRICS, has_verdicts, totals
from harness.records.record import FAILED, SKIPPED
from harness.system.machine import hints

SUMS = ("responses", "tokens", "nfe", "rows", "wall_s")
WHOLE = ("responses", "tokens", "nfe", "rows")
RATIOS = ("throughput", "tokens_per_nfe", "time_per_nfe_s")
PLACE = ["prompt_id", "repetition"]
SPENT = ("tokens", "nfe", "wall_s")
FEW_PROMPTS = 30
MOST_DRIFT = 0.1
OUTLIER = 3.0  # times the schedule's median time per call


def summarize(records: pd.DataFrame, conditions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Totals, rates and agreement of a run's records.

    Args:
      records: as in `harness.records.frame`.
      conditions: what the manifest says of how times were measured: `drift`, `warmups` and `state_at_start`, each as
        the runner noted it, or missing.

    Returns:
      `schedules`: for each schedule, in the order of the records: passed_over (responses skipped or failed), responses,
        tokens, nfe, rows, wall_s, throughput (tokens/s), tokens_per_nfe, time_per_nfe_s, accuracy (mean correctness of
        the responses that every schedule has a verdict on; null where there are none), scored (how many these are; null
        where the task has no right answers), non_model_s, memory_bytes (the highest peak of a response; absent where
        the device does not count), and where a schedule named linear ran ratios_to_linear and, of two prompts and more
        that all answered, intervals_to_linear: low and high end of the paired 95 % interval of each ratio (E.5), over
        these prompts.
      `skipped`, `failed`: ids of prompts that did not fit the context, or the memory.
      `outliers`: responses whose time per call is far above their schedule's median; they are counted all the same.
      `drift`: handed on.
      `flags`: in words, why times or intervals are to be read with care; none where there is no reason to.
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
        for name, intervals in _intervals(by_schedule).items():
            schedules[name]["intervals_to_linear"] = intervals
    costs_only = next(iter(records["costs_only"].dropna()), None)
    return {
        "schedules": schedules,
        "skipped": _prompts(records, SKIPPED),
        "failed": _prompts(records, FAILED),
        "outliers": [outlier for group in by_schedule.values() for outlier in _outliers(group)],
        "drift": conditions.get("drift"),
        "flags": _flags(records, conditions),
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


def _flags(records: pd.DataFrame, conditions: Mapping[str, Any]) -> Sequence[str]:
    flags = []
    prompts = answered(records)["prompt_id"].nunique()
    if prompts < FEW_PROMPTS:
        flags.append(f"{prompts} prompts are few, intervals over them are rough")
    ratios = (conditions.get("drift") or {}).get("ratios", {})
    drifted = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio and abs(ratio - 1) > MOST_DRIFT]
    if drifted:
        flags.append(f"times drifted while the run went on: {', '.join(drifted)} times those at the start")
    unsettled = [name for name, warmed in (conditions.get("warmups") or {}).items() if not warmed["settled"]]
    if unsettled:
        flags.append(f"times had not settled after warming up: {', '.join(unsettled)}")
    return [*flags, *hints(conditions["state_at_start"])] if conditions.get("state_at_start") else flags


def _intervals(by_schedule: Mapping[str, pd.DataFrame]) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Paired intervals of all ratios to the baseline; none where there are not two prompts, or a total is zero."""
    sums = [answered(group).groupby("prompt_id")[list(SPENT)].sum() for group in by_schedule.values()]
    wide = pd.concat(sums, axis=1, join="inner", keys=by_schedule.keys()).sort_index()
    if len(wide) < 2 or not (wide.sum() > 0).all():
        return {}
    draws = resampled_totals(wide.to_numpy(dtype=np.float64))
    columns = {column: Statistic(float(wide[column].sum()), draws[:, index]) for index, column in enumerate(wide)}
    rates = {
        (name, metric): columns[name, METRICS[metric].above] / columns[name, METRICS[metric].below]
        for name in by_schedule
        for metric in RATIOS
    }
    return {
        name: {metric: list((rates[name, metric] / rates[BASELINE, metric]).estimate()[1:]) for metric in RATIOS}
        for name in by_schedule
        if name != BASELINE
    }


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
