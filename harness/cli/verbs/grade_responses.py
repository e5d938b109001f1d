"""usage: python -m harness grade-responses TASK FILE [KEY=VALUE ...]

Grades answers that any system produced, over all cores. FILE has one JSON object a line: `id`, `response`, and

  "prompt_id": ID                               an item of the data set, with or without "TASK/" before it, or
  "gold": ANSWER                                for mathematics, or
  "tests": [STATEMENT, ...] with "prompt": CODE or "entry_point": NAME (or both)    for code

Writes one JSON object a line to standard output, in the order of FILE: `id`, `correct` (null: not scored), `reason`,
the extracted `answer`, and further findings of the grader. The data set is read only if a line names a prompt_id.
A line that cannot be understood stops nothing: its reason is `infra` and what is wrong with it, and the exit status 2.

  task.data_files=PATH        a data set's own file instead of the hub
  task.selection=all          the whole of MBPP instead of the 378 problems of EvalPlus
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from graders.code import Program
from graders.parallel import grade_all
from graders.programs.reference import CodeReference
from graders.speed import SpeedOnly
from graders.verdict import Verdict
from harness.cli.arguments import Overrides, Takes, Words
from harness.config.compose import compose
from harness.errors import UserError
from harness.running.build import build
from harness.tasks.data_files import Row, check_keys, numbered_lines, read_bytes, row_of
from harness.tasks.task import Task

Reference = Mapping[str, Any]

MOST_NAMED = 3  # broken lines in the closing message
NAMED_FIRST = "the task is named without task=, as in grade-responses gsm8k answers.jsonl. Leave this out."
TAKES = Takes(
    "grade-responses",
    Words(least=2, most=2, ask="name a task and a file, as in grade-responses gsm8k answers.jsonl"),
    overrides=Overrides(refused={"task": NAMED_FIRST}),
)


@dataclass(frozen=True)
class Line:
    """One line of the file: what it asks to be graded by what, or why that cannot be understood."""

    where: str
    row: Row
    reference: Reference | None = None
    problem: str | None = None


def main(arguments: Sequence[str]) -> int:
    """Grades and prints line by line; broken lines are named at the end."""
    given = TAKES.read(arguments)
    name, file = given.words
    task = build(compose([f"task={name}", *given.overrides]).task, "task")
    if isinstance(task.grader, SpeedOnly):
        raise UserError(f"grade-responses {name}: this task measures speed only, there is nothing to grade.")
    lines = _lines(task, file)
    pairs = [(line.row["response"], line.reference) for line in lines if not line.problem]
    verdicts = grade_all(task.grader, pairs)
    with tqdm(total=len(lines), unit="response", file=sys.stderr, dynamic_ncols=True) as bar:
        for line in lines:
            verdict = Verdict(None, f"infra\n{line.problem}") if line.problem else next(verdicts)
            print(json.dumps({"id": line.row.get("id"), **verdict.record()}), flush=True)
            bar.update()
    problems = [line.problem for line in lines if line.problem]
    if problems:
        more = f" And {len(problems) - MOST_NAMED} more." if len(problems) > MOST_NAMED else ""
        raise UserError(
            f"{len(problems)} of {len(lines)} lines are not graded. {' '.join(problems[:MOST_NAMED])}{more}"
        )
    return 0


def _lines(task: Task, file: str) -> Sequence[Line]:
    """The lines of the file, each with what its response is judged by."""
    numbered = numbered_lines(read_bytes(Path(file), file), file)
    lines = [_line(text, f"{file}: line {number}", task) for number, text in numbered]
    if not lines:
        raise UserError(f"{file}: the file is empty, need one JSON object a line.")
    items = _items(task) if any(line.row.get("prompt_id") is not None for line in lines) else {}
    return [line if line.problem else _with_reference(line, task, items) for line in lines]


def _line(text: bytes, where: str, task: Task) -> Line:
    row: Row = {}
    try:
        row = row_of(text, where)
        _check(row, task, where)
    except UserError as error:
        return Line(where, row, problem=str(error))
    return Line(where, row)


def _check(row: Row, task: Task, where: str) -> None:
    """Raises `UserError` where a line does not say, in the right types, what to judge the response by."""
    check_keys(row, ("id", "response"), where)
    if not isinstance(row["response"], str):
        raise UserError(f"{where} has response of type {type(row['response']).__name__}, need text.")
    own = "tests" if isinstance(task.grader, Program) else "gold"
    given = [key for key in ("prompt_id", own) if row.get(key) is not None]
    if len(given) != 1:
        found = "both" if given else "neither"
        raise UserError(f"{where} has {found} of prompt_id and {own}; {task.name} needs one of them.")
    if given == ["prompt_id"]:
        _check_type(row, "prompt_id", where)
    elif own == "gold":
        _check_type(row, "gold", where)
    else:
        _check_code(row, where)


def _check_type(row: Row, key: str, where: str) -> None:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(f"{where} has {key} of type {type(value).__name__}, need text or a number.")


def _check_code(row: Row, where: str) -> None:
    tests = row["tests"]
    if not isinstance(tests, list) or not tests or not all(isinstance(test, str) for test in tests):
        raise UserError(f"{where} has tests that are no list of statements.")
    for key in ("prompt", "entry_point"):
        if not isinstance(row.get(key, ""), str):
            raise UserError(f"{where} has {key} of type {type(row[key]).__name__}, need text.")
    if not row.get("prompt") and not row.get("entry_point"):
        raise UserError(f"{where} has neither prompt nor entry_point; its tests need one of them.")
    try:
        CodeReference.read(_own_tests(row))
    except (ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}.") from None


def _own_tests(row: Row) -> Reference:
    return {key: row[key] for key in ("prompt", "entry_point", "setup", "tests") if key in row}


def _items(task: Task) -> Mapping[str, Reference]:
    data = task.read()
    for notice in data.notices:
        print(f"notice: {notice}", file=sys.stderr)
    return {item.prompt_id.lower(): item.reference for item in data.items}


def _with_reference(line: Line, task: Task, items: Mapping[str, Reference]) -> Line:
    row = line.row
    if row.get("prompt_id") is None:
        own = _own_tests(row) if isinstance(task.grader, Program) else {"gold": str(row["gold"])}
        return replace(line, reference=own)
    prompt_id = str(row["prompt_id"]).lower()
    for candidate in (prompt_id, f"{task.name}/{prompt_id}"):
        if candidate in items:
            return replace(line, reference=items[candidate])
    example = next(iter(items), f"{task.name}/0")
    problem = f"{line.where}: no item {row['prompt_id']} among {len(items)} of {task.name}. Ids read like {example}."
    return replace(line, problem=problem)
