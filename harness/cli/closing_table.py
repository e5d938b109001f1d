"""The table that a run ends with, for reading in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.text import MISSING, aligned, some

HEADER = ("schedule", "W", "n", "tokens/s", "tokens/NFE", "ms/NFE", "accuracy", "scored")
MEMORY_HEADER = "GB at peak"
RATIO_HEADER = ("tokens/s", "tokens/NFE", "time/NFE")


def closing_table(summary: Mapping[str, Any], expected: int) -> str:
    """Rates of each schedule and their ratios to Linear-SS.

    Args:
      summary: from `harness.records.summary`.
      expected: responses that each schedule should have, those passed over included; fewer are marked PARTIAL.
    """
    compared = any("ratios_to_linear" in totals for totals in summary["schedules"].values())
    counts_memory = any("memory_bytes" in totals for totals in summary["schedules"].values())
    header = HEADER + ((MEMORY_HEADER,) if counts_memory else ())
    rows = [(*header, *(f"{name} x linear" for name in RATIO_HEADER))] if compared else [header]
    for name, totals in summary["schedules"].items():
        row = (
            name,
            str(totals["width"] or MISSING),
            str(totals["responses"]),
            _number(totals["throughput"], "{:.1f}"),
            _number(totals["tokens_per_nfe"], "{:.2f}"),
            _number(totals["time_per_nfe_s"], "{:.2f}", scale=1000),
            _number(totals["accuracy"], "{:.1f} %", scale=100),
            _number(totals["scored"], "{}", scale=1),
        )
        if counts_memory:
            row += (_number(totals.get("memory_bytes"), "{:.2f}", scale=1e-9),)
        if compared:
            intervals = totals.get("intervals_to_linear", {})
            row += tuple(_ratio(value, intervals.get(key)) for key, value in totals["ratios_to_linear"].items())
        rows.append(row)
    lines = aligned(rows, is_left=[True] + [False] * (len(rows[0]) - 1))
    if summary["costs_only"]:
        lines.append(f"COSTS ONLY, {summary['costs_only']}: tokens and accuracy mean nothing, times and rows do")
    if summary["agreement"]:
        agreement = summary["agreement"]
        lines.append(
            f"identical token ids across schedules: {agreement['identical']} of {agreement['compared']} responses"
        )
    unscored = {name: one for name, one in summary["schedules"].items() if (one["scored"] or 0) < one["responses"]}
    if any(one["scored"] is not None for one in unscored.values()):
        counts = ", ".join(f"{name} {one['scored'] or 0} of {one['responses']}" for name, one in unscored.items())
        lines.append(f"PARTIAL: accuracy is over the responses that every schedule has a verdict on: {counts}")
    for key, why in (("skipped", "too long for the context"), ("failed", "out of memory")):
        if summary[key]:
            lines.append(f"PARTIAL: {len(summary[key])} prompts {key}, {why}: {some(summary[key])}")
    if summary["outliers"]:
        shown = [f"{one['schedule']} on {one['prompt_id']} x {one['times_median']}" for one in summary["outliers"]]
        lines.append(f"slow outliers, counted all the same (x the median time per call): {some(shown)}")
    if compared and any("intervals_to_linear" in totals for totals in summary["schedules"].values()):
        lines.append("brackets: 95 % intervals, paired over the prompts that all schedules answered")
    if summary["flags"]:
        lines.append(f"CAUTION: {'; '.join(summary['flags'])}")
    if summary["drift"]:
        lines.append(_drift(summary["drift"]))
    fewest = min((t["responses"] + t["passed_over"] for t in summary["schedules"].values()), default=0)
    if fewest < expected:
        lines.append(f"PARTIAL: {fewest} of {expected} responses for each schedule so far")
    return "\n".join(lines)


def _drift(drift: Mapping[str, Any]) -> str:
    ratios = ", ".join(f"{name} {_number(ratio, '{:.2f}')}" for name, ratio in drift["ratios"].items())
    line = f"drift, time of the first {len(drift['prompts'])} prompts again at the end: {ratios}"
    if drift["other_tokens"]:
        line += f"; {drift['other_tokens']} responses had OTHER TOKENS than before"
    return line


def _ratio(value: float | None, interval: Sequence[float] | None) -> str:
    """A ratio with its interval, where it has one."""
    shown = _number(value, "{:.3f}")
    return f"{shown} [{interval[0]:.3f}, {interval[1]:.3f}]" if interval and value is not None else shown


def _number(value: float | None, form: str, scale: float = 1.0) -> str:
    return MISSING if value is None else form.format(value * scale)
