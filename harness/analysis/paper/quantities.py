"""What the published numbers are numbers of, computed from our cells; one function for each kind of quantity.

Those of `OF_A_CELL` have a value in every cell; those of `OVER_CELLS` are about several at once.
"""

from collections.abc import Callable, Mapping, Sequence

from harness.analysis.measures.divergence import distinct_labels, distinct_outputs
from harness.analysis.measures.iterations import model_ms_per_iteration
from harness.analysis.measures.layout_rows import Cost, cost
from harness.analysis.measures.time_shares import share
from harness.analysis.paper.published import Published
from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.study import Study
from harness.analysis.style import RIVALS, SUBJECT
from harness.records.bootstrap import CONFIDENCE, RESAMPLES, Statistic
from harness.records.metrics import BASELINE

Value = Statistic | float | None

# The schedules whose outputs and labels F.6 compares.
COMPARED = (*RIVALS, SUBJECT)
# What tells one schedule from another: these have a direction even where the model is not the published one.
RELATIVE = {"gain": 0.0, "difference": 0.0, "order_gain": 0.0, "ratio": 1.0, "share_model": 1.0, "share_total": 1.0,
            "share_non_model_ratio": 1.0}  # fmt: skip


def value_of(study: Study, published: Published, cells: Sequence[PairedCell]) -> Value:
    """The quantity of a statement in one cell, or over several; None where they do not have it."""
    if published.quantity in OVER_CELLS:
        return OVER_CELLS[published.quantity](study, published, cells)
    return OF_A_CELL[published.quantity](cells[0], published)


def _gain(cell: PairedCell, published: Published) -> Value:
    ratio = _ratio(cell, published)
    return ratio and ratio.shifted(-1).scaled(100)


def _ratio(cell: PairedCell, published: Published) -> Statistic | None:
    return cell.ratio(published.metric, *_pair(cell, published))


def _difference(cell: PairedCell, published: Published) -> Value:
    difference = cell.difference(published.metric, *_pair(cell, published))
    return difference and difference.scaled(_scale(published))


def _mean(cell: PairedCell, published: Published) -> Value:
    mean = cell.statistic(published.metric, cell.method(published.method))
    return mean and mean.scaled(_scale(published))


def _model_ms(cell: PairedCell, published: Published) -> Value:
    method = cell.method(published.method)
    per_nfe = cell.statistic("model_per_nfe_s", method)
    value = method and model_ms_per_iteration(cell, method)
    return per_nfe.scaled(value / per_nfe.value) if per_nfe and value else None


def _outputs_differ(cell: PairedCell, published: Published) -> Value:
    methods = _compared(cell)
    return float(distinct_outputs(cell, methods)) if methods else None


def _labels_differ(cell: PairedCell, published: Published) -> Value:
    methods = _compared(cell)
    is_graded = methods and all(cell.value("accuracy", method) is not None for method in methods)
    return float(distinct_labels(cell, methods)) if is_graded else None


def _of_cost(part: Callable[[Cost], int]) -> Callable[[PairedCell, Published], Value]:
    def of(cell: PairedCell, published: Published) -> Value:
        method = cell.method(published.method)
        if method is None:
            return None
        found = cost(cell.family, method.schedule, method.width, cell.measured[method].config)
        return float(part(found)) if found else None

    return of


def _width(more: int) -> Callable[[PairedCell, Published], Value]:
    def of(cell: PairedCell, published: Published) -> Value:
        method = cell.method(published.method)
        return float(method.width + more) if method else None

    return of


def _config(cell: PairedCell, published: Published) -> Value:
    method = cell.method(published.method)
    found = cell.measured[method].config.get(published.key) if method else None
    return float(found) if isinstance(found, int | float) else None


def _share(part: str) -> Callable[[Study, Published, Sequence[PairedCell]], Value]:
    def of(study: Study, published: Published, cells: Sequence[PairedCell]) -> Value:
        time = share(cells, published.method)
        if time is None or part != "non_model_ratio":
            return time and getattr(time, part)
        return time.non_model / share(cells, BASELINE).non_model

    return of


