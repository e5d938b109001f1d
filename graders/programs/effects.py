"""What the statements of a program change when they are run, read off the program without running it.

Each statement at the top level of a module gets the global names whose objects it may change beside those that it
binds: through calls of the program's own functions and methods, decorators, base classes, loops, aliases of a table.
`WORLD` stands for what has no such name: a setting of an imported module, a file, the namespace itself. The analysis
errs towards a change; names bound to constants only, copies and reading methods are what it knows to be safe.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from graders.programs.definitions import Definitions
from graders.programs.library import (
    CALLING,
    CONSTRUCTION,
    ENDINGS,
    IDLE,
    PASSING,
    PURE_MODULES,
    READING,
    SETTINGS,
    SWITCHES,
)
from graders.programs.syntax import (
    NAMED_FUNCTIONS,
    Function,
    bound,
    constants,
    is_decorated,
    is_main_guard,
    is_namespace,
    is_writing,
    last_name,
    own_expressions,
    own_statements,
    results,
    root_name,
)

WORLD = "*world*"
ENDS = "*ends*"  # reads standard input, ends the program, or runs a test suite
ARGUMENT = "*argument*"  # something that the caller handed over

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MOST_ROUNDS = 20  # of passing effects on from callee to caller; chains of calls are shorter


@dataclass
class _Scope:
    """Local names of a function with what they stand for; the module's scope has none."""

    local: dict[str, set[str]] = field(default_factory=dict)
    owner: str | None = None  # the class of a method
    receiver: str | None = None  # name of its `self`
    is_module: bool = False
    is_example: bool = False  # within `print` or `assert`, where calls of what the tests call are examples


