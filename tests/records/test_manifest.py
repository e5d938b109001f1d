"""What a manifest says of the code: known where git says it, unknown where git does not, never guessed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.records.manifest import code_version

ROOT = Path(__file__).parents[2]


def test_code_is_unknown_not_unchanged_where_git_says_nothing(monkeypatch, caplog):
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    monkeypatch.setenv("PATH", "")
    found = code_version()
    assert (found["commit"], found["changed"]) == (None, None)
    assert "git says nothing about" in caplog.text


def test_a_checkout_of_another_owner_says_its_commit_too(tmp_path):
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("git"):
        pytest.skip("needs git, and a user who may give files away")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    shutil.copytree(ROOT / "harness" / "records", tmp_path / "harness" / "records")
    for package in ("system", "errors.py"):
        source = ROOT / "harness" / package
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / "harness" / package)
    (tmp_path / "harness" / "__init__.py").touch()
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 12345, 12345)
    program = "from harness.records.manifest import code_version; print(code_version())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "'commit': None" not in done.stdout
    assert "'changed': False" in done.stdout
