"""The report: what it says, that it needs nothing else, and that it works in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.analysis.report.html import report
from harness.analysis.report.outputs import prompts_of
from harness.analysis.study.study import read_study
from harness.cli.verbs import report as verb
from harness.errors import UserError
from harness.records.trace import FILE, Trace, TracedIteration, traces_json
from tests.builders.synthetic_runs import record, responses, write_run

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
TOKENS = ["<b>", " x", "=", "3", "!"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A greedy run with a trace of one Packed-SS response, and a second task without."""
    folder = tmp_path_factory.mktemp("runs")
    named = {"token_ids": [1, 2, 3, 4, 5], "tokens": 5, "nfe": 3, "accepted": [1, 3, 1], "text": "<b> x=3!"}
    records = [
        record(schedule=name, prompt_id=f"p{index}", wall_s=wall_s + index, **named)
        for index in range(3)
        for name, wall_s in (("linear", 2.0), ("packed", 1.0))
    ]
    traced = write_run(folder / "traced", records)
    iterations = [
        TracedIteration(["a"], [], ["<b>"], [1], 0, []),
        TracedIteration(["a"], [" x", "=", "4"], [" x", "=", "3", "!"], [2, 3, 4], 2, []),
        TracedIteration(["3"], ["?"], ["!"], [5], 0, []),
    ]
    trace = Trace("tiny_nemotron", "toy_math", "p1", "packed", 31, 0.0, TOKENS, iterations)
    (traced / FILE).write_text(json.dumps(traces_json([trace])))
    write_run(folder / "other", [one for name in ("linear", "packed") for one in responses(name, 3, task="toy_code")])
    return folder


@pytest.fixture(scope="module")
def page(runs) -> str:
    return report(read_study([runs]))


def test_traced_prompts_come_first_with_the_origin_of_each_token(runs):
    (cell,) = [one for one in read_study([runs]).main if one.key.task == "toy_math"]
    prompts, notices = prompts_of(cell)
    assert notices == []
    assert [prompt.prompt_id for prompt in prompts] == ["p1", "p0", "p2"]
    linear, packed = prompts[0].samples
    assert linear.pieces == []
    assert [piece.text for piece in packed.pieces] == TOKENS
    assert [piece.kind for piece in packed.pieces] == ["correction", "accepted", "accepted", "correction", "correction"]
    assert [piece.is_first for piece in packed.pieces] == [True, True, False, False, True]
    assert packed.pieces[3].tip == "iteration 2: 2 of 3 draft tokens accepted, 3 emitted"


def test_traced_outputs_are_shown_iteration_by_iteration(page):
    assert page.count("<summary>Iteration by iteration</summary>") == 1
    assert page.count('<table class="iteration">') == 3
    assert "iteration 2: 2 of 3 draft tokens accepted, 3 emitted" in page
    assert '<td class="correction" title="verifier&#39;s token: correction or bonus">3</td>' in page
    assert "&lt;b&gt;</td>" in page


def test_a_trace_of_another_response_colours_nothing(runs, tmp_path):
    shutil.copytree(runs / "traced", tmp_path / "traced")
    text = (tmp_path / "traced" / FILE).read_text()
    (tmp_path / "traced" / FILE).write_text(text.replace('"!"]', '"!", "more"]', 1))
    (cell,) = read_study([tmp_path]).main
    assert all(not sample.pieces for prompt in prompts_of(cell)[0] for sample in prompt.samples)


def test_unreadable_traces_are_said_on_the_cells_page(runs, tmp_path):
    shutil.copytree(runs / "traced", tmp_path / "traced")
    (tmp_path / "traced" / FILE).write_text("{")
    assert "no traces" in report(read_study([tmp_path]))


def test_outputs_are_shown_as_text_never_as_markup(page):
    assert "&lt;b&gt;" in page
    assert "<b> x=3!" not in page


def test_it_needs_no_other_file_and_no_network(page):
    assert "default-src 'none'" in page
    references = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert references
    assert all(reference.startswith(("#", "data:image/png;base64,")) for reference in references)
    assert not re.search(r"@import|url\(", page)


def test_everything_is_there_or_named_as_missing(page, runs):
    for name in ("figure1", "figure3", "table06", "table12", "comparison"):
        assert f'id="{name}"' in page
    assert "table07, absolute measurements, temperature 1: no records at temperature 1" in page
    assert str(runs / "traced") in page
    assert "tiny_nemotron, toy_math, T = 0, ltr" in page


def test_the_same_records_give_the_same_bytes(page, runs):
    assert report(read_study([runs])) == page


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no headless Chromium here: none of {', '.join(BROWSERS)} is installed")
    return found


# Clicks what a reader would click, and writes down what came of it.
ACTS = """
<script>
const seen = {errors: window.errors, requests: performance.getEntriesByType("resource").length};
const shown = () => [...document.querySelectorAll("section")].filter((one) => one.offsetHeight).map((one) => one.id);
seen.first = shown();
location.hash = "#cell-2";
show();
seen.cell = shown();
seen.colours = [...document.querySelectorAll("#cell-2 .token")].map((one) => getComputedStyle(one).backgroundColor);
location.hash = "#figures";
show();
seen.figures = shown();
seen.images = [...document.images].every((one) => one.complete && one.naturalWidth > 500);
location.hash = "#tables";
show();
const table = document.querySelector("#table06 + .scroll table");
const column = [...table.tHead.rows[0].cells].findIndex((one) => one.textContent === "Tokens/s");
const values = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.sort));
const button = table.tHead.rows[0].cells[column].querySelector("button");
button.click();
seen.up = values();
button.click();
seen.down = values();
seen.arrow = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
seen.width = document.documentElement.scrollWidth <= window.innerWidth;
document.title = JSON.stringify(seen);
</script>
"""


def test_it_works_in_a_browser(page, browser, tmp_path):
    file = tmp_path / "report.html"
    noting = "<script>window.errors = []; window.onerror = (message) => window.errors.push(message);</script>"
    file.write_text(page.replace("<title>", noting + "<title>").replace("</body>", ACTS + "</body>"))
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900", "--dump-dom"]
    done = subprocess.run(
        [browser, *arguments, f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    seen = json.loads(re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)[1].replace("&amp;", "&"))
    assert seen["errors"] == []
    assert seen["requests"] == 0
    assert (seen["first"], seen["cell"], seen["figures"]) == (["overview"], ["cell-2"], ["figures"])
    correction, accepted = "rgb(251, 227, 181)", "rgb(205, 229, 243)"
    assert seen["images"]
    assert seen["up"] == sorted(seen["up"])
    assert seen["down"] == seen["up"][::-1]
    assert len(set(seen["up"])) == 4
    assert seen["arrow"] == "descending"
    assert seen["width"]
    assert seen["colours"] == [correction, accepted, accepted, correction, correction]


def test_it_is_written_where_asked(runs, tmp_path, capsys):
    out = tmp_path / "new" / "folder.html"
    assert verb.main([str(runs), f"out={out}", "schedules=packed"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_without_records_there_is_nothing_to_report(tmp_path):
    with pytest.raises(UserError, match="nothing to report: no records"):
        verb.main([str(tmp_path)])
