"""Finds the names that a piece of Python reads and writes in its function."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Names(ast.NodeVisitor):
    """The names in a piece of code, by what happens to them."""

    def __init__(self, nodes: Iterable[ast.AST] = ()) -> None:
        self.read: set[str] = set()  # also by inner functions
        self.bound: set[str] = set()  # assigned, imported, defined
        self.changed: set[str] = set()  # changed in place, `x += 1` and `x[0] = 1`; they are in `read`, too
        self.deleted: set[str] = set()
        self.outer: set[str] = set()  # declared `global` or `nonlocal`
        self.inner: list[tuple[ast.AST, set[str]]] = []  # inner functions, and the outside names that each reads
        for node in nodes:
            self.visit(node)

    @property
    def written(self) -> set[str]:
        """Names whose value may be different afterwards."""
        return self.bound | self.changed | self.deleted

    def visit_Name(self, node: ast.Name) -> None:
        kinds = {ast.Load: self.read, ast.Store: self.bound, ast.Del: self.deleted}
        kinds[type(node.ctx)].add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.add(node.target.id)
            self.changed.add(node.target.id)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        root = root_of(node)
        if not isinstance(node.ctx, ast.Load) and isinstance(root, ast.Name):
            self.changed.add(root.id)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)

    visit_ImportFrom = visit_Import

    def visit_MatchAs(self, node: Any) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bound.add(node.rest)
        self.generic_visit(node)

    # inner scopes -----------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: Any) -> None:
        outside = [*node.decorator_list, *_defaults(node.args)]
        self._scope(node, Names(node.body), parameters_of(node.args), outside)
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope(node, Names([node.body]), parameters_of(node.args), _defaults(node.args))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        body = Names(node.body)
        self.read |= body.read
        self.inner += body.inner
        self.bound.add(node.name)

    def visit_ListComp(self, node: Any) -> None:
        inside = Names()
        inside.generic_visit(node)
        targets = Names([generator.target for generator in node.generators]).bound
        walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        self.read |= inside.read - targets
        self.bound |= walrus
        self.inner += inside.inner
        if isinstance(node, ast.GeneratorExp):
            self.inner.append((node, inside.read - targets))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def _scope(self, node: ast.AST, body: Names, parameters: set[str], outside: list[ast.expr]) -> None:
        for part in outside:
            self.visit(part)
        declared = body.outer
        free = (body.read | (body.changed | declared)) - (body.bound - declared) - parameters
        self.read |= free
        self.inner.append((node, free))


def parameters_of(arguments: ast.arguments) -> set[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {a.arg for a in every if a is not None}


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]


def root_of(target: ast.expr) -> ast.expr:
    """The expression before all indices: `x` for `x[0][1]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def locals_of(function: Any) -> set[str]:
    """The local variables of a function."""
    names = Names(function.body)
    return (names.bound | names.deleted | parameters_of(function.args)) - names.outer


def every_name(tree: ast.AST) -> set[str]:
    """All names that occur anywhere: a generated name must differ from them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value)
        found.update(getattr(node, "names", ()) if isinstance(node, (ast.Global, ast.Nonlocal)) else ())
    return found


def walk_frame(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """All nodes in the same frame: without the bodies of inner functions and classes."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
