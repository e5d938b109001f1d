"""A folder that a command works in: its manifest, the lock of the process that works there, and what went wrong.

What is recorded beside the manifest is for subclasses: responses (`harness.run_folder`), an atlas (`harness.atlas`).
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import machine
from harness.errors import UserError
from harness.manifest import now, read_manifest, session, sessions_of
from harness.run_lock import locked

# What may differ between the first start of a run and its continuation: places, and what is shown. Data files are
# known by their content.
FREE_KEYS = ("run_dir", "samples", "task.data_files", "task.source.data_files")
MODEL_FACTS = ("parameters", "dtype", "revision", "config_sha256", "weights_sha256")
DATA_FACTS = ("sha256", "revision", "items")


class WorkFolder:
    """Manifest, lock and errors of a folder; files are written beside and renamed."""

    def __init__(self, path: Path, manifest: str = "manifest.json", error: str = "error.txt"):
        """`manifest`, `error`: names of these two files."""
        self.path = path
        self.manifest_file = path / manifest
        self.error_file = path / error

    @contextlib.contextmanager
    def working(self, identity: Mapping[str, Any]) -> Iterator[None]:
        """Makes the folder, or goes on with the run that it holds; how it ends goes into the manifest.

        Args:
          identity: from `harness.manifest`.

        Raises:
          UserError: the folder cannot be written, is another run's, damaged, or in another process' hands.
        """
        with self._locked():
            with self._written(self.manifest_file.name):
                self._begin(identity)
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
            self._check_same("model", MODEL_FACTS, manifest.get("model"), facts["model"])
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

    def _begin(self, identity: Mapping[str, Any]) -> None:
        self.error_file.unlink(missing_ok=True)
        if not self.manifest_file.exists():
            self._check_new()
            self._make_ready()
            self.write_json(self.manifest_file.name, {**identity, **session()})
            return
        manifest = self.read_manifest()
        self._check_same_config(manifest["config"], identity["config"])
        self._check_same("data", DATA_FACTS, manifest.get("data"), identity["data"])
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

    def _check_same_config(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        was, is_now = flat(before), flat(now)
        differing = [
            f"{key} was {was.get(key)!r}, is {is_now.get(key)!r}"
            for key in sorted(was.keys() | is_now.keys())
            if was.get(key) != is_now.get(key) and key not in FREE_KEYS
        ]
        if differing:
            raise UserError(
                f"run_dir={self.path}: holds a run of another config: {'; '.join(differing[:5])}. "
                "Give another run_dir for a new run."
            )

    def _check_same(
        self, what: str, keys: Sequence[str], before: Mapping[str, Any] | None, now: Mapping[str, Any]
    ) -> None:
        for key in keys if before else ():
            if before.get(key) != now.get(key):
                raise UserError(
                    f"run_dir={self.path}: its {what} had {key} {before.get(key)}, now it is {now.get(key)}. "
                    f"Put that {what} back, or give another run_dir for a new run."
                )


def _last_session(manifest: dict[str, Any]) -> dict[str, Any]:
    """The part of a manifest that the latest start of its run wrote."""
    return manifest["resumed"][-1] if manifest.get("resumed") else manifest


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """A nested config as one level of dotted keys."""
    if not isinstance(config, dict):
        return {prefix: config}
    result = {}
    for key, value in config.items():
        result |= flat(value, f"{prefix}.{key}" if prefix else key)
    return result
