"""Questions about a piece of syntax that need no knowledge of the rest of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
NAMED_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMESPACES = frozenset("globals locals vars".split())


def is_main_guard(node: ast.stmt) -> bool:
    """Whether a statement only runs in a main program: `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If):
        return False
    tests = [part for part in ast.walk(node.test) if isinstance(part, ast.Compare)]
    return any(
        isinstance(test.ops[0], ast.Eq)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in (test.left, *test.comparators))
        for test in tests
    )


def constants(tree: ast.Module) -> set[str]:
    """Names that the module binds to numbers, texts and the like only."""
    fixed, others = set(), set()
    for node in own_statements(tree.body):
        is_fixed = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and _is_constant(node.value)
        (fixed if is_fixed else others).update(bound(node))
    return fixed - others


def _is_constant(node: ast.expr | None) -> bool:
    plain = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Tuple, ast.expr_context)
    return node is not None and all(isinstance(part, plain) for part in ast.walk(node))


def own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body and of the blocks in it, those of functions and classes left out."""
    waiting = [*body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (*NAMED_FUNCTIONS, ast.ClassDef)):
            waiting += [
                part
                for child in ast.iter_child_nodes(node)
                for part in ([child] if isinstance(child, ast.stmt) else ast.iter_child_nodes(child))
                if isinstance(part, ast.stmt)
            ]


def own_expressions(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, those of statements and functions in it left out."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt | ast.Lambda)]


def bound(node: ast.AST) -> set[str]:
    """Names that one statement binds, without those of the statements in it."""
    if isinstance(node, (*NAMED_FUNCTIONS, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    parts = own_expressions(node)
    return {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}


def results(node: Function) -> Iterator[ast.AST | None]:
    """The expressions whose values a function gives back."""
    if isinstance(node, ast.Lambda):
        yield node.body
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Return | ast.Yield | ast.YieldFrom):
            yield part.value


def is_decorated(method: Function) -> bool:
    """Whether a method has decorators, which may make a property of it."""
    return bool(getattr(method, "decorator_list", []))


def is_writing(call: ast.Call) -> bool:
    """Whether a call of `open` opens for writing, as far as its mode says so."""
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes)


def is_namespace(node: ast.AST) -> bool:
    """Whether an object is the module's own namespace: `globals()[...]`, `sys.modules[__name__]`."""
    return any(
        isinstance(part, ast.Name) and (part.id in NAMESPACES or part.id in ("__name__", "__builtins__"))
        for part in chain(node)
    )


def chain(node: ast.AST) -> Iterator[ast.AST]:
    """`a`, `b`, `c` of `a[b].x(c)`: what an object is reached through."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Subscript):
            yield node.slice
        node = node.func if isinstance(node, ast.Call) else node.value
    yield node


def last_name(function: ast.expr) -> str:
    """`c` of `a.b.c`, and of `getattr(a.b, "c")`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    if isinstance(function, ast.Call) and len(function.args) > 1 and isinstance(function.args[1], ast.Constant):
        return str(function.args[1].value)
    return ""


def root_name(node: ast.AST | None) -> str | None:
    """`a` of `a.b[c].d`, and of `getattr(a, "b")`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        if isinstance(node, ast.Call):
            is_getattr = isinstance(node.func, ast.Name) and node.func.id == "getattr" and node.args
            node = node.args[0] if is_getattr else node.func
        else:
            node = node.value
    return node.id if isinstance(node, ast.Name) else None
