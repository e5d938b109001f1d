"""Who may know whom, and what must not be imported to say hello."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Folder -> packages of this project that its modules must not import.
FORBIDDEN = {
    "schedules": {"harness", "graders", "hydra", "transformers"},
    "graders": {"harness", "schedules", "hydra", "torch", "transformers"},
    "harness/analysis": {"schedules", "torch", "harness.runner", "harness.models", "harness.commands"},
    "harness/models": {"harness.runner", "harness.commands", "harness.tasks", "harness.analysis"},
    "harness/tasks": {"harness.runner", "harness.commands", "harness.models", "harness.analysis", "schedules"},
}


def imports(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_run_down_the_floors(folder):
    for path in (ROOT / folder).rglob("*.py"):
        for module in imports(path):
            for forbidden in FORBIDDEN[folder]:
                assert module != forbidden, f"{path} imports {module}"
                assert not module.startswith(forbidden + "."), f"{path} imports {module}"


def test_nothing_imports_the_command_line():
    for path in (ROOT / "harness").rglob("*.py"):
        if path.name != "__main__.py":
            assert "harness.command_line" not in imports(path), path


@pytest.mark.parametrize("package", ["harness", "graders"])
def test_importing_needs_no_torch(package):
    program = f"import sys, {package}; assert not {{'torch', 'transformers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_stay_readable():
    for folder in ("schedules", "graders", "harness", "scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path


def test_every_package_travels_in_the_wheel():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("schedules", "graders", "harness")
        for path in (ROOT / top).rglob("*.py")
    }
    assert folders <= set(listed)
