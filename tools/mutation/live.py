"""Where the mutated code lives in a process that has imported the unchanged code.

Requirement: a mutant must not need a new import. A mutant of a function replaces the code of the
existing function. A mutant of a class attribute replaces the attribute.
"""

from __future__ import annotations

import ast
import dataclasses
import gc
import pathlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from tools.mutation.plan import Mutant

Changes = list[tuple[Any, str, Any]]
"""Objects, the names of attributes, and the new values."""


class NotLiveError(Exception):
    """A mutant needs a new import: of a table, a default value, a decorator."""


class LiveCode:
    """The functions and classes of this process, by file.

    Args:
        root: the folder of the imported checkout.
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.modules = {getattr(one, "__file__", ""): one for one in sys.modules.values()}
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for one in gc.get_objects():
            if type(one) is FunctionType:  # isinstance would ask proxies, and some warn
                code = one.__code__
                key = (code.co_filename, code.co_qualname, code.co_firstlineno)
                self.functions.setdefault(key, []).append(one)

    def changes(self, mutant: Mutant, source: str) -> Changes:
        """The changes that plant a mutant in this process.

        Raises:
            NotLiveError: the mutant needs a new import.
            SyntaxError: the mutant is no program.
        """
        path, changed = str(self.root / mutant.path), mutant.mutated(source)
        if changed is None:
            raise NotLiveError("the operator finds no place")
        outer = function_at(compile(source, path, "exec"), mutant.start[0])
        if outer is None:
            return self._attribute(path, mutant.definition, source, changed)
        key = (path, outer.co_qualname, outer.co_firstlineno)
        found = self.functions.get(key, [])
        for code in codes_in(compile(changed, path, "exec")):
            if (code.co_qualname, code.co_firstlineno) == key[1:]:
                fits = [one for one in found if one.__code__.co_freevars == code.co_freevars]
                if fits and len(fits) == len(found) and same_outside(source, changed, outer):
                    return [(one, "__code__", code) for one in fits]
        raise NotLiveError(f"no function for {key}")

    def _attribute(self, path: str, definition: str, source: str, changed: str) -> Changes:
        """The class, the name and the value of a changed class attribute."""
        old, new = (class_body(ast.parse(text), definition) for text in (source, changed))
        module = self.modules.get(path)
        owner: Any = module
        for name in definition.split("."):
            owner = getattr(owner, name, None)
        if not isinstance(owner, type) or dataclasses.is_dataclass(owner):
            raise NotLiveError("not in a plain class")
        for before, after in zip(old, new, strict=True):
            if ast.dump(before) == ast.dump(after):
                continue
            target = after.targets[0] if isinstance(after, ast.Assign) else after
            target = target.target if isinstance(target, ast.AnnAssign) else target
            if not isinstance(target, ast.Name) or after.value is None:  # type: ignore[attr-defined]
                break
            try:
                value = eval(ast.unparse(after.value), dict(vars(module)))  # type: ignore[attr-defined]
            except NameError:  # another attribute of the class
                break
            return [(owner, target.id, value)]
        raise NotLiveError("not an attribute of a class")


def class_body(tree: ast.Module, definition: str) -> list[ast.stmt]:
    """The statements of a class."""
    body: list[ast.stmt] = tree.body
    for name in definition.split(".") if definition else []:
        found = [one for one in body if isinstance(one, ast.ClassDef) and one.name == name]
        if not found:
            return []
        body = found[0].body
    return body


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and all code objects inside."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from codes_in(one)


def function_at(module: CodeType, line: int) -> CodeType | None:
    """The code of the outermost function around a line; None for code of modules and classes."""
    for one in module.co_consts:
        if not isinstance(one, CodeType) or not holds(one, line):
            continue
        is_class = not one.co_flags & 0x2  # CO_NEWLOCALS is set for functions alone
        return function_at(one, line) if is_class else one
    return None


def holds(code: CodeType, line: int) -> bool:
    """True if a line lies in the body of a code object, or of a function or class inside."""
    lines = [number for one in codes_in(code) for _, _, number in one.co_lines() if number]
    return code.co_firstlineno < line <= max(lines, default=0)


def same_outside(source: str, changed: str, function: CodeType) -> bool:
    """True if two sources differ in the body of a function alone, not in a default value."""
    old, new = source.splitlines(), changed.splitlines()
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b), 0)
    starts = [number for _, _, number in function.co_lines() if number]
    body = min((n for n in starts if n > function.co_firstlineno), default=0)
    return first >= body > 0
