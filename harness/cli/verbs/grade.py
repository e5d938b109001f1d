"""usage: python -m harness grade RUN

Grades a run again from its records, over all cores, with the graders as they are now. RUN is the run's folder; task,
grader and data file are those of its manifest. Replaces the verdicts in records.jsonl and nothing else there, writes
summary.json anew, and prints the table.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from tqdm import tqdm

from graders.parallel import grade_all
from harness.cli.arguments import Takes, Words
from harness.cli.closing_table import closing_table
from harness.errors import UserError
from harness.records.folder import RunFolder
from harness.records.frame import read_run
from harness.records.lock import locked
from harness.records.record import FAILED, SKIPPED, sealed
from harness.records.shard import own_prompts
from harness.records.summary import summarize
from harness.running.build import build
from harness.tasks.task import DataSet, Task

TAKES = Takes("grade", Words(least=1, most=1, ask="takes the folder of one run"))


def main(arguments: Sequence[str]) -> int:
    """Grades one run."""
    (path,) = TAKES.read(arguments).paths
    folder = RunFolder(path)
    manifest = _manifest(folder)
    task = build(OmegaConf.create(manifest["config"]["task"]), "task")
    data = task.read()
    _check_same_data(folder, manifest["data"], data.facts)
    with locked(folder.path):
        unscored = _grade(folder, task, data)
        summary = summarize(read_run(folder.path).frame, folder.conditions())
        folder.write_json("summary.json", summary)
    plan = manifest["plan"]
    print(closing_table(summary, len(own_prompts(plan)) * plan["repetitions"]))
    if unscored:
        print(f"PARTIAL: {unscored} responses unscored, the grader itself failed (infra)")
    print(f"records: {folder.records_file}")
    return 0


def _manifest(folder: RunFolder) -> Mapping[str, Any]:
    for name in ("manifest.json", "records.jsonl"):
        if not (folder.path / name).is_file():
            raise UserError(f"grade {folder.path}: no run there, it has no {name}.")
    return folder.read_manifest()


def _check_same_data(folder: RunFolder, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in ("sha256", "revision"):
        if before.get(key) != now.get(key):
            raise UserError(
                f"grade {folder.path}: its data had {key} {before.get(key)}, now it is {now.get(key)}. "
                "Put the data set that was run back in its place."
            )


def _grade(folder: RunFolder, task: Task, data: DataSet) -> int:
    """Replaces the verdicts of a run's records in one step; gives the number of responses that have no score.

    Lines are changed as plain JSON values, so that what this version does not know stays as it is.
    """
    folder.drop_torn_end()
    costs_only = next((record.costs_only for record in folder.records() if record.costs_only), None)
    if costs_only:
        raise UserError(f"grade {folder.path}: measured with {costs_only}; there is nothing to grade.")
    rows = [json.loads(line) for line in folder.records_file.read_bytes().split(b"\n") if line]
    references = {item.prompt_id: item.reference for item in data.items}
    unknown = sorted({row["prompt_id"] for row in rows} - references.keys())
    if unknown:
        raise UserError(f"grade {folder.path}: {', '.join(unknown[:5])} of its records not among the data's items.")
    graded = [row for row in rows if row["stop_reason"] not in (SKIPPED, FAILED)]
    verdicts = grade_all(task.grader, ((row["text"], references[row["prompt_id"]]) for row in graded))
    bar = tqdm(verdicts, total=len(graded), unit="response", file=sys.stderr, dynamic_ncols=True)
    unscored = 0
    for row, verdict in zip(graded, bar, strict=True):
        row["verdict"] = verdict.record()
        unscored += verdict.kind == "infra"
    folder.replace_records(sealed(row) for row in rows)
    return unscored
