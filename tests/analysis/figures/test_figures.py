"""The figures: what they show, and that no text covers another or leaves the page."""

import json
from collections.abc import Callable
from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from harness.analysis import canvas
from harness.analysis.figures.calls import calls_figure
from harness.analysis.figures.distributions import acceptance_length_figure, acceptance_rate_figure, rate_figure
from harness.analysis.figures.iteration import iteration_figure
from harness.analysis.figures.ratios import ratio_figure
from harness.analysis.figures.time_shares import time_figure
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import Study, read_study
from harness.analysis.style import SCHEDULES as ROWS
from harness.analysis.style import look
from harness.records.trace import FILE, Proposal, Trace, TracedIteration, traces_json
from tests.builders.synthetic_runs import responses, write_run

SCHEDULES = ("linear", "quadratic", "packed")


def cell(folder, schedules=SCHEDULES, prompts=6, **changes):
    """One run with all schedules."""
    run = {key: changes.pop(key) for key in ("family", "cap") if key in changes}
    records = [one for name in schedules for one in responses(name, prompts, tokens=60, **changes)]
    return write_run(folder, records, **run)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    """Two models with a missing cell, a missing method and a task for speed only; and a windowed family."""
    folder = tmp_path_factory.mktemp("runs")
    cell(folder / "a", model="nemotron3b", task="gsm8k")
    cell(folder / "b", model="nemotron3b", task="writingbench", accuracy=None)
    cell(folder / "c", model="nemotron8b", task="gsm8k", schedules=("linear", "packed"))
    for order in ("ltr", "confidence"):
        cell(
            folder / order,
            model="tiny_setdlm_of_somebody_else",
            task="toy_math",
            family="setdlm",
            width=16,
            order=order,
        )
    return read_study([folder])


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> Study:
    """A study without records."""
    return read_study([tmp_path_factory.mktemp("empty")])


def drawn(paint: Callable[..., Figure], *arguments) -> Figure:
    """A figure after its layout is done."""

    def work() -> Figure:
        figure = paint(*arguments)
        figure.draw_without_rendering()
        return figure

    return canvas.styled(work)


def texts(figure: Figure) -> list[Text]:
    """All texts that are drawn; ticks beyond an axis' limits are not."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        found += [axes.title, *axes.texts]
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            if axes.axison:
                # Axes that share their ticks have labels in one of them only.
                labels = zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=False)
                found += [label for label, tick in labels if min(limits) <= tick <= max(limits)]
                found.append(axis.label)
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def assert_readable(figure: Figure) -> None:
    """No text covers another, and all of it is on the page."""
    shown = [(text.get_text(), text.get_window_extent()) for text in texts(figure)]
    page = figure.bbox
    for text, box in shown:
        assert page.x0 - 1 <= box.x0 <= box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0 <= box.y1 <= page.y1 + 1, text
    for (one, box), (other, second) in combinations(shown, 2):
        covers = (
            min(box.x1, second.x1) - max(box.x0, second.x0) > 1 and min(box.y1, second.y1) - max(box.y0, second.y0) > 1
        )
        assert not covers, f"{one!r} and {other!r}"


def says(figure: Figure) -> str:
    """All of a figure's text."""
    return "\n".join(text.get_text() for text in texts(figure)).replace("\n", " ")


def test_ratios_show_all_cells_with_dashes_and_not_applicable(study):
    figure = drawn(ratio_figure, study, 0.0)
    assert_readable(figure)
    shown = [text.get_text() for text in texts(figure)]
    # Nemotron 8B has no WritingBench (4 panels) and no Quadratic-SS on GSM8K (4 panels).
    assert shown.count("–") == 8
    assert shown.count("N/A") == 2
    for name in (
        "Nemotron 3B",
        "Nemotron 8B",
        "tiny_setdlm_of_somebody_else",
        "GSM8K  n = 6",
        "WritingBench",
        "toy_math, W = 16  n = 6",
    ):
        assert name in shown
    assert "ratio to Linear-SS" in shown
    assert "percentage points" in shown
    assert "device cpu (CPU x 2) · dtype float32 · code 0123456789 · cap 128 tokens · n = 6 prompts" in says(figure)
    assert "95 % percentile intervals" in says(figure)


def test_bars_end_at_the_values_and_start_at_the_baseline(study):
    figure = drawn(ratio_figure, study, 0.0)
    cell = study.cells(0.0)[0]
    expected = [cell.ratio("throughput", cell.method(name), cell.method("linear")).value for name in SCHEDULES[1:]]
    bars = [patch for patch in figure.axes[0].patches if patch.get_width()][:2]
    assert [bar.get_x() + bar.get_width() for bar in bars] == pytest.approx(expected)
    assert [bar.get_x() for bar in bars] == [1.0, 1.0]


def test_times_are_stacked_for_each_model(study):
    figure = drawn(time_figure, study)
    assert_readable(figure)
    shown = says(figure)
    assert "Nemotron 3B: GSM8K" in shown
    assert "1.000 = 0.909 + 0.091" in shown
    assert "time / Linear-SS total" in shown


def test_calls_are_drawn_with_measured_counts(study):
    figure = drawn(calls_figure, study)
    assert_readable(figure)
    assert "2B = 64 W = 31" in says(figure)
    assert "2.00 calls, 64.0 rows" in says(figure)


