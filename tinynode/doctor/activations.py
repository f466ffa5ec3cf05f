"""Dead ReLUs, and saturated sigmoids and tanhs.

Requirement: a unit with the value 0 for the whole batch has no gradient, and a saturated unit has
almost none. Both are seen in the values of forward. A small batch shows zeros by chance, so dead
units are counted from a least batch size on.

Source: Glorot, Bengio, Understanding the difficulty of training deep feedforward neural networks,
2010 (saturation); Lu, Shin, Su, Karniadakis, Dying ReLU and Initialization, 2019.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.devices import to_host, without_hidden_axes
from tinynode.doctor.findings import Finding
from tinynode.doctor.naming import Names, line_of_call
from tinynode.doctor.replay import NodeArrays, living_outputs
from tinynode.doctor.thresholds import DEAD_SHARE, LEAST_ROWS, SATURATED_SHARE, SATURATED_SLOPE
from tinynode.functions import ReLU, Sigmoid, Tanh


def activation_findings(
    functions: Sequence[FunctionNode], values: NodeArrays, names: Names
) -> list[Finding]:
    """The findings of all activations with known outputs."""
    findings = []
    for function in functions:
        if not isinstance(function, ReLU | Sigmoid | Tanh):
            continue
        for node in living_outputs(function).values():
            array = values.known(node)
            if array is None or not node.shape or 0 in node.shape:
                continue
            host = numpy.asarray(to_host(without_hidden_axes(array)), dtype=numpy.float64)
            if isinstance(function, ReLU):
                findings += _dead(function, host, names)
            else:
                findings += _saturated(function, host, names)
    return findings


def dead_share(host: Any) -> tuple[float, int]:
    """The share of units that are 0 for the whole batch, and the number of units.

    (rows, units): a unit is a column. (rows, channels, height, width): a unit is a channel. Of
    three axes, a unit lies along axis 1 or along the last axis, whichever share is larger.
    """
    axes = {1: (0,), 2: (1,), 3: (1, 2)}.get(host.ndim, (1,))
    shares = []
    for axis in axes:
        others = tuple(i for i in range(host.ndim) if i != axis)
        zero = (host == 0.0).all(axis=others)
        shares.append((float(zero.mean()), int(zero.size)))
    return max(shares)


def saturated_share(host: Any, function: FunctionNode) -> float:
    """The share of elements where the slope is below a share of the largest slope."""
    slope = 4.0 * host * (1.0 - host) if isinstance(function, Sigmoid) else 1.0 - host * host
    return float((slope < SATURATED_SLOPE).mean())


def _dead(function: FunctionNode, host: Any, names: Names) -> list[Finding]:
    if host.ndim < 2 or len(host) < LEAST_ROWS:
        return []
    share, units = dead_share(host)
    if share <= DEAD_SHARE:
        return []
    where = names.function(function)
    return [
        Finding(
            kind="dead ReLU",
            severity="warning",
            where=where,
            message=(
                f"{where}: {share:.0%} of {units} units are 0 for all {len(host)} rows, so no "
                "gradient flows through these units."
            ),
            remedy=(
                "Lower the learning rate, start biases at 0 or above and weights by He's rule, "
                "normalise the inputs, or use leaky_relu."
            ),
            numbers={"share": share, "units": units, "rows": len(host)},
            line=line_of_call(function),
            mark=f"{share:.0%} dead",
            about=(weakref.ref(function),),
        )
    ]


def _saturated(function: FunctionNode, host: Any, names: Names) -> list[Finding]:
    share = saturated_share(host, function)
    if share <= SATURATED_SHARE:
        return []
    where = names.function(function)
    return [
        Finding(
            kind=f"saturated {function.label.lower()}",
            severity="warning",
            where=where,
            message=(
                f"{where}: {share:.0%} of {host.size} elements have less than "
                f"{SATURATED_SLOPE:.0%} of the largest slope, so little gradient flows through."
            ),
            remedy=(
                "Make the inputs smaller: smaller initial weights, normalised data, or layer_norm "
                "before the function. For a loss, use sigmoid_cross_entropy on the inputs."
            ),
            numbers={"share": share, "elements": host.size},
            line=line_of_call(function),
            mark=f"{share:.0%} saturated",
            about=(weakref.ref(function),),
        )
    ]
