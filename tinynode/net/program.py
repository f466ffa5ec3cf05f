"""Program: a net with inputs and outputs, and its gradient programs; NetFunction runs it.

Requirement: a recorded net behaves in the graph like one function that can be differentiated to
any order. Its gradient is a net as well, built by the rule of ``gradient``. A first-order backward
runs the gradient net on what the forward net kept; the forward net keeps nothing before a gradient
was asked for once, since for many functions nobody does. Double backprop needs the gradient as a
function of the inputs themselves: then forward and gradient net together are one program, the
*joint* one, which has gradients of its own in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tinynode.configuration import config
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import wrap_array
from tinynode.devices import Arrays, Device, is_floating, namespace_of
from tinynode.errors import TraceError
from tinynode.net.gradient import build_backward
from tinynode.net.net_op import NetOp
from tinynode.net.operator import GRAD, Operator
from tinynode.net.plan import Saved, first_run
from tinynode.net.recorder import needed_operators, without_hooks
from tinynode.net.scope import Scope

Key = tuple[Indexes, Indexes]
"""Which gradients: the inputs that ask for one, and the outputs that have one."""


class Gradient(NamedTuple):
    """The gradient net of a program, for some inputs and from some outputs.

    Attributes:
        operators: in run order.
        saved: the variables of the forward net that it reads, inputs left out.
        results: for each target, the name of its gradient; None where nothing comes.
        reached: the targets that have one.
        is_covered: whether the gradient net for all inputs, from all outputs, saves as much.
        seeds: for each output that has a gradient, the name of that.
    """

    operators: list[Operator]
    saved: list[str]
    results: list[str | None]
    reached: list[int]
    is_covered: bool
    seeds: list[str]


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
        targets = tuple(i for i, flag in enumerate(self.requires) if flag)
        self.whole_key: Key = targets, tuple(range(len(self.outputs)))
        """Gradients of all inputs that require one, from all outputs."""
        self._check_devices()
        self.is_differentiated = False
        """Whether a first-order gradient was asked for: then the forward net saves for it."""
        self._plans: dict[bool, Any] = {}
        self._gradients: dict[Key, Gradient] = {}
        self._gradient_plans: dict[tuple[Key, bool], Any] = {}
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

    def save_from_now_on(self) -> None:
        """A first-order gradient was asked for: others will be."""
        self.is_differentiated = True
        self._plans.pop(False, None)  # and its memory; it is made again if it is needed

    def run(self, arrays: Arrays, saving: bool) -> tuple[Arrays, Saved | None]:
        """The outputs' arrays from the inputs', and what the gradient net will read."""
        plan = self._plans.get(saving)
        if plan is None:
            return self._first_run(arrays, saving)
        results: Arrays = plan.run(arrays)
        if not saving:
            return results, None
        number = len(self.outputs)
        return results[:number], Saved(results[number:], plan.layout)

    def _first_run(self, arrays: Arrays, saving: bool) -> tuple[Arrays, Saved | None]:
        saved = self.gradient(self.whole_key, arrays).saved if saving else []
        operators = needed_operators(self.operators, [*self.outputs, *saved])
        results, self._plans[saving] = first_run(
            operators, self.devices, self.outputs, arrays, saved
        )
        number = len(self.outputs)
        return results[:number], Saved(results[number:], None) if saving else None

    def gradient(self, key: Key, arrays: Arrays) -> Gradient:
        """The gradient net; it is built once, on the values that belong to these input arrays."""
        if key not in self._gradients:
            with without_hooks():
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
        floating = [name for name in floating if is_floating(scope.find(name).raw)]
        sources = [self.inputs[i] for i in targets]
        backward = build_backward(net, scope, (), floating, sources, False, self.inputs, True)
        operators = backward.net.flattened()
        results = [backward.gradients.get(name) for name in sources]
        operators = needed_operators(operators, [name for name in results if name is not None])
        read = {name for operator in operators for name in operator.input_names}
        known = {name for operator in self.operators for name in operator.output_names}
        saved = sorted(read & known)
        whole = key == self.whole_key or set(saved) <= set(
            self.gradient(self.whole_key, arrays).saved
        )
        reached = [i for i, name in zip(targets, results, strict=True) if name is not None]
        names = [self.outputs[i] for i in given]
        seeds = [backward.seeds.get(name, name + GRAD) for name in names]
        return Gradient(operators, saved, results, reached, whole, seeds)

    def run_gradient(self, key: Key, arrays: Arrays, saved: Saved, given: Arrays) -> Arrays:
        """The gradients, on the inputs, what forward has saved, and the outputs' gradients."""
        is_packed = saved.layout is not None
        plan = self._gradient_plans.get((key, is_packed))
        if plan is not None:
            results: Arrays = plan.run((*arrays, *saved.arrays, *given))
            return results
        found = self.gradient(key, arrays)
        devices = dict(self.devices)
        where = self._device_of_all()
        for name in self.gradient(self.whole_key, arrays).saved:
            devices[name] = where[name]
        for i, seed in zip(key[1], found.seeds, strict=True):
            devices[seed] = where[self.outputs[i]]
        names = [name for name in found.results if name is not None]
        everything = (*arrays, *saved.unpacked(), *given)
        results, plan = first_run(found.operators, devices, names, everything, layout=saved.layout)
        self._gradient_plans[key, is_packed] = plan
        return results

    def describe(self, arrays: Arrays, text: str) -> Iterator[str]:
        """The net as ``text``, the gradient net, and how each is run."""
        yield text
        for saving, plan in self._plans.items():
            kept = ", keeping what a backward reads" if saving else ""
            yield from (f"  {line}" for line in (f"run{kept}:", *plan.describe()))
        if True not in self._plans:
            return
        found = self.gradient(self.whole_key, arrays)
        yield str(NetOp(found.operators, f"{self.title}_grad"))
        results, saved = self.run(arrays, True)
        assert saved is not None
        floating = [i for i, y in enumerate(results) if is_floating(y)]
        given = tuple([namespace_of(results[i]).ones_like(results[i]) for i in floating])
        key = self.whole_key[0], tuple(floating)
        self.run_gradient(key, arrays, saved, given)
        plan = self._gradient_plans[key, saved.layout is not None]
        yield from (f"  {line}" for line in ("run:", *plan.describe()))

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
            for i, seed in zip(key[1], found.seeds, strict=True):
                devices[seed] = where[self.outputs[i]]
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
        self._saved: Saved | None = None
        if not program.inputs and program.outputs:
            self.output_device = program.device

    @property
    def label(self) -> str:
        """The name of the function that was recorded."""
        return self.program.title

    def forward(self, inputs: Arrays) -> Arrays:
        program = self.program
        if self.saving:
            self.retain_inputs(tuple(range(len(inputs))))
        if not (self.saving and program.is_differentiated):
            return program.run(inputs, False)[0]
        results, self._saved = program.run(inputs, True)
        return results

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        given = tuple([i for i, gy in enumerate(grad_outputs) if gy is not None])
        key = target_input_indexes, given
        gys = [gy for gy in grad_outputs if gy is not None]
        xs = self.get_retained_inputs()
        arrays = tuple([x.raw for x in xs])
        program = self.program
        found = program.gradient(key, arrays)
        recorded = config.enable_backprop or is_recording_net()
        results: Sequence[Any]
        if recorded or not found.is_covered:
            joint = program.joint(key, arrays)
            results = NetFunction(joint, recorded).apply((*xs, *gys)) if joint.outputs else ()
        else:
            if self._saved is None:  # the first time: run once more, and save
                program.save_from_now_on()
                _, self._saved = program.run(arrays, True)
            given_arrays = tuple([gy.raw for gy in gys])
            assert self._saved is not None
            gradients = program.run_gradient(key, arrays, self._saved, given_arrays)
            results = [
                wrap_array(array, xs[i].device, False)
                for i, array in zip(found.reached, gradients, strict=True)
            ]
        each = iter(results)
        return tuple([None if name is None else next(each) for name in found.results])
