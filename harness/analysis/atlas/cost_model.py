"""What calls cost: a call on n rows takes tau + delta n (section 1), so a response's time follows from a simulation.

    wall = tau x calls + delta x rows + host x iterations

`host` is what a schedule does outside the model in one iteration; the paper's figure 5 shows that it differs between
schedules. The three are fitted to recorded responses, or given; a device that nobody measured gets tau and delta from
its published peaks, and what follows from these is a prediction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.analysis.atlas.simulation import Simulated
from harness.errors import UserError


@dataclass(frozen=True)
class CostModel:
    """Seconds.

    Attributes:
      tau_s: of a call on no rows: mostly the loading of weights.
      delta_s: of a row.
      host_s: outside the model, an iteration, by schedule; schedules that are not in it have the mean of those.
    """

    tau_s: float
    delta_s: float
    host_s: Mapping[str, float]

    @property
    def rows_a_call(self) -> float:
        """tau / delta: the rows whose computation takes as long as a call without any."""
        return self.tau_s / self.delta_s if self.delta_s else float("inf")

    def seconds(self, schedule: str, simulated: Simulated) -> NDArray[np.float64]:
        """Predicted wall seconds of each prompt: float64 [prompts]."""
        hosts = list(self.host_s.values())
        host_s = self.host_s.get(schedule, float(np.mean(hosts)) if hosts else 0.0)
        return self.tau_s * simulated.nfe + self.delta_s * simulated.rows + host_s * simulated.iterations

    def throughput(self, schedule: str, simulated: Simulated) -> float:
        """Predicted tokens a second: a ratio of totals."""
        return float(simulated.tokens.sum() / self.seconds(schedule, simulated).sum())


def fit(records: pd.DataFrame) -> CostModel:
    """The cost model of recorded responses; relative errors are made small, so that short responses count too.

    Args:
      records: responses, as in `harness.records.frame`.

    Raises:
      UserError: too few responses, or none that tell calls from rows.
    """
    responses = records[(records["nfe"] > 0) & (records["model_s"] > 0)]
    sizes = len(responses.groupby(["schedule", "width"]))
    if sizes < 2:
        raise UserError(
            f"costs: {len(responses)} responses of {sizes} schedules and widths; need at least 2 of these to tell "
            "what a call costs from what a row does. Try python -m harness run experiment=costs."
        )
    counts = responses[["nfe", "rows"]].to_numpy(dtype=np.float64)
    tau_s, delta_s = _non_negative(counts / responses["model_s"].to_numpy()[:, None])
    spent = pd.DataFrame(
        {
            "schedule": responses["schedule"],
            "host_s": responses["wall_s"] - responses["model_s"],
            "iterations": responses["accepted"].map(len),
        }
    )
    host = spent.groupby("schedule", sort=False).sum()
    return CostModel(tau_s, delta_s, (host["host_s"] / host["iterations"]).to_dict())


def _non_negative(relative: NDArray[np.float64]) -> tuple[float, float]:
    """Least squares of relative @ (tau, delta) = 1 without negative costs."""
    ones = np.ones(len(relative))
    tau, delta = np.linalg.lstsq(relative, ones, rcond=None)[0]
    if tau >= 0 and delta >= 0:
        return float(tau), float(delta)
    alone = [float(column @ ones / (column @ column)) for column in relative.T]
    errors = [np.square(relative[:, index] * one - 1).sum() for index, one in enumerate(alone)]
    return (alone[0], 0.0) if errors[0] <= errors[1] else (0.0, alone[1])


class Device(NamedTuple):
    """A device by its makers' data sheet.

    Attributes:
      bandwidth: bytes a second between memory and processor.
      peak: BF16 operations a second, dense.
    """

    name: str
    bandwidth: float
    peak: float


# Data sheets of the A100 80GB SXM and the H200 SXM.
DEVICES = (Device("A100", 2.039e12, 312e12), Device("H200", 4.8e12, 989e12))
SIZES = {"3B": 3e9, "8B": 8e9, "14B": 14e9}  # parameters
BYTES = 2  # of a BF16 parameter


def predicted(device: Device, parameters: float) -> CostModel:
    """tau and delta at a device's peaks: weights are read once a call, and each is multiplied and added once a row.

    A bound from below: nothing is launched, no cache is read, and nothing happens on the host. tau / delta is the
    device's own, whatever the model's size.
    """
    return CostModel(BYTES * parameters / device.bandwidth, 2 * parameters / device.peak, {})
