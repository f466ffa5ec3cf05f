"""Program: a net with inputs and outputs, and its gradient nets; NetFunction runs a program.

Requirement: in the graph a recorded net is one function, differentiable to any order. Its gradient
is a net too, built by the rule of ``gradient``.

A first-order backward runs the gradient net on arrays that the forward run saved. Intermediates
are saved only after the first gradient request; many functions are never differentiated. Double
backprop needs the gradient as a function of the inputs. The *combined* program therefore has the
operators of forward and gradient net, and gradients of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tinynode.configuration import config, force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, Device, current_device, is_differentiable, namespace_of
from tinynode.errors import TraceError
from tinynode.functions.masking import mark_masked, marks_handed_on
from tinynode.net.commit import Commit
from tinynode.net.commit import wait as wait_for_commits
from tinynode.net.gradient import build_backward
from tinynode.net.making import making_net, paused_collector
from tinynode.net.net_op import NetOp
from tinynode.net.operator import GRAD, ArraySpec, Operator
from tinynode.net.passes import is_collective
from tinynode.net.plan import Noted, Saved, devices_of, first_run
from tinynode.net.recorder import needed_operators, without_hooks
from tinynode.net.scope import Scope
from tinynode.net.shape_runner import has_large, shapes_only

Key: TypeAlias = tuple[Indexes, Indexes, bool]
"""The inputs whose gradients are asked for, the outputs that have a gradient, and True for a net
before a mask (see ``functions/masking.py``)."""

NOTHING_SAVED = Saved((), None)


@dataclass
class GradientNet:
    """The gradient net of a program, for some inputs and from some outputs.

    Attributes:
        operators: in run order.
        saved: the intermediates of the forward net that the gradient net reads.
        results: the name of each target's gradient; None for an exact zero.
        reached: the targets with a gradient.
        has_mask: True if an input stands before a mask of the net.
        saved_is_sufficient: True if the arrays saved for the full gradient net suffice.
        seeds: the gradient's name for each output that has one.
        noted: the findings of the first run.
        plans: the plans, by True if the saved arrays come packed.
        combined: the program of forward and gradient net, once it was needed.
    """

    operators: list[Operator]
    saved: list[str]
    results: list[str | None]
    reached: list[int]
    has_mask: bool
    saved_is_sufficient: bool
    seeds: list[str]
    noted: Noted | None = None
    plans: dict[bool, Any] = field(default_factory=dict)
    combined: Program | None = None

    @property
    def names(self) -> list[str]:
        """The names of the gradients, without the exact zeros."""
        return [name for name in self.results if name is not None]


class Program:
    """A flat net with named inputs and outputs.

    Args:
        net: the operators; nested nets are flattened.
        devices: the device of each input, by name.
        outputs: the names of the results.
        requires: for each input, True if a gradient may be asked for.
        specs: the specs of computed values known from the recording, by name.

    Attributes:
        device: the device of all inputs and outputs.
        is_differentiated: True after the first gradient request; the forward run then saves.
        full_key: the gradients of all inputs that require one, from all outputs.
        gradients: the gradient nets built so far.
    """

    def __init__(
        self,
        net: NetOp,
        devices: dict[str, Device],
        outputs: list[str],
        requires: Sequence[bool],
        specs: Mapping[str, ArraySpec] | None = None,
    ) -> None:
        self.specs = specs or {}
        self.title = net.type
        self.operators = net.flattened()
        self.devices = devices
        self.inputs = list(devices)
        self.outputs = outputs
        self.requires = tuple(requires)
        self.indexes: Indexes = tuple(range(len(self.inputs)))
        targets = tuple([i for i in self.indexes if self.requires[i]])
        self.full_key: Key = targets, tuple(range(len(self.outputs))), False
        self.device = self._checked_device()
        # a second forward would speak to other processes once more
        self.is_differentiated = any(is_collective(one) for one in self.operators)
        self.gradients: dict[Key, GradientNet] = {}
        self._plans: dict[bool, Any] = {}
        self._noted: dict[bool, tuple[Noted, list[str]]] = {}  # with the names of saved arrays

    def _checked_device(self) -> Device:
        """The one device of all inputs and outputs: in the graph, a program is one function."""
        where = self._device_of_each()
        devices = {where[name] for name in (*self.inputs, *self.outputs)}
        if len(devices) > 1:
            names = ", ".join(sorted(map(str, devices)))
            raise TraceError(
                f"{self.title}: a net takes and gives Variables of one device, this one has those "
                f"of {names}. Compile the parts before and after to_device."
            )
        return devices.pop() if devices else current_device()

    def _device_of_each(self) -> dict[str, Device]:
        """The device of each variable of the net."""
        where = dict(self.devices)
        for operator in self.operators:
            _, device = devices_of(operator, operator.make_node(), where)
            where.update(dict.fromkeys(operator.output_names, device))
        return where

    def __repr__(self) -> str:
        return f"<Program {self.title} of {len(self.operators)} operators>"

    def save_from_now_on(self) -> None:
        """Let later forward runs save intermediates, after the first gradient request."""
        self.is_differentiated = True
        self._plans.pop(False, None)  # frees the plan's memory
        self._noted.pop(False, None)

    def run(
        self, arrays: Arrays, saving: bool, commit: Commit | None = None
    ) -> tuple[Arrays, Saved]:
        """The outputs from the inputs, and the arrays saved for the gradient net.

        With ``commit``, the plan may write updates over inputs.
        """
        plan = self._plans.get(saving) or self._plan(saving)
        if plan is None:
            return self._first_run(arrays, saving, commit)
        results: Arrays
        if commit is not None and getattr(plan, "overwrites", False):
            results = plan.run(arrays, commit)
        else:
            results = plan.run(arrays)
        number = len(self.outputs)
        if len(results) == number:
            return results, NOTHING_SAVED
        return results[:number], Saved(results[number:], plan.layout)

    def _plan(self, saving: bool) -> Any:
        """The plan, made from the notes of the first run; None before the first run."""
        plan, noted = self._plans.get(saving), self._noted.get(saving)
        if plan is None and noted is not None:
            plan = self._plans[saving] = noted[0].plan(self.devices, self.outputs, noted[1])
            self._noted.pop(saving, None)
        return plan

    def _first_run(
        self, arrays: Arrays, saving: bool, commit: Commit | None
    ) -> tuple[Arrays, Saved]:
        saved = self.gradient(self.full_key, arrays).saved if saving else []
        wanted = [*self.outputs, *saved]
        operators = needed_operators(self.operators, wanted)
        results, noted = first_run(operators, self.devices, wanted, arrays, self.specs)
        self._noted[saving] = noted, saved
        if results is None:
            self._plan(saving).is_first_call = True  # a plan may prepare more in the second call
            return self.run(arrays, saving, commit)
        number = len(self.outputs)
        return results[:number], Saved(results[number:], None)

    def gradient(self, key: Key, arrays: Arrays) -> GradientNet:
        """The gradient net, built at the first request from these input arrays."""
        found = self.gradients.get(key)
        if found is None:
            with without_hooks(), making_net(), paused_collector():
                found = self.gradients[key] = self._build_gradient(key, arrays)
        return found

    def _build_gradient(self, key: Key, arrays: Arrays) -> GradientNet:
        """The gradient net, from shapes alone if no function needs values."""
        if has_large(arrays):
            # a run of real arrays raises the errors that have other reasons
            with contextlib.suppress(Exception), shapes_only():
                return self._gradient_of(key, arrays)
        return self._gradient_of(key, arrays)

    def _gradient_of(self, key: Key, arrays: Arrays) -> GradientNet:
        targets, given, is_masked = key
        scope = Scope()
        for name, array in zip(self.inputs, arrays, strict=True):
            scope.put(name, wrap_array(array, self.devices[name], False))
        net = NetOp(self.operators, self.title)
        net.run(scope)
        names = [self.outputs[i] for i in given]
        floating = [name for name in names if is_differentiable(scope.find(name).raw)]
        sources = [self.inputs[i] for i in targets]
        backward = build_backward(
            net, scope, (), floating, sources, False, self.inputs, True, is_masked
        )
        results = [backward.gradients.get(name) for name in sources]
        wanted = [name for name in results if name is not None]
        operators = needed_operators(backward.net.flattened(), wanted)
        read = {name for operator in operators for name in operator.input_names}
        known = {name for operator in self.operators for name in operator.output_names}
        saved = sorted(read & known)
        is_sufficient = key == self.full_key or set(saved) <= set(
            self.gradient(self.full_key, arrays).saved
        )
        reached = [i for i, name in zip(targets, results, strict=True) if name is not None]
        seeds = [backward.seeds.get(name, name + GRAD) for name in names]
        has_mask = not backward.masked.isdisjoint(sources)
        return GradientNet(operators, saved, results, reached, has_mask, is_sufficient, seeds)

    def run_gradient(self, key: Key, arrays: Arrays, saved: Saved, given: Arrays) -> Arrays:
        """The gradients, from the inputs, the saved arrays and the outputs' gradients."""
        found = self.gradient(key, arrays)
        packed = saved.layout is not None
        if packed not in found.plans:
            devices = self._gradient_devices(key, found, arrays)
            if found.noted is None:
                everything = (*arrays, *saved.unpacked(), *given)
                names = found.names
                results, found.noted = first_run(found.operators, devices, names, everything, {})
                if results is not None:
                    return results
            found.plans[packed] = found.noted.plan(devices, found.names, layout=saved.layout)
        gradients: Arrays = found.plans[packed].run((*arrays, *saved.arrays, *given))
        return gradients

    def _gradient_devices(self, key: Key, found: GradientNet, arrays: Arrays) -> dict[str, Device]:
        """The devices of the inputs of a gradient net, by name."""
        where = self._device_of_each()
        devices = self._with_seeds(key, found, where)
        names = self.gradient(self.full_key, arrays).saved
        return {**self.devices, **{name: where[name] for name in names}, **devices}

    def _with_seeds(
        self, key: Key, found: GradientNet, where: dict[str, Device]
    ) -> dict[str, Device]:
        """The devices of the outputs' gradients, by name."""
        pairs = zip(found.seeds, key[1], strict=True)
        return {seed: where[self.outputs[i]] for seed, i in pairs}

    def combined_program(self, key: Key, arrays: Arrays) -> Program:
        """Forward and gradient net as one function of the inputs and the outputs' gradients."""
        found = self.gradient(key, arrays)
        if found.combined is None:
            seeds = self._with_seeds(key, found, self._device_of_each())
            forward = needed_operators(self.operators, found.saved)
            net = NetOp([*forward, *found.operators], f"{self.title}_grad")
            requires = [*self.requires, *([True] * len(key[1]))]
            found.combined = Program(net, {**self.devices, **seeds}, found.names, requires)
        return found.combined

    def described_plans(self, arrays: Arrays, text: str) -> Iterator[tuple[str, str, Any]]:
        """Net, title and plan of each run: of the net as ``text``, then of the gradient net."""
        for saving in tuple(self._noted):
            self._plan(saving)
        if not self._plans:
            yield text, "", None
        for saving, plan in self._plans.items():
            yield text, "run, keeping what a backward reads:" if saving else "run:", plan
        if True not in self._plans:
            return
        found = self.gradient(self.full_key, arrays)
        results, saved = self.run(arrays, True)
        floating = [i for i, y in enumerate(results) if is_differentiable(y)]
        given = tuple([namespace_of(results[i]).ones_like(results[i]) for i in floating])
        key = self.full_key[0], tuple(floating), False
        packed, plans = saved.layout is not None, self.gradient(key, arrays).plans
        while packed not in plans:  # a plan is made by the second run
            self.run_gradient(key, arrays, saved, given)
        yield str(NetOp(found.operators, f"{self.title}_grad")), "run:", plans[packed]


