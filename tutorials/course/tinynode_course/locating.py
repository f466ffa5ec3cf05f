"""The place of the operation under check, for "your code:".

Requirement: a failed check of many operations must not lead to ``class Variable``, which every
check uses. The message of the check names the operation: "the backward of negative" leads to
``Negative.backward``, "run_backward: ..." to the function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_PATTERNS = (
    re.compile(r"\b(?P<name>[A-Z]\w*)\.(?P<method>\w+)"),
    re.compile(r"\b(?P<method>backward|forward|gradient) of (?:input \d+ of )?(?P<name>\w+)"),
    re.compile(r"\b(?P<name>\w+)\.(?P<method>backward|forward)\b"),
)
_FUNCTION = re.compile(r"\b[a-z]+_[a-z_]+\b|\b[a-z]\w*(?=\(\))|(?<=[.,;:] )[a-z]\w*(?=: )")
"""A name of a function: with a line, such as ``run_backward``, or as in ``fold()`` or "fold: "."""


def operation_lines(message: str, tree: ast.Module) -> Iterator[int]:
    """The lines of the methods and functions in a module that a message names.

    Args:
        message: The checked quantity and the place to look of a failed check.
        tree: The learner's module.
    """
    methods = set(_methods_in(message))
    functions = set(_FUNCTION.findall(message))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            yield node.lineno
        if isinstance(node, ast.ClassDef):
            yield from _lines_of_methods(node, methods)


def _lines_of_methods(node: ast.ClassDef, methods: set[tuple[str, str]]) -> Iterator[int]:
    """The lines of the methods of a class that are among the named ones."""
    for inner in node.body:
        if not isinstance(inner, ast.FunctionDef):
            continue
        if (_plain(node.name), inner.name) in methods:
            yield inner.lineno


def _methods_in(message: str) -> Iterator[tuple[str, str]]:
    """The pairs of an operation and a method in a message, such as ("relu", "backward")."""
    for pattern in _PATTERNS:
        for match in pattern.finditer(message):
            method = match["method"].replace("gradient", "backward")
            yield _plain(match["name"]), method


def _plain(name: str) -> str:
    """A name of a class or a function without capital letters and lines."""
    return name.replace("_", "").lower()
