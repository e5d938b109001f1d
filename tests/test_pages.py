"""README, docs/ and the guide to the schedules: what they say is there, and what they tell a reader to do works.

Files are saved as they stand, Python is executed, and every command runs outside the repository on a few prompts; what
would need a checkpoint, a GPU or minutes is composed instead. A yaml or Python block after a line with nothing but
`PATH`: is that file: a new one of the reader's, or an excerpt of one that is there.
"""

import ast
import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from shutil import copytree

import pytest

from harness.cli.main import VERBS, main
from harness.cli.verbs.bench import PARTS
from harness.cli.verbs.run import DRY_RUN
from harness.cli.verbs.train_drafter import TAKES as TRAIN_DRAFTER
from harness.config.cells import cells_of, hydra_settings
from harness.config.compose import CONFIG_DIR, compose, names
from harness.models.execution.engine import ENGINES
from harness.records.record import Record, read_records
from tests.builders.pages import GUIDE, PAGES, ROOT, Block, anchors, blocks, code_words, label, links, write_files

LANGUAGES = {"bash", "python", "yaml", "json", "text"}
FAST = ["warmups=0", "drift_prompts=0", "model.device=cpu"]
PROMPTS = 4  # enough for intervals
SHORT = f"limit={PROMPTS}", "task.max_new_tokens=16", *FAST
MADE_BY_COMMANDS = ("results/runs", "results/figures", "results/atlases", "results/costs", "results/report.html")
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} - {".git", ".venv"}

PICTURED = ["schedules.linear.width=8", "schedules.packed.width=8", "schedules.quadratic.width=3",
            "schedules.branches.width=8", "schedules.branches.branches=[0,4]"]  # fmt: skip


def every(language: str) -> Sequence[Block]:
    """Blocks of one language on all pages."""
    return [block for page in PAGES for block in blocks(page, language)]


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command of a block, without comments."""
    for line in block.text.replace("\\\n", " ").splitlines():
        for command in re.split(r" && ", line):
            words = shlex.split(command, comments=True)
            if words:
                yield words


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Iterator[Path]:
    """A folder with all files of all pages, importable as where they are said to be saved."""
    folder = tmp_path_factory.mktemp("saved")
    modules = [path for path in write_files(PAGES, folder) if path.suffix == ".py"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        for path in modules:
            if len(path.parts) > 1:
                package = importlib.import_module(".".join(path.parent.parts))
                patch.setattr(package, "__path__", [*package.__path__, str(folder / path.parent)])
        yield folder
        for path in modules:
            sys.modules.pop(".".join(path.with_suffix("").parts), None)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder with a replayed run, which commands call results/runs/RUN."""
    folder = tmp_path_factory.mktemp("recorded")
    run = folder / "results" / "runs" / "RUN"
    assert main(["run", "schedule=[linear,packed]", *SHORT, f"run_dir={run}"]) == 0
    assert main(["replay", str(run), "prompts=1"]) == 0
    return folder


