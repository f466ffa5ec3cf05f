"""The registry of operators: from a type's name to the FunctionNode class.

Requirement: nets name operators by type, so that nets can be printed and saved. Users add
operators by a decorator. The gradient of an operator is not registered, but found by tracing the
function's ``backward`` (see ``gradient``): no gradient is written twice.

Source: OpInfoMap and REGISTER_OP of Paddle's design, 2017.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tinynode import functions
from tinynode.core.function_node import FunctionNode
from tinynode.errors import NetError, describe, short_text, snake_case
from tinynode.functions import linalg
from tinynode.habits import closest
from tinynode.late_imports import import_late

NodeClass = TypeVar("NodeClass", bound=type[FunctionNode])


class OpInfo(NamedTuple):
    """The registry's entry for a type of operator.

    Attributes:
        name: the type's name.
        node_class: the FunctionNode class.
        inputs: the names of the input slots; () for slots ``x0``, ``x1`` ..., as many as given.
        outputs: the names of the output slots; () for slots ``y0``, ``y1`` ...
    """

    name: str
    node_class: type[FunctionNode]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


OpInfoMap: dict[str, OpInfo] = {}
"""Every registered type of operator, by name."""

_LATE = {
    "fixed_point": ("tinynode.transforms.implicit_operators", "FixedPoint"),
    "gradient_of": ("tinynode.transforms.batching", "GradientOf"),
    "linear_solve": ("tinynode.transforms.implicit_operators", "LinearSolve"),
    "missing_rule": ("tinynode.array_api.special_nodes", "MissingRule"),
    "newton": ("tinynode.transforms.implicit_operators", "Newton"),
    "opaque_special": ("tinynode.array_api.special", "OpaqueSpecial"),
    "root": ("tinynode.transforms.implicit_operators", "Root"),
    "scaled_tail": ("tinynode.array_api.special_rules", "ScaledTail"),
    "special_function": ("tinynode.array_api.special", "SpecialFunction"),
}
"""Operators of modules that are imported at their first use: module and class, by type."""
_type_of_class: dict[type, str] = {}
_has_library = False


def register_op(
    type: str | None = None, *, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> Callable[[NodeClass], NodeClass]:
    """Register a FunctionNode class as a type of operator: ``@register_op("scale")``.

    Args:
        type: the name; by default the class's name in snake_case.
        inputs: a slot name for each input.
        outputs: a slot name for each output.

    Raises:
        NetError: the name is taken by another class, or a slot's name comes twice.
        TypeError: the decorated object is no FunctionNode class.
    """

    def register(node_class: NodeClass) -> NodeClass:
        if not (isinstance(node_class, _CLASS) and issubclass(node_class, FunctionNode)):
            raise TypeError(
                f"register_op: expected a FunctionNode class, got {describe(node_class)}."
            )
        if not is_of_tinynode(node_class):
            _register_library()  # which takes its names first
        name = type or snake_case(node_class.__name__)
        _check_new(name, node_class, inputs, outputs)
        OpInfoMap[name] = OpInfo(name, node_class, tuple(inputs), tuple(outputs))
        _type_of_class[node_class] = name
        return node_class

    return register


_CLASS = type  # the argument of register_op hides the name


def _check_new(
    name: str, node_class: type[FunctionNode], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> None:
    known = OpInfoMap.get(name) if is_of_tinynode(node_class) else _found(name)
    if known is not None and known.node_class is not node_class:
        raise NetError(
            f"register_op: the type {name!r} is taken by {known.node_class.__qualname__}. Give "
            f"{node_class.__qualname__} another name: register_op('...')."
        )
    for slots in (inputs, outputs):
        twice = sorted({slot for slot in slots if slots.count(slot) > 1})
        if twice:
            raise NetError(f"register_op: {name!r} has the slot {twice[0]!r} twice.")


def is_of_tinynode(node_class: Any) -> bool:
    """True for a class of tinynode; a class of somebody else declares nothing."""
    return bool(node_class.__module__.startswith("tinynode."))


def get_op_info(type: str) -> OpInfo:
    """The registry's entry for a type.

    Raises:
        NetError: the type is not registered.
    """
    info = _found(type)
    if info is None:
        close = closest(type, OpInfoMap)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise NetError(
            f"operator {short_text(type)} cannot be found; {hint}A FunctionNode class becomes one "
            "by the decorator tinynode.net.register_op()."
        )
    return info


def type_name(node_class: type[FunctionNode]) -> str:
    """The type of a FunctionNode class; a new class is registered under the class name."""
    _register_library()
    if node_class not in _type_of_class:
        name = snake_case(node_class.__name__)
        taken = OpInfoMap.get(name) if is_of_tinynode(node_class) else _found(name)
        if taken is not None:  # two classes of one name: the module tells them apart
            name = _free_name(f"{node_class.__module__}.{node_class.__qualname__}")
        register_op(name)(node_class)
    return _type_of_class[node_class]


def _free_name(path: str) -> str:
    """The path of a class, with a number if an earlier class has the path.

    A cell of a notebook makes a new class in each run.
    """
    name, number = path, 1
    while name in OpInfoMap:
        number += 1
        name = f"{path}#{number}"
    return name


def _found(type: str) -> OpInfo | None:
    """The registry's entry for a type, if any; a late module of the library is imported.

    So a text of another process is read. A user's class gets no name of the library.
    """
    _register_library()
    if type in _LATE and type not in OpInfoMap:
        path, class_name = _LATE[type]
        register_op(type)(getattr(import_late(path), class_name))
    return OpInfoMap.get(type)


def _register_library() -> None:
    """Register every FunctionNode class of ``tinynode.functions``, once.

    Two threads at once register each class twice, with the same result.
    """
    global _has_library
    if _has_library:
        return
    known = {name.replace("_", ""): name for name in [*functions.__all__, *linalg.__all__]}
    for module in pkgutil.iter_modules(functions.__path__, functions.__name__ + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if _is_of_library(value):
                register_op(_library_type(value.__name__, known))(value)
    _has_library = True


def _is_of_library(value: object) -> bool:
    """True for a FunctionNode class of the library that can run: no base class."""
    if not (isinstance(value, type) and issubclass(value, FunctionNode)):
        return False
    runs = value.forward is not FunctionNode.forward
    return runs and value.__module__.startswith(functions.__name__)


def _library_type(class_name: str, known: dict[str, str]) -> str:
    """The name of the lower-case function beside the class: ``MatMul`` is ``matmul``.

    ``MatMulOfTransposed`` is ``matmul_of_transposed``, and ``GELUGrad`` is ``gelu_grad``.
    """
    joint = "Grad" if "Grad" in class_name else "Of"
    base, joint, rest = class_name.partition(joint)
    parts = [known.get(base.lower(), snake_case(base)), joint.lower(), snake_case(rest)]
    return "_".join([part for part in parts if part])
