"""Figure 5: model execution and non-model decoder time, in units of Linear-SS's total."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.analysis import canvas
from harness.analysis.measures.time_shares import Share, share, timed_cells
from harness.analysis.study.grid import NotMeasured, schedules_of
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import DASH, in_order, look, model_label, models_in_order, task_label, tasks_in_order
from harness.records.metrics import BASELINE

_NON_MODEL_HATCH = "xxxxx"


def time_figure(study: Study) -> Figure:
    """A stacked bar for each model and schedule.

    Raises:
      NotMeasured: no greedy records of Linear-SS on two prompts.
    """
    by_model = timed_cells(study)
    if not by_model:
        raise NotMeasured(f"no greedy records of {look(BASELINE).label} on two prompts")
    every = [cell for cells in by_model.values() for cell in cells]
    schedules = in_order(schedules_of(every))
    models = models_in_order(by_model)
    slots = len(models) * (len(schedules) + 1.9)
    drawn = canvas.figure(1.05 + 0.2 * slots)
    axes = drawn.subplots()
    ticks: list[tuple[float, str]] = []
    sums: list[tuple[float, str]] = []
    y = 0.0
    for model in models:
        tasks = tasks_in_order(cell.key.task for cell in by_model[model])
        heading = f"{model_label(model)}: {' + '.join(map(task_label, tasks))}"
        axes.text(0, y, heading, va="center", fontweight="bold", parse_math=False)
        y += 1.2
        axes.vlines(1, y - 0.6, y + len(schedules) - 0.4, color="black", linestyle="--", linewidth=0.8, zorder=0)
        for schedule in schedules:
            ticks.append((y, look(schedule).label))
            sums.append((y, _bar(axes, schedule, share(by_model[model], schedule), y)))
            y += 1
        y += 0.7
    _frame(axes, ticks, y)
    for position, text in sums:
        axes.text(1.01, position, text, va="center", fontsize=canvas.SMALL, transform=axes.get_yaxis_transform())
    shades = (("", "model execution time"), (_NON_MODEL_HATCH, "non-model decoder time"))
    keys = [
        Patch(facecolor="white", edgecolor="black", hatch=hatch, linewidth=0.5, label=label) for hatch, label in shades
    ]
    canvas.legend(drawn, [], *keys)
    canvas.footnotes(
        drawn,
        f"Temperature 0. Each task's times are divided by that task's {look(BASELINE).label} total, then tasks are "
        f"averaged with equal weight; the dashed line is that total. {DASH}: not measured on all of these tasks.",
        provenance(every),
    )
    return drawn


def _bar(axes: Axes, schedule: str, time: Share | None, y: float) -> str:
    """Draws the two parts; gives the sum that stands beside them."""
    if time is None:
        return DASH
    style = look(schedule)
    model, non_model = time.model.value, time.non_model.value
    edge = {"edgecolor": "black", "linewidth": 0.5}
    axes.barh(y, model, 0.75, color=style.colour, **edge)
    axes.barh(y, non_model, 0.75, left=model, color="white", **edge)
    axes.barh(y, non_model, 0.75, left=model, color=style.colour, alpha=0.35, hatch=_NON_MODEL_HATCH, **edge)
    return f"{model + non_model:.3f} = {model:.3f} + {non_model:.3f}"


def _frame(axes: Axes, ticks: list[tuple[float, str]], end: float) -> None:
    axes.set_ylim(end - 0.5, -0.8)
    axes.set_xlim(0, max(1.0, axes.dataLim.xmax) * 1.02)
    axes.set_xlabel("time / Linear-SS total")
    axes.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    axes.tick_params(axis="y", length=0)
