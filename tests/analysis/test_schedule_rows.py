"""The rows of the schedules: true to their classes and to what is recorded, and all that a new schedule needs."""

import csv
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from hydra.utils import instantiate
from matplotlib.figure import Figure
from omegaconf import OmegaConf

import harness
from harness.analysis import canvas
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.figures.calls import calls_figure
from harness.analysis.figures.ratios import ratio_figure
from harness.analysis.measures.layout_rows import cost, start
from harness.analysis.report.html import report
from harness.analysis.study.study import Study, read_study
from harness.analysis.style import SCHEDULES, CallShape, Forms, Look, ScheduleRow, Schematic, in_order, row_of
from harness.analysis.table import Table
from harness.analysis.tables.cost import table2, table2_measured
from harness.cli.main import main
from harness.config.compose import CONFIG_DIR
from harness.models.language_model import LanguageModel
from harness.records.atlas import MANIFEST, PROMPTS, read_atlas
from harness.records.record import read_records
from harness.tasks.toy import ToySource
from schedules import Greedy, OneCall, Stop
from tests.builders.atlases import threshold_prompt
from tests.builders.causal import checkpoint

WIDTHS = range(1, 17)
FAMILIES = ("nemotron", "setdlm", "causal")
COUNTED = [(family, name) for family in FAMILIES for name, row in SCHEDULES.items() if row.has_formula]
ONE_CALL = [name for name, row in SCHEDULES.items() if row.branches]


class EveryOther(OneCall):
    """Branches for every second outcome of verification."""

    def branches(self, outcomes):
        return range(0, outcomes + 1, 2)


# At odd widths, where a draft that is shorter by one has as many branches.
EVERY_OTHER = ScheduleRow(
    look=Look("Every-Other-SS", "#117733", "||||", "*", "-"),
    iteration=[CallShape(verifies=True, branches=lambda config, outcomes: range(0, outcomes + 1, 2))],
    forms=Forms("B(B + 2) / 2", "p + 2u + u(u + 1) / 2"),
    schematic=Schematic(
        calls=(("verify the draft", "draft as if 0 stand", "draft as if 2 stand", "draft as if W - 1 stand"),),
        height=1.95,
        predictions="(W + 1)² / 2",
        width=7,
    ),
)
CONFIG = f"""# @package schedules.every_other
_target_: {__name__}.EveryOther
width: 7
"""


def made(name: str, width: int) -> tuple[object, dict]:
    """A schedule as its yaml sets it up, at a width, with its config."""
    config = OmegaConf.to_container(OmegaConf.load(CONFIG_DIR / "schedule" / f"{name}.yaml"))
    if "width" in config:
        config["width"] = width
    if "branches" in config:
        config["branches"] = [branch for branch in config["branches"] if branch <= width]
    return instantiate(config), config


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_row_has_the_branches_of_its_class(name):
    for width in WIDTHS:
        schedule, config = made(name, width)
        assert isinstance(schedule, OneCall) == (name in ONE_CALL)
        if name in ONE_CALL:
            for outcomes in range(width + 1):
                assert list(row_of(name).branches(config, outcomes)) == list(schedule.branches(outcomes))


def value(form: str, **counts: int) -> int:
    """A form of table 2 in numbers."""
    written = form.replace("²", " ** 2").replace("B(", "B * (").replace("u(", "u * (")
    for digit in "23":
        written = written.replace(f"{digit}B", f"{digit} * B").replace(f"{digit}u", f"{digit} * u")
    return eval(written, counts)


def test_forms_say_what_is_counted(monkeypatch):
    monkeypatch.setitem(SCHEDULES, "every_other", EVERY_OTHER)
    with_forms = {name: row for name, row in SCHEDULES.items() if row.forms}
    assert list(with_forms) == ["linear", "quadratic", "packed", "every_other"]
    for name, row in with_forms.items():
        for width in WIDTHS[::2]:
            assert value(row.forms.nemotron, B=width + 1) == cost("nemotron", name, width, {}).rows
            assert value(row.forms.setdlm, u=width, p=1) == cost("setdlm", name, width, {}).rows


class Tiny(NamedTuple):
    """A small model, its family, and the width that schedules have here."""

    model: LanguageModel
    family: str
    width: int


@pytest.fixture(scope="module")
def tinies(tmp_path_factory) -> dict[str, Tiny]:
    base = checkpoint(tmp_path_factory.mktemp("causal"), "Llama")
    return {
        "nemotron": Tiny(harness.load("tiny_nemotron", device="cpu"), "nemotron", 7),
        "setdlm": Tiny(harness.load("tiny_setdlm", device="cpu"), "setdlm", 8),
        "causal": Tiny(harness.load("causal", path=base, weights="random", device="cpu"), "causal", 7),
    }


def iterations(tiny: Tiny, schedule) -> list[tuple[int, int]]:
    """Calls and rows of the iterations of two greedy responses, the first of each left out."""
    found = []
    for item in ToySource("toy_math", 2).read().items:
        prompt = tiny.model.encode(item.fields["prompt"])
        response = schedule.decode(tiny.model.model, prompt, Greedy(), Stop(64, tiny.model.eos_ids))
        found += [(one.calls, one.rows) for one in response.trace[1:]]
    return found


