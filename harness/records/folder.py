"""A folder that a command works in: its manifest, the lock of the process that works there, and what went wrong.

What is recorded beside the manifest is for subclasses: responses (`RunFolder`), an atlas
(`harness.running.record_atlas`).
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records.identity import config_differences, data_facts, differences, model_facts
from harness.records.lock import locked
from harness.records.manifest import now, read_manifest, session, sessions_of
from harness.records.record import Record, last_line, read_records, torn_bytes
from harness.system import machine

log = logging.getLogger(__name__)

Complete = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class WorkFolder:
    """Manifest, lock and errors of a folder; files are written beside and renamed."""

    def __init__(self, path: Path, manifest: str = "manifest.json", error: str = "error.txt"):
        """`manifest`, `error`: names of these two files."""
        self.path = path
        self.manifest_file = path / manifest
        self.error_file = path / error

    @contextlib.contextmanager
    def working(
        self, identity: Mapping[str, Any], places: Sequence[str] = (), complete: Complete = dict
    ) -> Iterator[None]:
        """Makes the folder, or goes on with the run that it holds; how it ends goes into the manifest.

        Args:
          identity: from `harness.records.manifest`.
          places: dotted keys of the config that may differ from those that the run began with.
          complete: gives a config the keys that only those of other versions have.

        Raises:
          UserError: the folder cannot be written, is another run's, damaged, or in another process' hands.
        """
        with self._locked():
            with self._written(self.manifest_file.name):
                self._begin(identity, places, complete)
            try:
                yield
            except BaseException as error:
                stopped = isinstance(error, KeyboardInterrupt | SystemExit)
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                # The error itself matters more than that it cannot be noted on a full disk.
                with contextlib.suppress(UserError):
                    self._end("stopped" if stopped else "failed")
                    if not stopped:
                        self.failed(reason)
                raise
            self._end("ended")

    def failed(self, reason: str) -> None:
        """Leaves word of what went wrong, for `status`; the next start takes it away.

        Raises:
          UserError: the folder cannot be written.
        """
        with self._written(self.error_file.name):
            self.path.mkdir(parents=True, exist_ok=True)
            self.error_file.write_text(reason + "\n")

    def note(self, **facts: Any) -> None:
        """Adds facts to the manifest of the session under way.

        Raises:
          UserError: it is another model than the one that the run began with.
        """
        manifest = self.read_manifest()
        if "model" in facts:
            before = next((one for one in sessions_of(manifest) if one.get("model")), facts)
            self._check_same("model", model_facts(before), model_facts(facts))
        _last_session(manifest).update(facts)
        with self._written(self.manifest_file.name):
            self.write_json(self.manifest_file.name, manifest)

    def latest(self, fact: str) -> Any:
        """What the latest session that knows a fact noted of it; None if none does."""
        found = [session.get(fact) for session in sessions_of(self.read_manifest())]
        return next((one for one in reversed(found) if one is not None), None)

    def read_manifest(self) -> dict[str, Any]:
        """The manifest as it is now.

        Raises:
          UserError: it is none.
        """
        return read_manifest(self.manifest_file)

    def write_json(self, name: str, value: Any) -> None:
        """Replaces a JSON file of the folder in one step."""
        partial = self.path / f"{name}.partial"
        partial.write_text(json.dumps(value, indent=1) + "\n")
        partial.replace(self.path / name)

    def _check_new(self) -> None:
        """Raises `UserError` where the folder has no manifest, and yet something is recorded in it."""

    def _make_ready(self) -> None:
        """What a new folder and one that goes on both need before anything is recorded."""

    def _go_on(self, plan: Mapping[str, Any]) -> None:
        """Repairs what a killed process left, and checks that what is recorded belongs to `plan`.

        Raises:
          UserError: it does not.
        """

    def _begin(self, identity: Mapping[str, Any], places: Sequence[str], complete: Complete) -> None:
        self.error_file.unlink(missing_ok=True)
        if not self.manifest_file.exists():
            self._check_new()
            self._make_ready()
            self.write_json(self.manifest_file.name, {**identity, **session()})
            return
        manifest = self.read_manifest()
        self._check_same_config(complete(manifest["config"]), complete(identity["config"]), places)
        self._check_same("data", data_facts(manifest), data_facts(identity))
        self._make_ready()
        self._go_on(identity["plan"])
        manifest.setdefault("resumed", []).append(session())
        self.write_json(self.manifest_file.name, manifest)

    def _end(self, outcome: str) -> None:
        self.note(outcome=outcome, ended_at=now(), state_at_end=machine.state())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Makes the folder if need be and holds it."""
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path))
            except OSError as error:
                raise UserError(f"run_dir={self.path}: cannot be written ({error.strerror}).") from None
            yield

    @contextlib.contextmanager
    def _written(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.path / name}: cannot be written ({error.strerror}). All records before are safe; make room "
                "and go on with the same command."
            ) from None

    def _check_same_config(self, before: Mapping[str, Any], now: Mapping[str, Any], places: Sequence[str]) -> None:
        differing = [f"{key} was {one!r}, is {other!r}" for key, one, other in config_differences(before, now, places)]
        if differing:
            raise UserError(
                f"run_dir={self.path}: holds a run of another config: {'; '.join(differing[:5])}. "
                "Give another run_dir for a new run."
            )

    def _check_same(self, what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for key, one, other in differences(before, now):
            raise UserError(
                f"run_dir={self.path}: its {what} had {key} {one}, now it is {other}. "
                f"Put that {what} back, or give another run_dir for a new run."
            )


def _last_session(manifest: dict[str, Any]) -> dict[str, Any]:
    """The part of a manifest that the latest start of its run wrote."""
    return manifest["resumed"][-1] if manifest.get("resumed") else manifest


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

    def conditions(self) -> Mapping[str, Any]:
        """What the manifest says of how times were measured, for the summary."""
        return {fact: self.latest(fact) for fact in ("drift", "warmups", "state_at_start")}

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
                log.warning("dropped a torn last line of %d bytes; its response is missing", torn)
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
