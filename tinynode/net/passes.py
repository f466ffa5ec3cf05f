"""Passes: nets made simpler before they are run.

Requirement: what a net computes stays the same; each pass does one thing and can be read and
tested alone. They are applied to what a plan runs, never to a net that will be differentiated.

A pass takes the operators in run order, the names that have to be there at the end, and the forms
(shape, dtype) of all variables; it returns operators.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.devices import Arrays, find_device, namespace_of, to_host
from tinynode.functions.arithmetic import Multiply
from tinynode.functions.data_types import Identity
from tinynode.functions.products import MatMul
from tinynode.functions.shapes import BroadcastTo, PermuteDims, Reshape, SumTo
from tinynode.net.helpers import Constant, StopGradient
from tinynode.net.operator import EMPTY, Operator, operator_of
from tinynode.net.recorder import needed_operators
from tinynode.net.registry import get_op_info, register_op

Forms: TypeAlias = Mapping[str, tuple[tuple[int, ...], Any]]
Operators: TypeAlias = list[Operator]


def simplify(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """All passes, one after the other."""
    wanted = frozenset(outputs)
    for one in PASSES:
        operators = needed_operators(one(operators, wanted, forms), wanted)
    return operators


def node_class_of(operator: Operator) -> type[FunctionNode]:
    """The FunctionNode class of an operator."""
    return get_op_info(operator.type).node_class


def is_random(operator: Operator) -> bool:
    """Whether an operator draws random numbers: it must run once, and at each run."""
    return bool(getattr(node_class_of(operator), "is_random", False))


def drop_copies(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """Leave out what only hands an array on: identity, and shapes that change nothing."""
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        if _is_copy(operator, forms) and operator.output_names[0] not in outputs:
            names[operator.output_names[0]] = operator.input_names[0]
        else:
            kept.append(operator)
    return kept


def _is_copy(operator: Operator, forms: Forms) -> bool:
    node_class = node_class_of(operator)
    if node_class in (Identity, StopGradient):
        return True
    if node_class in (Reshape, BroadcastTo, SumTo):
        return forms[operator.input_names[0]] == forms[operator.output_names[0]]
    return False


def share_common(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """Run once what is the same: one type, the same inputs, the same constants."""
    names: dict[str, str] = {}
    first: dict[Any, Operator] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        key = (operator.type, tuple(operator.input_names), _frozen(operator.attrs))
        try:
            known = first.setdefault(key, operator)
        except TypeError:  # a constant without a hash
            known = operator
        if known is operator or is_random(operator):
            kept.append(operator)
            continue
        for name, same in zip(operator.output_names, known.output_names, strict=True):
            if name in outputs or EMPTY in (name, same):
                kept.append(operator)
                break
        else:
            names.update(zip(operator.output_names, known.output_names, strict=True))
    return kept


def _frozen(attrs: Mapping[str, Any]) -> Any:
    """Constants as a key: a value by its type too, an array by its values if they are few."""
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


def fold_constants(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """Compute now what depends on constants alone."""
    values: dict[str, Any] = {}
    kept = []
    for operator in operators:
        node = operator.make_node()
        if isinstance(node, Constant):
            values[operator.output_names[0]] = node
        elif operator.input_names and not is_random(operator):
            known: list[Any] = [values.get(name) for name in operator.input_names]
            small = (
                sum(math.prod(forms[n][0]) for n in operator.output_names if n != EMPTY) <= 1024
            )
            if all(known) and small and node.output_device is None:
                device = known[0].output_device
                arrays = tuple([one.value for one in known])
                for name, result in zip(operator.output_names, node.forward(arrays), strict=True):
                    if name != EMPTY:
                        values[name] = constant = Constant(device.lift(result), device)
                        kept.append(operator_of(constant, [], [name]))
                continue
        kept.append(operator)
    return kept


@register_op("matmul_of_transposed")
class MatMulOfTransposed(FunctionNode):
    """z = x y, of matrices that are transposed before, as said.

    x: (n, m), or (m, n) if ``transpose_x``; y: (m, k) or (k, m) -> z: (n, k). No gradient: it
    stands in nets that only run.
    """

    def __init__(self, transpose_x: bool, transpose_y: bool) -> None:
        self.transpose_x = transpose_x
        self.transpose_y = transpose_y

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        xp = namespace_of(x)
        x = xp.matrix_transpose(x) if self.transpose_x else x
        y = xp.matrix_transpose(y) if self.transpose_y else y
        return (xp.matmul(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        raise NotImplementedError("MatMulOfTransposed stands in nets that only run.")


def fold_transposes(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """A matrix product of a transposed matrix is one operator: BLAS transposes on the way."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        if node_class_of(operator) is PermuteDims and _swaps_two(operator.attrs):
            origin[operator.output_names[0]] = operator.input_names[0]
        if node_class_of(operator) is MatMul and not origin.keys().isdisjoint(
            operator.input_names
        ):
            x, y = operator.input_names
            if len(forms[x][0]) == len(forms[y][0]) == 2:
                node = MatMulOfTransposed(x in origin, y in origin)
                read = [origin.get(x, x), origin.get(y, y)]
                operator = operator_of(node, read, operator.output_names)
        kept.append(operator)
    return kept


