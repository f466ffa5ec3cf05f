"""Operator: one step of a net, by name.

Requirement: a net is data, without arrays: programs print, save, transform and differentiate nets.
An operator has the type of a function, the names of variables in each slot, and constants. A
``Scope`` has the variables by name.

Source: the operators of Paddle's design, 2017: type, inputs, outputs, attributes.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tinynode.configuration import no_backprop_mode
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Device, find_device, to_host
from tinynode.errors import NetError, TinynodeError, describe, printable, short_name, short_text
from tinynode.net.registry import OpInfo, get_op_info, is_of_tinynode, type_name
from tinynode.net.schema import check_attributes, check_counts
from tinynode.net.scope import Scope

Slots: TypeAlias = dict[str, list[str]]
"""The names in each slot of an operator: ``{"x": ["a"], "y": ["b"]}``."""

GRAD = "@GRAD"
"""The suffix of a gradient's name."""
EMPTY = "@EMPTY@"
"""The name for a missing variable: an unused output, or a missing gradient."""

_RAW = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""The errors of array libraries, which do not name the operator."""

ArraySpec: TypeAlias = tuple[tuple[int, ...], Any]
"""Shape and dtype of an array."""
ArraySpecs: TypeAlias = dict[str, ArraySpec]
"""The specs of a net's variables, by name."""


class InnerNet:
    """Base of a constant with operators of its own."""

    def lines(self, indent: str = "") -> Iterator[str]:
        """The lines of the operators in ``print(net)``."""
        raise NotImplementedError


class Operator:
    """One step of a net: a function's type, names in slots, and constants.

    Args:
        type: the function's type, as registered: ``"multiply"``.
        inputs: the names in each input slot, or a list of names for slots ``x0``, ``x1`` ...
        outputs: the names in each output slot, or a list of names for slots ``y0``, ``y1`` ...
        attrs: the arguments of the function's constructor, by name: ``{"axes": (0,)}``. The
            attribute ``attrs`` has the constructor's results.

    Attributes:
        node_class: the FunctionNode class of the type.
        input_names: the names of the inputs, in the function's order.
        output_names: the names of the outputs, in the function's order.
        checked: the constants at the last check of ``attrs``; none before the first.

    Raises:
        NetError: the type is unknown, the slots do not fit the type, the constructor takes other
            arguments, or a constant is not what the constructor declares.
    """

    def __init__(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]] | Sequence[str],
        outputs: Mapping[str, Sequence[str]] | Sequence[str],
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        info = get_op_info(type)
        self._name(info, inputs, outputs)
        self.attrs = _constants(info, attrs or {})
        self.check()

    @classmethod
    def with_constants(
        cls, type: str, inputs: Any, outputs: Any, constants: Mapping[str, Any]
    ) -> Operator:
        """An operator with the constants of an existing FunctionNode."""
        operator = cls.__new__(cls)
        operator._name(get_op_info(type), inputs, outputs)
        operator.attrs = dict(constants)
        return operator

    def _name(self, info: OpInfo, inputs: Any, outputs: Any) -> None:
        """Set the type, and the names of inputs and outputs."""
        self.checked: dict[str, Any] = {}
        self._stamp: list[Any] | None = None  # names and ids of the constants at the last check
        self.type = info.name
        self.node_class = info.node_class
        self._input_slots, self.input_names = _slots(info.name, inputs, info.inputs)
        self._output_slots, self.output_names = _slots(info.name, outputs, info.outputs)

    @property
    def inputs(self) -> Slots:
        """The names in each input slot."""
        return _by_slot(self._input_slots, self.input_names, "x")

    @property
    def outputs(self) -> Slots:
        """The names in each output slot."""
        return _by_slot(self._output_slots, self.output_names, "y")

    def check(self, of_text: bool = False) -> None:
        """Compare the constants and the numbers of names with the schema of the function's class.

        Args:
            of_text: True for an operator of a text: see ``schema.check_attributes``.

        Raises:
            NetError: a constant, or the number of inputs or outputs, is not as declared.
        """
        self.attrs = check_attributes(self.type, self.node_class, self.attrs, of_text)
        check_counts(self.type, self.node_class, len(self.input_names), len(self.output_names))
        self._note_checked()

    def _note_checked(self) -> None:
        """Note the constants of the check, and keep them, so that no id comes again."""
        self.checked = dict(self.attrs)
        self._stamp = [*self.checked, *map(id, self.checked.values())]

    def make_node(self) -> FunctionNode:
        """A fresh FunctionNode with the operator's constants, for a single application.

        Raises:
            NetError: see ``check``; a check comes first if ``attrs`` changed after the last one.
        """
        if self._stamp != [*self.attrs, *map(id, self.attrs.values())]:
            self.check()
        node: FunctionNode = self.node_class.__new__(self.node_class)
        node.__dict__.update(self.attrs)
        return node

    def run(self, scope: Scope) -> None:
        """Read the inputs from a scope, and write the outputs; no graph is recorded.

        Raises:
            NetError: a function of tinynode refuses the inputs, without an error of its own.
        """
        inputs = tuple(scope.find(name, self.type) for name in self.input_names)
        try:
            with no_backprop_mode():
                outputs = self.make_node().apply(inputs)
        except _RAW as error:
            if isinstance(error, TinynodeError) or not is_of_tinynode(self.node_class):
                raise
            raise self._failure(f"{type(error).__name__}: {error}") from error
        if len(outputs) != len(self.output_names):
            raise self._failure(f"the function gives {len(outputs)} outputs")
        for name, output in zip(self.output_names, outputs, strict=True):
            if name != EMPTY:
                scope.set(name, output)

    def _failure(self, reason: str) -> NetError:
        return NetError(
            f"operator {short_name(str(self))}: {reason.removesuffix('.')}. Compare the shapes "
            "and dtypes of the inputs, and the attributes, with the docstring of "
            f"{self.node_class.__name__}."
        )

    def renamed(self, names: Mapping[str, str]) -> Operator:
        """The same operator with other names; names without an entry stay.

        An operator without such a name is returned unchanged.
        """
        known = names.keys()
        if known.isdisjoint(self.input_names) and known.isdisjoint(self.output_names):
            return self
        operator = copy.copy(self)
        operator.input_names = [names.get(name, name) for name in self.input_names]
        operator.output_names = [names.get(name, name) for name in self.output_names]
        return operator

    def lines(self, indent: str = "") -> Iterator[str]:
        """The operator's line in ``print(net)``, and the lines of a body."""
        words = [*self.input_names, *(f"{k}={_shown(v)}" for k, v in sorted(self.attrs.items()))]
        line = f"{', '.join(self.output_names)} = {self.type}({', '.join(words)})"
        yield indent + printable(line)
        for value in self.attrs.values():
            if isinstance(value, InnerNet):
                yield from value.lines(indent + "    ")

    def __str__(self) -> str:
        return next(self.lines())

    def __repr__(self) -> str:
        return f"<Operator {self}>"


