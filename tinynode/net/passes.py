"""Passes: nets made simpler before a run.

Requirement: a net's results stay the same. Each pass has a single purpose, and can be read and
tested alone. Passes are applied to the net of a plan, never to a net to be differentiated.

A pass takes the operators in run order, the names of the results, and the specs (shape, dtype) of
all variables. A pass returns operators.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from tinynode.core.dispatch import run_forward
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.devices import Arrays, all_finite, all_true, is_floating, to_host
from tinynode.errors import dtype_name
from tinynode.functions.arithmetic import (
    AddAll,
    Divide,
    Multiply,
    ZeroSafeDivide,
    ZeroSafeMultiply,
)
from tinynode.functions.attributes import Place, Slice
from tinynode.functions.checked import checked_float
from tinynode.functions.cross_entropies import BinaryLabels
from tinynode.functions.ctc_losses import CTCStates
from tinynode.functions.data_types import Identity
from tinynode.functions.indexing import GetItem, SetItemGrad
from tinynode.functions.manipulation import Concat, Flip, Split, Unstack
from tinynode.functions.masking import KeepZeros
from tinynode.functions.network import CheckedRows, Linear
from tinynode.functions.products import MatMul, MatMulOfTransposed
from tinynode.functions.searching import Where
from tinynode.functions.shapes import BroadcastTo, PermuteDims, Reshape, SumTo
from tinynode.net.helpers import Constant, DummyGradient, OtherGradient, StopGradient
from tinynode.net.operator import EMPTY, ArraySpecs, Operator, frozen, operator_of
from tinynode.net.recorder import needed_operators
from tinynode.net.registry import register_op

Operators: TypeAlias = list[Operator]


def simplify(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """Apply all passes in order."""
    wanted = frozenset(outputs)
    operators = needed_operators(operators, wanted)
    for one in PASSES:
        changed = one(operators, wanted, specs)
        if changed != operators:
            operators = needed_operators(changed, wanted)
    return operators


def node_class_of(operator: Operator) -> type[FunctionNode]:
    """The FunctionNode class of an operator."""
    return operator.node_class


def is_random(operator: Operator) -> bool:
    """True if an operator draws random numbers: such operators run exactly once in each run."""
    return node_class_of(operator).is_random


def is_collective(operator: Operator) -> bool:
    """True if an operator speaks to other processes: each run of the net needs the operator."""
    return node_class_of(operator).is_collective


def drop_other_gradients(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """An operator that changes a gradient alone is an identity of each ``y``.

    The operator that computes y writes a wanted output directly.
    """
    written: set[str] = set()
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        written.update(operator.output_names)
        if not issubclass(node_class_of(operator), OtherGradient):
            kept.append(operator)
            continue
        ys = operator.input_names[operator.attrs["count"] :]
        for y, name in zip(ys, operator.output_names, strict=True):
            is_free = y in written and y not in outputs and y not in names
            if is_free and name in outputs:
                names[y] = name
            else:
                kept.append(operator_of(Identity(), [y], [name]))
    return [operator.renamed(names) for operator in kept]


def eliminate_copies(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """Copy elimination: leave out identities, reshapes to the same shape, and joins of one.

    For a copy that is an output, the operator of the value writes the output. The exception is a
    value that may share memory with an input: the copy is what keeps the output apart.
    """
    names: dict[str, str] = {}
    written: set[str] = set()
    results: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        name = operator.output_names[0]
        if _is_copy(operator, specs):
            source = operator.input_names[0]
            if name not in outputs:
                names[name] = source
                continue
            if source in written and source not in outputs and source not in results:
                results[source] = name
                continue
        elif _makes_new_arrays(operator):
            written.update(operator.output_names)
        kept.append(operator)
    return [operator.renamed(results) for operator in kept] if results else kept


MAY_SHARE_MEMORY = {
    *(AddAll, BinaryLabels, BroadcastTo, CheckedRows, CTCStates, Constant, Flip, GetItem),
    *(KeepZeros, PermuteDims, Reshape, SetItemGrad, Split, Unstack),
}
"""The functions that may give an input, a view of it, or one array at each run."""


def _makes_new_arrays(operator: Operator) -> bool:
    """True if the outputs share no memory with the inputs; unknown for a user's function."""
    node_class = node_class_of(operator)
    is_own = node_class.__module__.startswith("tinynode.")
    return is_own and node_class not in MAY_SHARE_MEMORY


