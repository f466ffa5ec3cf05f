"""Checks of gradients, above all of seeds: the gradients that a backward pass starts from.

Requirement: a pass that cannot start raises an error before any function runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tinynode
from tinynode.core import messages
from tinynode.core.variable import Variable
from tinynode.devices import COMPLEX, hidden_axes, is_over, kind_of, seen_complex_dtypes


def check_gradient(gx: Any, x: Any, title: str, any_device: bool = False) -> None:
    """Refuse a gradient of x that does not fit x, a VariableNode or a Variable.

    Args:
        gx: the gradient.
        x: the Variable or VariableNode.
        title: the name of the gradient in messages.
        any_device: True allows a gradient on another device.

    Raises:
        GradientTypeError: the gradient is no Variable, or the device or the dtype differs.
        GradientShapeError: the shape differs.
    """
    if not isinstance(gx, Variable):
        raise messages.gradient_no_variable(title, gx)
    if gx.device is not x.device and not any_device:
        raise messages.gradient_on_another_device(title, gx, x)
    if gx.shape != x.shape:
        raise messages.gradient_of_another_shape(title, gx, x)
    if gx.dtype != x.dtype:
        raise messages.gradient_of_another_dtype(title, gx, x)


def check_start_without_gradient(y: Variable) -> None:
    """Refuse ``y.backward()`` without a gradient, unless a function computed y, of size one.

    Raises:
        BackwardSeedError: y is a leaf, has several elements, or is complex.
    """
    if y.creator_node is None:
        raise messages.start_from_leaf(y)
    check_real_start("y.backward()", "y", y)
    if y.size != 1:
        raise messages.start_from_several(y)


def checked_seed(y: Variable, gy: Any, position: int) -> Variable:
    """The gradient of an output of ``tinynode.backward``, if it is there and fits.

    Raises:
        BackwardSeedError: the output requires no gradient, or has none to start from.
        GradientError: the gradient does not fit the output.
    """
    if not y.requires_grad:
        raise messages.cannot_start("backward", f"outputs[{position}]", y)
    if gy is None:
        raise messages.start_without_gradient(position, y)
    check_gradient(gy, y, f"backward: grad_outputs[{position}]")
    seed: Variable = gy
    return seed


def inputs_of_grad(
    outputs: Sequence[Variable], inputs: Sequence[Variable] | None, grad_inputs: Any
) -> Sequence[Variable]:
    """The inputs of ``tinynode.grad``; each a Variable, and none from outside of a vmap.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
        VmapError: an output is of an example, and an input is of all.
    """
    check_sequences("grad", "inputs", inputs, "grad_inputs", grad_inputs)
    checked = inputs or ()  # None is refused above
    if not hidden_axes.stack:
        return checked
    for position, x in enumerate(checked):
        for y in outputs:
            if y.device is not x.device and is_over(y.device, x.device):
                raise messages.input_outside_of_vmap(position)
    return checked


def start_of_grad(y: Variable, gy: Any, position: int) -> Any:
    """The gradient that ``tinynode.grad`` starts from, if it fits the output; None for ones.

    A gradient from outside of a vmapped function is shared by all examples.
    """
    if gy is None:
        check_real_start("grad", f"outputs[{position}]", y)
        return None
    is_filled = isinstance(gy, Variable) and gy.raw is not None
    if is_filled and y.is_like(gy.raw, gy.device):
        return gy
    if is_filled and hidden_axes.stack:
        gy, _ = tinynode.transforms.batched([gy, y])
    check_gradient(gy, y, f"grad: grad_outputs[{position}]", any_device=is_lifted(gy, y))
    return gy


def is_lifted(gx: Any, x: Any) -> bool:
    """True if gx holds several gradients of x: one for each example of a running vmap."""
    if not hidden_axes.stack or not isinstance(gx, Variable):
        return False
    return tinynode.transforms.is_lifted(gx.device, x.device)


def check_real_start(function: str, argument: str, y: Variable) -> None:
    """Refuse to start a backward pass from a complex y without a gradient.

    Raises:
        BackwardSeedError: y is complex.
    """
    if seen_complex_dtypes and y.raw is not None and kind_of(y.raw) == COMPLEX:
        raise messages.start_from_complex(function, argument, y)


def check_sequences(
    function: str, name: str, variables: Any, gradients_name: str, gradients: Any
) -> None:
    """Refuse arguments that are no sequences of Variables, or gradients of another number.

    Raises:
        TypeError: an argument is not a tuple or a list, or has something else than Variables.
        ValueError: the lengths differ.
    """
    if function == "grad" and callable(variables) and not isinstance(variables, Variable):
        raise messages.grad_of_function(variables)
    if not isinstance(variables, tuple | list):
        raise messages.no_sequence(function, name, variables)
    if gradients is not None and not isinstance(gradients, tuple | list):
        raise messages.no_sequence(function, gradients_name, gradients)
    for position, x in enumerate(variables):
        if not isinstance(x, Variable):
            raise messages.no_variable(function, f"{name}[{position}]", x)
    if gradients is not None and len(gradients) != len(variables):
        raise messages.lengths_differ(function, gradients_name, len(gradients), len(variables))
