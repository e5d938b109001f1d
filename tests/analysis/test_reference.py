"""results/reference: what a fresh clone shows, and that its tables are those of its records."""

from itertools import product
from pathlib import Path

import pytest

from harness.analysis.study.study import read_study
from harness.analysis.tables import absolute as measurement_tables
from harness.analysis.tables import paired as paired_tables
from harness.records.trace import read_traces

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
TOYS = {"toy_code", "toy_math", "toy_writing"}


@pytest.fixture(scope="module")
def study():
    return read_study([REFERENCE])


def test_every_toy_task_at_both_temperatures_and_the_adapter_are_there(study):
    cells = [cell for cell in study.main if cell.key.model == "tiny_nemotron"]
    assert {(one.key.task, one.key.temperature) for one in cells} == set(product(TOYS, (0.0, 1.0)))
    for cell in cells:
        assert {method.schedule for method in cell.methods} == {"autoregressive", "linear", "quadratic", "packed"}
        assert cell.left_out == 0
    assert {pair.adapted.key.task for pair in study.adapters if pair.base is not None} == TOYS


def test_the_set_causal_model_is_there_in_both_orders_and_at_both_temperatures(study):
    cells = {
        (one.key.task, one.key.order, one.key.temperature): {method.schedule for method in one.methods}
        for one in study.main
        if one.key.model == "tiny_setdlm"
    }
    speculative = {"linear", "quadratic", "packed"}
    assert cells == {
        **{(task, "ltr", 0.0): {"autoregressive", "native", *speculative} for task in TOYS},
        **{(task, "ltr", 1.0): {"autoregressive", *speculative} for task in TOYS},
        **{(task, "confidence", 0.0): speculative for task in TOYS},
    }


def test_every_run_was_replayed(study):
    assert all(read_traces(run.path) for run in study.runs)


def test_it_was_recorded_by_code_without_changes(study):
    assert not [facts.code for run in study.runs for facts in run.facts if facts.code.endswith("+changed")]


def test_it_stays_small():
    assert sum(file.stat().st_size for file in REFERENCE.rglob("*") if file.is_file()) < 8 << 20


@pytest.mark.parametrize(
    "make", [measurement_tables.table4, measurement_tables.table6, paired_tables.table11, paired_tables.table12]
)
def test_its_tables_are_those_of_its_records(study, make):
    table = make(study)
    assert (REFERENCE / "figures" / f"{table.name}.csv").read_text() == table.csv()


def test_the_page_that_shows_it_names_a_figure_that_is_there():
    assert "(results/reference/figures/figure3.png)" in (REFERENCE.parents[1] / "README.md").read_text()
    assert (REFERENCE / "figures" / "figure3.png").is_file()