def _is_copy(operator: Operator, specs: ArraySpecs) -> bool:
    node_class = node_class_of(operator)
    if node_class in (Identity, StopGradient):
        return True
    if node_class is Concat:
        return len(operator.input_names) == 1
    if node_class in (Reshape, BroadcastTo, SumTo):
        return specs[operator.input_names[0]] == specs[operator.output_names[0]]
    return False


def eliminate_common_subexpressions(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """Common-subexpression elimination: equal type, inputs and constants run once."""
    names: dict[str, str] = {}
    first: dict[Any, Operator] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        key = (operator.type, tuple(operator.input_names), frozen(operator.attrs))
        try:
            known = first.setdefault(key, operator)
        except TypeError:  # a constant without a hash
            known = operator
        if known is operator or is_random(operator) or is_collective(operator):
            kept.append(operator)
            continue
        for name, same in zip(operator.output_names, known.output_names, strict=True):
            if name in outputs or EMPTY in (name, same):
                kept.append(operator)
                break
        else:
            names.update(zip(operator.output_names, known.output_names, strict=True))
    return kept


def fold_constants(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """Constant folding: compute operators of constants now."""
    values: dict[str, Any] = {}
    kept = []
    for operator in operators:
        if operator.node_class is Constant:
            values[operator.output_names[0]] = operator.make_node()
        elif values and not values.keys().isdisjoint(operator.input_names):
            if is_random(operator) or is_collective(operator):
                kept.append(operator)
                continue
            node = operator.make_node()
            known: list[Any] = [values.get(name) for name in operator.input_names]
            small = (
                sum(math.prod(specs[n][0]) for n in operator.output_names if n != EMPTY) <= 1024
            )
            if all(known) and small and node.output_device is None:
                device = known[0].output_device
                arrays = tuple([one.value for one in known])
                results = run_forward(node, arrays, device, device)
                for name, result in zip(operator.output_names, results, strict=True):
                    if name != EMPTY:
                        values[name] = constant = Constant(result, device)
                        kept.append(operator_of(constant, [], [name]))
                continue
        kept.append(operator)
    return kept


def fold_transposes(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """A transpose and a matrix product become one operator: BLAS transposes on the way."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        if node_class_of(operator) is PermuteDims and _swaps_two(operator.attrs):
            origin[operator.output_names[0]] = operator.input_names[0]
        is_product = node_class_of(operator) in (MatMul, MatMulOfTransposed)
        if is_product and not origin.keys().isdisjoint(operator.input_names):
            x, y = operator.input_names
            if len(specs[x][0]) == len(specs[y][0]) == 2:
                turned = [operator.attrs.get(f"transpose_{name}", False) for name in "xy"]
                node = MatMulOfTransposed((x in origin) != turned[0], (y in origin) != turned[1])
                read = [origin.get(x, x), origin.get(y, y)]
                operator = operator_of(node, read, operator.output_names)
        kept.append(operator)
    return kept


def _swaps_two(attrs: Mapping[str, Any]) -> bool:
    return tuple(attrs["axes"]) == (1, 0)


def cancel_sums(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """``sum_to(broadcast_to(x))`` back to x's shape is x times a number.

    Integers are left out, since the result stays integer, and float16, whose range is small. Empty
    sums are left out too: an empty sum is 0 also for an infinite x.
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
            times = math.prod(specs[wide][0]) // max(math.prod(specs[x][0]), 1)
            if specs[x] == specs[name] and times > 0 and _is_wide(specs[x][1]):
                kept.append(operator_of(TimesNumber(float(times)), [x], [name]))
                continue
        kept.append(operator)
    return kept


def _is_wide(dtype: Any) -> bool:
    """True for float32 and float64 of any array library, with any prefix in the text."""
    return dtype_name(dtype) in ("float32", "float64")


@register_op("times_number")
class TimesNumber(FunctionNode):
    """y = x * number.

    x: (s) -> y: (s). No gradient: for nets that only run.
    """

    is_elementwise = True

    def __init__(self, number: float) -> None:
        self.number = checked_float(self, "number", number)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (x * self.number,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        raise NotImplementedError("TimesNumber stands in nets that only run.")


def drop_broadcasts(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """Leave out ``broadcast_to`` before a product: products broadcast."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        node_class = node_class_of(operator)
        if node_class is BroadcastTo:
            origin[operator.output_names[0]] = operator.input_names[0]
        elif node_class is Multiply and not origin.keys().isdisjoint(operator.input_names):
            form = specs[operator.output_names[0]]
            for position, other in ((0, 1), (1, 0)):
                names = operator.input_names
                if names[0] == names[1]:
                    break
                if names[position] in origin and specs[names[other]] == form:
                    operator = operator.renamed({names[position]: origin[names[position]]})
                    break
        kept.append(operator)
    return kept


def drop_ones(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """Leave out products with a constant of ones: x * 1 = x."""
    ones = set()
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        kind, value = operator.node_class, operator.attrs.get("value")
        if kind is Constant and math.prod(specs[operator.output_names[0]][0]) <= 1024:
            if bool((to_host(value) == 1).all()):
                ones.add(operator.output_names[0])
        elif kind is BroadcastTo and operator.input_names[0] in ones:
            ones.add(operator.output_names[0])
        elif kind is Multiply and operator.output_names[0] not in outputs:
            x, y = operator.input_names
            other = y if x in ones else x if y in ones else None
            if other is not None and specs[other] == specs[operator.output_names[0]]:
                names[operator.output_names[0]] = other
                continue
        kept.append(operator)
    return kept


def cancel_permutes(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """``permute_dims`` of ``permute_dims`` is one ``permute_dims``, or none at all."""
    known: dict[str, tuple[str, tuple[int, ...]]] = {}
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        if node_class_of(operator) is PermuteDims:
            (source,), (name,) = operator.input_names, operator.output_names
            axes = tuple(operator.attrs["axes"])
            if source in known:
                source, first = known[source]
                axes = tuple([first[axis] for axis in axes])
                operator = operator_of(PermuteDims(axes), [source], [name])
            if axes == tuple(range(len(axes))) and name not in outputs:
                names[name] = source
                continue
            known[name] = source, axes
        kept.append(operator)
    return kept


def merge_reshapes(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """``reshape`` of ``reshape`` is one ``reshape``."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        if node_class_of(operator) is Reshape:
            (name,) = operator.output_names
            source = operator.input_names[0]
            origin[name] = origin.get(source, source)
            operator = operator.renamed({source: origin[name]})
        kept.append(operator)
    return kept


def recognize_reshapes(
    operators: Operators, outputs: Collection[str], specs: ArraySpecs
) -> Operators:
    """``get_item`` of all elements and ``permute_dims`` of axes of length 1 are ``reshape``.

    Vmap makes these functions: ``x[None]`` shares x with all examples, and ``[0]`` is x again.
    """
    kept = []
    for operator in operators:
        if operator.node_class in (GetItem, PermuteDims) and _keeps_elements(operator, specs):
            node = Reshape(specs[operator.output_names[0]][0])
            operator = operator_of(node, operator.input_names, operator.output_names)
        kept.append(operator)
    return kept


def _keeps_elements(operator: Operator, specs: ArraySpecs) -> bool:
    """True if the elements of the result are those of x, in the order of x."""
    shape = specs[operator.input_names[0]][0]
    if operator.node_class is PermuteDims:
        long = [axis for axis in operator.attrs["axes"] if shape[axis] != 1]
        return long == sorted(long)
    for item in operator.attrs["index"]:
        is_backward = isinstance(item, Slice) and (item.step or 1) < 0
        if is_backward or isinstance(item, Place):
            return False
    return math.prod(shape) == math.prod(specs[operator.output_names[0]][0])


def skip_ones(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """``permute_dims`` of a reshape that adds axes of length 1, left out later, needs no reshape.

    ``x[None]`` (1, n, m), permuted to (1, m, n), reshaped to (m, n) is x of (n, m), permuted.
    """
    origin: dict[str, tuple[str, tuple[int, ...]]] = {}  # an earlier value, and its axes in order
    kept = []
    for operator in operators:
        if operator.node_class in (Reshape, PermuteDims):
            (read,), (write,) = operator.input_names, operator.output_names
            source, order = origin.get(read, (read, tuple(range(len(specs[read][0])))))
            moved = _moved(operator, order, specs[source][0], specs)
            if moved is not None:
                origin[write] = source, moved
                shape = specs[source][0]
                if specs[write][0] == tuple([shape[axis] for axis in moved]):
                    is_straight = moved == tuple(range(len(moved)))
                    node = Reshape(shape) if is_straight else PermuteDims(moved)
                    operator = operator_of(node, [source], [write])
        kept.append(operator)
    return kept


def _moved(
    operator: Operator, order: tuple[int, ...], source: tuple[int, ...], specs: ArraySpecs
) -> tuple[int, ...] | None:
    """The axes of a source in the order of the result; None if the operator mixes axes.

    ``order`` has those of x. Axes of length 1 count in neither.
    """
    shape, result = [specs[n][0] for n in (*operator.input_names, *operator.output_names)]
    lengths = [n for n in shape if n != 1]
    if 1 in source or lengths != [source[axis] for axis in order]:
        return None
    if node_class_of(operator) is Reshape:
        return order if lengths == [n for n in result if n != 1] else None
    long = [axis for axis, n in enumerate(shape) if n != 1]
    return tuple([order[long.index(axis)] for axis in operator.attrs["axes"] if axis in long])


def drop_dummies(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """``keep_zeros(y, g, d)`` is y if g depends on a dummy gradient.

    ``keep_zeros`` alone reads the values of g in the derivative of a rule linear in g. So all work
    on dummy gradients becomes unneeded. A dummy gradient is nowhere 0, and neither is g, apart
    from masked elements, where a later mask hides y.
    """
    dummies: set[str] = set()
    kept = []
    for operator in operators:
        node_class = node_class_of(operator)
        reads = operator.input_names
        if node_class is KeepZeros and reads[1] in dummies:
            operator, reads = _without_zeros(operator, specs), reads[:1]
        if node_class is DummyGradient or not dummies.isdisjoint(reads):
            dummies.update(operator.output_names)
        kept.append(operator)
    return kept


def _without_zeros(operator: Operator, specs: ArraySpecs) -> Operator:
    """``keep_zeros(y, g, d)`` that replaces nothing: y in the shape of the result."""
    (shape, dtype), y = specs[operator.output_names[0]], operator.input_names[0]
    if specs[y][1] != dtype:
        return operator
    return operator_of(BroadcastTo(shape), [y], operator.output_names)


def drop_guards(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """Constants of finite numbers need no guard.

    ``zero_safe_multiply`` by such a constant is ``multiply``, ``zero_safe_divide`` by one without
    zeros is ``divide``, and ``keep_zeros`` replaces nothing.
    """
    finite: set[str] = set()
    nonzero: set[str] = set()
    kept = []
    for operator in operators:
        node_class = node_class_of(operator)
        if node_class is Constant:
            value = operator.attrs["value"]
            if all_finite(value):
                finite.add(operator.output_names[0])
            if all_finite(value) and is_floating(value) and all_true(value != 0):
                nonzero.add(operator.output_names[0])
        elif node_class is ZeroSafeMultiply and operator.input_names[1] in finite:
            operator = operator_of(Multiply(), operator.input_names, operator.output_names)
        elif node_class is ZeroSafeDivide and operator.input_names[1] in nonzero:
            operator = operator_of(Divide(), operator.input_names, operator.output_names)
        elif node_class is KeepZeros and operator.input_names[2] in finite:
            operator = _without_zeros(operator, specs)
        kept.append(operator)
    return kept


def fold_choices(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """``where`` with a constant condition, equal everywhere, is one of the two choices."""
    constants: dict[str, Any] = {}
    names: dict[str, str] = {}
    kept = []
    for operator in operators:
        operator = operator.renamed(names)
        kind, name = operator.node_class, operator.output_names[0]
        if kind is Constant:
            constants[name] = operator.attrs["value"]
        elif kind is Where and operator.input_names[0] in constants:
            condition = to_host(constants[operator.input_names[0]])
            choice = operator.input_names[1 if condition.any() else 2]
            is_equal = bool(condition.all()) or not condition.any()
            if is_equal and specs[choice] == specs[name] and name not in outputs:
                names[name] = choice
                continue
        kept.append(operator)
    return kept


def restore_linear(operators: Operators, outputs: Collection[str], specs: ArraySpecs) -> Operators:
    """A stack of matrices times a transposed matrix is ``linear``: one product of all rows."""
    origin: dict[str, str] = {}
    kept = []
    for operator in operators:
        if node_class_of(operator) is PermuteDims and _swaps_two(operator.attrs):
            origin[operator.output_names[0]] = operator.input_names[0]
        elif node_class_of(operator) is MatMul and operator.input_names[1] in origin:
            x, w = operator.input_names
            if len(specs[x][0]) > 2 and specs[x][1] == specs[w][1]:
                operator = operator_of(Linear(), [x, origin[w]], operator.output_names)
        kept.append(operator)
    return kept


PASSES = (
    drop_other_gradients,
    recognize_reshapes,
    eliminate_copies,
    skip_ones,
    cancel_permutes,
    merge_reshapes,
    eliminate_copies,
    drop_dummies,
    cancel_sums,
    fold_constants,
    drop_guards,
    fold_choices,
    drop_ones,
    eliminate_common_subexpressions,
    restore_linear,
    fold_transposes,
    drop_broadcasts,
    eliminate_copies,
)
