"""GSM8K: grade-school word problems (Cobbe et al. 2021), the 1,319 questions of the test split."""

from dataclasses import dataclass

from harness.tasks.data_files import Files, HubSet, count_notices, read_table
from harness.tasks.task import DataSet, Item

HUB = HubSet("openai/gsm8k", "main", "test")
NAMES = ("gsm8k_test.jsonl", "gsm8k/test.jsonl")


@dataclass(frozen=True)
class Gsm8kSource:
    """GSM8K's own rows: `question`, and `answer` whose last line is "#### number".

    Attributes:
      revision: the hub commit that is read where there is no local file.
      data_files: GSM8K's test.jsonl.
      expected_items: number of items in the published set; another number is a notice.
      data_dir: folder with such a file, called as in `NAMES`.
    """

    revision: str
    data_files: str | None = None
    expected_items: int = 1319
    data_dir: str | None = None

    @property
    def files(self) -> Files:
        """Where its own file may lie."""
        return Files(self.data_files, self.data_dir, NAMES)

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not GSM8K."""
        table = read_table(self.files, HUB, self.revision, ("question", "answer"))
        table.check_texts("question", "answer")
        items = [
            Item(f"gsm8k/{number}", {"question": row["question"]}, {"gold": row["answer"]}, _boxed(row["answer"]))
            for number, row in enumerate(table.rows)
        ]
        notices = [*table.notices, *count_notices("gsm8k", len(items), self.expected_items)]
        return DataSet(items, table.facts | {"items": len(items)}, notices)


def _boxed(answer: str) -> str:
    """A worked answer with its "#### number" as the box that the prompt asks for."""
    steps, _, number = answer.rpartition("####")
    return f"{steps}\\boxed{{{number.strip()}}}"
