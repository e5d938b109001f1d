"""Cells: the methods of a cell that are compared, on the prompts that all of them answered.

The unit of every figure and table. Methods are compared only where device, dtype and code are the same, and on
common responses only; what that leaves out is said.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.analysis.study.cells import Cell, CellKey, Measured, Method
from harness.analysis.study.runs import MIXABLE, unlike
from harness.errors import UserError
from harness.records.bootstrap import RESAMPLES, Statistic, resampled_totals
from harness.records.metrics import COLUMNS, METRICS, VERDICTS, counted, has_verdicts
from harness.records.record import stable_seed
from harness.text import some


class PairedCell:
    """Methods of one cell with their totals per prompt.

    Attributes:
      window: width that all speculative schedules of the cell share, where the family is compared by it.
      prompt_ids: prompts that every method answered.
      responses: of each method; the same for all.
      left_out: prompts that only some methods answered.
      missing: responses of all methods that their runs are still to have.
      facts: of the records used; one unless mixing was asked for.
      notices: what is partial about it.
    """

    def __init__(self, recorded: Cell, measured: Mapping[Method, Measured], window: int | None, notices: Sequence[str]):
        self.key: CellKey = recorded.key
        self.family = recorded.family
        self.window = window
        self.notices = list(notices)
        self.measured = measured
        self.methods = list(measured)
        self.facts = frozenset().union(*(one.facts for one in measured.values()))
        self._places = _common(measured)
        self.prompt_ids = list(self._places.unique("prompt_id"))
        self.responses = len(self._places)
        every = frozenset().union(*(one.records.index.unique("prompt_id") for one in measured.values()))
        self.left_out = len(every) - len(self.prompt_ids)
        self.missing = sum(one.missing for one in measured.values())
        self.skipped = len(frozenset().union(*(one.skipped for one in measured.values())))

    @cached_property
    def scored(self) -> int:
        """Responses that accuracy is over: those that every method has a verdict on."""
        return int(self._is_scored.sum())

    @cached_property
    def is_graded(self) -> bool:
        """Whether the task has right answers: some response is scored, or would be if its grader had not failed."""
        return any(has_verdicts(self.records(method)) for method in self.methods)

    @property
    def is_paired(self) -> bool:
        """Whether there are prompts enough for intervals."""
        return len(self.prompt_ids) >= 2

    def method(self, schedule: str) -> Method | None:
        """The cell's method of that schedule, if it has one."""
        return next((method for method in self.methods if method.schedule == schedule), None)

    def records(self, method: Method) -> pd.DataFrame:
        """The method's responses that are compared, indexed and sorted by prompt and repetition."""
        records = self.measured[method].records
        return records if len(records) == self.responses else records[records.index.isin(self._places)]

    @cached_property
    def per_prompt(self) -> NDArray[np.float64]:
        """What each prompt adds to each method's totals: [prompts, methods, columns]."""
        # Rows of one prompt follow each other, the same prompts in the same order for all methods.
        prompts = self._places.get_level_values("prompt_id")
        first = np.flatnonzero(np.append(True, prompts[1:] != prompts[:-1])) if len(prompts) else []
        responses = np.stack([counted(self.records(one)) for one in self.methods], axis=1)
        # What one method has no verdict on tells nothing about accuracy beside the others.
        responses[..., VERDICTS] *= self._is_scored[:, None, None]
        return np.add.reduceat(responses, first, axis=0)

    def total(self, column: str, method: Method) -> float:
        """Sum of one of `COLUMNS` over all responses of a method."""
        return float(self.per_prompt[:, self.methods.index(method), COLUMNS.index(column)].sum())

    def value(self, metric: str, method: Method | None) -> float | None:
        """A metric over all prompts; None where it is not defined: no such method, nothing graded."""
        if method not in self.measured:
            return None
        above, below = self._totals(metric, method, self.per_prompt.sum(axis=0))
        return float(above / below) if below else None

    def statistic(self, metric: str, method: Method | None) -> Statistic | None:
        """The same with its resamples; None also where there are not two prompts that it is over."""
        value = self.value(metric, method)
        resampled = self._resampled_scored if METRICS[metric].below == "graded" else self._resampled
        if value is None or resampled is None:
            return None
        above, below = self._totals(metric, method, resampled)
        return Statistic(value, above / below) if below.all() else None

    def ratio(self, metric: str, method: Method | None, baseline: Method | None) -> Statistic | None:
        """A metric of `method` as a multiple of the baseline's."""
        one, other = self.statistic(metric, method), self.statistic(metric, baseline)
        return one / other if one and other else None

    def difference(self, metric: str, method: Method | None, baseline: Method | None) -> Statistic | None:
        """A metric of `method` minus the baseline's."""
        one, other = self.statistic(metric, method), self.statistic(metric, baseline)
        return one - other if one and other else None

    @cached_property
    def _is_scored(self) -> NDArray[np.bool_]:
        """Of each response, whether every method has a verdict on it: [responses]."""
        verdicts = [self.records(method)["correct"].notna().to_numpy(dtype=bool) for method in self.methods]
        return np.logical_and.reduce(verdicts)

    @cached_property
    def _resampled(self) -> NDArray[np.float64] | None:
        """Totals in each resample over all prompts: [resamples, methods, columns]; None without two prompts."""
        return self._resamples(self.per_prompt)

    @cached_property
    def _resampled_scored(self) -> NDArray[np.float64] | None:
        """The same over the prompts with a response that every method has a verdict on."""
        is_scored = self.per_prompt[:, 0, COLUMNS.index("graded")] > 0
        return self._resampled if is_scored.all() else self._resamples(self.per_prompt[is_scored])

    def _resamples(self, per_prompt: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Resampled totals of rows of `per_prompt`.

        Different models and tasks get different seeds, so that averages over them have independent parts; orders and
        adapters of the same one get the same, so that they are paired.
        """
        key = self.key._replace(order="", adapter=None, adapter_mode="")
        seed = stable_seed("bootstrap", *map(str, key), str(self.window))
        prompts = len(per_prompt)
        if prompts < 2:
            return None
        return resampled_totals(per_prompt.reshape(prompts, -1), seed=seed).reshape(RESAMPLES, *per_prompt.shape[1:])

    def _totals(self, metric: str, method: Method, totals: NDArray[np.float64]) -> Sequence[NDArray[np.float64]]:
        column = self.methods.index(method)
        return [totals[..., column, COLUMNS.index(name)] for name in METRICS[metric]]


def compare(
    recorded: Cell, methods: Collection[Method], mix: Collection[str] = (), window: int | None = None
) -> PairedCell:
    """The cell that compares `methods`.

    Methods without a single call, and those with which fewer than two common prompts would be left, are not compared.

    Args:
      mix: names of `MIXABLE` facts that may differ.

    Raises:
      UserError: nothing to compare, or the methods were measured under facts that differ.
    """
    what = ", ".join(map(str, methods))
    measured = {method: recorded.methods[method] for method in methods}
    notices = []
    for method, one in list(measured.items()):
        if not one.records[["tokens", "nfe", "wall_s"]].sum().all():
            notices.append(
                f"{method} on {recorded.key}: no tokens, no calls or no time in {len(one.records)} responses."
            )
            del measured[method]
    kept = _with_common(measured, 2) or _with_common(measured, 1)
    for method in measured.keys() - kept.keys():
        notices.append(
            f"{method} on {recorded.key}: not compared; too few of its {measured[method].prompts} prompts are in "
            "common with the other methods."
        )
    measured = kept
    if not measured:
        raise UserError(f"{what} on {recorded.key}: nothing was decoded.")
    check_same(measured, str(recorded.key), mix)
    cell = PairedCell(recorded, measured, window, notices)
    cell.notices += _partial(cell)
    return cell


def check_same(measured: Mapping[Method, Measured], what: str, mix: Collection[str]) -> None:
    """Refuses a comparison of records that were not measured alike.

    Raises:
      UserError: names what differs, between which methods, and how to ask for it.
    """
    differing = unlike({str(method): one.facts for method, one in measured.items()}, mix)
    if not differing:
        return
    mixable = [name for name in differing if name in MIXABLE]
    folders = sorted({str(folder) for one in measured.values() for folder in one.folders})
    # Other weights or data under one name are another model or task.
    rather = (
        f"Measure all methods alike, or ask for it with mix={','.join(mixable)}."
        if len(mixable) == len(differing)
        else f"These are not of one thing: give folders apart, or name them apart. Folders: {some(folders)}."
    )
    raise UserError(f"{what}: not compared. {' '.join(differing.values())} {rather}")


def _common(measured: Mapping[Method, Measured]) -> pd.MultiIndex:
    """Prompt and repetition of the responses that every method has, sorted."""
    return reduce(lambda one, other: one[one.isin(other)], (one.records.index for one in measured.values()))


def _with_common(measured: Mapping[Method, Measured], prompts: int) -> Mapping[Method, Measured]:
    """The methods that are left when those with fewest prompts go until so many prompts are in common; or none."""
    kept = dict(measured)
    while kept and _common(kept).unique("prompt_id").size < prompts:
        del kept[min(kept, key=lambda method: kept[method].prompts)]
    return kept


def _partial(cell: PairedCell) -> Sequence[str]:
    notices = []
    if cell.missing:
        so_far = {str(method): (len(one.records), one.missing) for method, one in cell.measured.items()}
        counts = ", ".join(f"{method}: {count} of {count + missing}" for method, (count, missing) in so_far.items())
        notices.append(f"PARTIAL: {cell.key}: not run to its end, responses so far: {counts}.")
    if cell.left_out:
        counts = ", ".join(f"{method}: {one.prompts}" for method, one in cell.measured.items())
        notices.append(
            f"PARTIAL: {cell.key}: {len(cell.prompt_ids)} prompts in common, {cell.left_out} left out "
            f"(prompts of each method: {counts})."
        )
    dropped = {method: len(one.records) - cell.responses for method, one in cell.measured.items()}
    if any(dropped.values()) and not cell.left_out:
        counts = ", ".join(f"{method}: {count}" for method, count in dropped.items() if count)
        notices.append(f"PARTIAL: {cell.key}: responses without a counterpart left out ({counts}).")
    if cell.skipped:
        notices.append(f"PARTIAL: {cell.key}: {cell.skipped} prompts did not fit the model's context.")
    if cell.is_graded and cell.scored < cell.responses:
        counts = {str(method): int(cell.records(method)["correct"].notna().sum()) for method in cell.methods}
        listed = ", ".join(f"{method}: {count}" for method, count in counts.items())
        notices.append(
            f"PARTIAL: {cell.key}: accuracy is over {cell.scored} of {cell.responses} responses, those that every "
            f"method has a verdict on (verdicts of each: {listed})."
        )
    if not cell.is_paired:
        notices.append(f"PARTIAL: {cell.key}: one prompt only, so no intervals and no comparison.")
    return notices
