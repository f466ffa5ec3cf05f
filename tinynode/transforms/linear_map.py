"""LinearMap: the jvp at a point, as a net without the work of the forward run.

Requirement: a run costs the operators of the linear map alone. So all values at the point are
constants of the net, and operators of constants run once, when the net is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tinynode.configuration import config, no_backprop_mode
from tinynode.core.variable import Variable
from tinynode.devices import Device
from tinynode.functions.shapes import PermuteDims
from tinynode.net.compile import compile
from tinynode.net.helpers import Constant
from tinynode.net.net_op import NetOp
from tinynode.net.operator import ArraySpecs, Operator, operator_of
from tinynode.net.passes import node_class_of, simplify
from tinynode.net.plan import Plan, note_specs
from tinynode.net.recorder import needed_operators
from tinynode.net.structure import unflatten
from tinynode.net.trace import trace
from tinynode.transforms.trees import fitting, rebuilt, zeros_like


class LinearMap:
    """v -> J v: call the object with a tangent for each argument of f.

    Args:
        title: the name of the map, for printing.
        push: gives J v from a tuple v and a flag: True to record a graph.
        inputs: a Variable for each leaf of v.
        trees: a tuple, nested as v.
        keeps_graph: True to call ``push`` each time, and to make no net.
        results: the leaves of f's value. The net has copies of their arrays.

    Attributes:
        net: the operators of the map, after all passes; None if the graph is kept. A graph is kept
            inside another transform, and inside a compiled function, and for a vmap in f.
    """

    def __init__(
        self,
        title: str,
        push: Callable[[Any, bool], Any],
        inputs: list[Variable],
        trees: tuple[Any, ...],
        keeps_graph: bool,
        results: list[Variable],
    ) -> None:
        self._likes = [zeros_like(x) for x in inputs]
        self._like = rebuilt(trees, self._likes)
        self._title = title
        self._push = push if keeps_graph else None  # an unused graph is freed
        self.net: NetOp | None = None
        if not keeps_graph:
            self._record(push, results)

    def _record(self, push: Callable[[Any, bool], Any], results: list[Variable]) -> None:
        """Make the net: captured Variables are constants too, since the point stays."""
        found = trace(push, self._like, True)
        if any(node_class_of(one).crosses_vmap for one in found.net.flattened()):
            self._push = push  # the point has values of examples, which are no constants of a net
            return
        device = {name: x.device for name, x in zip(found.inputs, self._likes, strict=True)}
        shared = {id(y.raw) for y in results}  # a program may write into these arrays
        captured = []
        for name, x in found.captured.items():
            array = x.xp.asarray(x.raw, copy=True) if id(x.raw) in shared else x.raw
            captured.append(_constant(name, array, x.device))
        operators = [*captured, *found.net.flattened()]
        self._operators = with_constants(operators, found.outputs)
        self._names, self._outputs, self._result = found.inputs, found.outputs, found.result
        self._compiled = compile(self._apply)
        examples = tuple([x.raw for x in self._likes])
        specs = specs_of_run(self._operators, device, examples)
        simple = simplify(self._operators, self._outputs, specs)
        constants_first = sorted(simple, key=lambda operator: bool(operator.input_names))
        self.net = NetOp(constants_first, self._title)

    def _apply(self, *vs: Variable) -> list[Variable]:
        """The operators, one by one."""
        values = dict(zip(self._names, vs, strict=True))
        for operator in self._operators:
            inputs = tuple([values[name] for name in operator.input_names])
            values.update(
                zip(operator.output_names, operator.make_node().apply(inputs), strict=True)
            )
        return [values[name] for name in self._outputs]

    def __call__(self, *vs: Any) -> Any:
        """J v, nested as the result of f.

        Raises:
            ValueError: vs has another nesting, shape, dtype or device than f's arguments.
        """
        tangents = fitting("linearize", "tangent", self._like, vs, self._likes, "vs")
        if self._push is not None:
            return self._push(rebuilt(self._like, tangents), True)
        run = self._apply if config.debug else self._compiled
        return unflatten(self._result, run(*tangents))

    def __str__(self) -> str:
        if self.net is None:
            return f"{self._title}: no net, the graph is kept"
        return str(self.net)

    def __repr__(self) -> str:
        return f"<LinearMap {self._title}>" if self.net is None else f"<LinearMap {self.net!r}>"


def _constant(name: str, array: Any, device: Device) -> Operator:
    return operator_of(Constant(array, device), [], [name])


def with_constants(operators: Iterable[Operator], outputs: Iterable[str]) -> list[Operator]:
    """The operators that depend on an input; the others run now, and become constants.

    A permutation of axes stays: a pass may join the permutation with a product.

    Args:
        operators: in run order.
        outputs: the names of the results.
    """
    known: dict[str, Variable] = {}
    kept: list[Operator] = []
    with no_backprop_mode():
        for operator in operators:
            is_known = known.keys() >= set(operator.input_names)
            if is_known:
                inputs = tuple([known[name] for name in operator.input_names])
                results = operator.make_node().apply(inputs)
                known.update(zip(operator.output_names, results, strict=True))
            if not is_known or node_class_of(operator) is PermuteDims:
                kept.append(operator)
    kept = needed_operators(kept, outputs)
    written = {name for operator in kept for name in operator.output_names}
    read = {name for operator in kept for name in operator.input_names}.union(outputs) - written
    constants = [_constant(name, y.raw, y.device) for name, y in known.items() if name in read]
    return [*constants, *kept]


def specs_of_run(
    operators: list[Operator], devices: dict[str, Device], arrays: tuple[Any, ...]
) -> ArraySpecs:
    """Shape and dtype of all variables of a net, found by a run."""
    specs: ArraySpecs = {}
    note_specs(specs, devices, arrays)
    for operator in operators:
        if "value" in operator.attrs and not operator.input_names:
            note_specs(specs, operator.output_names, [operator.attrs["value"]])
    Plan(operators, devices, []).run(arrays, specs)
    return specs
