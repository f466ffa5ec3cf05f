"""Other forms of an engine: the same meaning, another text.

Requirement: a learner's tests judge the behaviour of an engine. With the known text or bytecode of
the right engine, a test could catch every bug without a thought. So each engine of a hunt has
another form, drawn from the key. Several engines are right. A test must pass on each right engine.
"""

from __future__ import annotations

import ast

import numpy as np


def rewritten(text: str, rng: np.random.Generator) -> str:
    """A program with the same meaning, without comments and docstrings, in another form."""
    tree = ast.parse(text)
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            _drop_docstring(node)
    tree = _Form(rng).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _drop_docstring(node: ast.FunctionDef | ast.ClassDef | ast.Module) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        node.body = node.body[1:] or [ast.Pass()]


class _Form(ast.NodeTransformer):
    """Changes functions: names for results, exchanged branches, statements without effect."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def _name(self) -> str:
        return f"v{int(self._rng.integers(1_000_000))}"

    def _is_chosen(self) -> bool:
        return bool(self._rng.integers(0, 2))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Put statements without effect first."""
        self.generic_visit(node)
        for _ in range(int(self._rng.integers(1, 4))):
            number = ast.Constant(int(self._rng.integers(1_000_000)))
            node.body.insert(0, ast.Assign([ast.Name(self._name(), ast.Store())], number))
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        """Give the result a name."""
        self.generic_visit(node)
        if node.value is None or not self._is_chosen():
            return node
        name = self._name()
        assignment = ast.Assign([ast.Name(name, ast.Store())], node.value)
        return [assignment, ast.Return(ast.Name(name, ast.Load()))]

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Exchange the factors of a product."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult) or not self._is_chosen():
            return node
        return ast.BinOp(node.right, ast.Mult(), node.left)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Exchange the branches."""
        self.generic_visit(node)
        if not self._is_chosen():
            return node
        return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)

    def visit_If(self, node: ast.If) -> ast.AST:
        """Exchange the branches."""
        self.generic_visit(node)
        if not node.orelse or not self._is_chosen():
            return node
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)