class Effects:
    """Effects of the statements of one program.

    Args:
      tree: the program.
      tested: names that the tests call. A call of one of them whose result is printed, asserted or kept in a name is
        an example: the tests call it in their own order, so nothing can depend on that call.
    """

    def __init__(self, tree: ast.Module, tested: frozenset[str]) -> None:
        self._tested = tested
        self._definitions = Definitions(tree)
        self._functions, self._classes = self._definitions.functions, self._definitions.classes
        self._methods, self._imported = self._definitions.methods, self._definitions.imported
        self._aliases: dict[str, set[str]] = defaultdict(set)
        self._returns: dict[str, set[str]] = defaultdict(set)
        self._of: dict[ast.AST, set[str]] = defaultdict(set)
        self._module = _Scope(is_module=True)
        self._constants = constants(tree)
        for _ in range(2):  # an alias of an alias
            for statement in own_statements(tree.body):
                self._alias(statement, self._module, self._aliases)
        self._settle()

    def of(self, statement: ast.stmt) -> frozenset[str]:
        """Global names that running a top-level statement may change; `WORLD`, `ENDS` where that is so."""
        changed = self._executed(statement, self._module)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            function = statement.value.func
            root = root_name(function)
            if root in self._imported and last_name(function) not in IDLE:
                changed |= {root}  # of a module that is needed, an unknown call is
        return frozenset(changed - {ARGUMENT})

    def _settle(self) -> None:
        """Effects and results of all functions and methods, passed on until none grows."""
        everything = [(node, None, name) for name, nodes in self._functions.items() for node in nodes]
        everything += [(node, owner, "") for nodes in self._methods.values() for node, owner in nodes]
        for _ in range(MOST_ROUNDS):
            before = [len(self._of[node]) for node, _, _ in everything], sum(map(len, self._returns.values()))
            for node, owner, name in everything:
                scope = self._scope(node, self._module, owner)
                self._of[node] |= self._body(node, scope)
                for result in results(node):
                    self._returns[name or getattr(node, "name", "")] |= self._roots(result, scope)
            if before == ([len(self._of[node]) for node, _, _ in everything], sum(map(len, self._returns.values()))):
                return

    def _scope(self, node: Function, outer: _Scope, owner: str | None) -> _Scope:
        parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        parameters += filter(None, [node.args.vararg, node.args.kwarg])
        local = dict(outer.local) | {parameter.arg: {ARGUMENT} for parameter in parameters}
        receiver = parameters[0].arg if owner and parameters else outer.receiver
        if owner and receiver in ("cls", "mcs", "meta"):
            local[receiver] = {ARGUMENT, owner}
        scope = _Scope(local, owner or outer.owner, receiver)
        if isinstance(node, ast.Lambda):
            return scope
        shared = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
        for part in own_statements(node.body):
            for name in bound(part):
                if name not in shared:
                    local.setdefault(name, set())
        for _ in range(2):
            for part in own_statements(node.body):
                self._alias(part, scope, local)
        return scope

    def _alias(self, statement: ast.AST, scope: _Scope, into: dict[str, set[str]]) -> None:
        """Notes what the names that a statement binds stand for."""
        pairs: list[tuple[ast.AST, ast.AST]] = []
        for node in own_expressions(statement):
            if isinstance(node, ast.Assign):
                pairs += [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value:
                pairs.append((node.target, node.value))
            elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                pairs.append((node.target, node.iter))
            elif isinstance(node, ast.withitem) and node.optional_vars:
                pairs.append((node.optional_vars, node.context_expr))
        for target, source in pairs:
            roots = self._roots(source, scope)
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    if scope.is_module or part.id in into:
                        into.setdefault(part.id, set()).update(roots - {part.id})
                elif isinstance(part, ast.Attribute | ast.Subscript) and part is target:
                    # What is put into a container can be reached through it.
                    holder = root_name(part)
                    if holder in into or (scope.is_module and holder):
                        into.setdefault(holder, set()).update(roots - {holder})

    def _roots(self, node: ast.AST | None, scope: _Scope) -> set[str]:
        """Global names through whose objects the value of an expression can be reached, or `ARGUMENT`."""
        match node:
            case ast.Name(id=name):
                return set(scope.local[name]) if name in scope.local else {name} | self._aliases.get(name, set())
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == scope.receiver and scope.owner:
                shared = {scope.owner} if attr == "__class__" or self._definitions.is_class_attribute(attr) else set()
                return self._roots(node.value, scope) | shared
            case ast.Attribute() | ast.Subscript() | ast.Starred() | ast.Await() | ast.NamedExpr():
                return self._roots(node.value, scope)
            case ast.Call():
                return self._result_roots(node, scope)
            case ast.IfExp():
                return self._roots(node.body, scope) | self._roots(node.orelse, scope)
            case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return set().union(*(self._roots(part, scope) for part in parts))
            case ast.Dict():
                return set().union(*(self._roots(part, scope) for part in [*node.keys, *node.values] if part))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return set().union(*(self._roots(part.iter, scope) for part in node.generators))
        return set()

    def _result_roots(self, call: ast.Call, scope: _Scope) -> set[str]:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        handed = set().union(*(self._roots(part, scope) for part in given))
        name = call.func.id if isinstance(call.func, ast.Name) else None
        if name and name not in scope.local and self._is_builtin(name):
            return handed if name in PASSING else set()
        if name in self._functions:
            results = self._returns[name]
            return (results - {ARGUMENT}) | (handed if ARGUMENT in results else set())
        if name in self._classes or name in self._imported:
            return handed | ({name} if name in self._imported else set())
        if isinstance(call.func, ast.Attribute):
            return self._roots(call.func.value, scope) | (self._returns.get(call.func.attr, set()) - {ARGUMENT})
        return self._roots(call.func, scope) | handed

    def _is_builtin(self, name: str) -> bool:
        return hasattr(builtins, name) and not (
            name in self._functions or name in self._classes or name in self._imported
        )

    def _changed(self, roots: Iterable[str]) -> set[str]:
        """Changes of the objects behind `roots`; an imported one is a setting, a constant none."""
        return {WORLD if root in self._imported else root for root in roots if root not in self._constants}

    def _body(self, node: Function, scope: _Scope) -> set[str]:
        if isinstance(node, ast.Lambda):
            return self._executed(node.body, scope)
        return set().union(*(self._executed(part, scope) for part in node.body))

    def _executed(self, node: ast.AST | None, scope: _Scope) -> set[str]:
        """What running a statement or evaluating an expression changes."""
        if node is None:
            return set()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                changed = self._defined(node, scope)
                inner = node.args.defaults + [part for part in node.args.kw_defaults if part]
                changed |= set().union(*(self._executed(part, scope) for part in inner))
                return changed if scope.is_module else changed | self._body(node, self._scope(node, scope, None))
            case ast.ClassDef():
                return self._class(node, scope)
            case ast.Lambda():
                return set() if scope.is_module else self._body(node, self._scope(node, scope, None))
            case ast.Assert():
                return self._children(node, replace(scope, is_example=True))
            case ast.If() if is_main_guard(node):
                return set().union(*(self._executed(part, scope) for part in node.orelse))
            case ast.Call():
                return self._called(node, scope)
            case ast.Assign(value=ast.Call()) if scope.is_module:
                value = self._executed(node.value, replace(scope, is_example=True))
                return value.union(*(self._executed(part, scope) for part in node.targets))
        return self._children(node, scope) | self._direct(node, scope)

    def _children(self, node: ast.AST, scope: _Scope) -> set[str]:
        if isinstance(node, COMPREHENSIONS):
            local = dict(scope.local)
            for part in node.generators:
                for name in bound(part):
                    local[name] = self._roots(part.iter, scope)
            scope = replace(scope, local=local)
        changed = set()
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.AnnAssign | ast.arg) and child is node.annotation):
                changed |= self._executed(child, scope)
        return changed

    def _direct(self, node: ast.AST, scope: _Scope) -> set[str]:
        """Changes by the node itself: stores into objects and shared names, operators with effects of their own."""
        changed: set[str] = set()
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                changed = self._changed(self._roots(node.value, scope))
                if is_namespace(node):
                    changed.add(WORLD)
                changed |= self._operators()
            case ast.Name(ctx=ast.Store() | ast.Del()) if not scope.is_module and node.id not in scope.local:
                changed = {node.id}
            case ast.AugAssign(target=ast.Name(id=name)):
                changed = self._changed(self._roots(node.target, scope)) if name in scope.local else set()
                changed |= self._operators()
            case ast.BinOp() | ast.Subscript() | ast.With() | ast.AsyncWith() | ast.For():
                changed = self._operators()
            case ast.Attribute(attr=attr):
                properties = [self._of[method] for method, _ in self._methods.get(attr, []) if is_decorated(method)]
                changed = set().union(*properties)
                if attr == "stdin":
                    changed.add(ENDS)
        return changed - {ARGUMENT} if scope.is_module else changed

    def _operators(self) -> set[str]:
        """What the program's own operators change, whichever of them is used."""
        dunders = (name for name in self._methods if name.startswith("__") and name not in CONSTRUCTION)
        return set().union(*(self._of[method] for name in dunders for method, _ in self._methods[name])) - {ARGUMENT}

    def _called(self, call: ast.Call, scope: _Scope) -> set[str]:
        """What a call changes, its arguments' evaluation included."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        name = call.func.id if isinstance(call.func, ast.Name) else None
        inside = replace(scope, is_example=True) if name == "print" and scope.is_module else scope
        changed = set().union(*(self._executed(part, inside) for part in given))
        if name and name not in scope.local and self._is_builtin(name):
            return changed | self._builtin(name, call, scope)
        handed = set().union(*(self._roots(part, scope) for part in given))
        if not (scope.is_example and name in self._tested):
            own = handed | self._roots(call.func.value if isinstance(call.func, ast.Attribute) else call.func, scope)
            changed |= self._passed_on(self._target(call.func, scope), own - self._functions.keys())
        changed |= set().union(*(self._as_callback(part, scope) for part in given))
        changed |= self._imported_call(call.func, handed, scope)
        if isinstance(call.func, ast.Attribute):
            receiver = self._roots(call.func.value, scope)
            if call.func.attr not in READING and not receiver & self._imported.keys():
                changed |= self._changed(
                    receiver - self._classes.keys() if call.func.attr in self._methods else receiver
                )
            if is_namespace(call.func) and call.func.attr not in READING:
                changed.add(WORLD)
            changed |= self._executed(call.func.value, scope)
        elif name is None:
            changed |= self._executed(call.func, scope)
        return changed

    def _target(self, function: ast.expr, scope: _Scope) -> set[str]:
        """Effects of whatever functions of the program an expression may be, `ARGUMENT` among them."""
        if isinstance(function, ast.Lambda):
            return self._body(function, self._scope(function, scope, None))
        effects: set[str] = set()
        if isinstance(function, ast.Attribute):
            effects = effects.union(*(self._of[method] for method, _ in self._methods.get(function.attr, [])))
        for name in self._roots(function, scope):
            effects = effects.union(*(self._of[node] for node in self._functions.get(name, [])))
            if name in self._classes:
                effects |= self._constructed(name)
            elif name not in self._functions and not isinstance(function, ast.Attribute):
                effects = effects.union(*(self._of[method] for method, _ in self._methods.get("__call__", [])))
        if isinstance(function, ast.Call) and isinstance(function.func, ast.Name):
            effects |= self._target(function.func, scope)  # what a function returns may be a function within it
        return effects

    def _constructed(self, name: str) -> set[str]:
        """Effects of making an instance of a class; those of its metaclass count."""
        ancestry = self._definitions.ancestry(name)
        metaclasses = {
            root_name(keyword.value) for kind in ancestry for node in self._classes[kind] for keyword in node.keywords
        }
        effects: set[str] = set()
        for method_name, methods in self._methods.items():
            for method, owner in methods:
                if (owner in ancestry and method_name in CONSTRUCTION) or owner in metaclasses:
                    effects |= self._of[method]
        return effects - {ARGUMENT}

    def _passed_on(self, effects: set[str], handed: set[str]) -> set[str]:
        return (effects - {ARGUMENT}) | (self._changed(handed) if ARGUMENT in effects else set())

    def _as_callback(self, argument: ast.expr, scope: _Scope) -> set[str]:
        """Effects of an argument that is called by whoever takes it."""
        if isinstance(argument, ast.Starred):
            argument = argument.value
        if isinstance(argument, ast.Lambda):
            return self._target(argument, scope) - {ARGUMENT}
        if isinstance(argument, ast.Attribute) and argument.attr not in READING:
            methods = self._methods.get(argument.attr, [])
            effects = set().union(*(self._of[method] for method, _ in methods)) - {ARGUMENT}
            is_bound = not self._roots(argument.value, scope) & self._imported.keys()
            return effects | (self._changed(self._roots(argument.value, scope)) if is_bound else set())
        if isinstance(argument, ast.Name) and not (scope.is_example and argument.id in self._tested):
            return self._target(argument, scope) - {ARGUMENT}
        return set()

    def _builtin(self, name: str, call: ast.Call, scope: _Scope) -> set[str]:
        if name in ("input", "exit", "quit"):
            return {ENDS}
        if name == "exec" or (name == "open" and is_writing(call)):
            return {WORLD}
        first = call.args[0] if call.args else None
        if name in ("setattr", "delattr"):
            return self._changed(self._roots(first, scope)) | ({WORLD} if first and is_namespace(first) else set())
        changed = self._changed(self._roots(first, scope)) if name == "next" else set()
        if name in CALLING:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            changed |= set().union(*(self._as_callback(part, scope) for part in given))
        return changed

    def _imported_call(self, function: ast.expr, handed: set[str], scope: _Scope) -> set[str]:
        """What a call into an imported module changes: its settings, or what it is handed."""
        root = root_name(function)
        if root not in self._imported or scope.local.get(root):
            return set()
        module, original = self._imported[root]
        last = last_name(function) if not isinstance(function, ast.Name) else original or root
        if last in ENDINGS:
            return {ENDS}
        is_deep = isinstance(function, ast.Attribute) and not isinstance(function.value, ast.Name)
        is_setting = last.startswith(SETTINGS) or last in SWITCHES
        if is_setting or (is_deep and last in ("append", "insert", "extend", "update", "setdefault", "clear", "pop")):
            return {WORLD} | self._changed(handed - self._imported.keys())
        is_pure = module.partition(".")[0] in PURE_MODULES
        return set() if is_pure else self._changed(handed - self._imported.keys())

    def _defined(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: _Scope) -> set[str]:
        """What the decorators of a definition change."""
        changed: set[str] = set()
        for decorator in node.decorator_list:
            call = ast.Call(decorator, [ast.Name(node.name, ast.Load())], [])
            changed |= self._called(call, scope)
        return changed

    def _class(self, node: ast.ClassDef, scope: _Scope) -> set[str]:
        """What a class statement changes: it makes itself known to its bases, and its body is run."""
        changed = self._defined(node, scope)
        bases = [base for base in map(root_name, node.bases) if base in self._classes]
        metaclasses = self._definitions.metaclasses()
        if bases or node.keywords:
            changed |= set(bases)
            for method, owner in (pair for methods in self._methods.values() for pair in methods):
                if owner in metaclasses or getattr(method, "name", "") == "__init_subclass__":
                    changed |= self._passed_on(self._of[method], set(bases))
        for part in [*node.bases, *(keyword.value for keyword in node.keywords), *node.body]:
            changed |= self._executed(part, scope)
            if not scope.is_module and isinstance(part, NAMED_FUNCTIONS):
                changed |= self._of[part]
        return changed - {node.name}
