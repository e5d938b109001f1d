"""GSM8K: grade-school word problems (Cobbe et al. 2021), the 1,319 questions of the test split."""

from dataclasses import dataclass

from harness.errors import UserError
from harness.tasks.data_files import read_hub, read_json_lines
from harness.tasks.task import DataSet, Item

REPOSITORY, CONFIGURATION, SPLIT = "openai/gsm8k", "main", "test"


@dataclass(frozen=True)
class Gsm8kSource:
    """GSM8K's own rows: `question`, and `answer` whose last line is "#### number".

    Attributes:
      revision: the hub commit that is read where there is no local file.
      data_files: GSM8K's test.jsonl.
      expected_items: number of items in the published set; another number is a notice.
    """

    revision: str
    data_files: str | None = None
    expected_items: int = 1319

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not GSM8K."""
        if self.data_files is not None:
            rows, digest = read_json_lines(self.data_files, ("question", "answer"))
            facts = {"file": str(self.data_files), "sha256": digest}
        else:
            rows, revision = read_hub(REPOSITORY, CONFIGURATION, SPLIT, self.revision)
            facts = {"hub": REPOSITORY, "revision": revision}
        for number, row in enumerate(rows, start=1):
            for key in ("question", "answer"):
                if not isinstance(row[key], str):
                    raise UserError(
                        f"task.data_files={self.data_files}: object {number} has {key} of type "
                        f"{type(row[key]).__name__}, need text."
                    )
        items = [
            Item(f"gsm8k/{number}", {"question": row["question"]}, {"gold": row["answer"]})
            for number, row in enumerate(rows)
        ]
        notices = []
        if len(items) != self.expected_items:
            notices.append(f"gsm8k: {len(items)} items, the published set has {self.expected_items}")
        return DataSet(items, facts | {"items": len(items)}, notices)
