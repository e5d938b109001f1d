"""What a program defines: its functions, classes and methods, and the names it imports."""

from __future__ import annotations

import ast

from graders.programs.syntax import NAMED_FUNCTIONS, Function, bound, own_statements, root_name


class Definitions:
    """The definitions of one program by name; of several with one name all.

    Attributes:
      functions: at the top level, lambdas that have a name among them.
      classes: wherever they stand.
      methods: with the name of their class.
      imported: module, and name there or "".
    """

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, list[Function]] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self.methods: dict[str, list[tuple[Function, str]]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.imported[alias.asname or alias.name.partition(".")[0]] = (alias.name, "")
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = (node.module or "", alias.name)
            elif isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, []).append(node)
                for part in node.body:
                    if isinstance(part, NAMED_FUNCTIONS):
                        self.methods.setdefault(part.name, []).append((part, node.name))
                    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Lambda):
                        self.methods.setdefault(root_name(part.targets[0]) or "", []).append((part.value, node.name))
        for node in own_statements(tree.body):
            if isinstance(node, NAMED_FUNCTIONS):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    self.functions.setdefault(root_name(target) or "", []).append(node.value)

    def ancestry(self, name: str) -> set[str]:
        """The program's classes that a class is or inherits from."""
        found, waiting = set(), [name]
        while waiting:
            kind = waiting.pop()
            if kind in self.classes and kind not in found:
                found.add(kind)
                waiting += [root_name(base) for node in self.classes[kind] for base in node.bases]
        return found

    def is_class_attribute(self, attr: str) -> bool:
        """Whether some class binds a name in its body, so that its instances share it."""
        parts = (part for nodes in self.classes.values() for node in nodes for part in node.body)
        return any(attr in bound(part) for part in parts if isinstance(part, ast.Assign | ast.AnnAssign))

    def metaclasses(self) -> set[str]:
        """The program's classes of classes."""
        return {name for name in self.classes if "type" in map(root_name, self._root_classes(name))}

    def _root_classes(self, name: str) -> list[ast.expr]:
        return [base for kind in self.ancestry(name) for node in self.classes[kind] for base in node.bases]
