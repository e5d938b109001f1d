"""Who may know whom: imports run down the floors, late ones included; only the command line prints and reads arguments.

The floors are those of docs/architecture.md.
"""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# From the top; rooms on one floor do not know each other. Names without a folder are modules.
FLOORS = (
    ("__main__", "__init__"),
    ("api", "cli"),
    ("bench",),
    ("running", "analysis", "training"),
    ("config",),
    ("models", "tasks"),
    ("records",),
    ("system",),
    ("errors", "text"),
)
# Within the analysis likewise.
ANALYSIS = (
    ("report",),
    ("catalogue",),
    ("figures", "tables", "paper", "atlas"),
    ("measures",),
    ("study",),
    ("canvas", "trace_grid"),
    ("style", "table"),
)
# What stands on its own, and what it must not import.
ALONE = {
    "schedules": {"harness", "graders", "hydra", "transformers"},
    "graders": {"harness", "schedules", "hydra", "torch", "transformers"},
}
# Names that only the command line may use.
TERMINAL = {"print", "input", "tqdm", "sys.stdout", "sys.stderr", "sys.exit", "sys.argv"}


def modules(*folders: str) -> Iterator[tuple[str, Path]]:
    """Dotted names and files of all modules in `folders`."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


EVERY = dict(modules("harness", "graders", "schedules"))


def imports(path: Path) -> set[str]:
    """What a file imports, anywhere in it: modules, by their full names where they are ours."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno} imports relatively"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (full & EVERY.keys()) or {node.module}
    return found


def room_of(module: str, below: str) -> str | None:
    """The room in `below` that a module stands in, or None where it stands elsewhere."""
    if module == below:
        return "__init__"
    return module.removeprefix(f"{below}.").split(".")[0] if module.startswith(f"{below}.") else None


def arrows_up(floors: tuple[tuple[str, ...], ...], below: str) -> Iterator[str]:
    """Imports that do not run down, in words."""
    heights = {room: -number for number, floor in enumerate(floors) for room in floor}
    for module, path in EVERY.items():
        own = room_of(module, below)
        if own is None:
            continue
        for imported in imports(path):
            other = room_of(imported, below)
            if other in (None, own) or (other == "__init__" and below != "harness"):
                continue
            if heights[other] >= heights[own]:
                yield f"{module} -> {imported}"


def test_imports_run_down_the_floors():
    assert list(arrows_up(FLOORS, "harness")) == []


def test_imports_run_down_the_floors_of_the_analysis():
    assert list(arrows_up(ANALYSIS, "harness.analysis")) == []


def test_no_modules_import_each_other():
    arrows: Mapping[str, set[str]] = {module: imports(path) & EVERY.keys() for module, path in EVERY.items()}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"a circle: {' -> '.join((*way, module))}"
        if module not in done:
            for imported in arrows[module]:
                visit(imported, (*way, module))
            done.add(module)

    for module in arrows:
        visit(module, ())


@pytest.mark.parametrize("folder", ALONE)
def test_schedules_and_graders_stand_on_their_own(folder):
    for module, path in modules(folder):
        foreign = {imported for imported in imports(path) if imported.split(".")[0] in ALONE[folder]}
        assert not foreign, f"{module} imports {foreign}"


def test_only_the_command_line_prints_and_reads_arguments():
    found = []
    for module, path in modules("harness", "schedules"):
        if room_of(module, "harness") in ("cli", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # Hydra reads what the sweep writes into sys.argv.
            is_read = isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
            if is_read and ast.unparse(node) in TERMINAL:
                found.append(f"{module}: line {node.lineno}: {ast.unparse(node)}")
    assert found == []


def test_rooms_are_few():
    def rooms(folder: Path) -> set[str]:
        return {one.name for one in folder.iterdir() if one.name not in ("__pycache__", "__init__.py")}

    assert len(rooms(ROOT / "harness")) <= 15
    assert len(rooms(ROOT / "harness" / "analysis")) <= 14


@pytest.mark.parametrize("package", ["harness", "graders"])
def test_importing_needs_no_torch(package):
    program = f"import sys, {package}; assert not {{'torch', 'transformers'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_stay_readable():
    for module, path in modules("schedules", "graders", "harness", "scripts"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, module


def test_every_package_travels_in_the_wheel():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    folders = {".".join(path.parent.relative_to(ROOT).parts) for path in EVERY.values()}
    assert folders <= set(listed)
