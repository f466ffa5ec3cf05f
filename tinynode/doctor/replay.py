"""The values that the functions of a graph saw, and functions made anew.

Requirement: a graph keeps only retained arrays. Other values come, in this order, from retained
arrays, from living Variables, and from forward run again on known values. A stand-in
replaces an unknown value where a check needs a value. A backward cannot depend on an array that
was not retained, so a right backward is right for every value.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy

from tinynode.configuration import using_config
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import retained_arrays
from tinynode.core.variable import wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array, Device
from tinynode.errors import dtype_name
from tinynode.interop.old_style import FunctionAdapter
from tinynode.net.program import NetFunction
from tinynode.transforms.checkpoint import Checkpoint

_OF_THE_GRAPH = {name for name in vars(FunctionNode) if not name.startswith("__")} - {
    "output_device"
}
"""The attributes that ``apply`` sets; all others are constants of the constructor."""

_STAND_IN = (0.2, 0.8)
"""The range of stand-ins: in the domain of log, sqrt, asin and atanh."""


def rebuild(function: FunctionNode) -> FunctionNode:
    """A function of the same class with the same constants, not applied yet."""
    if isinstance(function, FunctionAdapter):
        old_style = copy.copy(function.function)
        adapter = old_style.node
        adapter.own(old_style)
        return adapter
    if isinstance(function, NetFunction):
        return NetFunction(function.program, True)
    fresh = type(function).__new__(type(function))
    constants = {n: value for n, value in vars(function).items() if n not in _OF_THE_GRAPH}
    vars(fresh).update(constants)
    return fresh


def why_not_run_again(function: FunctionNode) -> str:
    """The reason why a function cannot run again; "" if it can."""
    if function.is_random:
        return "random"
    if any("batched" in node.device.backend.capabilities for node in function.inputs or ()):
        return "a function inside of vmap has an array for each example"
    if isinstance(function, Checkpoint):
        return "a checkpoint runs other functions"
    return ""


def run(function: FunctionNode, arrays: Sequence[Array], devices: Sequence[Device]) -> list[Array]:
    """The outputs of a fresh function on arrays, without a graph."""
    inputs = [wrap_array(x, d, False) for x, d in zip(arrays, devices, strict=True)]
    with using_config(enable_backprop=False):
        return [y.raw for y in rebuild(function).apply(tuple(inputs))]


class NodeArrays:
    """The arrays of the nodes of a graph.

    Args:
        functions: the functions of the graph, each after the functions behind it.
    """

    def __init__(self, functions: Iterable[FunctionNode]) -> None:
        self._known: dict[VariableNode, Array] = {}
        self._generator = numpy.random.default_rng(0)
        functions = list(functions)
        for function in functions:
            self._note_retained(function)
        for function in functions:
            for node in function.inputs or ():
                self._note_living(node)
            for node in living_outputs(function).values():
                self._note_living(node)
        for function in functions:
            self._replay(function)

    def known(self, node: VariableNode) -> Array | None:
        """The array of a node; None if unknown."""
        return self._known.get(node)

    def inputs(self, function: FunctionNode) -> list[Array | None]:
        """The arrays that a function saw, None for each unknown array."""
        return [self._known.get(node) for node in function.inputs or ()]

    def stand_in(self, node: VariableNode) -> Array:
        """Random numbers from 0.2 to 0.8, or zeros, of the shape and dtype of a node."""
        name = dtype_name(node.dtype)
        host = numpy.zeros(node.shape, "bool" if name == "bool" else "int64")
        if "float" in name:
            host = self._generator.uniform(*_STAND_IN, size=node.shape)
        array: Array = node.device.from_host(numpy.asarray(host, dtype=name))
        return array

    def _note_retained(self, function: FunctionNode) -> None:
        inputs, outputs = retained_arrays(function)
        for node, array in zip(function.inputs or (), inputs, strict=False):
            if array is not None:
                self._known[node] = array
        living = living_outputs(function)
        for position, array in enumerate(outputs):
            if array is not None and position in living:
                self._known[living[position]] = array

    def _note_living(self, node: VariableNode) -> None:
        """Take the array of a node, or of the living Variable on the node."""
        variable = node.get_variable_or_none()
        array = node.data if variable is None or node.data is not None else variable.raw
        if array is not None and node not in self._known:
            self._known[node] = array

    def _replay(self, function: FunctionNode) -> None:
        """Run a function again if an output is unknown and all inputs are known."""
        nodes, inputs = function.inputs or (), self.inputs(function)
        living = living_outputs(function)
        missing = [i for i, node in living.items() if node not in self._known]
        known = [array for array in inputs if array is not None]
        if not missing or len(known) < len(nodes) or why_not_run_again(function):
            return
        try:
            results = run(function, known, [node.device for node in nodes])
        except Exception:  # a function with a state of its own: the outputs stay unknown
            return
        for position in missing:
            self._known[living[position]] = results[position]


def living_outputs(function: FunctionNode) -> dict[int, VariableNode]:
    """The output nodes of a function that still exist, by position."""
    found = {}
    for position, reference in enumerate(function.outputs or ()):
        node = reference()
        if node is not None:
            found[position] = node
    return found
