"""Cells: all records of one model, task, temperature, verification order, adapter, cap and truncation, by method.

Several runs may hold parts of a cell: other schedules, or shards of its prompts. Where two runs hold the same
responses, one of them is used and the other is named; responses are never counted twice nor averaged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.analysis.study.runs import Facts, Reads, Run
from harness.records.record import Record

# SetDLM's native decoder has no verification order (E.6); it is shown beside left-to-right verification.
NATIVE = "native"
LEFT_TO_RIGHT = "ltr"


class CellKey(NamedTuple):
    """What all methods of a cell share."""

    model: str
    task: str
    temperature: float
    order: str
    adapter: str | None
    max_new_tokens: int
    top_k: int | None = None
    top_p: float | None = None
    adapter_mode: str = ""

    @property
    def base_model(self) -> str:
        """The model without its adapter, where the adapter is a config of the model's own."""
        return self.model.removesuffix("_lora") if self.adapter else self.model

    def __str__(self) -> str:
        parts = [self.model, self.task, f"T = {self.temperature:g}", self.order, f"cap {self.max_new_tokens:,}"]
        adapter = " ".join(filter(None, (self.adapter, self.adapter_mode)))
        more = (("adapter", adapter or None), ("top-k", self.top_k), ("top-p", self.top_p))
        return ", ".join(parts + [f"{name} {value}" for name, value in more if value is not None])


class Method(NamedTuple):
    """A schedule with its speculative width."""

    schedule: str
    width: int

    def __str__(self) -> str:
        return f"{self.schedule} (W = {self.width})" if self.width else self.schedule


@dataclass(frozen=True)
class Measured:
    """What one method did in a cell.

    Attributes:
      records: by prompt and repetition, skipped prompts left out.
      skipped: prompts that did not fit the model's context.
      facts: of the runs that the records come from; more than one where shards differ.
      folders: of these runs.
      config: of the schedule.
      reads: what a forward pass has to read; None where no manifest says.
    """

    records: Mapping[tuple[str, int], Record]
    skipped: frozenset[str]
    facts: frozenset[Facts]
    folders: Sequence[Path]
    config: Mapping[str, Any]
    reads: Reads | None

    @property
    def prompts(self) -> int:
        """Prompts with a response."""
        return len({prompt_id for prompt_id, _ in self.records})


@dataclass(frozen=True)
class Cell:
    """The methods of one cell, in the order of their names."""

    key: CellKey
    family: str
    methods: Mapping[Method, Measured]


@dataclass(frozen=True)
class Grouped:
    """All cells, ordered by their keys, and which runs were not used."""

    cells: Sequence[Cell]
    notices: Sequence[str]


@dataclass(frozen=True)
class _Part:
    run: Run
    records: Sequence[Record]


def group(runs: Iterable[Run], schedules: Sequence[str] = ()) -> Grouped:
    """Sorts records into cells.

    Args:
      schedules: the only ones to look at; empty for all.
    """
    parts: dict[tuple[CellKey, Method], list[_Part]] = {}
    families: dict[CellKey, str] = {}
    for run in runs:
        by_cell: dict[tuple[CellKey, Method], list[Record]] = {}
        for record in run.records:
            if not schedules or record.schedule in schedules:
                by_cell.setdefault(_place(record, run), []).append(record)
        for place, records in by_cell.items():
            parts.setdefault(place, []).append(_Part(run, records))
            families[place[0]] = run.family
    cells: dict[CellKey, dict[Method, Measured]] = {}
    notices: list[str] = []
    for (key, method), candidates in sorted(parts.items(), key=lambda item: (_sortable(item[0][0]), item[0][1])):
        measured, notice = _merged(f"{method} on {key}", candidates, method.schedule)
        cells.setdefault(key, {})[method] = measured
        notices += notice
    return Grouped([Cell(key, families[key], methods) for key, methods in cells.items()], notices)


def _place(record: Record, run: Run) -> tuple[CellKey, Method]:
    order = LEFT_TO_RIGHT if record.schedule == NATIVE else record.order
    return CellKey(
        model=record.model,
        task=record.task,
        temperature=record.temperature,
        order=order,
        adapter=record.adapter,
        max_new_tokens=run.max_new_tokens,
        top_k=record.top_k,
        top_p=record.top_p,
        adapter_mode=run.adapter_mode if record.adapter else "",
    ), Method(record.schedule, record.width)


def _sortable(key: CellKey) -> tuple[tuple[bool, Any], ...]:
    """None before everything else, which Python would not compare it with."""
    return tuple((part is not None, "" if part is None else part) for part in key)


def _merged(what: str, parts: Sequence[_Part], schedule: str) -> tuple[Measured, Sequence[str]]:
    """Shards are put together; of runs that overlap, the one with most responses is used, the newest on a tie."""
    ranked = sorted(parts, key=lambda part: (len(part.records), part.run.started_at), reverse=True)
    records: dict[tuple[str, int], Record] = {}
    used: list[_Part] = []
    notices = []
    for part in ranked:
        fresh = {(record.prompt_id, record.repetition): record for record in part.records}
        if fresh.keys() & records.keys():
            notices.append(f"{what}: {part.run.path} repeats responses of {used[0].run.path} and is not used.")
            continue
        records |= fresh
        used.append(part)
    measured = Measured(
        records={place: record for place, record in records.items() if not record.is_skipped},
        skipped=frozenset(prompt_id for (prompt_id, _), record in records.items() if record.is_skipped),
        facts=frozenset(facts for part in used for facts in part.run.facts),
        folders=[part.run.path for part in used],
        config=used[0].run.schedules.get(schedule, {}),
        reads=used[0].run.reads,
    )
    return measured, notices
