"""What is counted of a response, and the metrics: each one a ratio of two totals (section 4, E.5).

A ratio of totals is never a mean of ratios: long responses weigh what they cost.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.records.record import Record

# What all schedules are compared with (E.5).
BASELINE = "linear"

# What is summed over responses. `iterations` leaves the prompt's call out; `graded` counts verdicts that say
# right or wrong, `correct` those that say right.
COLUMNS = (
    "responses",
    "tokens",
    "nfe",
    "rows",
    "adapter_rows_selected",
    "adapter_rows_evaluated",
    "prompt_tokens",
    "iterations",
    "wall_s",
    "model_s",
    "non_model_s",
    "correct",
    "graded",
)


class Ratio(NamedTuple):
    """One total divided by another."""

    above: str
    below: str


METRICS = {
    "throughput": Ratio("tokens", "wall_s"),
    "tokens_per_nfe": Ratio("tokens", "nfe"),
    "time_per_nfe_s": Ratio("wall_s", "nfe"),
    "accuracy": Ratio("correct", "graded"),
    "tokens_per_response": Ratio("tokens", "responses"),
    "nfe_per_response": Ratio("nfe", "responses"),
    "iterations_per_response": Ratio("iterations", "responses"),
    "wall_per_response_s": Ratio("wall_s", "responses"),
    "model_per_response_s": Ratio("model_s", "responses"),
    "non_model_per_response_s": Ratio("non_model_s", "responses"),
    "model_per_nfe_s": Ratio("model_s", "nfe"),
}


def counted(record: Record) -> Sequence[float]:
    """What one response adds to each of `COLUMNS`."""
    correct = None if record.verdict is None else record.verdict.get("correct")
    return (
        1,
        record.tokens,
        record.nfe,
        record.rows,
        record.adapter_rows_selected,
        record.adapter_rows_evaluated,
        record.prompt_tokens,
        max(len(record.accepted) - 1, 0),
        record.wall_s,
        record.model_s,
        record.wall_s - record.model_s,
        correct is True,
        correct is not None,
    )


def totals(records: Iterable[Record]) -> dict[str, float]:
    """Sums of all `COLUMNS` over responses; skipped prompts are no responses."""
    rows = [counted(record) for record in records if not record.is_skipped]
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return {name: sum(column) for name, column in zip(COLUMNS, columns, strict=True)}