def _swaps_two(attrs: Mapping[str, Any]) -> bool:
    return tuple(attrs["axes"]) == (1, 0)


def cancel_sums(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """``sum_to(broadcast_to(x))`` back to x's shape is x times a number.

    Not so of integers, which stay integers, nor of float16, which has no large numbers; nor where
    nothing is summed, which gives 0 also for an infinite x.
    """
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        node_class = node_class_of(operator)
        if node_class is BroadcastTo:
            origin[operator.output_names[0]] = operator.input_names[0]
        elif node_class is SumTo and operator.input_names[0] in origin:
            wide, name = operator.input_names[0], operator.output_names[0]
            x = origin[wide]
            times = math.prod(forms[wide][0]) // max(math.prod(forms[x][0]), 1)
            if forms[x] == forms[name] and times > 0 and _is_wide(forms[x][1]):
                kept.append(operator_of(TimesNumber(float(times)), [x], [name]))
                continue
        kept.append(operator)
    return kept


def _is_wide(dtype: Any) -> bool:
    """Whether it is float32 or float64, of any array library: they differ in what comes before."""
    return str(dtype).rpartition(".")[2] in ("float32", "float64")


@register_op("times_number")
class TimesNumber(FunctionNode):
    """y = x * number.

    x: (s) -> y: (s). No gradient: it stands in nets that only run.
    """

    def __init__(self, number: float) -> None:
        self.number = number

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (x * self.number,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        raise NotImplementedError("TimesNumber stands in nets that only run.")


def drop_broadcasts(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """A product broadcasts by itself: one of its operands needs no ``broadcast_to`` before."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        node_class = node_class_of(operator)
        if node_class is BroadcastTo:
            origin[operator.output_names[0]] = operator.input_names[0]
        elif node_class is Multiply and not origin.keys().isdisjoint(operator.input_names):
            form = forms[operator.output_names[0]]
            for position, other in ((0, 1), (1, 0)):
                names = operator.input_names
                if names[0] == names[1]:
                    break
                if names[position] in origin and forms[names[other]] == form:
                    operator = operator.renamed({names[position]: origin[names[position]]})
                    break
        kept.append(operator)
    return kept


def drop_ones(operators: Operators, outputs: Collection[str], forms: Forms) -> Operators:
    """x times a constant of ones is x."""
    ones = set()
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        node = operator.make_node()
        if isinstance(node, Constant) and math.prod(forms[operator.output_names[0]][0]) <= 1024:
            if bool((to_host(node.value) == 1).all()):
                ones.add(operator.output_names[0])
        elif isinstance(node, BroadcastTo) and operator.input_names[0] in ones:
            ones.add(operator.output_names[0])
        elif isinstance(node, Multiply) and operator.output_names[0] not in outputs:
            x, y = operator.input_names
            other = y if x in ones else x if y in ones else None
            if other is not None and forms[other] == forms[operator.output_names[0]]:
                names[operator.output_names[0]] = other
                continue
        kept.append(operator)
    return kept


PASSES = (
    drop_copies,
    cancel_sums,
    fold_constants,
    drop_ones,
    share_common,
    fold_transposes,
    drop_broadcasts,
    drop_copies,
)
