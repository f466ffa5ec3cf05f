"""NetOp: a list of operators, and an operator too.

Requirement: a large net is made of small nets. The order of the list is the run order. Every name
is written once, so that a backward net may read any variable of the forward net.

Source: NetOp of Paddle's design, 2017.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from tinynode.errors import NetError, printable
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.scope import Scope

AnyOp: TypeAlias = "Operator | NetOp"


class NetOp:
    """Operators that run in order, followed by writes.

    Args:
        operators: the first operators; ``append`` adds more.
        type: a name, for printing.
        writes: the names with a new value after the run, and the value's name: ``{"w": "t12"}``.

    Raises:
        NetError: an operator writes a name already written or read.
    """

    def __init__(
        self,
        operators: Iterable[AnyOp] = (),
        type: str = "net",
        writes: Mapping[str, str] | None = None,
    ) -> None:
        self.type = type
        self.writes = dict(writes or {})
        self.operators: list[AnyOp] = []
        self._read: dict[str, None] = {}
        self._written: dict[str, None] = {}
        for operator in operators:
            self.append(operator)

    def append(self, operator: AnyOp) -> None:
        """Add an operator at the end.

        Raises:
            NetError: the operator writes a name already written or read.
        """
        read = [name for name in operator.input_names if name != EMPTY]
        written: dict[str, None] = {}
        for name in operator.output_names:
            if name in self._written or name in written:
                raise self._overwrites(operator, name, "written")
            if name in read or name in self._read:
                raise self._overwrites(operator, name, "read")
            if name != EMPTY:
                written[name] = None
        self._read.update(dict.fromkeys(name for name in read if name not in self._written))
        self._written.update(written)
        self.operators.append(operator)

    def _overwrites(self, operator: AnyOp, name: str, verb: str) -> NetError:
        return NetError(
            f"{self.type}: {operator.type} writes {name!r}, which was {verb} before: a backward "
            "net could not read the old value any more. Use a new name."
        )

    @property
    def input_names(self) -> list[str]:
        """The names read before any operator of the net writes them."""
        return list(self._read)

    @property
    def output_names(self) -> list[str]:
        """All written names, intermediate variables included."""
        return list(self._written)

    def run(self, scope: Scope) -> None:
        """Run the operators in order, then do the writes; no graph is recorded."""
        for operator in self.operators:
            operator.run(scope)
        written = {target: scope.find(name, self.type) for target, name in self.writes.items()}
        for target, value in written.items():
            scope.set(target, value)

    def flattened(self) -> list[Operator]:
        """The operators of the net and of inner nets, in run order."""
        flat = []
        waiting: list[AnyOp] = [self]
        while waiting:
            operator = waiting.pop()
            if isinstance(operator, NetOp):
                waiting.extend(reversed(operator.operators))
            else:
                flat.append(operator)
        return flat

    def renamed(self, names: Mapping[str, str]) -> NetOp:
        """The same net with other names."""
        writes = {names.get(to, to): names.get(n, n) for to, n in self.writes.items()}
        return NetOp([operator.renamed(names) for operator in self.operators], self.type, writes)

    def lines(self, indent: str = "") -> Iterator[str]:
        """The lines of the program: the inputs, a line for each operator, the writes."""
        yield indent + printable(f"{self.type}({', '.join(self.input_names)}):")
        for operator in self.operators:
            yield from operator.lines(indent + "    ")
        for target, name in self.writes.items():
            yield indent + printable(f"    {target} <- {name}")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        title = "of a lambda" if self.type == "<lambda>" else self.type
        count = len(self.operators)
        return f"<NetOp {title}: {count} operator{'s' if count != 1 else ''}>"