def test_calls_are_drawn_without_any_records(nothing):
    figure = drawn(calls_figure, nothing)
    assert_readable(figure)
    assert "B(B + 1) = 72 W = 7" in says(figure)
    assert [text.get_text() for text in texts(figure)].count("–") == 3


@pytest.mark.parametrize("paint", [acceptance_length_figure, acceptance_rate_figure, rate_figure])
def test_distributions_have_a_panel_for_each_cell(study, paint):
    figure = drawn(paint, study, 0.0)
    assert_readable(figure)
    assert len([axes for axes in figure.axes if axes.lines]) == 5


def test_long_names_stay_in_their_panels(tmp_path):
    for order in ("ltr", "confidence", "random"):
        names = {"model": "setdlm_trained_by_somebody_else", "task": "a_task_with_a_long_name", "width": 16}
        cell(tmp_path / order, schedules=("packed",), family="setdlm", order=order, **names)
    figure = drawn(acceptance_length_figure, read_study([tmp_path]), 0.0)
    assert_readable(figure)


def test_methods_without_drafts_have_no_acceptance(tmp_path):
    cell(tmp_path / "a", schedules=("autoregressive", "packed"), mean_accepted=1)
    figure = drawn(acceptance_length_figure, read_study([tmp_path]), 0.0)
    assert "Autoregressive" not in says(figure)


def write_trace(folder, *iterations: TracedIteration, schedule: str = "packed") -> None:
    trace = Trace("tiny_nemotron", "toy_math", "toy_math/0", schedule, 7, 0.0, [], iterations)
    (folder / FILE).write_text(json.dumps(traces_json([trace])))


PROMPT = TracedIteration([], [], ["a"], [1], 0, [Proposal(0, 2, ["b"])])
CORRECTED = TracedIteration(
    prefix_tail=["=", "24", ","],
    draft=[" 24", "+", "a very long piece", "$x$", "\n", "答"],
    verifier=[" 24", "-", "5", "y", "z", "w", "v"],
    positions=[2, 3],
    accepted_drafts=1,
    proposals=[Proposal(0, 2, list("-5=19,kl"))],
)


def test_an_iteration_is_drawn_from_a_trace(tmp_path):
    write_trace(cell(tmp_path / "a", schedules=("packed",)), PROMPT, CORRECTED)
    figure = drawn(iteration_figure, read_study([tmp_path]))
    assert_readable(figure)
    shown = [text.get_text() for text in texts(figure)]
    assert shown.count("=") >= 1
    assert shown.count("≠") == 1
    assert {"␣24", "a␣very␣l…", "$x$", "⏎", "□", "iteration 2 reads", "iteration 3 reads"} <= set(shown)
    assert "2 tokens are emitted" in says(figure)


def test_wide_iterations_are_cut_and_say_so(tmp_path):
    wide = TracedIteration(
        ["x"], list("abcdefghijklmno"), list("abzdefghijklmnop"), [2, 3, 4], 2, [Proposal(0, 1, list("q" * 31))]
    )
    write_trace(cell(tmp_path / "a", schedules=("packed",)), wide)
    figure = drawn(iteration_figure, read_study([tmp_path]))
    assert_readable(figure)
    assert "… +31" in says(figure)


def test_an_iteration_without_its_trace_is_missing(tmp_path):
    cell(tmp_path / "a", schedules=("packed",))
    with pytest.raises(NotMeasured, match=r"no run folder holds a traces\.json of greedy Packed-SS"):
        iteration_figure(read_study([tmp_path]))
    write_trace(tmp_path / "a", CORRECTED, schedule="quadratic")
    with pytest.raises(NotMeasured):
        iteration_figure(read_study([tmp_path]))
    (tmp_path / "a" / FILE).write_text("{")
    with pytest.raises(NotMeasured, match="no trace"):
        iteration_figure(read_study([tmp_path]))


def test_figures_that_need_the_baseline_say_so(tmp_path):
    cell(tmp_path / "a", schedules=("packed",))
    alone = read_study([tmp_path])
    for paint in (lambda: ratio_figure(alone, 0.0), lambda: time_figure(alone)):
        with pytest.raises(NotMeasured, match="Linear-SS"):
            paint()
    with pytest.raises(NotMeasured, match="temperature 1"):
        ratio_figure(alone, 1.0)


def test_schedules_look_different_even_in_grey():
    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    shades = {name: (lightness(row.look.colour), row.look.hatch) for name, row in ROWS.items()}
    for (_, (one, hatch)), (_, (other, second)) in combinations(shades.items(), 2):
        assert hatch != second or abs(one - other) > 15
    assert len({row.look.marker for row in ROWS.values()}) == len(ROWS)


def test_a_schedule_that_is_not_ours_always_looks_the_same():
    assert look("mine") == look("mine")
    assert look("mine").colour not in {row.look.colour for row in ROWS.values()}


def test_files_have_the_same_bytes_each_time(nothing, tmp_path):
    for name in ("one", "two"):
        canvas.styled(lambda name=name: canvas.save(calls_figure(nothing), tmp_path, name))
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()
