"""What a run should be able to say about itself later: config, versions, device, data, model."""

import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "hydra-core", "numpy", "evalplus")


def manifest(config: Mapping[str, Any], model: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The manifest of a run that starts now.

    Args:
      config: resolved.
      model, data: facts from the loader and the source.
    """
    return {
        "schema": 1,
        "config": config,
        "model": model,
        "data": data,
        "code": code_version(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": {"system": platform.platform(), "processor": _processor()},
        "command": sys.argv,
        "started_at": now(),
    }


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
        facts["changed"] = bool(git("status", "--porcelain"))
    return facts


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()
