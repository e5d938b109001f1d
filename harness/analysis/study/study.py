"""Which cells the figures and tables are about: chosen once, from everything that was found.

Main cells compare schedules at the width that each is run at; probes compare widths; adapter pairs compare a cell
with and without a proposal-only adapter.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.analysis.study.cells import Cell, CellKey, Method, group
from harness.analysis.study.grid import place_in_order
from harness.analysis.study.paired import PairedCell, check_same, compare
from harness.analysis.study.runs import Run, find_runs
from harness.errors import UserError
from harness.records.metrics import totals

# The family whose schedules share one width, the window, and are compared window by window (section 4.1).
WINDOWED = "setdlm"


class AdapterPair(NamedTuple):
    """The same cell without and with an adapter; either may not have been run."""

    base: PairedCell | None
    adapted: PairedCell


@dataclass(frozen=True)
class Study:
    """Everything that can be shown.

    Attributes:
      main: one cell for each model, task, temperature, order and, where the family has them, window.
      probes: cells in which some schedule was run at several widths, with all of them.
      adapters: cells with an adapter.
      runs: the run folders, for what lies beside their records.
      notices: what was left out, and why.
    """

    main: Sequence[PairedCell]
    probes: Sequence[PairedCell]
    adapters: Sequence[AdapterPair]
    runs: Sequence[Run]
    notices: Sequence[str]

    def cells(self, temperature: float | None = None, order: str | None = None) -> Sequence[PairedCell]:
        """Main cells of one temperature and order; None takes any."""
        return [
            cell
            for cell in self.main
            if temperature in (None, cell.key.temperature) and order in (None, cell.key.order)
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
    recorded_cells = [recorded for recorded in grouped.cells if recorded.key.adapter is None]
    main = [cell for recorded in builder.main_cells(recorded_cells) for cell in builder.cells(recorded)]
    probes = [builder.compared(recorded, list(recorded.methods)) for recorded in recorded_cells if _is_probe(recorded)]
    adapted = [recorded for recorded in grouped.cells if recorded.key.adapter is not None]
    pairs = [builder.adapter_pair(recorded, recorded_cells) for recorded in adapted]
    return Study(
        main=sorted(main, key=place_in_order),
        probes=[cell for cell in probes if cell],
        adapters=[pair for pair in pairs if pair],
        runs=found.runs,
        notices=list(dict.fromkeys(builder.notices)),
    )


class _Builder:
    """Builds cells; what cannot be compared becomes a notice."""

    def __init__(self, mix: Collection[str], notices: Sequence[str]):
        self._mix = mix
        self.notices = list(notices)

    def compared(self, recorded: Cell, methods: Collection[Method], window: int | None = None) -> PairedCell | None:
        try:
            cell = compare(recorded, methods, self._mix, window)
        except UserError as error:
            self.notices.append(str(error))
            return None
        self.notices += cell.notices
        return cell

    def cells(self, recorded: Cell) -> Sequence[PairedCell]:
        if recorded.family != WINDOWED:
            cell = self.compared(recorded, _best_widths(recorded))
            return [cell] if cell else []
        windows = sorted({method.width for method in recorded.methods if method.width}) or [0]
        cells = (
            self.compared(recorded, [method for method in recorded.methods if method.width in (0, window)], window)
            for window in windows
        )
        return [cell for cell in cells if cell]

    def main_cells(self, recorded_cells: Sequence[Cell]) -> Sequence[Cell]:
        """One of the cells that differ in truncation and cap alone.

        Untruncated sampling before top-k and top-p (E.4), then the cell with most prompts, then the highest cap.
        """
        by_rest: dict[CellKey, list[Cell]] = {}
        for recorded in recorded_cells:
            by_rest.setdefault(recorded.key._replace(max_new_tokens=0, top_k=None, top_p=None), []).append(recorded)
        chosen = []
        for alike in by_rest.values():
            best = max(alike, key=_rank)
            chosen.append(best)
            self.notices += [
                f"{recorded.key}: not among the main cells, which show {best.key}."
                for recorded in alike
                if recorded is not best
            ]
        return chosen

    def adapter_pair(self, recorded: Cell, recorded_cells: Sequence[Cell]) -> AdapterPair | None:
        key = recorded.key._replace(adapter=None, adapter_mode="", model=recorded.key.base_model)
        without = next((other for other in recorded_cells if other.key == key), None)
        adapted = self.compared(recorded, _best_widths(recorded))
        base = self.compared(without, _best_widths(without)) if without else None
        if adapted and base:
            try:
                check_same(_named(base, "without") | _named(adapted, "with"), f"{recorded.key}", self._mix)
            except UserError as error:
                self.notices.append(str(error))
                return None
        return AdapterPair(base, adapted) if adapted else None


def _named(cell: PairedCell, how: str) -> Mapping[str, object]:
    return {f"{method} {how} adapter": one for method, one in cell.measured.items()}


def _rank(recorded: Cell) -> tuple[bool, int, int]:
    is_whole = recorded.key.top_k is None and recorded.key.top_p is None
    return is_whole, max(one.prompts for one in recorded.methods.values()), recorded.key.max_new_tokens


def _is_probe(recorded: Cell) -> bool:
    schedules = [method.schedule for method in recorded.methods]
    return recorded.family != WINDOWED and len(set(schedules)) < len(schedules)


def _best_widths(recorded: Cell) -> Sequence[Method]:
    """One method for each schedule: the width with most prompts, then with the highest throughput."""

    def rank(method: Method) -> tuple[int, float]:
        sums = totals(recorded.methods[method].records)
        return recorded.methods[method].prompts, sums["tokens"] / sums["wall_s"] if sums["wall_s"] else 0.0

    schedules = dict.fromkeys(method.schedule for method in recorded.methods)
    return [max((m for m in recorded.methods if m.schedule == schedule), key=rank) for schedule in schedules]
