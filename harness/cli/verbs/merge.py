"""usage: python -m harness merge PATH [PATH ...] [into=PATH]

Puts the shards of a run together. PATH is a shard's folder or one that holds shards, as run_dir=PATH shard=I/N makes.

  into=PATH   where the whole run goes; the folder that holds the shards by default

The shards must belong together: same config, code, model and data. Prompts that are in several shards, or missing,
are named and nothing is written. The shards stay as they are; figures and tables then use the whole run.
"""

from collections.abc import Sequence
from pathlib import Path

from harness.cli.closing_table import closing_table
from harness.errors import UserError, unknown
from harness.records.folder import RunFolder
from harness.records.frame import read_run
from harness.records.summary import summarize
from harness.running.merge import merge, parts_below


def main(arguments: Sequence[str]) -> int:
    """Merges, writes summary.json, and prints the table."""
    paths = [Path(argument) for argument in arguments if "=" not in argument]
    options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    for key in options.keys() - {"into"}:
        raise unknown("key", key, ["into"])
    if not paths:
        raise UserError("merge: names no folder. Give the shards' folders, or the one that holds them.")
    if "into" not in options and len(paths) > 1:
        raise UserError("merge: several folders. Say where the whole run goes, with into=PATH.")
    target = RunFolder(Path(options.get("into", paths[0])))
    parts = parts_below(paths, target.path)
    manifest = merge(parts, target)
    summary = summarize(read_run(target.path).frame, None)
    target.write_json("summary.json", summary)
    plan = manifest["plan"]
    print(closing_table(summary, len(plan["prompts"]) * plan["repetitions"]))
    print(f"records: {target.records_file}, from {len(parts)} shards")
    return 0
