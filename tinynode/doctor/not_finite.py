"""The origin of NaN and inf: in forward, and in backward.

Requirement: a NaN in the loss does not show the origin. The origin is the first function with
finite inputs and an output that is not finite.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array, is_floating, to_host, without_hidden_axes
from tinynode.doctor.backward_pass import BackwardPass
from tinynode.doctor.findings import Finding
from tinynode.doctor.naming import Names, line_of_call
from tinynode.doctor.replay import NodeArrays, living_outputs
from tinynode.errors import number_text
from tinynode.hooks.not_finite import is_finite


def forward_origin(
    functions: Sequence[FunctionNode],
    leaves: Sequence[VariableNode],
    values: NodeArrays,
    names: Names,
) -> list[Finding]:
    """The first leaf with NaN or inf, else the first function with NaN or inf only in the output.

    A constant with inf, such as the mask of an attention, is no finding by itself.
    """
    for node in leaves:
        array = values.known(node)
        if node.requires_grad and not is_finite(array):
            return [_leaf(node, array, names)]
    for function in functions:
        inputs = values.inputs(function)
        if any(x is None or not is_finite(x) for x in inputs):
            continue
        for node in living_outputs(function).values():
            y = values.known(node)
            if not is_finite(y):
                return [_output(function, y, inputs, names)]
    return []


def backward_origin(found: BackwardPass, names: Names) -> list[Finding]:
    """The first function of backward that makes NaN or inf from finite gradients."""
    if found.not_finite is None:
        return []
    function, position = found.not_finite
    name = names.input((function.inputs or ())[position])
    where = names.function(function)
    return [
        Finding(
            kind="gradient not finite",
            severity="error",
            where=where,
            message=(
                f"{where}: backward makes NaN or inf in the gradient of input {position} "
                f"({name}), from finite gradients of the outputs."
            ),
            remedy=(
                "Look at the input: the derivative is infinite or undefined there, as of sqrt at "
                "0. Add a small number, or clip the input."
            ),
            line=line_of_call(function),
            mark="gradient NaN or inf",
            about=(weakref.ref(function),),
        )
    ]


def _leaf(node: VariableNode, array: Array, names: Names) -> Finding:
    words, count = _bad(array)
    name = names.input(node)
    return Finding(
        kind="not finite",
        severity="error",
        where=name,
        message=f"{name} has {words}, before any function ran.",
        remedy=(
            "Look at the data, or at the last update: a learning rate that is too large makes "
            "parameters inf, then NaN."
        ),
        numbers={"elements": count},
        mark="NaN or inf",
        about=(weakref.ref(node),),
    )


def _output(
    function: FunctionNode, y: Array, inputs: Sequence[Array | None], names: Names
) -> Finding:
    words, count = _bad(y)
    where = names.function(function)
    ranges = ", ".join(_range(x) for x in inputs if x is not None and is_floating(x))
    return Finding(
        kind="not finite",
        severity="error",
        where=where,
        message=(
            f"{where} is the first function with NaN or inf: the output has {words}, the inputs "
            f"are finite{f' ({ranges})' if ranges else ''}."
        ),
        remedy="Keep the inputs in the domain: clip them, add a small number, or divide before.",
        numbers={"elements": count},
        line=line_of_call(function),
        mark="first NaN or inf",
        about=(weakref.ref(function),),
    )


def _bad(array: Array) -> tuple[str, int]:
    """The number of NaN and inf in words, and the number of both."""
    host = to_host(without_hidden_axes(array))
    nan = int(numpy.isnan(host).sum())
    infinite = int(numpy.isinf(host).sum())
    return f"{nan} NaN and {infinite} inf of {host.size} elements", nan + infinite


def _range(array: Array) -> str:
    """The smallest and the largest element."""
    host = to_host(without_hidden_axes(array))
    if not host.size:
        return "no elements"
    return f"from {number_text(float(host.min()))} to {number_text(float(host.max()))}"
