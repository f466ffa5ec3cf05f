"""Program: a net with inputs and outputs, and its gradient programs; NetFunction runs it.

Requirement: a recorded net behaves in the graph like one function that can be differentiated to
any order. Its gradient is a net as well, built by the rule of ``gradient``. A first-order backward
runs the gradient net on what the forward net kept. Double backprop needs the gradient as a function
of the inputs themselves: then forward and gradient net together are one program, the *joint* one,
which has gradients of its own in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinynode.backend import Arrays, Device, is_floating
from tinynode.configuration import config
from tinynode.errors import TraceError
from tinynode.function_node import FunctionNode, Gradients, Indexes
from tinynode.net.gradient import build_backward
from tinynode.net.net_op import NetOp
from tinynode.net.operator import GRAD, Operator
from tinynode.net.plan import Plan
from tinynode.net.recorder import needed_operators
from tinynode.net.scope import Scope
from tinynode.variable import wrap_array

Key = tuple[Indexes, Indexes]
"""Which gradients: the inputs that ask for one, and the outputs that have one."""


class Gradient(NamedTuple):
    """The gradient net of a program, for some inputs and from some outputs.

    Attributes:
        operators: in run order.
        saved: the variables of the forward net that it reads, inputs left out.
        results: for each target, the name of its gradient; None where nothing comes.
    """

    operators: list[Operator]
    saved: list[str]
    results: list[str | None]


class Program:
    """A flat net with named inputs and outputs.

    Args:
        net: the operators; nets in it are flattened.
        devices: the inputs by name, and where they lie.
        outputs: the names of the results.
        requires: for each input, whether a gradient may be asked for.
    """

    def __init__(
        self,
        net: NetOp,
        devices: dict[str, Device],
        outputs: Sequence[str],
        requires: Sequence[bool],
    ) -> None:
        self.title = net.type
        self.operators = net.flattened()
        self.devices = devices
        self.inputs = list(devices)
        self.outputs = list(outputs)
        self.requires = tuple(requires)
        self._check_devices()
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._gradients: dict[Key, Gradient] = {}
        self._gradient_plans: dict[Key, Plan] = {}
        self._joints: dict[Key, Program] = {}

    def _check_devices(self) -> None:
        """One FunctionNode, and its gradient too, takes and gives Variables of one device."""
        where = self._device_of_all()
        devices = {str(where[name]) for name in (*self.inputs, *self.outputs)}
        if len(devices) > 1:
            raise TraceError(
                f"{self.title}: a net takes and gives Variables of one device, this one has those "
                f"of {', '.join(sorted(devices))}. Compile the parts before and after to_device."
            )
        self.device = where[self.outputs[0]] if self.outputs else None

    def __repr__(self) -> str:
        return f"<Program {self.title} of {len(self.operators)} operators>"

    def plan(self, outputs: Sequence[str]) -> Plan:
        """How to compute some variables of the net from the inputs."""
        key = tuple(outputs)
        if key not in self._plans:
            operators = needed_operators(self.operators, key)
            self._plans[key] = Plan(operators, self.devices, key)
        return self._plans[key]

    def whole_key(self) -> Key:
        """Gradients of all inputs that require one, from all outputs."""
        targets = tuple(i for i, flag in enumerate(self.requires) if flag)
        return targets, tuple(range(len(self.outputs)))

    def gradient(self, key: Key, arrays: Arrays) -> Gradient:
        """The gradient net; it is built once, on the values that belong to these input arrays."""
        if key not in self._gradients:
            self._gradients[key] = self._build_gradient(key, arrays)
        return self._gradients[key]

    def _build_gradient(self, key: Key, arrays: Arrays) -> Gradient:
        targets, given = key
        scope = Scope()
        for name, array in zip(self.inputs, arrays, strict=True):
            scope.put(name, wrap_array(array, self.devices[name], False))
        net = NetOp(self.operators, self.title)
        net.run(scope)
        floating = [self.outputs[i] for i in given]
        floating = [name for name in floating if is_floating(scope.find(name)._array)]
        sources = [self.inputs[i] for i in targets]
        backward_net, names = build_backward(net, scope, (), floating, sources, False)
        operators = backward_net.flattened()
        results = [names.get(name) for name in sources]
        operators = needed_operators(operators, [name for name in results if name is not None])
        read = {name for operator in operators for name in operator.input_names}
        known = {name for operator in self.operators for name in operator.output_names}
        return Gradient(operators, sorted(read & known), results)

    def gradient_plan(self, key: Key, arrays: Arrays) -> Plan:
        """How to run the gradient net: on the inputs, what was saved, and the given gradients."""
        if key not in self._gradient_plans:
            found = self.gradient(key, arrays)
            devices = dict(self.devices)
            where = self._device_of_all()
            for name in self.gradient(self.whole_key(), arrays).saved:
                devices[name] = where[name]
            for i in key[1]:
                devices[self.outputs[i] + GRAD] = where[self.outputs[i]]
            names = [name for name in found.results if name is not None]
            self._gradient_plans[key] = Plan(found.operators, devices, names)
        return self._gradient_plans[key]

    def _device_of_all(self) -> dict[str, Device]:
        """Where each variable of the net lies."""
        where = dict(self.devices)
        for operator in self.operators:
            node = operator.make_node()
            device = node.output_device or where[operator.input_names[0]]
            where.update(dict.fromkeys(operator.output_names, device))
        return where

    def joint(self, key: Key, arrays: Arrays) -> Program:
        """Forward and gradient net together, as a function of the inputs and given gradients."""
        if key not in self._joints:
            found = self.gradient(key, arrays)
            devices = dict(self.devices)
            where = self._device_of_all()
            for i in key[1]:
                devices[self.outputs[i] + GRAD] = where[self.outputs[i]]
            names = [name for name in found.results if name is not None]
            forward = needed_operators(self.operators, found.saved)
            net = NetOp([*forward, *found.operators], f"{self.title}_grad")
            requires = [*self.requires, *([True] * len(key[1]))]
            self._joints[key] = Program(net, devices, names, requires)
        return self._joints[key]


class NetFunction(FunctionNode):
    """ys = net(xs): a recorded net as one function.

    xs -> ys: the net's inputs and outputs.   dL/dxs by the net's gradient net
    """

    def __init__(self, program: Program, saving: bool) -> None:
        self.program = program
        self.saving = saving
        if not program.inputs and program.outputs:
            self.output_device = program.device

    @property
    def label(self) -> str:
        """The name of the function that was recorded."""
        return self.program.title

    def forward(self, inputs: Arrays) -> Arrays:
        program = self.program
        if not self.saving:
            return program.plan(program.outputs).run(inputs)
        self.retain_inputs(tuple(range(len(inputs))))
        saved = program.gradient(program.whole_key(), inputs).saved
        results = program.plan((*program.outputs, *saved)).run(inputs)
        number = len(program.outputs)
        self._saved = results[number:]
        return results[:number]

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        given = tuple([i for i, gy in enumerate(grad_outputs) if gy is not None])
        key = target_input_indexes, given
        gys = [gy for gy in grad_outputs if gy is not None]
        xs = self.get_retained_inputs()
        arrays = tuple([x._array for x in xs])
        program = self.program
        found = program.gradient(key, arrays)
        recorded = config.enable_backprop or config.tracing is not None
        whole = program.gradient(program.whole_key(), arrays).saved
        results: Sequence[Any]
        if recorded or not set(found.saved) <= set(whole):
            joint = program.joint(key, arrays)
            results = NetFunction(joint, recorded).apply((*xs, *gys)) if joint.outputs else ()
        else:
            given_arrays = tuple([gy._array for gy in gys])
            plan = program.gradient_plan(key, arrays)
            gradients = plan.run((*arrays, *self._saved, *given_arrays))
            results = [
                wrap_array(array, xs[i]._device, False)
                for i, array in zip(self._reached(key, found), gradients, strict=True)
            ]
        each = iter(results)
        return tuple([None if name is None else next(each) for name in found.results])

    def _reached(self, key: Key, found: Gradient) -> list[int]:
        pairs = zip(key[0], found.results, strict=True)
        return [i for i, name in pairs if name is not None]
