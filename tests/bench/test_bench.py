"""`python -m harness bench`: every part measures what it says, at small sizes."""

import csv

import pytest

from harness.bench import adapters, embedded, growth, host, peers, roofline, startup
from harness.cli.main import main
from harness.cli.verbs import bench


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(growth, "CONTEXTS", (64, 128))
    monkeypatch.setattr(growth, "WIDTHS", (1, 3, 31))
    monkeypatch.setattr(growth, "ITERATIONS", 3)
    monkeypatch.setattr(growth, "REPEATS", 1)
    for name, value in {"LONG": 60, "EARLY": 10, "LATE": 40, "SPAN": 6}.items():
        monkeypatch.setattr(growth, name, value)
    monkeypatch.setattr(host, "STORED_REPEATS", 2)
    monkeypatch.setattr(host, "POSITIONS", 100)
    monkeypatch.setattr(peers, "PROBED", 1)
    monkeypatch.setattr(peers, "CAP", 24)
    monkeypatch.setattr(peers, "can_compile", lambda: False)
    monkeypatch.setattr(roofline, "REPEATS", 1)
    monkeypatch.setattr(roofline, "CAP", 24)
    monkeypatch.setattr(startup, "REPEATS", 1)
    monkeypatch.setattr(startup, "IMPORTS", "import json")


def rows(path):
    with path.open() as file:
        return {row[0]: row[1:] for row in csv.reader(file)}


@pytest.mark.parametrize("part", sorted(bench.PARTS.keys() - {"growth"}))
def test_every_part_notes_as_many_measurements_as_it_announces(part, tmp_path):
    noted = []
    tables = bench.PARTS[part].measure(2, lambda: noted.append(1), tmp_path)
    assert len(noted) == bench.PARTS[part].steps(2)
    for table in tables:
        assert len(table.frame)
        assert table.frame.shape[1] == sum(len(column.names) for column in table.columns)


def test_tables_and_figure_are_written(tmp_path, capsys):
    assert main(["bench", "growth", "adapters", "repeats=2", "out=here"]) == 0
    announced = growth.steps() + adapters.steps(2)
    assert f"{announced}/{announced}" in capsys.readouterr().err.splitlines()[-1]
    written = {path.name for path in (tmp_path / "here").iterdir()}
    assert written == {
        "bench.md",
        "context.csv",
        "width.csv",
        "output.csv",
        "adapters.csv",
        "growth.png",
        "growth.pdf",
    }
    assert rows(tmp_path / "here/width.csv")["quadratic"][2] == "-"  # never as wide as 31


def test_peers_refuse_to_compare_what_says_something_else():
    with pytest.raises(Exception, match="gives other tokens"):
        peers._check_alike({peers.BASE: [peers.Answer([1, 2], 0.1)], "other": [peers.Answer([1, 3], 0.1)]})


def test_prompts_that_are_measured_are_no_others():
    model = embedded.load()
    measured, apart = embedded.prompts(model, 5), embedded.prompts(model, 5, skip=5)
    assert not {tuple(one) for one in measured} & {tuple(one) for one in apart}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speed"], "no such part of the bench"),
        (["repeats=1"], "repeats=1: need an integer of at least 2"),
        (["x=1"], "key=x: no such key. Known: out, repeats"),
        (["out=/dev/null/x"], "out=/dev/null/x: cannot be written"),
    ],
)
def test_mistakes_get_one_line(arguments, said, capsys):
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err