def _order_gain(study: Study, published: Published, cells: Sequence[PairedCell]) -> Value:
    """The same prompts are resampled alike in both orders, so the ratio is paired."""
    cell = cells[0]
    place = cell.key._replace(order="confidence")
    other = next((s for s in study.main if s.key == place and s.window == cell.window), None)
    if other is None or other.prompt_ids != cell.prompt_ids:
        return None
    one, base = (s.statistic(published.metric, s.method(published.method)) for s in (other, cell))
    return (one / base).shifted(-1).scaled(100) if one and base else None


def _count(holds: Callable[[Statistic], bool]) -> Callable[[Study, Published, Sequence[PairedCell]], Value]:
    """How many comparisons hold; None unless all were made."""

    def of(study: Study, published: Published, cells: Sequence[PairedCell]) -> Value:
        ratios = [
            cell.ratio(published.metric, cell.method(published.method), cell.method(baseline))
            for cell in cells
            for baseline in published.baselines
        ]
        measured = [ratio for ratio in ratios if ratio]
        return float(sum(map(holds, measured))) if len(measured) == published.of else None

    return of


def _count_highest(study: Study, published: Published, cells: Sequence[PairedCell]) -> Value:
    """Cells of one schedule alone, and those without this one, have no highest."""
    count = measured = 0
    for cell in cells:
        rates = {method.schedule: cell.value(published.metric, method) for method in cell.methods}
        if published.method in rates and len(rates) > 1:
            measured += 1
            count += rates[published.method] == max(rates.values())
    return float(count) if measured == published.of else None


def _pair(cell: PairedCell, published: Published) -> tuple[Method | None, Method | None]:
    return cell.method(published.method), cell.method(published.baselines[0])


def _compared(cell: PairedCell) -> Sequence[Method]:
    methods = [cell.method(schedule) for schedule in COMPARED]
    return [] if None in methods else methods


def _scale(published: Published) -> float:
    return 100.0 if published.metric == "accuracy" else 1.0


OF_A_CELL: Mapping[str, Callable[[PairedCell, Published], Value]] = {
    "gain": _gain,
    "ratio": _ratio,
    "difference": _difference,
    "mean": _mean,
    "model_ms_per_iteration": _model_ms,
    "outputs_differ": _outputs_differ,
    "labels_differ": _labels_differ,
    "rows": _of_cost(lambda one: one.rows),
    "rows_per_call": _of_cost(lambda one: one.rows_per_call),
    "adapter_selected": _of_cost(lambda one: one.selected),
    "adapter_evaluated": _of_cost(lambda one: one.updated),
    "prompts": lambda cell, published: float(len(cell.prompt_ids)),
    "repetitions": lambda cell, published: cell.responses / len(cell.prompt_ids),
    "cap": lambda cell, published: float(cell.key.max_new_tokens),
    "block_size": _width(1),
    "width": _width(0),
    "config": _config,
}
OVER_CELLS: Mapping[str, Callable[[Study, Published, Sequence[PairedCell]], Value]] = {
    "share_model": _share("model"),
    "share_total": _share("total"),
    "share_non_model_ratio": _share("non_model_ratio"),
    "order_gain": _order_gain,
    "count_highest": _count_highest,
    "count_higher": _count(lambda ratio: ratio.value > 1),
    "count_lower": _count(lambda ratio: ratio.value < 1),
    "count_above": _count(lambda ratio: ratio.estimate().low > 1),
    "count_below": _count(lambda ratio: ratio.estimate().high < 1),
    "count_including": _count(lambda ratio: ratio.estimate().low <= 1 <= ratio.estimate().high),
}
CONSTANTS = {"resamples": float(RESAMPLES), "confidence": 100 * CONFIDENCE}
STATED = "stated"
