"""WritingBench: requests for long texts (Wu et al. 2025), its English queries; measured for speed only.

The published file, benchmark_all.jsonl of github.com/X-PLUG/WritingBench, does not say in which language a query is,
and mixes them: an English request may come with Chinese material, and the other way round. A query counts as English
when fewer than one in ten of its first 100 characters are Chinese ideographs, for there the request itself stands
nearly always. In the queries that state a length none lies between 0 and 45 %.
"""

import re
from dataclasses import dataclass

from harness.errors import UserError
from harness.tasks.data_files import Files, Row, count_notices, read_json_lines
from harness.tasks.task import DataSet, Item

NAMES = ("benchmark_all.jsonl", "writingbench.jsonl", "writingbench_length_subset.jsonl")
VARIABLE = "WRITINGBENCH_OVERRIDE_PATH"
IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
OPENING = 100  # characters
MOST_IDEOGRAPHS = 0.1  # share of the opening


@dataclass(frozen=True)
class WritingBenchSource:
    """WritingBench's own rows: `index` and `query`; the rest (domains, checklist) is for its judge.

    Attributes:
      data_files: benchmark_all.jsonl, or one of its subsets.
      expected_items: number of English queries in the full file; another number is a notice.
      data_dir: folder with such a file, called as in `NAMES`.
    """

    data_files: str | None = None
    expected_items: int = 555
    data_dir: str | None = None

    @property
    def files(self) -> Files:
        """Where its own file may lie."""
        return Files(self.data_files, self.data_dir, NAMES, VARIABLE)

    def read(self) -> DataSet:
        """Raises `UserError` for anything that is not WritingBench."""
        located = self.files.locate()
        if located is None:
            raise UserError(
                "task: WritingBench is read from its own file only. Get benchmark_query/benchmark_all.jsonl from "
                "github.com/X-PLUG/WritingBench and give it with task.data_files=PATH."
            )
        rows, digest = read_json_lines(located.path, ("index", "query"), located.origin)
        items = [_item(row, f"{located.origin}: object {number}") for number, row in enumerate(rows, start=1)]
        english = [item for item in items if is_english(item.fields["query"])]
        facts = {"file": located.path, "sha256": digest, "queries": len(items), "items": len(english)}
        notices = [*located.notices, *count_notices("writingbench (English)", len(english), self.expected_items)]
        return DataSet(english, facts, notices)


def _item(row: Row, where: str) -> Item:
    if not isinstance(row["query"], str):
        raise UserError(f"{where} has query of type {type(row['query']).__name__}, need text.")
    return Item(f"writingbench/{row['index']}", {"query": row["query"]}, {})


def is_english(query: str) -> bool:
    """Whether fewer than one in ten of the first 100 characters, outer blanks aside, are Chinese ideographs."""
    opening = query.strip()[:OPENING]
    return len(IDEOGRAPH.findall(opening)) < MOST_IDEOGRAPHS * max(1, len(opening))
