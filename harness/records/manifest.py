"""What a run should be able to say about itself later: config, plan, versions, device, data, model, start and end."""

import json
import logging
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.system import machine

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
SCHEMA = 1
IDENTITY = ("schema", "config", "plan", "data")
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "hydra-core", "numpy", "evalplus")


def identity(config: Mapping[str, Any], plan: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What makes a run this run: the same again whenever it goes on.

    Args:
      config: resolved.
      plan: prompts, repetitions, schedules and shard.
      data: facts from the source.
    """
    return {"schema": SCHEMA, "config": config, "plan": plan, "data": data}


def session() -> dict[str, Any]:
    """What may differ when a run goes on: command, code, packages, machine and its state."""
    return {
        "command": machine.command(),
        "started_at": now(),
        "code": code_version(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": machine.description(),
        "state_at_start": machine.state(),
    }


def sessions_of(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What each start of a run wrote, in order; the first one's stands in the manifest itself."""
    own = {key: value for key, value in manifest.items() if key not in (*IDENTITY, "resumed")}
    return [own, *manifest.get("resumed", [])]


def read_manifest(file: Path) -> dict[str, Any]:
    """A run's manifest, all that its readers rely on checked.

    Raises:
      UserError: there is none, or what lacks or is of another kind.
    """
    try:
        manifest = json.loads(file.read_text())
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise UserError(f"{file}: is not JSON. {RESTORE}") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise UserError(f"{file}: no manifest of a run in schema {SCHEMA}. {RESTORE}")
    for place, is_one in SHAPE.items():
        value: Any = manifest
        for key in place.split("."):
            value = value.get(key, ABSENT) if isinstance(value, dict) else ABSENT
        if not is_one(value):
            raise UserError(f"{file}: no manifest of a run, {place} is {str(value)[:40]!r}. {RESTORE}")
    wrong = [number for number, one in enumerate(sessions_of(manifest)) if not _is_session(one)]
    if wrong:
        raise UserError(f"{file}: no manifest of a run, start {wrong[0] + 1} of it is none. {RESTORE}")
    return manifest


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def code_version() -> Mapping[str, Any]:
    """Version of the installed package and, in a git checkout, its commit and whether it was changed;
    None where git cannot tell."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> str | None:
        try:
            # A checkout of another owner, as on a cluster's shared disk, is ours to read all the same.
            command = ["git", "-C", str(root), "-c", f"safe.directory={root}", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    facts: dict[str, Any] = {"version": _version("packed-ss-harness")}
    if (root / ".git").exists():
        facts["commit"] = git("rev-parse", "HEAD")
        # What runs write into the checkout is no code.
        status = git("status", "--porcelain", "--", ":(exclude)results")
        facts["changed"] = None if status is None else bool(status)
        if status is None or facts["commit"] is None:
            log.warning(
                "git says nothing about %s: the commit of the code, and whether it was changed, are unknown", root
            )
    return facts


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_session(value: Any) -> bool:
    return (
        _is_object(value)
        and _is_text(value.get("started_at"))
        and all(_is_object(value.get(part)) for part in ("code", "machine"))
        # Written once the model is loaded and once prompts were decoded again.
        and all(value.get(part) is None or _is_object(value[part]) for part in ("model", "drift"))
    )


ABSENT = "nothing"
RESTORE = "Restore it, or give another run_dir."
# Places in a manifest that readers rely on, and whether a JSON value can stand there.
SHAPE: Mapping[str, Callable[[Any], bool]] = {
    "config": _is_object,
    "config.model": _is_object,
    "config.model.name": _is_text,
    "config.task": _is_object,
    "config.task.name": _is_text,
    "config.task.max_new_tokens": _is_count,
    "config.schedules": lambda value: _is_object(value) and all(map(_is_object, value.values())),
    "config.temperature": lambda value: type(value) in (int, float),
    "plan.prompts": _is_texts,
    "plan.schedules": _is_texts,
    "plan.repetitions": _is_count,
    "plan.shard": lambda value: value is None or _is_text(value),
    "data": _is_object,
    "resumed": lambda value: value is ABSENT or (isinstance(value, list) and all(map(_is_object, value))),
}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
