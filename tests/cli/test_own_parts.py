"""The code of the READMEs: files are written as they stand there, and their commands run, outside the repository."""

import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.records.record import read_records

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "schedules" / "README.md"
FAST = ["warmups=0", "drift_prompts=0", "model.device=cpu"]
PICTURED = ["schedules.linear.width=8", "schedules.packed.width=8", "schedules.quadratic.width=3",
            "schedules.branches.width=8", "schedules.branches.branches=[0,4]"]  # fmt: skip


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of one language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def write_files(text: str, folder: Path) -> None:
    """Writes every block that begins with its file's name in a comment."""
    for block in [*blocks(text, "python"), *blocks(text, "yaml")]:
        named = re.match(r"# (\S+\.(?:py|yaml))\n", block)
        if named:
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block[named.end() :])


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A folder with all files of the guide."""
    folder = tmp_path_factory.mktemp("own")
    write_files(GUIDE.read_text(), folder)
    return folder


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
def test_own_parts_of_the_guide_run_and_are_compared(own, monkeypatch, capsys, number, schedules):
    words = shlex.split(blocks(GUIDE.read_text(), "bash")[number])
    assert words[:3] == ["python", "-m", "harness"]
    monkeypatch.chdir(own)
    monkeypatch.syspath_prepend(str(own))
    more = [word for word in FAST if number < 4 or not word.startswith("model.")]
    assert main([*words[3:], *more, f"run_dir=run{number}"]) == 0
    records = list(read_records(own / f"run{number}" / "records.jsonl"))
    assert list(dict.fromkeys(record.schedule for record in records)) == schedules
    by_prompt = {}
    for record in records:
        by_prompt.setdefault(record.prompt_id, set()).add(tuple(record.token_ids))
    assert all(len(outputs) == 1 for outputs in by_prompt.values())
    assert "identical token ids across schedules" in capsys.readouterr().out


def test_the_guide_has_no_command_that_is_not_run():
    assert len(blocks(GUIDE.read_text(), "bash")) == 5


def test_the_pictures_of_the_guide_are_what_the_trace_shows(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")  # as wide as they are
    schedules = "schedule=[linear,packed,quadratic,branches]"
    assert main(["trace", schedules, *PICTURED, "model.device=cpu", "colour=never"]) == 0
    shown = re.sub(r", \d+\.\d ms", "", capsys.readouterr().out)
    pictures = blocks(GUIDE.read_text(), "text")
    assert len(pictures) == 4
    for picture in pictures:
        assert picture.rstrip("\n") in shown


def test_own_parts_of_the_readme_are_those_of_the_guide():
    guide = GUIDE.read_text()
    readme = (ROOT / "README.md").read_text().partition("## Adding to it")[2].partition("\n## ")[0]
    code = [*blocks(readme, "python"), *blocks(readme, "yaml"), *blocks(readme, "bash")]
    assert code
    for block in code:
        assert block in guide


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["schedule.width=3"], "schedule.width=3: sets up a schedule of your own, by schedule._target_=MODULE.CLASS"),
        (["schedule._target_=nowhere.X"], "schedules.x: Error loading 'nowhere.X'"),
        (["schedule._target_=a.B,c.D"], "schedule._target_=a.B,c.D: sets up a schedule of your own"),
        (["schedule._target_=schedules.Packed"], "schedule._target_=schedules.Packed: would be called packed"),
        (["schedule._target_=schedules.OneCall"], "schedules.one_call: "),
        (["schedule._target_=schedules.Stop"], "schedules.stop"),
    ],
)
def test_mistakes_about_own_schedules_get_one_line(arguments, said, capsys):
    assert main(["run", *arguments, "limit=1"]) == 2
    error = capsys.readouterr().err
    assert f"error: {said}" in error
    assert "Traceback" not in error
