"""Operator: one step of a net, by name.

Requirement: a net is data that can be printed, saved, transformed and differentiated; it knows no
arrays. An operator says which type of function it is, which variables it reads and writes, by name
and slot, and with which constants. Variables live by their names in a ``Scope``.

Source: the operators of Paddle's design, 2017: type, inputs, outputs, attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tinynode.configuration import no_backprop_mode
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Device
from tinynode.errors import NetError, describe
from tinynode.net.registry import OpInfo, get_op_info, type_name
from tinynode.net.scope import Scope

Slots: TypeAlias = dict[str, list[str]]
"""The names in each slot of an operator: ``{"x": ["a"], "y": ["b"]}``."""

GRAD = "@GRAD"
"""What is added to a variable's name for its gradient's."""
EMPTY = "@EMPTY@"
"""The name of what is not there: an output that nobody wants, a gradient that nobody gives."""


class Operator:
    """One step of a net: a function's type, names in slots, and constants.

    Args:
        type: the function's type, as registered: ``"multiply"``.
        inputs: the names in each input slot, or a list of names for slots ``x0``, ``x1`` ...
        outputs: the names in each output slot, or a list of names for slots ``y0``, ``y1`` ...
        attrs: the arguments of the function's constructor, by name: ``{"axes": (0,)}``. The
            attribute ``attrs`` has what the constructor made of them.

    Raises:
        NetError: the type is unknown, the slots are not those of the type, or the constructor
            takes other arguments.
    """

    def __init__(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]] | Sequence[str],
        outputs: Mapping[str, Sequence[str]] | Sequence[str],
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        info = get_op_info(type)
        self.type = type
        self.inputs = _slots(type, inputs, info.inputs, "x")
        self.outputs = _slots(type, outputs, info.outputs, "y")
        self.attrs = _constants(info, attrs or {})

    @classmethod
    def with_constants(
        cls, type: str, inputs: Any, outputs: Any, constants: Mapping[str, Any]
    ) -> Operator:
        """An operator with the constants of a FunctionNode that is there already."""
        operator = cls.__new__(cls)
        info = get_op_info(type)
        operator.type = type
        operator.inputs = _slots(type, inputs, info.inputs, "x")
        operator.outputs = _slots(type, outputs, info.outputs, "y")
        operator.attrs = dict(constants)
        return operator

    @property
    def input_names(self) -> list[str]:
        """The names that it reads, in the order of the function's inputs."""
        return [name for names in self.inputs.values() for name in names]

    @property
    def output_names(self) -> list[str]:
        """The names that it writes, in the order of the function's outputs."""
        return [name for names in self.outputs.values() for name in names]

    def make_node(self) -> FunctionNode:
        """A fresh FunctionNode with these constants: one application of the function."""
        node_class = get_op_info(self.type).node_class
        node: FunctionNode = node_class.__new__(node_class)
        vars(node).update(self.attrs)
        return node

    def run(self, scope: Scope) -> None:
        """Read the inputs from a scope, and write the outputs to it; no graph is recorded."""
        inputs = tuple(scope.find(name, self.type) for name in self.input_names)
        with no_backprop_mode():
            outputs = self.make_node().apply(inputs)
        for name, output in zip(self.output_names, outputs, strict=True):
            if name != EMPTY:
                scope.set(name, output)

    def renamed(self, names: Mapping[str, str]) -> Operator:
        """The same operator with other names; those that are not mentioned stay."""
        return Operator.with_constants(
            self.type,
            {slot: [names.get(n, n) for n in found] for slot, found in self.inputs.items()},
            {slot: [names.get(n, n) for n in found] for slot, found in self.outputs.items()},
            self.attrs,
        )

    def lines(self, indent: str = "") -> Iterator[str]:
        """The lines of the program that ``print(net)`` shows."""
        words = [*self.input_names, *(f"{k}={_shown(v)}" for k, v in sorted(self.attrs.items()))]
        yield f"{indent}{', '.join(self.output_names)} = {self.type}({', '.join(words)})"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<Operator {self}>"


def operator_of(node: FunctionNode, inputs: Sequence[str], outputs: Sequence[str]) -> Operator:
    """The operator that a FunctionNode's application is an example of."""
    return Operator.with_constants(type_name(type(node)), inputs, outputs, constants_of(node))


def constants_of(node: FunctionNode) -> dict[str, Any]:
    """What a FunctionNode's constructor has set, without what ``apply`` added."""
    own = vars(node).items()
    return {name: value for name, value in own if name[:1] != "_" and name not in OF_APPLY}


OF_APPLY = {"inputs", "outputs", "rank", "stack", "lazy_grad_sum", "retained_checksums"}
"""The attributes that ``apply`` sets on a FunctionNode: no constants."""


def _shown(value: Any) -> str:
    """A constant as one short line: a class by its name, a large array by its shape."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Device):
        return str(value)
    return describe(value) if getattr(value, "size", 1) != 1 else " ".join(repr(value).split())


def _constants(info: OpInfo, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a function's constructor makes of its arguments."""
    try:
        return constants_of(info.node_class(**arguments))
    except TypeError as error:
        raise NetError(
            f"operator {info.name!r}: {info.node_class.__qualname__} cannot be made with "
            f"attrs={dict(arguments)}: {error}."
        ) from None


def _slots(
    type: str,
    given: Mapping[str, Sequence[str]] | Sequence[str],
    expected: tuple[str, ...],
    prefix: str,
) -> Slots:
    """Names by slot; a plain list goes one by one into the slots, or numbered ones."""
    if isinstance(given, str):
        raise NetError(f"{type}: names must come in a list or by slot, got {given!r}.")
    if not isinstance(given, Mapping):
        titles = expected or tuple(f"{prefix}{i}" for i in range(len(given)))
        if len(titles) != len(given):
            raise NetError(f"{type}: expected {len(titles)} names for {titles}, got {given}.")
        return {title: [name] for title, name in zip(titles, given, strict=True)}
    if expected and tuple(given) != expected:
        raise NetError(f"{type}: the slots must be {expected}, in that order; got {tuple(given)}.")
    return {slot: list(names) for slot, names in given.items()}
