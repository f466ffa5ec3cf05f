"""Body: a net inside of an operator, such as the equation that a loop solves.

Requirement: an operator with a loop needs a function, and an operator holds data alone. So the
function is a net, with names for its inputs and outputs. A body is a constant of its operator:
printed, saved and checked with the operator. ``apply`` runs the operators on Variables, so a
backward can differentiate a body. ``run`` runs a plan on arrays, as a compiled function does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinynode.configuration import force_backprop_mode
from tinynode.core.hooks import thread_state
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, Device, hidden_axes, only_axes_of
from tinynode.errors import DeviceMixError, NetError, TraceError, VmapError, describe
from tinynode.net.net_op import NetOp
from tinynode.net.operator import InnerNet, Operator
from tinynode.net.passes import is_collective, is_random
from tinynode.net.program import Program
from tinynode.net.recorder import needed_operators, without_hooks
from tinynode.net.structure import Slot, leaves
from tinynode.net.trace import Trace, trace


class Body(InnerNet):
    """A net with named inputs and outputs; two bodies are equal only by identity.

    Args:
        net: the operators; nested nets are flattened.
        inputs: the name of each input.
        outputs: the name of each output.

    Raises:
        NetError: a name is no text, comes twice among the inputs, or is not known to the net. Or
            an operator draws random numbers, or speaks to other processes.
    """

    def __init__(self, net: NetOp, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.net = net
        self.inputs = inputs
        self.outputs = outputs
        self.operators: list[Operator] = net.flattened()
        self._programs: dict[Any, Program] = {}
        self._derived: dict[Any, Any] = {}
        self._check()

    def _check(self) -> None:
        for operator in self.operators:
            if is_random(operator) or is_collective(operator):
                raise NetError(
                    f"body of {self.net.type}: {operator.type} must run once in each run of the "
                    "net, and a loop runs a body many times. Draw random numbers before, and "
                    "pass the numbers as an argument."
                )
        names = (*self.inputs, *self.outputs)
        if not all(isinstance(name, str) for name in names):
            raise NetError(f"body of {self.net.type}: inputs and outputs must be names.")
        if len(set(self.inputs)) < len(self.inputs):
            raise NetError(f"body of {self.net.type}: an input comes twice in {self.inputs}.")
        written = set(self.net.output_names)
        if not written.isdisjoint(self.inputs):
            raise NetError(f"body of {self.net.type}: the net writes an input of {self.inputs}.")
        known = written.union(self.inputs)
        for name in (*self.net.input_names, *self.outputs):
            if name not in known:
                raise NetError(
                    f"body of {self.net.type}: {name!r} is neither an input nor written by the "
                    f"net. The inputs are {', '.join(self.inputs) or 'none'}."
                )

    def lines(self, indent: str = "") -> Iterator[str]:
        yield from self.net.lines(indent)

    def __str__(self) -> str:
        return str(self.net)

    def __repr__(self) -> str:
        return repr(self.net).replace("NetOp", "Body", 1)

    def apply(self, xs: Sequence[Variable]) -> tuple[Variable, ...]:
        """The outputs as Variables: each operator is applied, for hooks and graphs."""
        values = dict(zip(self.inputs, xs, strict=True))
        for operator in self.operators:
            given = tuple([values[name] for name in operator.input_names])
            results = operator.make_node().apply(given)
            values.update(zip(operator.output_names, results, strict=True))
        return tuple([values[name] for name in self.outputs])

    def run(self, arrays: Arrays, device: Device) -> Arrays:
        """The outputs as arrays, by a plan for the shapes; no graph, no hooks."""
        key = device, *[(tuple(x.shape), x.dtype) for x in arrays]
        program = self._programs.get(key)
        if program is None:
            devices = dict.fromkeys(self.inputs, device)
            computed = list(dict.fromkeys(name for name in self.outputs if name not in devices))
            net = NetOp(self.operators, self.net.type)
            program = Program(net, devices, computed, [False] * len(devices))
            self._programs[key] = program
        results = program.run(arrays, False)[0] if program.outputs else ()
        values = dict(zip((*self.inputs, *program.outputs), (*arrays, *results), strict=True))
        return tuple([values[name] for name in self.outputs])

    def derived(
        self,
        key: str,
        xs: Sequence[Variable],
        function: Callable[..., Any],
        twice_is_self: bool = False,
    ) -> Body:
        """The body of a function with ``apply`` inside, recorded once for each kind of inputs.

        Args:
            key: the name of the function.
            xs: examples of the inputs.
            function: takes Variables like ``xs``, and calls ``apply``.
            twice_is_self: True if the function of the new body is the old body again.
        """
        kinds = tuple([(x.device, x.shape, x.dtype) for x in xs])
        found = self._derived.get((key, kinds))
        if found is None:
            found, captured = body_of(function, xs, f"{key}_of_{self.net.type}")
            assert not captured
            self._derived[key, kinds] = found
            if twice_is_self:
                found._derived[key, kinds] = self
        body: Body = found
        return body

    def split(self, first: int) -> tuple[Body, Body]:
        """The part for the inputs from ``first`` on alone, and the rest of the body.

        A loop runs the first part once, and the rest in each step. The rest has the inputs of the
        body, and then the outputs of the first part.
        """
        parts = self._derived.get(first)
        if parts is None:
            parts = self._derived[first] = self._split(first)
        found: tuple[Body, Body] = parts
        return found

    def _split(self, first: int) -> tuple[Body, Body]:
        fixed = set(self.inputs[first:])
        early, late = [], []
        for operator in self.operators:
            if fixed.issuperset(operator.input_names):
                fixed.update(operator.output_names)
                early.append(operator)
            else:
                late.append(operator)
        late = needed_operators(late, self.outputs)
        read = {name for operator in late for name in operator.input_names}.union(self.outputs)
        written = {name for operator in early for name in operator.output_names}
        handed_on = tuple(sorted(read & written))
        early = needed_operators(early, handed_on)
        title = self.net.type
        return (
            Body(NetOp(early, f"{title}_fixed"), self.inputs[first:], handed_on),
            Body(NetOp(late, title), (*self.inputs, *handed_on), self.outputs),
        )


def body_of(
    function: Callable[..., Any], xs: Sequence[Variable], title: str | None = None
) -> tuple[Body, list[Variable]]:
    """A function of Variables as a body, and the captured Variables.

    The inputs of the body are the function's inputs, then the captured Variables.

    Args:
        function: takes Variables, and gives a Variable or a tuple of Variables.
        xs: examples of the arguments.
        title: the name of the net; by default the name of the function.

    Raises:
        TraceError: a net cannot record an action of the function.
        VmapError: the function uses a Variable of an example of vmap.
    """
    try:
        with without_hooks(), force_backprop_mode(), only_axes_of(None):
            found = trace(function, *xs)
    except DeviceMixError as error:
        if hidden_axes.stack:
            raise VmapError(
                f"{title or 'a loop'}: a function inside of a loop of a net uses a Variable of an "
                "example of vmap. Give the Variables of an example as arguments, not by a closure."
            ) from error
        raise
    title = title or found.net.type
    if found.writes or found.updates:
        raise TraceError(
            f"{title}: a function inside of a loop of a net writes to a Variable from outside, "
            "which the loop cannot repeat. Return the value."
        )
    for module, _ in found.modules:
        for hook in list(thread_state.hooks.values()):
            hook.training_read(module)
    net = NetOp(found.net.operators, title)
    body = Body(net, (*found.inputs, *found.captured), _names_of_results(found))
    return body, list(found.captured.values())


def _names_of_results(found: Trace) -> tuple[str, ...]:
    """The name of each result of a trace: a Variable, or a tuple of Variables."""
    names = []
    for slot in leaves(found.result):
        if not isinstance(slot, Slot):
            raise TraceError(
                f"{found.net.type}: a function inside of a loop of a net must give Variables, got "
                f"{describe(slot)}."
            )
        names.append(found.outputs[slot.position])
    return tuple(names)