def operator_of(node: FunctionNode, inputs: Sequence[str], outputs: Sequence[str]) -> Operator:
    """The operator of a FunctionNode's application; the constructor has checked the constants."""
    type_ = type_name(type(node))
    operator = Operator.with_constants(type_, inputs, outputs, constants_of(node))
    operator._note_checked()
    return operator


def constants_of(node: FunctionNode) -> dict[str, Any]:
    """The attributes set by a FunctionNode's constructor, without the additions of ``apply``."""
    own = vars(node).items()
    return {name: value for name, value in own if name[:1] != "_" and name not in OF_APPLY}


OF_APPLY = {
    *("inputs", "outputs", "rank", "stack", "lazy_grad_sum", "retained_checksums"),
    *("is_complex", "is_masked", "local_hooks_or_none"),
    *("retained_input_indexes", "retained_output_indexes"),
    *("retained_input_data", "retained_output_data"),
}
"""Attributes set by ``apply`` on a FunctionNode: no constants."""


def _shown(value: Any) -> str:
    """A constant as a short text: a class by name, a large array by shape."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, Device):
        return str(value)
    is_number = math.prod(getattr(value, "shape", ())) == 1
    return " ".join(repr(value).split()) if is_number else describe(value)


def _constants(info: OpInfo, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a function, from the constructor's arguments."""
    try:
        return constants_of(info.node_class(**arguments))
    except TypeError as error:
        raise NetError(
            f"operator {info.name!r}: {info.node_class.__qualname__} cannot be made with "
            f"attrs={short_text(dict(arguments))}: {str(error).removesuffix('.')}."
        ) from None


Counts: TypeAlias = "tuple[tuple[str, int], ...] | None"
"""The slots and the number of names in each; None for numbered slots of one name."""


def _slots(
    type: str,
    given: Mapping[str, Sequence[str]] | Sequence[str],
    expected: tuple[str, ...],
) -> tuple[Counts, list[str]]:
    """The slots, and all names; a plain list has a name for each slot, or for numbered slots."""
    if isinstance(given, str):
        raise NetError(f"{type}: names must come in a list or by slot, got {given!r}.")
    if not isinstance(given, Mapping):
        if not expected:
            return None, list(given)
        if len(expected) != len(given):
            raise NetError(f"{type}: expected {len(expected)} names for {expected}, got {given}.")
        return tuple([(slot, 1) for slot in expected]), list(given)
    if expected and tuple(given) != expected:
        raise NetError(f"{type}: the slots must be {expected}, in that order; got {tuple(given)}.")
    counts = tuple([(slot, len(names)) for slot, names in given.items()])
    return counts, [name for names in given.values() for name in names]


def _by_slot(counts: Counts, names: Sequence[str], prefix: str) -> Slots:
    """The names by slot."""
    if counts is None:
        return {f"{prefix}{i}": [name] for i, name in enumerate(names)}
    rest = iter(names)
    return {slot: list(itertools.islice(rest, count)) for slot, count in counts}


def frozen(attrs: Mapping[str, Any]) -> Any:
    """Constants as a key: values with type; arrays of at most 16 elements by value."""
    return tuple([(name, type(value), _value_key(value)) for name, value in attrs.items()])


def _value_key(value: Any) -> Any:
    if isinstance(value, float | complex):  # 0.0 == -0.0, and nan != nan
        return repr(value)
    if isinstance(value, tuple):
        return tuple([(type(item), _value_key(item)) for item in value])
    if isinstance(value, type) or not hasattr(value, "dtype"):  # dtypes have shapes, too
        return value
    if find_device(value) is None:  # a scalar of NumPy
        return repr(value)
    if math.prod(value.shape) > 16:
        return id(value)
    return tuple(value.shape), str(value.dtype), to_host(value).tobytes()
