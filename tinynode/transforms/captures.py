"""Captured Variables: those that a function of the user reads and did not get as arguments.

Requirement: a function with parameters in its closure is a function of the parameters too. A
FunctionNode that runs such a function has the captured Variables among its inputs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from tinynode.core.conversion import restore
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable


class Captures(FunctionHook):
    """Collects the Variables from outside among the functions' inputs, in ``with captures:``.

    Variables freed at the end are constants, such as the number in ``2 * x``.

    Args:
        own: the arguments of the function.

    Attributes:
        made: the nodes of the arguments and of all outputs.
        depending: the nodes in ``made`` that depend on a Variable that requires a gradient. The
            outputs themselves require none where no graph is recorded.
    """

    def __init__(self, own: Sequence[Variable]) -> None:
        self.name = f"captures {id(self)}"
        self.made = {x.node for x in own}
        self.depending = {x.node for x in own if x.requires_grad}
        self.read: dict[Any, weakref.ref[Variable]] = {}

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        for x in inputs:
            self._note(x)
        self.made.update(y.node for y in outputs)
        if any(map(self.depends, inputs)):
            self.depending.update(y.node for y in outputs)

    def detached(self, source: Any, copy: Any) -> None:
        self._note(source)
        self.made.add(copy.node)

    def _note(self, x: Variable) -> None:
        if x.node not in self.made:
            self.read[x.node] = weakref.ref(x)

    def depends(self, x: Variable) -> bool:
        """True if a Variable that requires a gradient is x, or one of those that made x."""
        return x.requires_grad or x.node in self.depending

    def note_results(self, results: Sequence[Variable]) -> None:
        """Collect the results too: a captured Variable may be one."""
        for y in results:
            self._note(y)

    def found(self) -> list[Variable]:
        """The Variables that are still alive."""
        return [x for x in (reference() for reference in self.read.values()) if x is not None]


def cut_inputs(
    values: Sequence[Variable],
    arguments: int,
    record: bool,
    cut: Callable[[Variable, bool], Variable],
) -> list[Variable]:
    """The inputs of an application, arguments first, for another run of the user's function.

    The inner backward pass ends at each. Arguments are cut. A captured leaf needs no copy, unless
    the pass is recorded. The graph of another captured Variable may lead to an input, so that the
    path would count twice.
    """
    return [
        cut(x, record) if i < arguments or record or x.creator_node is not None else x
        for i, x in enumerate(values)
    ]


@contextmanager
def standing_in(live: Sequence[Variable], given: Sequence[Variable]) -> Iterator[None]:
    """Give captured Variables the nodes and the arrays of others for a while.

    The user's function knows the captured Variables by a closure. In this block the function is a
    function of an application's inputs. Nothing is done if nodes and arrays are the same.
    """
    pairs = [(v, g) for v, g in zip(live, given, strict=True) if _differ(v, g)]
    with standing_in_lock if pairs else nullcontext():
        before = [(v, v.node, v.raw, v.grad_var) for v, _ in pairs]
        try:
            for v, g in pairs:
                restore(v, g.node, g.raw, None)
            yield
        finally:
            for v, node, array, gradient in before:
                restore(v, node, array, gradient)


standing_in_lock = threading.RLock()
"""One thread at a time gives other nodes to Variables that the user knows."""


def _differ(v: Variable, g: Variable) -> bool:
    """True if the arrays differ, or the nodes of Variables with a gradient."""
    return v.raw is not g.raw or (g.requires_grad and v.node is not g.node)
