"""The origin of NaN and inf in gradients: a hook for backward passes.

Requirement: the gradient of a leaf is NaN, and the reason lies many functions before. So the hook
notes the first function that made NaN or inf of finite gradients, and follows the NaN from node to
node. An infinite gradient behind a mask is no error: only gradients at the end of a pass count.

Forward is watched too: the first function with finite inputs and an infinite output is the origin
of what follows.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from tinynode.core.hooks import FunctionHook
from tinynode.devices import Array
from tinynode.errors import dtype_name
from tinynode.hooks.not_finite import (
    Inner,
    backward_facts,
    capitalized,
    first_bad,
    forward_facts,
    guard_text,
    is_finite,
    place_text,
    retained,
)


class Origin(NamedTuple):
    """The origin of NaN or inf.

    Attributes:
        function: the function; None for a gradient that the pass started from.
        head: the function and the output or gradient, in words, without the line of the call.
        facts: sentences: the first element, the operands, the guard.
        is_nan: True if the first bad number was NaN, False if it was infinite.
    """

    function: Any
    head: str
    facts: tuple[str, ...]
    is_nan: bool


class _Step:
    """A running backward: the function, and the inner functions with NaN or inf."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.inner: list[Inner] = []


_FORWARD: weakref.WeakKeyDictionary[Any, Origin] = weakref.WeakKeyDictionary()
"""By function: the origin of NaN or inf in forward, of functions with finite inputs."""
_INSIDE: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""By function: in words, the function in whose backward the function was applied."""


class OriginFinder(FunctionHook):
    """Follows NaN and inf through forward and through backward passes.

    Attributes:
        found: the origins of the latest ended pass, by VariableNode of the gradient; only for a
            hook of the thread, since the hook of debug mode hears no end.
        ran: the origins of the latest step, by position of the input.
    """

    name = "origins of nan and inf"

    def __init__(self) -> None:
        self.found: dict[Any, Origin] = {}
        self.ran: dict[int, Origin] = {}
        self._running: list[_Step] = []
        self._passes: weakref.WeakKeyDictionary[Any, dict[Any, Origin]] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def is_inside_backward(self) -> bool:
        """True while a function's backward runs."""
        return bool(self._running)

    # --- forward ---------------------------------------------------------------------------------

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        if self._running:
            outer = self._running[-1].function
            _INSIDE[function] = f"{outer.label}, which was called at {place_of(outer)}"
        bad = [(i, y.raw) for i, y in enumerate(outputs) if not is_finite(y.raw)]
        if not bad or not all(is_finite(x.raw) for x in inputs):
            return
        arrays, (position, output) = tuple(x.raw for x in inputs), bad[0]
        origin = forward_origin(function, arrays, position, output)
        _FORWARD[function] = origin._replace(function=None)  # the table must not keep its keys
        if self._running:
            self._running[-1].inner.append(Inner(function, arrays, output))

    # --- backward --------------------------------------------------------------------------------

    def before_backward(self, sweep: Any, function: Any) -> None:
        if sweep in self._passes:
            return
        seeds = self._passes[sweep] = {}
        for node, gradient in sweep.table.gradients.items():
            if not is_finite(gradient.raw):
                seeds[node] = _seed(gradient.raw)

    def backward_preprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        self.ran = {}
        self._running.append(_Step(function))

    def failed(self, function: Any, direction: str, error: BaseException) -> None:
        if direction == "backward":
            self._take_step(function)

    def _take_step(self, function: Any) -> _Step:
        """Remove the step of a function, and the steps above without an end."""
        for i in range(len(self._running) - 1, -1, -1):
            if self._running[i].function is function:
                step = self._running[i]
                del self._running[i:]
                return step
        return _Step(function)

    def after_backward(
        self,
        function: Any,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> None:
        step, self.ran = self._take_step(function), {}
        gradients = tuple(None if gy is None else gy.raw for gy in grad_outputs)
        for i, gx in zip(target_input_indexes, grad_inputs, strict=True):
            array = getattr(gx, "raw", None)
            if not is_finite(array):
                self.ran[i] = backward_origin(function, i, array, gradients, step.inner)

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        origins = self._passes.setdefault(sweep, {})
        before = [origins.get(reference()) for reference in function.outputs or ()]
        known = next((origin for origin in before if origin is not None), None)
        for i, origin in self.ran.items():
            origins.setdefault(function.inputs[i], known or origin)
        self.ran = {}

    def words_of_forward(self, function: Any) -> str:
        """The facts of a function with NaN or inf in forward, of finite inputs, or ""."""
        origin = _FORWARD.get(function)
        return "" if origin is None else " ".join(origin.facts)

    def words_of_step(self, grad_outputs: tuple[Any, ...]) -> str:
        """The facts of the latest step, if the gradients before were finite, else ""."""
        if not self.ran or not all(gy is None or is_finite(gy.raw) for gy in grad_outputs):
            return ""
        origin = self.ran[min(self.ran)]
        what = capitalized(origin.head.partition(": ")[2])
        return f"{what}, is not finite. {' '.join(origin.facts)}"

    def sweep_ended(self, sweep: Any, error: BaseException | None) -> None:
        self.found = self.origins_of(sweep)

    def origins_of(self, sweep: Any) -> dict[Any, Origin]:
        """The origins of a pass so far, by VariableNode of the gradient."""
        return self._passes.get(sweep, {})


def has_ended(sweep: Any) -> bool:
    """True if no further function of a pass has an input that needs a gradient."""
    return not any(
        node.requires_grad and (sweep.wanted is None or node in sweep.wanted)
        for _, _, function in sweep.heap
        for node in function.inputs or ()
    )


def gradients_at_end(sweep: Any) -> list[tuple[Any, Array]]:
    """The gradients at the end of a pass, by node, with waiting contributions."""
    table = sweep.table
    found = [(node, gx.raw) for node, gx in (*table.kept.items(), *table.gradients.items())]
    return found + [(node, gx.raw) for node, waiting in table.waiting.items() for gx in waiting]


def forward_origin(
    function: Any, inputs: tuple[Array, ...], position: int, output: Array
) -> Origin:
    """The origin for NaN or inf in an output, of finite inputs."""
    head = f"{function.label}: output {position}, {_shape(output)}"
    facts = (*forward_facts(function, inputs, output), guard_text(function))
    return Origin(function, head, facts, first_bad(output).is_nan)


def backward_origin(
    function: Any,
    position: int,
    gradient: Array,
    grad_outputs: tuple[Array | None, ...],
    inner: list[Inner],
) -> Origin:
    """The origin for NaN or inf in a gradient; forward may be the deeper origin."""
    head = f"{function.label}: the gradient of input {position}, {_shape(gradient)}"
    facts, guard = backward_facts(function, gradient, grad_outputs, inner)
    if not all(is_finite(gy) for gy in grad_outputs):
        facts.append(
            "A gradient of an output was not finite before: contributions of several functions "
            "add up to NaN or inf."
        )
    earlier = None
    if not all(is_finite(array) for _, array in retained(function)):
        earlier = earliest_forward(function)
    if earlier is not None and earlier.function is not function:
        facts += [text_in_forward(earlier), *earlier.facts]
    elif earlier is not None:
        first = earlier.facts[0].removeprefix("First, ")
        facts += [f"In forward, {first}", *earlier.facts[1:]]
    else:
        facts.append(guard)
    return Origin(function, head, tuple(facts), first_bad(gradient).is_nan)


def text_in_forward(origin: Origin) -> str:
    """The function of an origin in forward, and the line of the call if known."""
    line = ""
    if origin.function.stack:
        line = f"; the function was called at {place_of(origin.function)}"
    return f"The origin is forward computation of {origin.head}{line}."


def earliest_forward(function: Any) -> Origin | None:
    """The first function behind, or the function, with NaN or inf of finite inputs."""
    best, seen, waiting = None, {function}, [function]
    while waiting:
        one = waiting.pop()
        if one in _FORWARD and (best is None or one.rank < best.rank):
            best = one
        for node in one.inputs or ():
            creator = node.creator_node
            if creator is not None and creator not in seen:
                seen.add(creator)
                waiting.append(creator)
    return None if best is None else _FORWARD[best]._replace(function=best)


def user_line(function: Any) -> str:
    """The line that called a function, as ``file:line``, or a hint how to find the line."""
    if not function.stack:
        return "an unknown line (debug mode was off during forward)"
    frame = function.stack[-1]
    return f"{frame.filename}:{frame.lineno}"


def place_of(function: Any) -> str:
    """The line that called a function; for a function inside of a backward, the outer line too."""
    outer = _INSIDE.get(function)
    line = user_line(function)
    return line if outer is None else f"{line}, inside the backward of {outer}"


def _seed(gradient: Array) -> Origin:
    bad = first_bad(gradient)
    facts = (
        f"First, {place_text(bad.place)} is {bad.value}.",
        "Backward started from the gradient: look at grad, grad_outputs or loss_scale.",
    )
    return Origin(None, f"the gradient to start from, {_shape(gradient)}", facts, bad.is_nan)


def _shape(array: Array) -> str:
    return f"shape {tuple(array.shape)}, {dtype_name(array.dtype)}"
