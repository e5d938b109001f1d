"""The folder of one run: manifest.json, records.jsonl, summary.json."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records import Record, read_records

# What may differ between the first start of a run and its continuation.
FREE_KEYS = ("run_dir", "samples")


class RunFolder:
    """A run's files. Records are appended and flushed one by one; other files are written beside and renamed."""

    def __init__(self, path: Path):
        self.path = path
        self.records_file = path / "records.jsonl"

    def open(self, manifest: Mapping[str, Any]) -> Sequence[Record]:
        """Makes the folder, or goes on with the run that it holds; gives the records that are there.

        Raises:
          UserError: the folder cannot be written, or holds a run of another config.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if (self.path / "manifest.json").exists():
                self._check_same_config(manifest["config"])
                return list(read_records(self.records_file))
            self.records_file.touch()
            self.write_json("manifest.json", manifest)
        except OSError as error:
            raise UserError(f"run_dir={self.path}: cannot be written ({error.strerror}).") from None
        return []

    def append(self, record: Record) -> None:
        """Adds one record and hands it to the operating system."""
        with self.records_file.open("a") as file:
            file.write(record.line())
            file.flush()
            os.fsync(file.fileno())

    def read_manifest(self) -> Mapping[str, Any]:
        """The manifest as written at the start of the run."""
        return json.loads((self.path / "manifest.json").read_text())

    def write_json(self, name: str, value: Any) -> None:
        """Replaces a JSON file of the folder in one step."""
        partial = self.path / f"{name}.partial"
        partial.write_text(json.dumps(value, indent=1) + "\n")
        partial.replace(self.path / name)

    def _check_same_config(self, config: Mapping[str, Any]) -> None:
        before = _flat(self.read_manifest()["config"])
        now = _flat(config)
        differing = [
            f"{key} was {before.get(key)!r}, is {now.get(key)!r}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key) and key not in FREE_KEYS
        ]
        if differing:
            raise UserError(
                f"run_dir={self.path}: holds a run of another config: {'; '.join(differing[:5])}. "
                "Give another run_dir for a new run."
            )


def _flat(config: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(config, dict):
        return {prefix: config}
    flat = {}
    for key, value in config.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat
