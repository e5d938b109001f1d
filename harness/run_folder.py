"""The folder of one run: manifest.json, records.jsonl, summary.json, and the lock of the process that works in it."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records import Record, last_line, read_records, torn_bytes
from harness.work_folder import WorkFolder


class RunFolder(WorkFolder):
    """A run's files. Records are appended and flushed one by one; other files are written beside and renamed."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.records_file = path / "records.jsonl"

    def records(self) -> Iterator[Record]:
        """The records so far.

        Raises:
          UserError: a line was changed or damaged.
        """
        return read_records(self.records_file)

    def append(self, record: Record) -> None:
        """Adds one record and hands it to the disk; what cannot be written whole leaves no trace.

        Raises:
          UserError: the disk is full, or the file cannot be written.
        """
        line = record.line().encode()
        with self._written("records.jsonl"), self.records_file.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(line) < len(line):
                    raise OSError(None, "only a part was written; the disk may be full")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(before)
                raise

    def drop_torn_end(self) -> None:
        """Takes away what a killed run left of its last line; a last line that is whole gets its newline."""
        last = last_line(self.records_file)
        torn = torn_bytes(last)
        with self.records_file.open("ab") as file:
            if torn:
                file.truncate(file.tell() - torn)
                print(f"notice: dropped a torn last line of {torn} bytes; its response is missing", file=sys.stderr)
            elif last:
                file.write(b"\n")

    def replace_records(self, lines: Iterable[str]) -> None:
        """Puts other lines in the place of all records, in one step.

        Raises:
          UserError: they cannot be written; the records stay as they were.
        """
        partial = self.path / f"{self.records_file.name}.partial"
        with self._written(self.records_file.name):
            with partial.open("w") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.records_file)

    def replace(self, manifest: Mapping[str, Any], lines: Iterable[str]) -> None:
        """Makes this the folder of another run, which is whole.

        Raises:
          UserError: the folder cannot be written, or a process works in it.
        """
        with self._locked():
            self.replace_records(lines)
            with self._written("manifest.json"):
                self.write_json("manifest.json", manifest)

    def _check_new(self) -> None:
        if self.records_file.exists() and self.records_file.stat().st_size:
            raise UserError(f"run_dir={self.path}: has records but no manifest.json. Give another run_dir.")

    def _make_ready(self) -> None:
        self.records_file.touch()

    def _go_on(self, plan: Mapping[str, Any]) -> None:
        self.drop_torn_end()
        self._check_records(plan)

    def _check_records(self, plan: Mapping[str, Any]) -> None:
        """Every record must be one of this run's, once."""
        prompts, schedules = set(plan["prompts"]), set(plan["schedules"])
        seen: set[tuple[str, str, int]] = set()
        for record in self.records():
            schedule, prompt_id, repetition = record.key
            where = f"{self.records_file}: {schedule} on {prompt_id}, repetition {repetition}"
            if record.key in seen:
                raise UserError(f"{where}, is there twice. Take one of the two lines out.")
            if schedule not in schedules or prompt_id not in prompts or repetition >= plan["repetitions"]:
                raise UserError(f"{where}, is no response of this run. Take the line out, or give another run_dir.")
            seen.add(record.key)


def folders_with(names: Sequence[str], paths: Iterable[Path]) -> Sequence[Path]:
    """The folders at and below `paths` that hold a file of one of `names`, in order.

    Raises:
      UserError: one of `paths` is no folder.
    """
    found: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path}: no such folder. Give run folders, or folders that hold some.")
        found |= {file.parent for name in names for file in path.rglob(name)}
    return sorted(found)
