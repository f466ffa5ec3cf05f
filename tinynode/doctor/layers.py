"""Gradients and updates by layer: vanishing, exploding, zero, and the sign of a learning rate.

Requirement: a table of norms in the order of forward, and a finding only far outside of the usual
range. A layer is compared with the last layer, so the scale of the loss does not matter.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array, to_host
from tinynode.doctor.findings import Finding, Layer
from tinynode.doctor.naming import Names
from tinynode.doctor.thresholds import (
    EXPLODING,
    LARGE_UPDATE,
    LARGEST_GRADIENT,
    SMALL_UPDATE,
    VANISHING,
)
from tinynode.errors import number_text
from tinynode.nn.optimizers import Optimizer


def layers_of(
    parameters: Sequence[tuple[str, Variable]],
    functions: Sequence[FunctionNode],
    gradients: Mapping[VariableNode, Array],
    updates: Mapping[int, float],
    names: Names,
) -> list[Layer]:
    """The layers with a gradient, in the order of forward.

    The parameters of a module are a layer. So are the parameters of a function, if they have no
    dotted names. ``updates`` has the norms of updates by the ids of parameters.
    """
    users: dict[VariableNode, int] = {}
    for position, function in enumerate(functions):
        for node in function.inputs or ():
            users.setdefault(node, position)
    groups: dict[str, list[tuple[str, Variable]]] = {}
    known = [item for item in parameters if item[1].node in gradients]
    for name, parameter in sorted(known, key=_Position(users)):
        key = name.rpartition(".")[0]
        if not key:
            position = users.get(parameter.node, -1)
            key = names.numbered(functions[position]) if position >= 0 else "in a checkpoint"
        groups.setdefault(key, []).append((name, parameter))
    return [_layer(key, members, gradients, updates) for key, members in groups.items()]


class _Position:
    """The order of named parameters: by the first function with the parameter as input."""

    def __init__(self, users: Mapping[VariableNode, int]) -> None:
        self.users = users

    def __call__(self, item: tuple[str, Variable]) -> int:
        return self.users.get(item[1].node, -1)


def _layer(
    name: str,
    members: list[tuple[str, Variable]],
    gradients: Mapping[VariableNode, Array],
    updates: Mapping[int, float],
) -> Layer:
    variables = [parameter for _, parameter in members]
    layer = Layer(
        name=name,
        parameters=[parameter_name for parameter_name, _ in members],
        size=sum(p.size for p in variables),
        gradient=norm([gradients[p.node] for p in variables]),
        weight=norm([p.raw for p in variables]),
        about=tuple([weakref.ref(p.node) for p in variables]),
    )
    if all(id(p) in updates for p in variables):
        layer.update = math.hypot(*(updates[id(p)] for p in variables))
    return layer


def norm(arrays: Sequence[Any]) -> float:
    """The Euclidean norm of all elements of some arrays, in float64."""
    total = 0.0
    for array in arrays:
        host = numpy.asarray(to_host(array), dtype=numpy.float64)
        total += float(numpy.sum(host * host))
    return math.sqrt(total)


def gradient_findings(layers: Sequence[Layer]) -> list[Finding]:
    """Layers whose gradient is zero, or far from the gradient of the last layer."""
    if not all(math.isfinite(layer.gradient) for layer in layers):
        return []
    with_gradient = [layer for layer in layers if layer.gradient]
    findings = [_zero(layer) for layer in layers if not layer.gradient]
    if not with_gradient:
        return findings
    last = with_gradient[-1]
    for layer in with_gradient:
        ratio = layer.per_element / last.per_element
        if ratio < VANISHING:
            findings.append(_vanishing(layer, last, ratio))
        elif ratio > EXPLODING or layer.gradient > LARGEST_GRADIENT * layer.weight > 0:
            findings.append(_exploding(layer, last))
    return findings


def _zero(layer: Layer) -> Finding:
    return Finding(
        kind="zero gradient",
        severity="warning",
        where=layer.name,
        message=f"{layer.name}: every element of the gradient is 0, so an update changes nothing.",
        remedy=(
            "Look between the layer and the loss: ReLUs that are all off, a product with 0, later "
            "weights that are all 0, or a function without a derivative."
        ),
        numbers={"gradient": 0.0},
        mark="gradient 0",
        about=layer.about,
    )


def _vanishing(layer: Layer, last: Layer, ratio: float) -> Finding:
    return Finding(
        kind="vanishing gradient",
        severity="warning",
        where=layer.name,
        message=(
            f"{layer.name}: the gradient is {number_text(layer.per_element)} per element, "
            f"{number_text(last.per_element)} in {last.name}: {number_text(1 / ratio)} times less."
        ),
        remedy=(
            "Use relu in place of sigmoid or tanh, normalisation layers, residual connections, or "
            "larger initial weights."
        ),
        numbers={"gradient": layer.gradient, "ratio": ratio},
        about=layer.about,
    )


def _exploding(layer: Layer, last: Layer) -> Finding:
    return Finding(
        kind="exploding gradient",
        severity="warning",
        where=layer.name,
        message=(
            f"{layer.name}: the norm of the gradient is {number_text(layer.gradient)}, of the "
            f"weights {number_text(layer.weight)}; {last.name} has a gradient of "
            f"{number_text(last.gradient)}."
        ),
        remedy=(
            "Use smaller initial weights, normalised data, a mean in place of a sum in the loss, "
            "or clip gradients before the update."
        ),
        numbers={"gradient": layer.gradient, "weight": layer.weight},
        about=layer.about,
    )


# --- updates -------------------------------------------------------------------------------------


class _Slots(FunctionHook):
    """Asks an optimizer for its parameters, without an update."""

    name = "doctor of optimizers"

    def __init__(self) -> None:
        self.found: list[tuple[str, Variable]] = []

    def update_requested(self, optimizer: Any, parameters: Any) -> bool:
        self.found = [(slot.name, slot.parameter) for slot in parameters]
        return True


def parameters_of(optimizer: Optimizer) -> list[tuple[str, Variable]]:
    """The parameters of an optimizer, with names."""
    with _Slots() as slots:
        optimizer.update()
    return slots.found


def next_updates(
    optimizer: Optimizer, gradients: Mapping[VariableNode, Array]
) -> dict[int, float]:
    """The norms of the next update, by the ids of parameters: a copy of the optimizer runs."""
    trained = [parameter for _, parameter in parameters_of(optimizer)]
    twin = copy.deepcopy(optimizer)
    twin.allow_missing = True
    copies = [parameter for _, parameter in parameters_of(twin)]
    before = []
    for parameter, own in zip(trained, copies, strict=True):
        gradient = gradients.get(parameter.node)
        own.grad_var = None if gradient is None else wrap_array(gradient, own.device, False)
        before.append(own.raw)
    if all(own.grad_var is None for own in copies):
        return {}
    twin.update()
    updates = {}
    for parameter, own, array in zip(trained, copies, before, strict=True):
        if own.grad_var is not None:
            updates[id(parameter)] = norm([to_host(own.raw) - to_host(array)])
    return updates


def update_findings(layers: Sequence[Layer], optimizer: Optimizer) -> list[Finding]:
    """A learning rate that is too large or too small: the ratio of update to weight."""
    if not all(math.isfinite(layer.gradient) for layer in layers):
        return []
    broken = [layer.name for layer in layers if not math.isfinite(layer.update or 0.0)]
    if broken:
        return [_broken_update(broken, optimizer)]
    ratios = [layer.update_ratio for layer in layers if layer.update_ratio is not None]
    if not ratios:
        return []
    middle = median(ratios)
    if SMALL_UPDATE <= middle <= LARGE_UPDATE:
        return []
    large = middle > LARGE_UPDATE
    return [
        Finding(
            kind=f"learning rate too {'large' if large else 'small'}",
            severity="warning",
            where=f"{type(optimizer).__name__}, lr={optimizer.lr:g}",
            message=(
                f"The next update is {number_text(middle)} of the weights in the middle layer "
                f"(by norm); about 0.001 is usual."
            ),
            remedy=f"Try a {'smaller' if large else 'larger'} learning rate: 10 times at first.",
            numbers={"update / weight": middle, "lr": optimizer.lr},
        )
    ]


def _broken_update(layers: list[str], optimizer: Optimizer) -> Finding:
    """The finding for updates with NaN or inf, from finite gradients."""
    return Finding(
        kind="update not finite",
        severity="error",
        where=repr(optimizer),
        message=(
            f"The next update of {', '.join(layers)} has NaN or inf, though the gradients are "
            "finite."
        ),
        remedy=(
            "Keep parameters in float32. In float16 the squares of small gradients are 0, and "
            "Adam divides by the squares."
        ),
    )
