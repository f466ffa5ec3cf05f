"""Scope: where the variables of a net live, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tinynode.core.conversion import as_variable
from tinynode.core.variable import Variable
from tinynode.errors import NetError, short_text
from tinynode.habits import closest


class Scope:
    """Variables by name, which a net's operators read and write.

    Args:
        variables: Variables or arrays to start with.
        parent: a scope for names not found here; never written to.
    """

    def __init__(
        self, variables: Mapping[str, Any] | None = None, parent: Scope | None = None
    ) -> None:
        self.parent = parent
        self._variables: dict[str, Variable] = {}
        for name, value in (variables or {}).items():
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """Put a Variable, or an array, under a name."""
        self._variables[name] = as_variable(value)

    def put(self, name: str, variable: Variable) -> None:
        """As ``set``, for a Variable alone."""
        self._variables[name] = variable

    def drop(self, name: str) -> None:
        """Remove a name from this scope, if present."""
        self._variables.pop(name, None)

    def find(self, name: str, reader: str = "Scope") -> Variable:
        """The Variable of a name.

        Raises:
            NetError: the name is unknown; the message names the reading operator.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope._variables:
                return scope._variables[name]
            scope = scope.parent
        close = closest(name, self)
        hint = f" Did you mean {short_text(close[0])}?" if close else ""
        raise NetError(f"{reader}: there is no variable {short_text(name)} in the scope.{hint}")

    def __contains__(self, name: str) -> bool:
        return name in self._variables or (self.parent is not None and name in self.parent)

    def __iter__(self) -> Iterator[str]:
        """The own names, then the parent's names."""
        yield from self._variables
        for name in self.parent or ():
            if name not in self._variables:
                yield name

    def __repr__(self) -> str:
        return f"Scope({', '.join(self)})"
