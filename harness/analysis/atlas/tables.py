"""What an atlas says about the schedules: calls, rows and tokens at every width; with costs, predicted throughput."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from harness.analysis.atlas.cost_model import DEVICES, SIZES, CostModel, Device, fit, predicted
from harness.analysis.atlas.methods import Method, method, methods
from harness.analysis.atlas.simulation import Simulated, Simulation, tokens_per_nfe_ratio
from harness.analysis.study.grid import INTERVALS
from harness.analysis.style import SUBJECT, look, row_of
from harness.analysis.table import Column, Table
from harness.errors import UserError
from harness.records.bootstrap import Estimate
from harness.records.metrics import BASELINE

PAIR = (SUBJECT, BASELINE)


class Shown(NamedTuple):
    """A method on the atlas, and the baseline of the same width, where it has one."""

    method: Method
    simulated: Simulated
    baseline: Simulated | None

    @property
    def ratio(self) -> Estimate | None:
        """Tokens/NFE over the baseline's; None where there are not two prompts."""
        if self.baseline is None or len(self.simulated.nfe) < 2:
            return None
        return tokens_per_nfe_ratio(self.simulated, self.baseline).estimate()

    def throughput(self, cost: CostModel) -> float:
        """Predicted tokens/s."""
        return cost.throughput(self.method.schedule, self.simulated)

    def throughput_ratio(self, cost: CostModel) -> float | None:
        """The same over the baseline's."""
        return self.throughput(cost) / cost.throughput(BASELINE, self.baseline) if self.baseline else None


class Prediction(NamedTuple):
    """Packed / Linear throughput at a width.

    Attributes:
      responses: of both, measured.
      fitted: predicted by costs that were fitted to all widths.
      from_others: by costs fitted to all other widths; None where these are too few.
    """

    width: int
    responses: int
    measured: float
    fitted: float
    from_others: float | None

    def error(self, predicted: float | None) -> float | None:
        """How far off a prediction is, in percent."""
        return None if predicted is None else 100 * (predicted / self.measured - 1)


class Best(NamedTuple):
    """A schedule's highest predicted tokens/s, and the width that has it."""

    throughput: float
    width: int


class DevicePrediction(NamedTuple):
    """A model's size on a device; each schedule at its best width."""

    device: Device
    size: str
    cost: CostModel
    best: Mapping[str, Best]


# Of a `Shown`.
SIMULATED = (
    Column("Schedule", "", lambda one: look(one.method.schedule).label),
    Column("W", "", lambda one: one.method.width or None),
    Column("Tokens/NFE", "", lambda one: one.simulated.tokens_per_nfe, decimals=3),
    Column("NFE/response", "", lambda one: one.simulated.nfe.mean(), decimals=2),
    Column("Rows/NFE", "", lambda one: one.simulated.rows.sum() / one.simulated.nfe.sum(), decimals=1),
    Column("Tokens/NFE / Linear-SS", "", lambda one: one.ratio, decimals=3, is_interval=True),
)
# Of a `Prediction`.
PREDICTED = (
    Column("W", "", lambda one: one.width),
    Column("Responses", "", lambda one: one.responses),
    Column("Measured", "", lambda one: one.measured, decimals=3),
    Column("Predicted", "", lambda one: one.fitted, decimals=3),
    Column("Error", "%", lambda one: one.error(one.fitted), decimals=1),
    Column("Predicted from other widths", "", lambda one: one.from_others, decimals=3),
    Column("Error", "%", lambda one: one.error(one.from_others), decimals=1),
)


def _tokens_a_second(schedule: str) -> Column:
    return Column(f"{look(schedule).label}, tokens/s (prediction)", "", lambda one: one.best[schedule].throughput)


def _best_width(schedule: str) -> Column:
    return Column(f"{look(schedule).label} W", "", lambda one: one.best[schedule].width)


# Of a `DevicePrediction`; what each schedule reaches stands between these.
DEVICE = (
    Column("Device", "", lambda one: f"{one.device.name} (prediction)"),
    Column("Model", "", lambda one: one.size),
    Column("tau / delta", "rows", lambda one: one.cost.rows_a_call),
)
PACKED_OVER_LINEAR = Column(
    "Packed / Linear",
    "prediction",
    lambda one: one.best[SUBJECT].throughput / one.best[BASELINE].throughput,
    decimals=3,
)


