"""Actions: what a plan does for the operators of a net, in the order of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from tinynode.devices import Device
from tinynode.net.operator import ArraySpec, Operator
from tinynode.net.plan import Packing

Names: TypeAlias = tuple[str, ...]


class Net(NamedTuple):
    """What a plan runs: the arguments of ``tinynode.net.plan.plan_of``.

    ``orders`` is added: the inputs with the channels last in memory, and the order of their axes.
    """

    operators: Sequence[Operator]
    devices: Mapping[str, Device]
    outputs: Sequence[str]
    forms: Mapping[str, ArraySpec]
    saved: Sequence[str] = ()
    layout: Packing | None = None
    orders: Mapping[str, tuple[int, ...]] = MappingProxyType({})


class FunctionCall(NamedTuple):
    """``function(*reads, *writes)``, or an operation on the elements of ``reads``."""

    function: Any
    reads: Names
    writes: Names


class View(NamedTuple):
    """``write = function(read)``: the same memory in another shape or order."""

    function: Callable[[Any], Any]
    reads: Names
    writes: Names


class OpaqueCall(NamedTuple):
    """``writes = operator(reads)``: the operator runs as a FunctionNode."""

    operator: Operator
    reads: Names
    writes: Names


Action: TypeAlias = FunctionCall | View | OpaqueCall
