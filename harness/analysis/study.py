"""Which settings the figures and tables are about: chosen once, from everything that was found.

Main settings compare schedules at the width that each is run at; probes compare widths; adapter pairs compare a cell
with and without a proposal-only adapter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.analysis.appearance import place_in_order
from harness.analysis.cells import Cell, CellKey, Method, group
from harness.analysis.metrics import totals
from harness.analysis.runs import Run, find_runs
from harness.analysis.settings import Setting, check_same, compare
from harness.errors import UserError

# The family whose schedules share one width, the window, and are compared window by window (section 4.1).
WINDOWED = "setdlm"


class AdapterPair(NamedTuple):
    """The same cell without and with an adapter; either may not have been run."""

    base: Setting | None
    adapted: Setting


@dataclass(frozen=True)
class Study:
    """Everything that can be shown.

    Attributes:
      main: one setting for each model, task, temperature, order and, where the family has them, window.
      probes: cells in which some schedule was run at several widths, with all of them.
      adapters: cells with an adapter.
      runs: the run folders, for what lies beside their records.
      notices: what was left out, and why.
    """

    main: Sequence[Setting]
    probes: Sequence[Setting]
    adapters: Sequence[AdapterPair]
    runs: Sequence[Run]
    notices: Sequence[str]

    def settings(self, temperature: float | None = None, order: str | None = None) -> Sequence[Setting]:
        """Main settings of one temperature and order; None takes any."""
        return [
            setting
            for setting in self.main
            if temperature in (None, setting.key.temperature) and order in (None, setting.key.order)
        ]


def read_study(paths: Iterable[Path], mix: Collection[str] = (), schedules: Sequence[str] = ()) -> Study:
    """Everything at and below `paths`.

    Args:
      mix: facts that may differ within a comparison.
      schedules: the only ones to look at; empty for all.

    Raises:
      UserError: one of `paths` does not exist.
    """
    found = find_runs(paths)
    grouped = group(found.runs, schedules)
    builder = _Builder(mix, [*found.notices, *grouped.notices])
    cells = [cell for cell in grouped.cells if cell.key.adapter is None]
    main = [setting for cell in builder.main_cells(cells) for setting in builder.settings(cell)]
    probes = [builder.compared(cell, list(cell.methods)) for cell in cells if _is_probe(cell)]
    adapted = [cell for cell in grouped.cells if cell.key.adapter is not None]
    pairs = [builder.adapter_pair(cell, cells) for cell in adapted]
    return Study(
        main=sorted(main, key=place_in_order),
        probes=[setting for setting in probes if setting],
        adapters=[pair for pair in pairs if pair],
        runs=found.runs,
        notices=list(dict.fromkeys(builder.notices)),
    )


class _Builder:
    """Builds settings; what cannot be compared becomes a notice."""

    def __init__(self, mix: Collection[str], notices: Sequence[str]):
        self._mix = mix
        self.notices = list(notices)

    def compared(self, cell: Cell, methods: Collection[Method], window: int | None = None) -> Setting | None:
        try:
            setting = compare(cell, methods, self._mix, window)
        except UserError as error:
            self.notices.append(str(error))
            return None
        self.notices += setting.notices
        return setting

    def settings(self, cell: Cell) -> Sequence[Setting]:
        if cell.family != WINDOWED:
            setting = self.compared(cell, _best_widths(cell))
            return [setting] if setting else []
        windows = sorted({method.width for method in cell.methods if method.width}) or [0]
        settings = (
            self.compared(cell, [method for method in cell.methods if method.width in (0, window)], window)
            for window in windows
        )
        return [setting for setting in settings if setting]

    def main_cells(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """One of the cells that differ in truncation and cap alone.

        Untruncated sampling before top-k and top-p (E.4), then the cell with most prompts, then the highest cap.
        """
        by_rest: dict[CellKey, list[Cell]] = {}
        for cell in cells:
            by_rest.setdefault(cell.key._replace(max_new_tokens=0, top_k=None, top_p=None), []).append(cell)
        chosen = []
        for alike in by_rest.values():
            best = max(alike, key=_rank)
            chosen.append(best)
            self.notices += [
                f"{cell.key}: not among the main settings, which show {best.key}." for cell in alike if cell is not best
            ]
        return chosen

    def adapter_pair(self, cell: Cell, cells: Sequence[Cell]) -> AdapterPair | None:
        key = cell.key._replace(adapter=None, adapter_mode="", model=cell.key.base_model)
        without = next((other for other in cells if other.key == key), None)
        adapted = self.compared(cell, _best_widths(cell))
        base = self.compared(without, _best_widths(without)) if without else None
        if adapted and base:
            try:
                check_same(_named(base, "without") | _named(adapted, "with"), f"{cell.key}", self._mix)
            except UserError as error:
                self.notices.append(str(error))
                return None
        return AdapterPair(base, adapted) if adapted else None


def _named(setting: Setting, how: str) -> Mapping[str, object]:
    return {f"{method} {how} adapter": one for method, one in setting.measured.items()}


def _rank(cell: Cell) -> tuple[bool, int, int]:
    is_whole = cell.key.top_k is None and cell.key.top_p is None
    return is_whole, max(one.prompts for one in cell.methods.values()), cell.key.max_new_tokens


def _is_probe(cell: Cell) -> bool:
    schedules = [method.schedule for method in cell.methods]
    return cell.family != WINDOWED and len(set(schedules)) < len(schedules)


def _best_widths(cell: Cell) -> Sequence[Method]:
    """One method for each schedule: the width with most prompts, then with the highest throughput."""

    def rank(method: Method) -> tuple[int, float]:
        sums = totals(cell.methods[method].records.values())
        return cell.methods[method].prompts, sums["tokens"] / sums["wall_s"] if sums["wall_s"] else 0.0

    schedules = dict.fromkeys(method.schedule for method in cell.methods)
    return [max((m for m in cell.methods if m.schedule == schedule), key=rank) for schedule in schedules]