class NetFunction(FunctionNode):
    """ys = net(xs): a recorded net as one function.

    xs -> ys: the net's inputs and outputs.   dL/dxs by the net's gradient net
    """

    complex_rule = "own"
    _saved: Saved | None = None

    def __init__(self, program: Program, saving: bool, commit: Commit | None = None) -> None:
        self.program = program
        self.saving = saving
        self.commit = commit
        self.output_device = program.device

    @property
    def label(self) -> str:
        """The name of the function that was recorded."""
        return self.program.title

    def forward(self, inputs: Arrays) -> Arrays:
        program = self.program
        wait_for_commits()  # another thread may write over these inputs
        if not self.saving:
            return program.run(inputs, False, self.commit)[0]
        self.retain_inputs(program.indexes)
        if not program.is_differentiated:
            return program.run(inputs, False)[0]
        results, self._saved = program.run(inputs, True)
        return results

    def apply_unchecked(self, inputs: tuple[Variable, ...]) -> tuple[Variable, ...]:
        """``apply`` for inputs that fit the signature of the program, while no hook is active."""
        arrays = tuple([x.raw for x in inputs])
        results = self.forward(arrays)
        if self.saving:
            self.lazy_grad_sum = config.lazy_grad_sum
            return self._connect(inputs, arrays, results, self.program.device)
        return self._wrap(results, self.program.device, False, None)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        given = tuple([i for i, gy in enumerate(grad_outputs) if gy is not None])
        gys = tuple([gy for gy in grad_outputs if gy is not None])
        key = target_input_indexes, given, self.is_masked
        xs = self.get_retained_inputs()
        if any(gy.device is not self.output_device for gy in gys):
            return self._by_operators(key, xs, gys)
        arrays = tuple([x.raw for x in xs])
        found = self.program.gradient(key, arrays)
        if found.has_mask:
            mark_masked(self)
        recorded = config.enable_backprop or is_recording_net()
        if recorded or not found.saved_is_sufficient:
            combined = self.program.combined_program(key, arrays)
            results = NetFunction(combined, recorded).apply((*xs, *gys)) if found.reached else ()
        else:
            results = self._first_order(key, arrays, tuple([gy.raw for gy in gys]))
        if len(results) == len(found.results):
            return results
        each = iter(results)
        return tuple([None if name is None else next(each) for name in found.results])

    def _by_operators(
        self, key: Key, xs: tuple[Variable, ...], gys: tuple[Variable, ...]
    ) -> Gradients:
        """The gradients inside of vmap: the operators once more, one by one, then backward."""
        with force_backprop_mode():
            values = dict(zip(self.program.inputs, xs, strict=True))
            for operator in self.program.operators:
                inputs = tuple([values[name] for name in operator.input_names])
                outputs = operator.make_node().apply(inputs)
                values.update(zip(operator.output_names, outputs, strict=True))
        ys = [values[self.program.outputs[i]] for i in key[1]]
        again = config.enable_backprop or is_recording_net()
        with marks_handed_on(self, ys):
            return tuple(grad(ys, [xs[i] for i in key[0]], gys, enable_double_backprop=again))

    def _first_order(self, key: Key, arrays: Arrays, given: Arrays) -> tuple[Variable, ...]:
        """The gradients as Variables without a graph."""
        program, saved = self.program, self._saved
        if saved is None:  # the first request: run forward once more, and save
            program.save_from_now_on()
            saved = self._saved = program.run(arrays, True)[1]
        device = program.device
        gradients = program.run_gradient(key, arrays, saved, given)
        return tuple([wrap_array(array, device, False) for array in gradients])
