"""What a run should be able to say about itself later: config, plan, versions, device, data, model, start and end."""

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import machine

IDENTITY = ("schema", "config", "plan", "data")
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "hydra-core", "numpy", "evalplus")


def identity(config: Mapping[str, Any], plan: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What makes a run this run: the same again whenever it goes on.

    Args:
      config: resolved.
      plan: prompts, repetitions, schedules and shard.
      data: facts from the source.
    """
    return {"schema": 1, "config": config, "plan": plan, "data": data}


def session() -> dict[str, Any]:
    """What may differ when a run goes on: command, code, packages, machine and its state."""
    return {
        "command": sys.argv,
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


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def code_version() -> Mapping[str, Any]:
    """Version of the installed package and, in a git checkout, its commit and whether it was changed."""
    root = Path(__file__).parents[1]

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    facts: dict[str, Any] = {"version": _version("packed-ss-harness")}
    if (root / ".git").exists():
        facts["commit"] = git("rev-parse", "HEAD")
        # What runs write into the checkout is no code.
        facts["changed"] = bool(git("status", "--porcelain", "--", ":(exclude)results"))
    return facts


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
