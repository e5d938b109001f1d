"""Experiments: together they name every row of tables 3 to 13 and every bar of figures 3 to 5."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import product

import pytest

from harness.analysis.paper.published import read_published
from harness.cli.main import main
from harness.cli.verbs.run import run_and_show
from harness.config.cells import cells_of
from harness.config.compose import compose, names
from harness.errors import UserError

NEMOTRON = ("nemotron3b", "nemotron8b")
TASKS = ("mbpp", "humaneval", "gsm8k", "math500", "writingbench")
THREE = {"linear": 31, "quadratic": 7, "packed": 31}
WINDOWS = {"setdlm_smax16": 8, "setdlm_smax32": 16}
CAPS = {"mbpp": 512, "humaneval": 512, "gsm8k": 1024, "math500": 1024, "writingbench": 512}
REPETITIONS = {"humaneval": 20, "mbpp": 7}

# A row: model, adapter, task, schedule, W, temperature, order, cap, repetitions, prompts (None for all).
Row = tuple


def nemotron(temperature: int, tasks: Iterable[str] = TASKS) -> set[Row]:
    return {
        (model, None, task, schedule, width, temperature, "ltr", CAPS[task],
         REPETITIONS.get(task, 1) if temperature else 1, None)
        for model, task, (schedule, width) in product(NEMOTRON, tasks, THREE.items())
    }  # fmt: skip


def setdlm(order: str, schedules: Iterable[str]) -> set[Row]:
    return {
        (model, None, "gsm8k", schedule, window, 0, order, 1024, 1, None)
        for (model, window), schedule in product(WINDOWS.items(), schedules)
    }


def adapter() -> set[Row]:
    return {
        (model, name, "gsm8k", schedule, width, 0, "ltr", 512, 1, None)
        for (model, name), (schedule, width) in product(
            {"nemotron8b": None, "nemotron8b_lora": "linear_spec_lora"}.items(), THREE.items()
        )
    }


def probe() -> set[Row]:
    widths = [("linear", 8), ("linear", 16), ("linear", 32), ("linear", 64), ("quadratic", 4), ("quadratic", 8),
              ("quadratic", 16), ("packed", 8), ("packed", 16), ("packed", 32), ("packed", 64)]  # fmt: skip
    return {("nemotron8b", None, "gsm8k", schedule, size - 1, 0, "ltr", 512, 1, 10) for schedule, size in widths}


LTR = setdlm("ltr", ("linear", "quadratic", "packed", "native"))
ORDERED = setdlm("confidence", THREE)
ROWS = {
    "table3": probe(),
    "table4": adapter(),
    "table5": adapter(),
    "table6": nemotron(0),
    "table7": nemotron(1),
    "table8": LTR,
    "table9": LTR | ORDERED,
    "table10": LTR | ORDERED,
    "table11": nemotron(0) | nemotron(1),
    "table12": nemotron(0),
    "table13": nemotron(1),
    "figure3": nemotron(0) | LTR,
    "figure4": nemotron(1),
    "figure5": nemotron(0, ("gsm8k", "math500")),
}


@cache
def rows_of_cell(command: tuple[str, ...]) -> frozenset[Row]:
    config = compose(command)
    repetitions = config.task.repetitions if config.temperature else 1
    return frozenset(
        (config.model.name, config.model.get("adapter"), config.task.name, name, schedule.width, config.temperature,
         {"LeftToRight": "ltr", "Confidence": "confidence"}[config.order._target_.split(".")[-1]],
         config.task.max_new_tokens, repetitions, config.limit)
        for name, schedule in config.schedules.items()
    )  # fmt: skip


@cache
def rows_of(experiment: str) -> set[Row]:
    return set().union(*(rows_of_cell(tuple(cell.command)) for cell in cells_of([f"experiment={experiment}"])))


@pytest.mark.parametrize("experiment", ROWS)
def test_an_experiment_names_every_row_and_no_other(experiment):
    assert rows_of(experiment) == ROWS[experiment]


def test_the_paper_is_all_of_them():
    assert rows_of("paper") == set().union(*ROWS.values())
    assert {name for name in names("experiment") if re.fullmatch(r"(table|figure)\d+", name)} == set(ROWS)


def shown_in(place: str) -> set[str]:
    """Names of the tables and figures in words such as "F.4, figure 3, tables 8 and 9"."""
    found = re.findall(r"(table|figure)s? (\d+)(?: and (\d+))?", place)
    return {kind + number for kind, *numbers in found for number in numbers if number}


def test_every_published_statement_about_a_table_or_figure_has_its_cells():
    checked = 0
    for one in read_published():
        if one.quantity == "stated" or not one.models or not one.tasks:
            continue
        for experiment in shown_in(one.place) & ROWS.keys():
            found = {(row[0].removesuffix("_lora"), bool(row[1]), *row[2:4], *row[5:7]) for row in rows_of(experiment)}
            methods = [method for method in (one.method, *one.baselines) if method]
            for model, task, method, order in product(one.models, one.tasks, methods, one.orders):
                # The native decoder has no order (E.6).
                order = "ltr" if method == "native" else order
                assert (model, one.adapter, task, method, one.temperature, order) in found, one.id
                checked += 1
    assert checked > 100


def test_tables_that_show_the_same_cells_share_their_runs():
    folders = {name: {cell.run_dir for cell in cells_of([f"experiment={name}"])} for name in ROWS}
    assert folders["table6"] == folders["table12"] <= folders["figure3"] & folders["table11"]
    assert folders["figure5"] < folders["table6"]
    everything = cells_of(["experiment=paper"])
    assert len({cell.run_dir for cell in everything}) == len(everything)


def test_what_is_given_holds_in_every_cell_in_place_of_its_own():
    cells = cells_of(["experiment=table6", "model=tiny_nemotron", "task=toy_math", "limit=2"])
    assert [cell.overrides for cell in cells] == [
        ("schedule=[linear,quadratic,packed]", "model=tiny_nemotron", "task=toy_math", "limit=2")
    ]


def test_a_dry_run_lists_cells_with_prompts_responses_and_hours(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "experiment=table4", "--dry-run"]) == 0
    listed = capsys.readouterr().out
    assert "2: python -m harness run model=nemotron8b_lora task=gsm8k task.max_new_tokens=512" in listed
    # 1,319 prompts, three schedules; the mean of the two stated times is 1.7235 s.
    assert re.search(r"2 +1,319 +3,957 +0 +1\.9  stated \(F\.2\)", listed)
    assert main(["run", "experiment=table8", "--dry-run"]) == 0
    assert "PARTIAL: 2 cells without an estimate" in capsys.readouterr().out


def test_an_experiment_runs_its_cells_and_goes_on_where_it_stopped(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "experiment=figure5", "model=tiny_nemotron", "task=toy_math", "limit=1", "warmups=0",
                 "drift_prompts=0", "task.max_new_tokens=8", "model.device=cpu"]  # fmt: skip
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert "going on: 3 of 3 responses are there" in capsys.readouterr().err
    assert len(list((tmp_path / "results/runs/cells").glob("*/records.jsonl"))) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["experiment=table6", "task=toy_math,toy_code"], "task=toy_math,toy_code: several values .* Add -m"),
        (["experiment=table6", "cell=0"], "cell=0: need a number from 1 to 10"),
        (["experiment=table6", "cell=x"], "cell=x: need a number"),
        (["schedule=packed", "cell=1"], "cell=1: only an experiment has cells"),
        (["experiment=table6", "seed=[1"], r"seed=\[1: cannot be read"),
    ],
)
def test_cells_that_are_not_there_are_refused(arguments, said):
    with pytest.raises(UserError, match=said):
        cells_of(arguments)


def test_an_experiments_cells_are_runs_of_their_own():
    with pytest.raises(UserError, match="its cells are runs of their own"):
        run_and_show(compose(["experiment=table6"]))


def test_a_sweep_over_an_experiment_multiplies_its_cells():
    cells = cells_of(["-m", "experiment=table6", "task=glob(toy_*)", "seed=1,2", "shard=1/2,2/2", "run_dir=here"])
    assert len(cells) == 2 * 3 * 2 * 2
    assert len({cell.folder for cell in cells}) == len(cells)
    assert {str(cell.run_dir) for cell in cells if "task=toy_code" in cell.overrides} == {
        f"here/nemotron{size}_toy_code_linear-quadratic-packed_seed-{seed}" for size in ("3b", "8b") for seed in (1, 2)
    }


def test_hydras_own_settings_are_no_part_of_cells():
    cells = cells_of(["-m", "seed=1,2", "hydra/launcher=submitit_local", "+hydra.launcher.name=x", "run_dir=here"])
    assert [cell.command for cell in cells] == [["seed=1", "run_dir=here/seed-1"], ["seed=2", "run_dir=here/seed-2"]]


def test_cells_that_cannot_be_run_are_counted_and_do_not_stop_the_others(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "experiment=table8", "model.path=/nowhere"]) == 2
    said = capsys.readouterr().err
    assert said.count("PARTIAL: not run: model.path=/nowhere") == 2
    assert "error: 2 of 2 cells are not done" in said


@pytest.mark.parametrize(
    "sweep",
    [
        "seed=1,-1",
        "task.template='a b','a-b','a/b','a_b','a.b','ä b','a:b'",
        "schedule=[linear,packed],[packed,linear],linear",
        f"task.template='{'x' * 300}','{'x' * 299}y'",
        "prompts=[1],[-1],['1']",
    ],
)
def test_cells_of_different_values_have_folders_of_their_own_that_any_disk_takes(sweep):
    cells = cells_of(["-m", sweep, "run_dir=all"])
    names = [cell.name for cell in cells]
    assert len(set(names)) == len(names) > 1
    assert all(0 < len(name.encode()) <= 255 and "/" not in name for name in names)


def test_plain_values_are_names_as_they_are():
    cells = cells_of(
        ["-m", "task=toy_math,toy_code", "schedule=[linear,packed],packed", "temperature=0.5,1", "run_dir=a"]
    )
    assert cells[0].name == "toy_math_linear-packed_temperature-0.5"
    assert len({cell.name for cell in cells}) == 8


def test_all_of_the_papers_cells_find_their_files_in_one_folder(data_dir, capsys):
    assert main(["run", "experiment=paper", f"data_dir={data_dir}", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "\n33: python -m harness run" in shown
    found = dict(re.findall(r"^data, (\w+): +(.*)$", shown, flags=re.MULTILINE))
    assert found.keys() == {*TASKS}
    assert all(where.startswith(str(data_dir)) for where in found.values())


def test_a_file_that_is_not_there_is_named_before_anything_runs(tmp_path, capsys):
    assert main(["run", "experiment=table6", f"data_dir={tmp_path}", "--dry-run"]) == 0
    assert "data, mbpp:          MISSING: data_dir=" in capsys.readouterr().out


def test_one_file_is_not_handed_to_several_tasks(capsys):
    assert main(["run", "experiment=table6", "task.data_files=gsm8k_test.jsonl", "--dry-run"]) == 2
    assert "one file, and 5 tasks. Name the folder with all of them, as in data_dir=DIR." in capsys.readouterr().err


def test_where_data_lie_is_no_part_of_a_cells_name():
    (one, *_), (other, *_) = cells_of(["experiment=table6"]), cells_of(["experiment=table6", "data_dir=somewhere"])
    assert one.name == other.name
