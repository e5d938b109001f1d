"""MBPP: short Python functions described in a sentence (Austin et al. 2021), judged by their own assertions.

The paper's 378 problems are those of EvalPlus' MBPP+ v0.2.0, with MBPP's original tests: the assertions of the data
set itself, which the prompt shows, not the inputs that EvalPlus adds.
"""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UserError, unknown
from harness.tasks.data_files import Files, HubSet, Row, Table, count_notices, read_table
from harness.tasks.task import DataSet, Item

HUB = HubSet("google-research-datasets/mbpp", "full", "train+validation+test+prompt")
NAMES = ("mbpp.jsonl", "MbppPlus.jsonl")
VARIABLE = "MBPP_OVERRIDE_PATH"
IDS_FILE = Path(__file__).with_name("mbpp_evalplus_ids.json")
ORIGINAL_KEYS = ("text", "code", "test_list")
EVALPLUS_KEYS = ("prompt", "canonical_solution", "entry_point", "assertion")
PUBLISHED = {"evalplus": 378, "all": 974}


@dataclass(frozen=True)
class MbppSource:
    """MBPP in one of two layouts, told apart by their keys.

    - The original: `task_id` (a number), `text`, `code`, `test_setup_code`, `test_list`.
    - EvalPlus' MbppPlus.jsonl: `task_id` ("Mbpp/2"), `prompt`, `canonical_solution`, `entry_point`, `assertion`. Of
      its tests only `assertion` is used, MBPP's own as EvalPlus mended them; `base_input`, `plus_input` and
      `contract` are not.

    Attributes:
      revision: the hub commit that is read where there is no local file.
      data_files: mbpp.jsonl or MbppPlus.jsonl; where it is null, EvalPlus' variable MBPP_OVERRIDE_PATH may name the
        file.
      selection: `evalplus` for EvalPlus' 378 problems, `all` for everything in the file.
      expected_items: number of items in the published set by selection; another number is a notice.
      data_dir: folder with such a file, called as in `NAMES`.
    """

    revision: str
    data_files: str | None = None
    selection: str = "evalplus"
    expected_items: Mapping[str, int] = field(default_factory=PUBLISHED.copy)
    data_dir: str | None = None

    def __post_init__(self) -> None:
        if self.selection not in PUBLISHED:
            raise unknown("task.selection", str(self.selection), PUBLISHED)

    @property
    def files(self) -> Files:
        """Where its own file may lie."""
        return Files(self.data_files, self.data_dir, NAMES, VARIABLE)

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not MBPP."""
        table = read_table(self.files, HUB, self.revision, ("task_id",))
        items = self._selected(_items(table))
        count = count_notices(f"mbpp ({self.selection})", len(items), self.expected_items[self.selection])
        facts = table.facts | {"selection": self.selection, "items": len(items)}
        return DataSet(items, facts, [*table.notices, *count])

    def _selected(self, items: Mapping[int, Item]) -> Sequence[Item]:
        """By number: the hub keeps MBPP in four splits, its own file in order."""
        numbers = sorted(items)
        if self.selection == "evalplus":
            wanted = set(evalplus_numbers())
            numbers = [number for number in numbers if number in wanted]
        return [items[number] for number in numbers]


def evalplus_numbers() -> Sequence[int]:
    """Task numbers of EvalPlus' 378 problems."""
    return json.loads(IDS_FILE.read_text())["task_ids"]


def _items(table: Table) -> Mapping[int, Item]:
    is_evalplus = "assertion" in table.rows[0]
    table.check_texts(*(key for key in (EVALPLUS_KEYS if is_evalplus else ORIGINAL_KEYS) if key != "test_list"))
    items = {}
    for position, row in enumerate(table.rows, start=1):
        where = f"{table.origin}: object {position}"
        number = str(row["task_id"]).rpartition("/")[2]
        if not number.isdecimal():
            raise UserError(f"{where} has task_id {row['task_id']!r}, need a number, or Mbpp/NUMBER.")
        if int(number) in items:
            raise UserError(f"{where} has task_id {row['task_id']!r} a second time.")
        items[int(number)] = (_evalplus_item if is_evalplus else _original_item)(int(number), row, where)
    return items


def _original_item(number: int, row: Row, where: str) -> Item:
    tests = row.get("test_list")
    if not isinstance(tests, list) or not tests or not all(isinstance(test, str) for test in tests):
        raise UserError(f"{where} has a test_list that is no list of statements.")
    reference = {"tests": [_lines(test) for test in tests], "setup": _lines(row.get("test_setup_code") or "")}
    return _item(number, row["text"], reference, row["code"])


def _evalplus_item(number: int, row: Row, where: str) -> Item:
    try:
        tests = [ast.get_source_segment(row["assertion"], node) for node in ast.parse(row["assertion"]).body]
        text = ast.get_docstring(ast.parse(row["prompt"])) or row["prompt"]
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{where} has an assertion or a prompt that is not Python ({error}).") from None
    # EvalPlus shows one of the tests in the prompt; the template shows all of them.
    description = "\n".join(line for line in text.split("\n") if not line.startswith("assert "))
    reference = {"entry_point": row["entry_point"], "tests": tests}
    return _item(number, description, reference, row["canonical_solution"])


def _item(number: int, text: str, reference: Mapping[str, object], code: str) -> Item:
    fields = {"text": _lines(text).strip(), "tests": "\n".join(reference["tests"])}
    return Item(f"mbpp/{number}", fields, reference, f"```python\n{_lines(code).strip()}\n```")


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")