def simulation_table(simulation: Simulation, more: Sequence[Method], cost: CostModel | None) -> Table:
    """Tokens/NFE and rows of every method, with ratios to Linear of the same width."""
    baselines = {width: simulation.linear(width) for width in simulation.atlas.widths}
    notes = [f"Simulated, temperature 0; rows include the prompt's. Brackets: {INTERVALS}.", simulation.atlas.label]
    if cost:
        notes.insert(1, f"Predicted with {cost_label(cost)}.")
    return Table(
        name="simulation",
        title="Every schedule, simulated from the atlas",
        columns=[*SIMULATED, *(_predicted_columns(cost) if cost else ())],
        items=[Shown(one, one.simulate(simulation), baselines.get(one.width)) for one in methods(simulation, more)],
        notes=notes,
    )


def _predicted_columns(cost: CostModel) -> Sequence[Column]:
    """Of a `Shown`: what costs say about its throughput."""
    return (
        Column("Tokens/s, predicted", "", lambda one: one.throughput(cost), decimals=1),
        Column("Tokens/s / Linear-SS, predicted", "", lambda one: one.throughput_ratio(cost), decimals=3),
    )


def cost_label(cost: CostModel) -> str:
    """The cost model in words."""
    hosts = ", ".join(f"{look(name).label} {1000 * seconds:.2f}" for name, seconds in cost.host_s.items())
    host = f", outside the model {hosts} ms an iteration" if hosts else ""
    return f"tau = {1000 * cost.tau_s:.4g} ms a call, delta = {1000 * cost.delta_s:.4g} ms a row{host}"


def prediction_table(simulation: Simulation, records: pd.DataFrame) -> Table:
    """Predicted against measured Packed / Linear throughput, by models fitted to all widths and to all other widths.

    Args:
      records: responses of real runs, as in `harness.records.frame`: Linear and Packed at several widths; other
        schedules have no part in it.

    Raises:
      UserError: no width of the atlas was measured with both schedules.
    """
    records = records[records["schedule"].isin(PAIR)]
    measured = _throughputs(records)
    widths = [width for width in simulation.atlas.widths if all((schedule, width) in measured for schedule in PAIR)]
    if not widths:
        raise UserError(
            "costs: no width of the atlas has records of both Linear-SS and Packed-SS. Measure some: "
            "python -m harness run experiment=costs."
        )
    fitted = fit(records)
    predictions = []
    for width in widths:
        packed, linear = (method(schedule, width).simulate(simulation) for schedule in PAIR)
        others = records[records["width"] != width]
        can_fit = len(others.groupby(["schedule", "width"])) > 1
        by_costs = [
            cost and cost.throughput(SUBJECT, packed) / cost.throughput(BASELINE, linear)
            for cost in (fitted, fit(others) if can_fit else None)
        ]
        truth = measured[SUBJECT, width] / measured[BASELINE, width]
        predictions.append(Prediction(width, len(records) - len(others), truth, *by_costs))
    return Table(
        name="prediction",
        title="Predicted and measured throughput ratio",
        columns=PREDICTED,
        items=predictions,
        notes=[f"Packed / Linear throughput. All records give {cost_label(fitted)}.", simulation.atlas.label],
    )


def device_table(simulation: Simulation) -> Table:
    """Predicted throughput on devices and at sizes that nobody here has, at each schedule's best recorded width."""
    simulated = [(one, one.simulate(simulation)) for one in methods(simulation)]
    schedules = list(dict.fromkeys(one.schedule for one, _ in simulated))
    drafting = [name for name in schedules if row_of(name).drafts]
    return Table(
        name="devices",
        title="Predicted throughput by device and size",
        columns=[*DEVICE, *map(_tokens_a_second, schedules), *map(_best_width, drafting), PACKED_OVER_LINEAR],
        items=[
            DevicePrediction(device, size, cost, _best(cost, simulated))
            for device in DEVICES
            for size, cost in ((size, predicted(device, parameters)) for size, parameters in SIZES.items())
        ],
        notes=[
            "PREDICTION, nothing here was measured: tau and delta at the devices' published peaks, nothing launched "
            "and nothing done on the host, for a model whose drafts are accepted as the atlas' are. Real calls take "
            "longer.",
            simulation.atlas.label,
        ],
    )


def _best(cost: CostModel, simulated: Sequence[tuple[Method, Simulated]]) -> Mapping[str, Best]:
    best: dict[str, Best] = {}
    for shown, one in simulated:
        reached = Best(cost.throughput(shown.schedule, one), shown.width)
        best[shown.schedule] = max(reached, best.get(shown.schedule, reached))
    return best


def _throughputs(records: pd.DataFrame) -> Mapping[tuple[str, int], float]:
    totals = records.groupby(["schedule", "width"])[["tokens", "wall_s"]].sum()
    return (totals["tokens"] / totals["wall_s"])[totals["wall_s"] > 0].to_dict()
