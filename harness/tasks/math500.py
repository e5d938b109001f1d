"""MATH-500: the 500 problems of MATH (Hendrycks et al. 2021) that Lightman et al. 2023 held out."""

from dataclasses import dataclass

from harness.tasks.data_files import Files, HubSet, count_notices, read_table
from harness.tasks.task import DataSet, Item

HUB = HubSet("HuggingFaceH4/MATH-500", None, "test")
NAMES = ("math500_test.jsonl", "math500/test.jsonl")
KEYS = ("problem", "solution", "answer", "unique_id")


@dataclass(frozen=True)
class Math500Source:
    """MATH-500's own rows: `problem`, `solution` with its answer boxed, `answer`, `unique_id`.

    Attributes:
      revision: the hub commit that is read where there is no local file.
      data_files: MATH-500's test.jsonl.
      expected_items: number of items in the published set; another number is a notice.
      data_dir: folder with such a file, called as in `NAMES`.
    """

    revision: str
    data_files: str | None = None
    expected_items: int = 500
    data_dir: str | None = None

    @property
    def files(self) -> Files:
        """Where its own file may lie."""
        return Files(self.data_files, self.data_dir, NAMES)

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not MATH-500."""
        table = read_table(self.files, HUB, self.revision, KEYS)
        table.check_texts(*KEYS)
        items = [
            Item(f"math500/{row['unique_id']}", {"problem": row["problem"]}, {"gold": row["answer"]}, row["solution"])
            for row in table.rows
        ]
        notices = [*table.notices, *count_notices("math500", len(items), self.expected_items)]
        return DataSet(items, table.facts | {"items": len(items)}, notices)
