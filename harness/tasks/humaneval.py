"""HumanEval: 164 Python functions to complete (Chen et al. 2021), judged by their own tests."""

from dataclasses import dataclass

from harness.errors import UserError
from harness.tasks.data_files import Files, HubSet, Row, count_notices, read_table
from harness.tasks.task import DataSet, Item

HUB = HubSet("openai/openai_humaneval", "openai_humaneval", "test")
NAMES = ("HumanEval.jsonl.gz", "HumanEval.jsonl")
VARIABLE = "HUMANEVAL_OVERRIDE_PATH"
KEYS = ("task_id", "prompt", "entry_point", "canonical_solution")


@dataclass(frozen=True)
class HumanEvalSource:
    """HumanEval's own rows: `task_id`, `prompt`, `entry_point`, `canonical_solution`, `test`.

    A file in EvalPlus' layout is read if its rows have `test` too. One that has only inputs (`base_input`), whose
    results EvalPlus computes, is refused: the base tests are HumanEval's own.

    Attributes:
      revision: the hub commit that is read where there is no local file.
      data_files: HumanEval.jsonl or HumanEval.jsonl.gz; where it is null, EvalPlus' variable HUMANEVAL_OVERRIDE_PATH
        may name the file.
      expected_items: number of items in the published set; another number is a notice.
      data_dir: folder with such a file, called as in `NAMES`.
    """

    revision: str
    data_files: str | None = None
    expected_items: int = 164
    data_dir: str | None = None

    @property
    def files(self) -> Files:
        """Where its own file may lie."""
        return Files(self.data_files, self.data_dir, NAMES, VARIABLE)

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not HumanEval."""
        table = read_table(self.files, HUB, self.revision, KEYS)
        if any("test" not in row and "base_input" in row for row in table.rows):
            raise UserError(
                f"{table.origin}: EvalPlus' inputs without HumanEval's tests. Give OpenAI's HumanEval.jsonl.gz."
            )
        table.check_texts(*KEYS, "test")
        items = [_item(row) for row in table.rows]
        notices = [*table.notices, *count_notices("humaneval", len(items), self.expected_items)]
        return DataSet(items, table.facts | {"items": len(items)}, notices)


def _item(row: Row) -> Item:
    return Item(
        f"humaneval/{row['task_id'].rpartition('/')[2]}",
        {"prompt": row["prompt"], "entry_point": row["entry_point"]},
        {
            "prompt": row["prompt"],
            "entry_point": row["entry_point"],
            "tests": [row["test"], f"check({row['entry_point']})"],
        },
        f"```python\n{row['prompt']}{row['canonical_solution']}\n```",
    )
