"""What a code task's reference says, and what its tests take from the tested program."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class CodeReference:
    """The tests of one code problem.

    Attributes:
      prompt: code the answer may continue (HumanEval's imports, helpers and function head), or empty.
      entry_point: name of the tested function.
      setup: code that comes before the tests; definitions in it are visible to the program as well.
      tests: statements that run in order after the program and raise if it is wrong.
      names: what the tests take from the program, the entry point among it.
    """

    prompt: str
    entry_point: str
    setup: str
    tests: tuple[str, ...]
    names: frozenset[str]

    @classmethod
    def read(cls, reference: Mapping[str, Any]) -> CodeReference:
        """Checks a reference and completes it.

        The entry point is derived from the tests where it is missing. Tests that only define HumanEval's
        `check` are completed by its call.

        Raises:
          ValueError: no tests, tests that are not Python, or no function in them to test.
        """
        tests = reference.get("tests") or ()
        tests = [tests] if isinstance(tests, str) else [str(test) for test in tests]
        setup, prompt = str(reference.get("setup") or ""), str(reference.get("prompt") or "")
        trees = [_parsed(test, f"test {number}") for number, test in enumerate(tests, 1)]
        if not any(tree.body for tree in trees):
            raise ValueError("no tests")
        names = taken_names([_parsed(setup, "setup"), *trees])
        entry_point = reference.get("entry_point") or _entry_point(trees, names)
        if not entry_point:
            raise ValueError("no entry_point, and the tests call no function of the program")
        if _only_defines_check(trees):
            tests.append(f"check({entry_point})")
        return cls(prompt, entry_point, setup, tuple(tests), names | {entry_point})


def taken_names(trees: Sequence[ast.Module]) -> frozenset[str]:
    """Names that test code uses, does not bind itself, and that are no builtins."""
    used, bound = set(), set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, DEFINITIONS):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, ast.alias):
                bound.add((node.asname or node.name).partition(".")[0])
    return frozenset(name for name in used - bound if not hasattr(builtins, name))


def imports(source: str) -> str:
    """The top-level import statements of some code, empty where it is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, IMPORTS))


def helpers(prompt: str, entry_point: str) -> str:
    """What the prompt gives beside the function to complete: imports, constants, functions with a body.

    Tests that use it get it from here and not from the program, which may have changed it.
    """
    for source in (prompt, prompt.rstrip() + "\n    pass"):
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError):
            continue
        given = (*IMPORTS, ast.Assign, ast.AnnAssign, ast.FunctionDef)
        return "\n".join(
            ast.unparse(node)
            for node in body
            if isinstance(node, given) and getattr(node, "name", "") != entry_point and not is_stub(node)
        )
    return ""


def is_stub(node: ast.stmt) -> bool:
    """Whether a function is only announced: a head with a docstring, `pass`, `...` or NotImplementedError."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return False
    return all(
        isinstance(line, ast.Pass)
        or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        or (isinstance(line, ast.Raise) and "NotImplementedError" in ast.unparse(line))
        for line in node.body
    )


def split_setup(setup: str) -> tuple[str, str]:
    """Setup code as what the program must see before it runs, and what runs with the tests.

    Functions and classes live with the program, so that it can use them and the tests can pass it instances.
    Imports go to both sides, all other statements to the tests.
    """
    body = ast.parse(setup).body
    before = [node for node in body if isinstance(node, IMPORTS + DEFINITIONS)]
    after = [node for node in body if not isinstance(node, DEFINITIONS)]
    return "\n".join(map(ast.unparse, before)), "\n".join(map(ast.unparse, after))


def _parsed(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{what} is not Python: {error}") from None


def _entry_point(trees: Sequence[ast.Module], names: frozenset[str]) -> str | None:
    """The name the tests call most, or use at all; where those are builtins only, the innermost one called first."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    called = Counter(node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    own = [name for name in [*(name for name, _ in called.most_common()), *used] if name in names]
    if own:
        return own[0]
    for tree in trees:
        inner = [call.func.id for call in ast.walk(tree) if isinstance(call, ast.Call) and _is_innermost(call)]
        if inner:
            return inner[0]
    return None


def _is_innermost(call: ast.Call) -> bool:
    below = (node for argument in call.args for node in ast.walk(argument))
    return isinstance(call.func, ast.Name) and not any(isinstance(node, ast.Call) for node in below)


def _only_defines_check(trees: Sequence[ast.Module]) -> bool:
    """Whether HumanEval's `check` is defined and nothing at top level ever calls it."""
    body = [node for tree in trees for node in tree.body]
    defines = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in body)
    others = [node for node in body if not isinstance(node, DEFINITIONS)]
    used = {node.id for other in others for node in ast.walk(other) if isinstance(node, ast.Name)}
    return defines and "check" not in used
