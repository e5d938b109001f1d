"""usage: python -m harness merge PATH [PATH ...] [into=PATH]

Puts the shards of a run together. PATH is a shard's folder or one that holds shards, as run_dir=PATH shard=I/N makes.

  into=PATH   where the whole run goes; the folder that holds the shards by default

The shards must belong together: same config, code, model and data. Prompts that are in several shards, or missing,
are named and nothing is written. The shards stay as they are; figures and tables then use the whole run.
"""

from collections.abc import Sequence

from harness.cli.arguments import Takes, Words
from harness.cli.closing_table import closing_table
from harness.cli.keys import PathKey
from harness.errors import UserError
from harness.records.folder import RunFolder
from harness.records.frame import read_run
from harness.records.summary import summarize
from harness.running.merge import merge, parts_below

SHARDS = Words(least=1, ask="names no folder. Give the shards' folders, or the one that holds them")
TAKES = Takes("merge", SHARDS, (PathKey("into"),))


def main(arguments: Sequence[str]) -> int:
    """Merges, writes summary.json, and prints the table."""
    given = TAKES.read(arguments)
    if not given["into"] and len(given.paths) > 1:
        raise UserError("merge: several folders. Say where the whole run goes, with into=PATH.")
    target = RunFolder(given["into"] or given.paths[0])
    parts = parts_below(given.paths, target.path)
    manifest = merge(parts, target)
    summary = summarize(read_run(target.path).frame, {})
    target.write_json("summary.json", summary)
    plan = manifest["plan"]
    print(closing_table(summary, len(plan["prompts"]) * plan["repetitions"]))
    print(f"records: {target.records_file}, from {len(parts)} shards")
    return 0
