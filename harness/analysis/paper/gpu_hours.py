"""How long a cell will take on the paper's device, from the seconds that the paper states (F.2).

The bodies of its tables are not among them, so most estimates are scaled, and say so; SetDLM has none.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from harness.analysis.paper.published import Published

SECONDS = ("mean", "wall_per_response_s")


class Estimate(NamedTuple):
    """Seconds of one response on one A100 80GB.

    Attributes:
      seconds: None where nothing is stated that could be scaled.
      source: where they are from.
    """

    seconds: float | None
    source: str


def seconds_a_response(statements: Sequence[Published], config: Mapping[str, Any]) -> Estimate:
    """The estimate for a run's config, averaged over schedules.

    A stated cell gives its own seconds. Others of its family are scaled by the cap on new tokens: an upper estimate
    for a smaller model and for short answers, a lower one without the adapter.
    """
    model, cap = config["model"]["name"], config["task"]["max_new_tokens"]
    stated = [one for one in statements if (one.quantity, one.metric) == SECONDS]
    own = [
        one
        for one in stated
        if model.removesuffix("_lora") in one.models
        and config["task"]["name"] in one.tasks
        and bool(config["model"].get("adapter")) == one.adapter
        and config["temperature"] == one.temperature
        and cap == one.max_new_tokens
    ]
    if own:
        return Estimate(mean(one.value for one in own), f"stated ({own[0].place.split(',')[0]})")
    family = [one for one in stated if model.startswith(one.family) and one.max_new_tokens]
    if not family:
        return Estimate(None, "no seconds are stated")
    scaled = mean(one.value * cap / one.max_new_tokens for one in family)
    return Estimate(scaled, f"scaled by the cap from {family[0].place.split(',')[0]}")
