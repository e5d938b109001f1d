"""What an atlas says about the schedules: calls, rows and tokens at every width; with costs, predicted throughput."""

from collections.abc import Mapping, Sequence

from harness.analysis.atlas.cost_model import DEVICES, SIZES, CostModel, fit, predicted
from harness.analysis.atlas.methods import AUTOREGRESSIVE, Method, methods, paper_method
from harness.analysis.atlas.simulation import Simulation, tokens_per_nfe_ratio
from harness.analysis.study.grid import INTERVALS
from harness.analysis.style import look
from harness.analysis.table import Column, Number, Ranged, Table
from harness.errors import UserError
from harness.records.metrics import BASELINE
from harness.records.record import Record


def simulation_table(simulation: Simulation, more: Sequence[Method], cost: CostModel | None) -> Table:
    """Tokens/NFE and rows of every method, with ratios to Linear of the same width."""
    columns = [Column(name) for name in ("Schedule", "W", "Tokens/NFE", "NFE/response", "Rows/NFE")]
    columns.append(Column("Tokens/NFE / Linear-SS", is_interval=True))
    if cost:
        columns += [Column("Tokens/s, predicted"), Column("Tokens/s / Linear-SS, predicted")]
    baselines = {width: simulation.linear(width) for width in simulation.atlas.widths}
    rows = []
    for method in methods(simulation, more):
        one, baseline = method.simulate(simulation), baselines.get(method.width)
        ratio = (
            tokens_per_nfe_ratio(one, baseline).estimate() if baseline and len(simulation.atlas.prompts) > 1 else None
        )
        row = [
            look(method.schedule).label,
            Number(method.width or None),
            Number(one.tokens_per_nfe, 3),
            Number(one.nfe.mean(), 2),
            Number(one.rows.sum() / one.nfe.sum(), 1),
            Ranged(ratio, 3),
        ]
        if cost:
            throughput = cost.throughput(method.schedule, one)
            by_linear = throughput / cost.throughput(BASELINE, baseline) if baseline else None
            row += [Number(throughput, 1), Number(by_linear, 3)]
        rows.append(row)
    notes = [f"Simulated, temperature 0; rows include the prompt's. Brackets: {INTERVALS}.", simulation.atlas.label]
    if cost:
        notes.insert(1, f"Predicted with {cost_label(cost)}.")
    return Table("simulation", "Every schedule, simulated from the atlas", columns, rows, notes)


def cost_label(cost: CostModel) -> str:
    """The cost model in words."""
    hosts = ", ".join(f"{look(name).label} {1000 * seconds:.2f}" for name, seconds in cost.host_s.items())
    host = f", outside the model {hosts} ms an iteration" if hosts else ""
    return f"tau = {1000 * cost.tau_s:.4g} ms a call, delta = {1000 * cost.delta_s:.4g} ms a row{host}"


def prediction_table(simulation: Simulation, records: Sequence[Record]) -> Table:
    """Predicted against measured Packed / Linear throughput, by models fitted to all widths and to all other widths.

    Args:
      records: of real runs, Linear and Packed at several widths; other schedules have no part in it.

    Raises:
      UserError: no width of the atlas was measured with both schedules.
    """
    pair = ("packed", BASELINE)
    records = [record for record in records if record.schedule in pair]
    measured = _throughputs(records)
    names = ("W", "Responses", "Measured", "Predicted", "Error (%)", "Predicted from other widths", "Error (%)")
    rows = []
    for width in simulation.atlas.widths:
        if not all((schedule, width) in measured for schedule in pair):
            continue
        packed, linear = (paper_method(schedule, width).simulate(simulation) for schedule in pair)
        truth = measured["packed", width] / measured[BASELINE, width]
        row = [Number(width), Number(sum(record.width == width for record in records)), Number(truth, 3)]
        for known in (records, [record for record in records if record.width != width]):
            if len({(record.schedule, record.width) for record in known}) < 2:
                row += [Number(None), Number(None)]
                continue
            cost = fit(known)
            prediction = cost.throughput("packed", packed) / cost.throughput(BASELINE, linear)
            row += [Number(prediction, 3), Number(100 * (prediction / truth - 1), 1)]
        rows.append(row)
    if not rows:
        raise UserError(
            "costs: no width of the atlas has records of both Linear-SS and Packed-SS. Measure some: "
            "python -m harness run experiment=costs."
        )
    notes = [f"Packed / Linear throughput. All records give {cost_label(fit(records))}.", simulation.atlas.label]
    return Table("prediction", "Predicted and measured throughput ratio", [Column(name) for name in names], rows, notes)


def device_table(simulation: Simulation) -> Table:
    """Predicted throughput on devices and at sizes that nobody here has, at each schedule's best recorded width."""
    columns = [Column(name) for name in ("Device", "Model", "tau / delta (rows)")]
    schedules = (AUTOREGRESSIVE, "linear", "quadratic", "packed")
    columns += [Column(f"{look(name).label}, tokens/s (prediction)") for name in schedules]
    columns += [Column(f"{look(name).label} W") for name in schedules[1:]]
    columns.append(Column("Packed / Linear (prediction)"))
    simulated = [(method, method.simulate(simulation)) for method in methods(simulation)]
    rows = []
    for device in DEVICES:
        for size, parameters in SIZES.items():
            cost = predicted(device, parameters)
            best = {
                name: max(
                    (cost.throughput(name, one), method.width) for method, one in simulated if method.schedule == name
                )
                for name in schedules
            }
            rows.append(
                [
                    f"{device.name} (prediction)",
                    size,
                    Number(cost.rows_a_call, 0),
                    *(Number(best[name][0], 0) for name in schedules),
                    *(Number(best[name][1]) for name in schedules[1:]),
                    Number(best["packed"][0] / best["linear"][0], 3),
                ]
            )
    notes = [
        "PREDICTION, nothing here was measured: tau and delta at the devices' published peaks, nothing launched and "
        "nothing done on the host, for a model whose drafts are accepted as the atlas' are. Real calls take longer.",
        simulation.atlas.label,
    ]
    return Table("devices", "Predicted throughput by device and size", columns, rows, notes)


def _throughputs(records: Sequence[Record]) -> Mapping[tuple[str, int], float]:
    totals: dict[tuple[str, int], list[float]] = {}
    for record in records:
        one = totals.setdefault((record.schedule, record.width), [0.0, 0.0])
        one[0] += record.tokens
        one[1] += record.wall_s
    return {key: tokens / wall_s for key, (tokens, wall_s) in totals.items() if wall_s}
