"""What of a program the tests need: the rest (examples, prints, a `main`) must not decide a verdict.

A statement stays if it binds or changes what is needed, where "needed" starts from the names the tests use and grows
by the names that the statements kept use in turn. What a statement changes beside what it binds is told by `effects`;
a change of the world (a module's setting) is always needed. Names are read off the compiled statement, so a local
variable is never taken for a global one. Text is kept as written, comments included. Nothing is executed.
"""

from __future__ import annotations

import ast
import dis
import symtable
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from graders.programs.effects import ENDS, WORLD, Effects
from graders.programs.reference import is_stub
from graders.programs.syntax import is_main_guard

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
WARNINGS_LOCK = threading.Lock()
LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"})
STORES = frozenset({"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"})
MOST_STATEMENTS = 2_000
DYNAMIC = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__"})


def parse(source: str) -> ast.Module | None:
    """Syntax tree of a program with at least one statement, None for anything else."""
    try:
        tree = _quietly(ast.parse, source)
    except UNREADABLE:
        return None
    return tree if tree.body else None


def bound_names(source: str) -> set[str]:
    """Names the top level of a program binds; empty for what is no program."""
    try:
        table = _quietly(symtable.symtable, source, "", "exec")
    except UNREADABLE:
        return set()
    return {name.get_name() for name in table.get_symbols() if name.is_assigned() or name.is_imported()}


def segments(source: str, tree: ast.Module) -> list[tuple[ast.stmt, str]]:
    """Top-level statements with their text, comments above them included.

    Statements that share a line share one text, which stands with the first of them.
    """
    lines = source.split("\n")
    found: list[tuple[ast.stmt, int, int]] = []
    first = 0  # of the statements on the present line
    for node in tree.body:
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        if found and start <= found[-1][2]:
            found[first] = (found[first][0], found[first][1], node.end_lineno)
            found.append((node, 0, node.end_lineno))
        else:
            first = len(found)
            found.append((node, (found[-1][2] if found else 0) + 1, node.end_lineno))
    return [(node, "\n".join(lines[start - 1 : end]) if start else "") for node, start, end in found]


def _quietly(read: Callable[..., Any], *arguments: Any) -> Any:
    """What `read` makes of some code, without the warnings that code may deserve.

    The lock is there because the filters of `warnings` are shared by all threads.
    """
    with WARNINGS_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(*arguments)


@dataclass(frozen=True)
class Names:
    """Global names of one statement: those it uses, binds, and changes without binding."""

    uses: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]


def prune(source: str, roots: Iterable[str]) -> str:
    """The part of a program that `roots` need.

    Args:
      source: a program; one that does not parse, or has more than `MOST_STATEMENTS`, is returned as it is.
      roots: names the tests take from it.

    Returns:
      The statements to run, in their order.
    """
    tree = parse(source)
    if tree is None or len(tree.body) > MOST_STATEMENTS:
        return source
    roots = frozenset(roots)
    try:
        effects = Effects(tree, roots)
        statements = [(node, text, _names(node, effects)) for node, text in segments(source, tree)]
    except RecursionError:  # expressions too deep to be looked into
        return source
    kept = _needed(statements, roots)
    return "\n".join(text for (_, text, _), is_kept in zip(statements, kept, strict=True) if is_kept).strip("\n")


def _needed(statements: list[tuple[ast.stmt, str, Names]], roots: frozenset[str]) -> list[bool]:
    """Which statements stay; neighbours on one line stay or go together."""
    needed = set(roots)
    kept = [_is_always_kept(node, names) for node, _, names in statements]
    is_growing = True
    while is_growing:
        is_growing = False
        for _, _, names in (entry for entry, is_kept in zip(statements, kept, strict=True) if is_kept):
            needed |= names.uses
        for place, (node, _, names) in enumerate(statements):
            if not kept[place] and _is_wanted(node, names, needed):
                kept[place] = is_growing = True
    for place, (node, _, _) in enumerate(statements):
        others = (other for other, is_kept in zip(statements, kept, strict=True) if is_kept and other[0] is not node)
        if kept[place] and is_stub(node) and any(_defines_in_full(other, node.name) for other, _, _ in others):
            kept[place] = False
    for place in range(len(kept) - 1, 0, -1):
        if not statements[place][1] and kept[place]:
            kept[place - 1] = True
    return kept


def _is_wanted(node: ast.stmt, names: Names, needed: set[str]) -> bool:
    if isinstance(node, ast.Assert) or (is_main_guard(node) and not node.orelse):
        return False
    if needed & DYNAMIC and not isinstance(node, ast.Expr):
        return True
    return bool((names.binds | names.changes) & needed)


def _is_always_kept(node: ast.stmt, names: Names) -> bool:
    """Imports of everything or of the future, and what changes the world: settings of modules, files, namespaces."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(alias.name == "*" for alias in node.names)
    return WORLD in names.changes and not isinstance(node, ast.Assert)


def _defines_in_full(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name and not is_stub(node)


def _names(node: ast.stmt, effects: Effects) -> Names:
    """Global names of a statement; those of one that does not compile alone are unknown and empty."""
    try:
        code = _quietly(compile, ast.Module([node], []), "", "exec", 0, True)
    except UNREADABLE:
        return Names(frozenset(), frozenset(), frozenset())
    uses: set[str] = set()
    binds: set[str] = set()
    queue = [code]
    while queue:
        current = queue.pop()
        queue += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
        for instruction in dis.get_instructions(current):
            if instruction.opname in LOADS:
                uses.add(instruction.argval)
            elif instruction.opname == "STORE_GLOBAL" or (instruction.opname in STORES and current is code):
                binds.add(instruction.argval)
            elif instruction.argval == "modules":  # sys.modules[__name__] is the namespace
                uses.add("globals")
    changes = effects.of(node)
    if ENDS in changes:
        changes = frozenset()  # what reads the keyboard or ends the program is no part of what the tests need
    return Names(frozenset(uses), frozenset(binds), changes)
