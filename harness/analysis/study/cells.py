"""Cells: all records of one model, task, temperature, verification order, adapter, cap and truncation, by method.

Several runs may hold parts of a cell: other schedules, or shards of its prompts. Where two runs hold the same
responses, one of them is used and the other is named; responses are never counted twice nor averaged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from harness.analysis.study.runs import Facts, Reads, Run
from harness.records.frame import answered

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
      records: its responses, indexed and sorted by prompt and repetition; skipped prompts left out.
      skipped: prompts that did not fit the model's context.
      missing: responses that its runs are still to have.
      facts: of the runs that the records come from; more than one where shards differ.
      folders: of these runs.
      config: of the schedule.
      reads: what a forward pass has to read; None where no manifest says.
    """

    records: pd.DataFrame
    skipped: frozenset[str]
    missing: int
    facts: frozenset[Facts]
    folders: Sequence[Path]
    config: Mapping[str, Any]
    reads: Reads | None

    @property
    def prompts(self) -> int:
        """Prompts with a response."""
        return self.records.index.unique("prompt_id").size


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


# What tells the cells and methods of one run apart.
_APART = ["model", "task", "temperature", "order", "adapter", "top_k", "top_p", "schedule", "width"]
_PLACE = ["prompt_id", "repetition"]


@dataclass(frozen=True)
class _Part:
    run: Run
    records: pd.DataFrame


def group(runs: Iterable[Run], schedules: Sequence[str] = ()) -> Grouped:
    """Sorts records into cells.

    Args:
      schedules: the only ones to look at; empty for all.
    """
    parts: dict[tuple[CellKey, Method], list[_Part]] = {}
    families: dict[CellKey, str] = {}
    for run in runs:
        records = run.records
        if schedules:
            records = records[records["schedule"].isin(schedules)]
        for _, group_of_run in records.groupby(_APART, dropna=False, sort=False):
            place = _place(group_of_run.iloc[0], run)
            parts.setdefault(place, []).append(_Part(run, group_of_run))
            families[place[0]] = run.family
    cells: dict[CellKey, dict[Method, Measured]] = {}
    notices: list[str] = []
    for (key, method), candidates in sorted(parts.items(), key=lambda item: (_sortable(item[0][0]), item[0][1])):
        measured, notice = _merged(f"{method} on {key}", candidates, method.schedule)
        cells.setdefault(key, {})[method] = measured
        notices += notice
    return Grouped([Cell(key, families[key], methods) for key, methods in cells.items()], notices)


def _place(record: pd.Series, run: Run) -> tuple[CellKey, Method]:
    adapter, top_k, top_p = (None if pd.isna(record[name]) else record[name] for name in ("adapter", "top_k", "top_p"))
    return CellKey(
        model=record["model"],
        task=record["task"],
        temperature=float(record["temperature"]),
        order=LEFT_TO_RIGHT if record["schedule"] == NATIVE else record["order"],
        adapter=adapter,
        max_new_tokens=run.max_new_tokens,
        top_k=None if top_k is None else int(top_k),
        top_p=None if top_p is None else float(top_p),
        adapter_mode=run.adapter_mode if adapter else "",
    ), Method(record["schedule"], int(record["width"]))


def _sortable(key: CellKey) -> tuple[tuple[bool, Any], ...]:
    """None before everything else, which Python would not compare it with."""
    return tuple((part is not None, "" if part is None else part) for part in key)


def _merged(what: str, parts: Sequence[_Part], schedule: str) -> tuple[Measured, Sequence[str]]:
    """Shards are put together; of runs that overlap, the one with most responses is used, the newest on a tie."""
    ranked = sorted(parts, key=lambda part: (len(part.records), part.run.started_at), reverse=True)
    kept: list[pd.DataFrame] = []
    used: list[_Part] = []
    strangers: set[Facts] = set()
    notices = []
    for part in ranked:
        records = part.records.drop_duplicates(_PLACE, keep="last").set_index(_PLACE)
        if any(records.index.isin(other.index).any() for other in kept):
            notices.append(f"{what}: {part.run.path} repeats responses of {used[0].run.path} and is not used.")
            # Of two runs of other weights or data under one name, neither is the one that is meant.
            strangers |= {facts for facts in part.run.facts if facts.subject != used[0].run.facts[0].subject}
            continue
        kept.append(records)
        used.append(part)
    records = pd.concat(kept).sort_index()
    responses = answered(records)
    measured = Measured(
        records=responses,
        skipped=frozenset(records.index.difference(responses.index).unique("prompt_id")),
        missing=max(_planned(used) - len(records), 0),
        facts=frozenset(facts for part in used for facts in part.run.facts) | strangers,
        folders=[part.run.path for part in (parts if strangers else used)],
        config=used[0].run.schedules.get(schedule, {}),
        reads=used[0].run.reads,
    )
    return measured, notices


def _planned(parts: Sequence[_Part]) -> int:
    """Responses that the runs of a method plan together; what several of them plan is planned once."""
    repetitions = max(part.run.planned.repetitions for part in parts)
    return len(frozenset().union(*(part.run.planned.prompts for part in parts))) * repetitions
