"""The verbs `figures` and `compare`: files, messages, exit statuses."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.catalogue import products
from harness.analysis.study.study import read_study
from harness.cli.recorded import paths_of
from harness.cli.verbs import compare, figures, report
from harness.errors import UserError
from tests.builders.synthetic_runs import responses, write_run

SCHEDULES = ("linear", "quadratic", "packed")
TABLES = "table02,table06,table11,table12,trajectories,wall_percentiles,comparison"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "greedy", [one for name in SCHEDULES for one in responses(name, 8, tokens=40)])
    return folder


def test_everything_that_can_be_made_is_made_and_the_rest_is_named(runs, tmp_path, capsys):
    assert figures.main([str(runs), f"out={tmp_path}"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == str(tmp_path / "index.md")
    made = {path.name for path in tmp_path.iterdir()}
    for name in ("figure1", "figure3", "figure5", "acceptance_length_t0", "acceptance_rate_t0", "rate_t0"):
        assert {f"{name}.png", f"{name}.pdf"} <= made
    for name in TABLES.split(","):
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= made
    missing = {line.split()[1] for line in err.splitlines() if line.startswith("missing: ")}
    assert {"figure2", "figure4", *(f"table{n:02}" for n in (3, 4, 5, 7, 8, 9, 10, 13)), "divergences"} == missing
    index = (tmp_path / "index.md").read_text()
    for name in products(read_study([runs])):
        assert f"| {name} |" in index
    assert made == {line.rsplit("/", 1)[-1] for line in out.splitlines()}


def test_one_methods_records_make_what_they_can_and_the_rest_says_what_is_missing(tmp_path, capsys):
    write_run(tmp_path / "runs" / "one", responses("packed", 6, tokens=40))
    assert figures.main([str(tmp_path / "runs"), f"out={tmp_path / 'out'}"]) == 0
    out, err = capsys.readouterr()
    reasons = dict(re.findall(r"^missing: (\w+) \(.+?\): (.+)$", err, re.MULTILINE))
    assert {"figure3", "figure4", "figure5", "table12"} <= set(reasons)
    assert "Linear-SS" in reasons["table12"]
    made = {path.stem for path in (tmp_path / "out").iterdir()} - {"index"}
    assert {"figure1", "table02", "table06", "roofline", "wall_percentiles", "comparison"} <= made
    assert made | set(reasons) == set(products(read_study([tmp_path / "runs"])))
    assert made == {Path(line).stem for line in out.splitlines()} - {"index"}
    assert compare.main([str(tmp_path / "runs")]) == 0
    assert "not run" in capsys.readouterr().out
    assert report.main([str(tmp_path / "runs"), f"out={tmp_path / 'report.html'}"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert {"table12", "packed"} <= set(re.findall(r"\w+", page))


def test_tables_have_the_same_bytes_each_time(runs, tmp_path):
    for name in ("one", "two"):
        figures.main([str(runs), f"out={tmp_path / name}", f"only={TABLES}"])
    written = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(written) == 3 * len(TABLES.split(","))
    for name in written:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_folder_of_a_sweep_is_a_path_and_no_key(tmp_path):
    folder = tmp_path / "task=toy_math,temperature=1.0"
    folder.mkdir()
    given = figures.TAKES.read([str(folder), "out=x"])
    assert (given.paths, given["out"]) == ([folder], Path("x"))


def test_without_a_path_ones_own_runs_are_used_and_else_the_reference(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="results: no such folder here"):
        paths_of(figures.TAKES.read([]))
    write_run(tmp_path / "results" / "reference" / "a", responses("packed", 2))
    assert [str(path) for path in paths_of(figures.TAKES.read([]))] == ["results/reference"]
    write_run(tmp_path / "results" / "runs" / "b", responses("packed", 2))
    assert [str(path) for path in paths_of(figures.TAKES.read([]))] == ["results/runs"]
    assert [str(path) for path in paths_of(figures.TAKES.read([str(runs)]))] == [str(runs)]


def test_without_any_records_the_schematics_are_made(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert figures.main([str(tmp_path / "empty"), f"out={tmp_path / 'out'}", "only=figure1,table02,table06"]) == 0
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {"figure1", "table02"}
    assert "missing: table06" in capsys.readouterr().err


def test_where_nothing_can_be_made_it_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="nothing could be made: table06: no records at temperature 0"):
        figures.main([str(tmp_path / "empty"), f"out={tmp_path / 'out'}", "only=table06"])


def test_a_broken_cell_does_not_stop_the_others(runs, tmp_path, capsys):
    broken = tmp_path / "runs" / "broken"
    write_run(tmp_path / "runs" / "good", responses("packed", 3))
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    (broken / "records.jsonl").write_text("nonsense\n")
    assert figures.main([str(tmp_path / "runs"), f"out={tmp_path / 'out'}", "only=table06"]) == 0
    assert "notice: left out:" in capsys.readouterr().err


def test_a_refused_mix_is_said_and_made_on_request(tmp_path, capsys):
    write_run(tmp_path / "runs" / "a", responses("linear", 3))
    write_run(tmp_path / "runs" / "b", responses("packed", 3), dtype="bfloat16")
    arguments = [str(tmp_path / "runs"), f"out={tmp_path / 'out'}", "only=table12"]
    with pytest.raises(UserError):
        figures.main(arguments)
    assert figures.main([*arguments, "mix=dtype"]) == 0
    assert "dtype differs" not in capsys.readouterr().err


def test_what_an_earlier_call_made_does_not_pass_for_this_ones(runs, tmp_path):
    figures.main([str(runs), f"out={tmp_path / 'out'}", "only=table12"])
    write_run(tmp_path / "runs" / "a", responses("packed", 3))
    figures.main([str(tmp_path / "runs"), f"out={tmp_path / 'out'}", "only=table12,table06"])
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {"table06"}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("only=figur3", "only=figur3: no such only. .*Did you mean figure3?"),
        ("mix=clock", "mix=clock: no such mix. Known: code, device, dtype, engine"),
        ("outt=x", "key=outt: no such key. .*Did you mean out?"),
        ("nowhere", "nowhere: no such folder"),
        ("out=a,b", "out=a,b: name one"),
    ],
)
def test_bad_arguments_get_one_line(runs, argument, message):
    with pytest.raises(UserError, match=message):
        figures.main([str(runs), argument])


def test_a_folder_that_cannot_be_written_is_named(runs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/out: cannot be written"):
        figures.main([str(runs), f"out={tmp_path / 'file' / 'out'}", "only=table02"])


def test_compare_prints_the_table_alone_on_stdout(runs, capsys):
    assert compare.main([str(runs)]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("Published values and ours\n")
    assert "direction only" in out
    assert " not run." in out


def test_compare_prints_what_a_program_can_read(runs, capsys):
    assert compare.main([str(runs), "format=csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Place,Statement,Published,Our setting,Ours,Ours low,Ours high,n,Verdict,Id"
    assert len(lines) > 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["format=xml"], "format=xml: no such format"), (["out=x"], "key=out: no such key")],
)
def test_compare_refuses_what_it_does_not_know(runs, arguments, message):
    with pytest.raises(UserError, match=message):
        compare.main([str(runs), *arguments])


def test_compare_without_records_is_an_error(tmp_path):
    with pytest.raises(UserError, match="nothing to compare: no records"):
        compare.main([str(tmp_path)])


def test_the_analysis_needs_no_torch(runs, tmp_path):
    code = (
        "import sys; from harness.cli.verbs.figures import main; "
        f"main({json.dumps([str(runs), f'out={tmp_path}', 'only=table12'])}); "
        "sys.exit(bool({'torch', 'transformers'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