@pytest.fixture
def workplace(saved, recorded, tmp_path, monkeypatch) -> Path:
    """The folder that a block's commands run in, with the files that they name."""
    for folder in (saved, recorded):
        for path in folder.iterdir():
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "results").unlink()
    # Commands write below results/.
    copytree(recorded / "results", tmp_path / "results")
    # One run stands for those of the repository.
    copytree(recorded / "results" / "runs", tmp_path / "results" / "reference" / "runs")
    items = [{"question": f"What is {n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"} for n in range(PROMPTS)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    answers = [answer.text for answer in blocks(ROOT / "docs" / "grading.md", "json")]
    (tmp_path / "answers.jsonl").write_text(answers[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def follow(words: Sequence[str]) -> None:
    """Does what a command says, as far as it is cheap."""
    if words[0] == "make":
        assert re.search(rf"(?m)^{words[1]}:", (ROOT / "Makefile").read_text()), words
    elif words[:3] == ["python", "-m", "harness"]:
        verb, *arguments = words[3:]
        assert verb in VERBS
        FOLLOWED.get(verb, lambda given: run_for_real(verb, given))(arguments)
    else:
        assert words[0] == "python", words
        assert (ROOT / words[1]).is_file(), words


def run_for_real(verb: str, arguments: Sequence[str]) -> None:
    """Runs a command as it stands."""
    assert main([verb, *arguments]) == 0, (verb, *arguments)


def shortened(arguments: Sequence[str]) -> list[str]:
    """The command on a few prompts and tokens; what it sets itself holds where it is less."""
    given = dict(word.partition("=")[::2] for word in arguments)
    given["limit"] = str(min(PROMPTS, int(given.get("limit", PROMPTS))))
    return [f"{key}={value}" for key, value in {**dict(word.split("=", 1) for word in SHORT), **given}.items()]


def is_embedded(arguments: Sequence[str]) -> bool:
    """Whether a command's model and task need no download."""
    config = compose([word for word in arguments if not word.startswith("widths=")])
    needs_data = "data_files" in config.task.source and config.task.data_files is None
    return str(config.model.path).startswith("embedded:") and not needs_data


def follow_run(arguments: Sequence[str]) -> None:
    given = [word for word in arguments if word != DRY_RUN]
    for setting in hydra_settings(given):
        name = setting.partition("=")[2]
        assert (CONFIG_DIR / "hydra" / "launcher" / f"{name}.yaml").is_file() or name == "submitit_local"
    cells = cells_of(given)
    if cells and DRY_RUN not in arguments:
        for cell in (cells[0], cells[-1]):
            assert cell.config().schedules
    elif cells or not is_embedded(given):
        run_for_real("run", [*given, DRY_RUN])
    else:
        run_for_real("run", shortened(given))


def follow_atlas(arguments: Sequence[str]) -> None:
    run_for_real("atlas", shortened(arguments))


def follow_probe(arguments: Sequence[str]) -> None:
    blocks_given = [word for word in arguments if word.startswith("blocks=")]
    others = [word for word in arguments if word not in blocks_given]
    if is_embedded(others):
        run_for_real("probe", [*blocks_given, *shortened([*others, "run_dir=probe", "limit=2"])])
    else:
        assert compose(others)


def follow_trace(arguments: Sequence[str]) -> None:
    run_for_real("trace", [*arguments, *(["task.max_new_tokens=16"] if "=" in arguments[0] else [])])


def follow_check_task(arguments: Sequence[str]) -> None:
    name, *overrides = arguments
    if is_embedded([f"task={name}", *overrides]):
        run_for_real("check-task", arguments)
    else:
        assert compose([f"task={name}", *overrides])


def follow_doctor(arguments: Sequence[str]) -> None:
    if is_embedded(arguments):
        run_for_real("doctor", [*arguments, "model.device=cpu"])
    else:
        assert compose(arguments)


def follow_train_drafter(arguments: Sequence[str]) -> None:
    assert compose(TRAIN_DRAFTER.read(arguments).overrides)


def follow_bench(arguments: Sequence[str]) -> None:
    assert set(arguments) <= PARTS.keys()


FOLLOWED = {
    "run": follow_run,
    "atlas": follow_atlas,
    "probe": follow_probe,
    "trace": follow_trace,
    "check-task": follow_check_task,
    "doctor": follow_doctor,
    "train-drafter": follow_train_drafter,
    "bench": follow_bench,
}


def test_blocks_are_of_the_kinds_that_are_tested():
    for page in PAGES:
        fences = re.findall(r"(?m)^ *```(.*)$", page.read_text())
        assert set(fences) <= LANGUAGES | {""}, label(page)
        # Opened and closed in turns.
        assert [bool(fence) for fence in fences] == [True, False] * (len(fences) // 2), label(page)


@pytest.mark.parametrize("block", [one for one in every("bash") if one.page != GUIDE], ids=str)
def test_commands_do_what_the_pages_say(workplace, block):
    for words in commands(block):
        follow(words)


@pytest.mark.parametrize("block", [one for one in every("python") if one.file is None], ids=str)
def test_python_runs(workplace, block):
    exec(compile(block.text, str(block), "exec"), {})


@pytest.mark.parametrize("block", [one for one in every("python") if one.is_new_file], ids=str)
def test_files_that_are_shown_can_be_imported(saved, block):
    importlib.import_module(".".join(Path(block.file).with_suffix("").parts))


@pytest.mark.parametrize("block", [one for one in every("python") if one.is_excerpt], ids=str)
def test_excerpts_name_what_their_file_has(block):
    nodes = list(ast.walk(ast.parse(block.text)))
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    used = {node.id for node in nodes if isinstance(node, ast.Name)} - arguments
    own = {
        name for other in blocks(block.page, "python") if other.is_new_file for name in re.findall(r"\w+", other.text)
    }
    there = set(re.findall(r"\w+", (ROOT / block.file).read_text()))
    assert used & there
    assert used <= there | own


def test_yaml_blocks_are_files():
    assert all(block.is_new_file for block in every("yaml"))


def test_a_figure_that_is_shown_draws(recorded, saved):
    from harness.analysis.study.study import read_study

    module = importlib.import_module("harness.analysis.figures.lengths")
    assert module.lengths_figure(read_study([recorded])).axes


@pytest.mark.parametrize(
    ("number", "schedules"),
    [
        (0, ["linear", "packed", "every_other"]),
        (1, ["packed", "every_other"]),
        (2, ["packed", "quadratic", "confident"]),
        (3, ["linear", "packed"]),
        (4, ["linear", "packed", "quadratic"]),
    ],
)
def test_own_parts_of_the_guide_run_and_are_compared(workplace, capsys, number, schedules):
    [words] = commands(blocks(GUIDE, "bash")[number])
    assert words[:3] == ["python", "-m", "harness"]
    more = [word for word in FAST if number < 4 or not word.startswith("model.")]
    assert main([*words[3:], *more, f"run_dir=run{number}"]) == 0
    records = list(read_records(workplace / f"run{number}" / "records.jsonl"))
    assert list(dict.fromkeys(record.schedule for record in records)) == schedules
    by_prompt = {}
    for record in records:
        by_prompt.setdefault(record.prompt_id, set()).add(tuple(record.token_ids))
    assert all(len(outputs) == 1 for outputs in by_prompt.values())
    assert "identical token ids across schedules" in capsys.readouterr().out


def test_the_guide_has_no_command_that_is_not_run():
    assert len(blocks(GUIDE, "bash")) == 5


def test_the_pictures_of_the_guide_are_what_the_trace_shows(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")  # as wide as they are
    schedules = "schedule=[linear,packed,quadratic,branches]"
    assert main(["trace", schedules, *PICTURED, "model.device=cpu", "colour=never"]) == 0
    shown = re.sub(r", \d+\.\d ms", "", capsys.readouterr().out)
    pictures = blocks(GUIDE, "text")
    assert len(pictures) == 4
    for picture in pictures:
        assert picture.text.rstrip("\n") in shown


def test_own_parts_of_the_readme_are_those_of_the_guide():
    page = ROOT / "README.md"
    extending = page.read_text().partition("## Extending")[2].partition("\n## ")[0]
    code = [one for kind in ("python", "yaml", "bash") for one in blocks(page, kind) if one.text in extending]
    assert code
    for block in code:
        assert block.text in GUIDE.read_text()


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_somewhere(page):
    for target in links(page):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file), target


def test_the_readme_leads_to_every_page():
    targets = {(ROOT / target.partition("#")[0]).resolve() for target in links(ROOT / "README.md")}
    assert set(PAGES) - {ROOT / "README.md"} <= targets


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_paths_that_are_named_exist(page):
    own = {
        block.file for one in PAGES for kind in ("python", "yaml") for block in blocks(one, kind) if block.is_new_file
    }
    for word in code_words(page):
        path, _, name = word.partition("::")
        is_path = re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+/|\w+\.(py|md|toml)", path)
        if not is_path or path in own or path.startswith(MADE_BY_COMMANDS) or "FAMILY" in path:
            continue
        if "/" in path.rstrip("/") and path.split("/")[0] not in TOP:
            continue  # a repository on the hub, or a reader's folder
        places = [ROOT / path, page.parent / path, ROOT / "harness" / path, ROOT / "conf" / "experiment" / path]
        found = [place for place in places if place.exists()]
        assert found or path in PER_FAMILY, f"{label(page)}: {word}"
        assert not name or name in found[0].read_text(), f"{label(page)}: {word}"


# What each family has under this name.
PER_FAMILY = {path.name for path in (ROOT / "harness" / "models" / "nemotron").glob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_modules_that_are_named_exist(page):
    for word in code_words(page):
        if re.fullmatch(r"(harness|graders|schedules)(\.\w+)+", word):
            parts = word.split(".")
            modules = [parts[:end] for end in range(len(parts), 0, -1)]
            longest = next(one for one in modules if importlib.util.find_spec(".".join(one[:1])) and _module(one))
            found = importlib.import_module(".".join(longest))
            for name in parts[len(longest) :]:
                found = getattr(found, name)


def _module(parts: Sequence[str]) -> bool:
    path = ROOT.joinpath(*parts)
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def first_cells(page: Path) -> set[str]:
    """What stands in backticks in the first cells of the page's tables."""
    return {
        word for row in re.findall(r"(?m)^\| (`[^|]+) \|", page.read_text()) for word in re.findall(r"`([^`]+)`", row)
    }


def test_every_field_of_a_record_is_explained():
    assert {field.name for field in fields(Record)} <= first_cells(ROOT / "docs" / "running.md")


def test_every_part_of_the_bench_and_every_engine_is_explained():
    assert first_cells(ROOT / "docs" / "speed.md") == {*PARTS, *ENGINES}


def test_every_task_has_a_grader_on_its_page():
    page = (ROOT / "docs" / "grading.md").read_text()
    for name in names("task"):
        grader = compose([f"task={name}"]).task.grader["_target_"]
        assert re.search(rf"(?m)^\| `{grader}` \| .*`{name}`", page), name


def test_the_map_names_every_module_and_none_that_is_not_there():
    named = [path for block in blocks(ROOT / "docs" / "architecture.md", "text") for path in tree(block.text)]
    assert len(named) == len(set(named))
    there = {
        str(path.relative_to(ROOT).with_suffix(""))
        for folder in ("harness", "schedules", "graders", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if path.stem not in ("__init__", "__main__")
    }
    assert set(named) - there == set()
    assert there - set(named) == set()


def tree(text: str) -> Iterator[str]:
    """Modules of a drawn tree, as paths without suffix; folders end in a slash, two blanks are one level."""
    folders: list[str] = []
    for line in text.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        if name.endswith("/"):
            folders[depth:] = [name]
        elif folders and line.startswith(" "):
            assert len(line.split()) > 1, f"{name} has no line"
            yield "".join(folders[:depth]) + name


def test_the_map_shows_the_floors_that_are_tested():
    from tests.test_floors import FLOORS

    drawn = blocks(ROOT / "docs" / "architecture.md", "text")[0].text
    floors = [set(re.findall(r"\w+", line)) for line in drawn.splitlines()]
    assert floors == [set(floor) - {"__init__"} for floor in FLOORS]
