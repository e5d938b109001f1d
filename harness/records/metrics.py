"""What is counted of a response, and the metrics: each one a ratio of two totals (section 4, E.5).

A ratio of totals is never a mean of ratios: long responses weigh what they cost.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


# Columns that a response without a verdict adds nothing to.
VERDICTS = [COLUMNS.index(name) for name in ("correct", "graded")]
INFRA = "infra"  # begins the reason of a verdict where the grader itself failed


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


def counted(responses: pd.DataFrame) -> NDArray[np.float64]:
    """What each response adds to each of `COLUMNS`: [responses, columns].

    Args:
      responses: rows as `harness.records.frame` gives them, skipped prompts left out.
    """
    iterations = np.array([len(accepted) for accepted in responses["accepted"]], dtype=np.int64)
    columns = {
        "responses": np.ones(len(responses)),
        "iterations": np.maximum(iterations - 1, 0),
        "non_model_s": responses["wall_s"] - responses["model_s"],
        "correct": responses["correct"].fillna(False),
        "graded": responses["correct"].notna(),
    }
    return np.stack([np.asarray(columns.get(name, responses.get(name)), dtype=np.float64) for name in COLUMNS], axis=1)


def has_verdicts(responses: pd.DataFrame) -> bool:
    """Whether responses are of a task with right answers: one is scored, or would be if its grader had not failed."""
    return bool(responses["correct"].notna().any() or responses["reason"].fillna("").str.startswith(INFRA).any())


def totals(responses: pd.DataFrame) -> dict[str, float]:
    """Sums of all `COLUMNS` over responses."""
    return dict(zip(COLUMNS, counted(responses).sum(axis=0).tolist(), strict=True))
