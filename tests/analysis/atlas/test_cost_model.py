"""Costs are found again from responses that follow them, and predict the rest."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from harness.analysis.atlas.cost_model import DEVICES, CostModel, fit, predicted
from harness.analysis.atlas.methods import method
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.atlas.tables import device_table, prediction_table, simulation_table
from harness.errors import UserError
from harness.records.frame import as_frame
from tests.builders.atlases import made_atlas, threshold_prompt
from tests.builders.synthetic_runs import record

TRUTH = CostModel(0.02, 0.001, {"linear": 0.004, "packed": 0.006})
WIDTHS = (2, 4, 6)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    """Three prompts at three widths."""
    rng = np.random.default_rng(0)
    prompts = []
    for number in range(3):
        lags = rng.integers(0, 9, 40).tolist()
        by_width = [threshold_prompt(lags, width) for width in WIDTHS]
        proposed = {key: one for prompt in by_width for key, one in prompt.proposed.items()}
        prompts.append(replace(by_width[0], prompt_id=f"p{number}", proposed=proposed))
    return Simulation(made_atlas(*prompts))


def records(simulation: Simulation, cost: CostModel = TRUTH, widths=WIDTHS) -> pd.DataFrame:
    """Responses that take exactly what `cost` says."""
    found = []
    for width in widths:
        for schedule in ("linear", "packed"):
            one = method(schedule, width).simulate(simulation)
            for prompt, accepted in enumerate(one.accepted):
                nfe, rows, tokens = int(one.nfe[prompt]), int(one.rows[prompt]), int(one.tokens[prompt])
                model_s = cost.tau_s * nfe + cost.delta_s * rows
                wall_s = model_s + cost.host_s[schedule] * len(accepted)
                counts = {"nfe": nfe, "rows": rows, "tokens": tokens, "accepted": accepted}
                times = {"model_s": model_s, "wall_s": wall_s}
                found.append(record(schedule=schedule, width=width, prompt_id=f"p{prompt}", **counts, **times))
    return as_frame(found)


def test_the_costs_that_made_the_times_are_found_again(simulation):
    found = fit(records(simulation))
    assert found.tau_s == pytest.approx(TRUTH.tau_s)
    assert found.delta_s == pytest.approx(TRUTH.delta_s)
    assert found.host_s == pytest.approx(TRUTH.host_s)


@pytest.mark.parametrize("cost", [replace(TRUTH, tau_s=0.0), replace(TRUTH, delta_s=0.0)])
def test_costs_are_never_negative(simulation, cost):
    rng = np.random.default_rng(1)
    exact = records(simulation, cost)
    found = fit(exact.assign(model_s=exact["model_s"] * rng.uniform(0.8, 1.2, len(exact))))
    assert found.tau_s >= 0
    assert found.delta_s >= 0


def test_one_schedule_at_one_width_tells_no_costs(simulation):
    with pytest.raises(UserError, match="need at least 2 of these"):
        fit(records(simulation, widths=[2]).query("schedule == 'linear'"))


def test_a_width_is_predicted_from_all_and_from_the_others(simulation):
    table = prediction_table(simulation, records(simulation))
    assert table.frame["W"].tolist() == list(WIDTHS)
    for _, responses, measured, predicted_ratio, error, from_others, other_error in table.frame.itertuples(index=False):
        assert responses == 6
        assert (predicted_ratio, from_others) == pytest.approx((measured, measured))
        assert (error, other_error) == pytest.approx((0, 0), abs=1e-6)


def test_one_width_alone_cannot_be_predicted_from_others(simulation):
    ((*_, from_others, error),) = prediction_table(simulation, records(simulation, widths=[4])).shown_rows()
    assert (from_others.value, error.value) == (None, None)


def test_widths_that_one_schedule_lacks_are_left_out(simulation):
    with pytest.raises(UserError, match="no width of the atlas has records of both"):
        prediction_table(simulation, records(simulation).query("schedule == 'packed'"))


def test_a_schedule_without_a_measured_host_gets_the_mean(simulation):
    one = method("quadratic", 2).simulate(simulation)
    bare = replace(TRUTH, host_s={}).seconds("quadratic", one)
    assert TRUTH.seconds("quadratic", one) == pytest.approx(bare + 0.005 * one.iterations)


def test_at_its_peaks_a_device_favours_schedules_alike_at_every_size():
    for device in DEVICES:
        ratios = [predicted(device, parameters).rows_a_call for parameters in (3e9, 8e9, 14e9)]
        assert ratios == pytest.approx([device.peak / device.bandwidth] * 3)


def test_predictions_for_devices_say_that_they_are(simulation):
    table = device_table(simulation)
    assert all("prediction" in device for device in table.frame["Device"])
    assert table.notes[0].startswith("PREDICTION")


def test_throughput_stands_in_the_table_where_costs_are_known(simulation):
    without, given = (simulation_table(simulation, [], cost) for cost in (None, TRUTH))
    assert len(given.columns) == len(without.columns) + 2
    assert "tau = 20 ms a call, delta = 1 ms a row" in given.notes[1]