@pytest.mark.parametrize(("family", "name"), COUNTED)
def test_calls_and_rows_by_formula_are_those_of_decoding(tinies, family, name):
    tiny = tinies[family]
    schedule, config = made(name, tiny.width)
    expected = cost(family, name, tiny.width, config)
    found = iterations(tiny, schedule)
    assert {calls for calls, _ in found} == {row_of(name).calls}
    assert max(rows for _, rows in found) == expected.rows
    # SetDLM's windows shrink, and short drafts have fewer of a fixed set of branches.
    if family != "setdlm" and not row_of(name).example:
        assert {rows for _, rows in found} == {expected.rows}


def test_rows_of_the_native_decoder_have_no_formula(tinies):
    schedule, config = made("native", 8)
    assert {calls for calls, _ in iterations(tinies["setdlm"], schedule)} == {row_of("native").calls}
    assert cost("setdlm", "native", 8, config) is None


def test_of_a_schedule_without_a_row_nothing_is_known_but_its_name():
    assert row_of("mine").look.label == "mine"
    assert (row_of("mine").calls, row_of("mine").branches) == (None, None)
    assert cost("nemotron", "mine", 7, {}) is None
    assert (start("nemotron", "mine", 7, True).calls, start("nemotron", "mine", 7, True).rows) == (1, 0)


@pytest.fixture(scope="module")
def new():
    """The row of a new schedule, in its place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCHEDULES, "every_other", EVERY_OTHER)
        yield EVERY_OTHER


@pytest.fixture(scope="module")
def run(new, tmp_path_factory) -> Path:
    """A real run of it beside Linear and Packed."""
    folder = tmp_path_factory.mktemp("new")
    (folder / "schedule").mkdir()
    (folder / "schedule" / "every_other.yaml").write_text(CONFIG)
    own = [f"hydra.searchpath=[file://{folder}]", "schedule=[linear,packed,every_other]"]
    fast = ["limit=2", "warmups=0", "drift_prompts=0", "model.device=cpu"]
    assert main(["run", *own, *fast, f"run_dir={folder / 'run'}"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def study(run) -> Study:
    return read_study([run])


def named(table: Table) -> dict[str, str]:
    """The new schedule's row of a table, by its headings, as the CSV file has them."""
    (found,) = [row for row in csv.DictReader(table.csv().splitlines()) if EVERY_OTHER.look.label in row.values()]
    return found


def texts(figure: Figure) -> set[str]:
    """Texts of the drawing and of its legend."""
    legends = [text for legend in figure.legends for text in legend.get_texts()]
    return {text.get_text() for text in [*legends, *(text for axes in figure.axes for text in axes.texts)]}


def test_a_new_schedule_runs_and_loses_nothing(run):
    outputs: dict[str, set[tuple[int, ...]]] = {}
    for record in read_records(run / "records.jsonl"):
        outputs.setdefault(record.prompt_id, set()).add(tuple(record.token_ids))
        assert record.schedule in ("linear", "packed", "every_other")
    assert [len(different) for different in outputs.values()] == [1, 1]


def test_calls_and_rows_of_a_new_schedule_stand_beside_its_formula(study):
    found = named(table2_measured(study))
    assert (found["NFE/iteration"], found["recorded"]) == ("1", "1")
    assert (found["Rows/iteration"], found["rows recorded"]) == ("40", "40")


def test_a_new_schedule_is_in_table_2_and_the_figures(study):
    assert named(table2(study))["Nemotron rows"] == "B(B + 2) / 2"
    figure1, figure3 = canvas.styled(lambda: (calls_figure(study), ratio_figure(study, 0.0)))
    assert {"Every-Other-SS", "(W + 1)² / 2", "B(B + 2) / 2 = 40\nW = 7"} <= texts(figure1)
    assert "Every-Other-SS" in texts(figure3)
    assert in_order(["mine", "every_other", "packed"]) == ["packed", "every_other", "mine"]


def test_a_new_schedule_is_in_the_report(study):
    assert "Every-Other-SS (W = 7)" in report(study)


def test_a_new_schedule_is_simulated_on_every_atlas_at_every_width(new, tmp_path):
    (tmp_path / PROMPTS).mkdir()
    for number in range(4):
        lags = [(number + 3 * position) % 11 for position in range(40)]
        threshold_prompt(lags, 7).save(tmp_path / PROMPTS / f"{number}.npz")
    config = {"model": {"name": "tiny_nemotron"}, "task": {"name": "toy_math"}}
    (tmp_path / MANIFEST).write_text(json.dumps({"config": config, "plan": {"prompts": ["p"] * 4}}))
    assert main(["explore", str(tmp_path), f"out={tmp_path / 'out'}"]) == 0
    simulated = Simulation(read_atlas(tmp_path)).one_call(7, EveryOther(7).branches)
    rows = list(csv.DictReader((tmp_path / "out" / "simulation.csv").read_text().splitlines()))
    assert [row["Schedule"] for row in rows] == [
        "Autoregressive",
        "Linear-SS",
        "Quadratic-SS",
        "Packed-SS",
        "Every-Other-SS",
    ]
    assert (rows[-1]["W"], float(rows[-1]["Tokens/NFE"])) == ("7", pytest.approx(simulated.tokens_per_nfe))
    assert "Every-Other-SS W" in (tmp_path / "out" / "devices.csv").read_text().splitlines()[0]
