"""L-BFGS: quasi-Newton steps, for a loss without noise, such as that of a differential equation.

Requirement: an update that ends by an exception or Ctrl-C leaves the parameters and the memory of
the optimizer as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy

from tinynode.core.conversion import assign
from tinynode.core.variable import Variable
from tinynode.devices import Array, namespace_of, to_host, widened_array
from tinynode.errors import GraphError
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.groups import Parameters
from tinynode.nn.line_search import SearchPoint, strong_wolfe
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.parameter import fresh_copy
from tinynode.nn.state import State, widened_state


class _Pair(NamedTuple):
    """A step s of the parameters, and the change y of the gradient along the step."""

    s: Array
    y: Array


@dataclass(frozen=True)
class _Memory:
    """The values passed from iteration to iteration.

    Attributes:
        direction: the last direction d.
        gradient: the gradient at the start of the last step.
        pairs: the last steps, the newest at the end.
        length: the last step was length * direction.
        scale: s.y / y.y of the newest pair: the first guess of the inverse Hessian.
        count: the number of iterations.
    """

    direction: Array
    gradient: Array
    pairs: tuple[_Pair, ...] = ()
    length: float = 0.0
    scale: float = 1.0
    count: int = 0


class LBFGS(Optimizer):
    """Limited-memory BFGS: d = -H g, p <- p + t d, with H from the last steps.

    H approximates the inverse Hessian, by the last ``history_size`` steps s of the parameters and
    changes y of the gradient. The length t is ``lr``, or found by a line search. ``step(closure)``
    runs up to ``max_iter`` iterations, and needs a closure:

        def closure():
            optimizer.cleargrads()
            loss = ...
            loss.backward()
            return loss

        optimizer.step(closure)

    Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 7.4, 7.5, 3.5 and 3.6.
    The settings and the first step, of length lr * min(1, 1 / sum |g|), are those of PyTorch.

    Args:
        parameters: as for ``Optimizer``, without groups; all on one device, of one dtype.
        lr: the length t, or the first guess of the line search.
        max_iter: the number of iterations of a ``step``.
        max_eval: the number of calls of the closure after which a ``step`` ends; by default
            max_iter * 5 / 4.
        tolerance_grad: a ``step`` ends if no element of the gradient is larger.
        tolerance_change: a ``step`` ends if the loss or the parameters change by less.
        history_size: the number of steps that H uses.
        line_search_fn: "strong_wolfe", or None.
    """

    setting_names = ("lr", "max_iter", "history_size", "line_search_fn")

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(
                f'LBFGS: line_search_fn must be "strong_wolfe" or None, got {line_search_fn!r}.'
            )
        self.max_iter = checked_size("LBFGS: max_iter", max_iter)
        most = self.max_iter * 5 // 4 if max_eval is None else max_eval
        self.max_eval = checked_size("LBFGS: max_eval", most)
        self.tolerance_grad = checked_number("LBFGS: tolerance_grad", tolerance_grad, 0, math.inf)
        change = checked_number("LBFGS: tolerance_change", tolerance_change, 0, math.inf)
        self.tolerance_change = change
        self.history_size = checked_size("LBFGS: history_size", history_size)
        self.line_search_fn = line_search_fn
        super().__init__(parameters, lr)
        if len(self.groups) > 1 or self.groups[0] is not self:
            raise ValueError("LBFGS takes no groups: all parameters have the same settings.")
        every = [slot.parameter for slot in self.slots]
        kinds = {(str(p.device), str(p.dtype)) for p in every}
        if len(kinds) > 1:
            raise ValueError(
                "LBFGS: all parameters must be on one device and of one dtype, got "
                f"{', '.join(sorted(' '.join(kind) for kind in kinds))}."
            )
        self._memory: _Memory | None = None
        self._names: list[str] = []  # of the parameters of the memory

    @property
    def _parameters(self) -> list[Variable]:
        """The parameters that are not frozen."""
        return [slot.parameter for slot in self.trained_slots]

    def _known_memory(self) -> _Memory | None:
        """The memory of these parameters; None if other ones were frozen at the last step."""
        is_of_these = self._names == [slot.name for slot in self.trained_slots]
        return self._memory if is_of_these else None

    def update(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to ``max_iter`` iterations. After an exception the parameters are unchanged.

        Args:
            closure: clears the gradients, computes the loss, calls ``backward``, and returns the
                loss.

        Returns:
            The loss of the first call of the closure.

        Raises:
            TypeError: there is no closure.
            GraphError: a gradient is missing, or every parameter is frozen.
        """
        if closure is None:
            raise TypeError(
                "LBFGS.update: expected a closure: a function that calls cleargrads() and "
                "loss.backward(), and returns the loss. Write optimizer.step(closure)."
            )
        self._check_frozen()
        before = [(p, p.array, p.device) for p in self._parameters]
        try:
            first, memory = self._iterate(closure)
        except BaseException:
            for p, array, device in before:
                assign(p, array, device)
            raise
        self._memory = memory
        self._names = [slot.name for slot in self.trained_slots]
        for slot in self.trained_slots:
            slot.count += 1
        return first

    def _iterate(self, closure: Callable[[], Any]) -> tuple[Any, _Memory | None]:
        first = closure()
        memory, loss, gradient, calls = self._known_memory(), float(first), self._gradient(), 1
        if self._is_flat(gradient):
            return first, memory
        x = self._join([p.array for p in self._parameters])
        for iteration in range(self.max_iter):
            memory = self._next(memory, gradient)
            direction, slope = memory.direction, _dot(gradient, memory.direction)
            if slope > -self.tolerance_change:
                break
            length, before = self._first_length(memory, gradient), loss

            def at(t: float, x: Array = x, d: Array = direction) -> SearchPoint:
                self._assign(x + t * d)
                value = float(closure())
                found = self._gradient()
                return SearchPoint(t, value, _dot(found, d), found)

            if self.line_search_fn is None:
                is_last = iteration == self.max_iter - 1
                point = SearchPoint(length, loss, slope, gradient) if is_last else at(length)
                calls += not is_last
            else:
                start = SearchPoint(0.0, loss, slope, gradient)
                least = self.tolerance_change / _largest(direction)
                point, used = strong_wolfe(at, start, length, least, self.max_eval - calls)
                calls += used
            x = x + point.t * direction
            loss, gradient = point.value, point.gradient
            memory = replace(memory, length=point.t)
            if (
                calls >= self.max_eval
                or self._is_flat(gradient)
                or _largest(direction) * point.t <= self.tolerance_change
                or abs(loss - before) < self.tolerance_change
            ):
                break
        self._assign(x)
        return first, memory

    def _first_length(self, memory: _Memory, gradient: Array) -> float:
        """The first guess of the length of the step."""
        if memory.count > 1:
            return self.lr
        return self.lr * min(1.0, 1.0 / float(self._xp.sum(self._xp.abs(gradient))))

    def _next(self, memory: _Memory | None, gradient: Array) -> _Memory:
        """The memory with the last step, and the next direction."""
        if memory is None:
            return _Memory(-gradient, gradient, count=1)
        pairs, scale = memory.pairs, memory.scale
        pair = _Pair(memory.direction * memory.length, gradient - memory.gradient)
        curvature = _dot(pair.s, pair.y)
        if curvature > 1e-10:  # else H would not be positive definite
            pairs = (*pairs, pair)[-self.history_size :]
            scale = curvature / _dot(pair.y, pair.y)
        direction = -_inverse_hessian_times(gradient, pairs, scale)
        return _Memory(direction, gradient, pairs, memory.length, scale, memory.count + 1)

    def _is_flat(self, gradient: Array) -> bool:
        return _largest(gradient) <= self.tolerance_grad

    @property
    def _xp(self) -> Any:
        return self._parameters[0].xp

    def _join(self, arrays: list[Array]) -> Array:
        """The arrays as one array with a single axis; float16 as float32, for the products."""
        xp = self._xp
        return widened_array(xp.concat([xp.reshape(array, (-1,)) for array in arrays]))

    def _gradient(self) -> Array:
        for slot in self.trained_slots:
            if slot.parameter.grad is None:
                raise GraphError(
                    f"LBFGS.update: {slot} has no gradient: the closure must call "
                    "loss.backward(), and the loss must depend on each parameter."
                )
        return self._join([p.grad for p in self._parameters])

    def _assign(self, x: Array) -> None:
        """Give each parameter its part of x."""
        start = 0
        for p in self._parameters:
            size = math.prod(p.shape)
            part = self._xp.reshape(x[start : start + size], p.shape)
            assign(p, self._xp.astype(part, p.dtype), p.device)
            start += size

    def state_dict(self) -> State:
        """Host copies of the counts and the memory, by name."""
        state = super().state_dict()
        rows, memory = self.history_size, self._known_memory()
        size = sum(math.prod(p.shape) for p in self._parameters)
        dtype = to_host(self.slots[0].parameter.array).dtype
        dtype = numpy.dtype(numpy.float32) if dtype == numpy.float16 else dtype
        empty = numpy.zeros((rows, size), dtype)
        vectors = {"direction": empty[0].copy(), "gradient": empty[0].copy()}
        steps, changes, numbers = empty.copy(), empty.copy(), numpy.zeros(4)
        if memory is not None:
            vectors["direction"] = to_host(memory.direction).copy()
            vectors["gradient"] = to_host(memory.gradient).copy()
            for row, pair in enumerate(memory.pairs):
                steps[row], changes[row] = to_host(pair.s), to_host(pair.y)
            numbers[:] = memory.length, memory.scale, memory.count, len(memory.pairs)
        found = {**vectors, "steps": steps, "changes": changes, "numbers": numbers}
        return {**state, **{f"memory/{name}": array for name, array in found.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        state = widened_state(state, self.state_dict())
        length, scale, count, rows = numpy.asarray(state["memory/numbers"]).tolist()
        device = self.slots[0].parameter.device
        self._names = [slot.name for slot in self.trained_slots]
        if not count:
            self._memory = None
            return

        def vector(name: str, *row: int) -> Array:
            return fresh_copy(to_host(state[f"memory/{name}"])[(*row, ...)], device)

        pairs = tuple([_Pair(vector("steps", i), vector("changes", i)) for i in range(int(rows))])
        vectors = vector("direction"), vector("gradient")
        self._memory = _Memory(*vectors, pairs, length, scale, int(count))


def _dot(x: Array, y: Array) -> float:
    return float(namespace_of(x).sum(x * y))


def _largest(x: Array) -> float:
    """max |x|."""
    xp = namespace_of(x)
    return float(xp.max(xp.abs(x)))


def _inverse_hessian_times(g: Array, pairs: tuple[_Pair, ...], scale: float) -> Array:
    """H g, by the two loops of algorithm 7.4."""
    factors = []
    for s, y in reversed(pairs):
        factor = _dot(s, g) / _dot(s, y)
        factors.append(factor)
        g = g - factor * y
    g = scale * g
    for (s, y), factor in zip(pairs, reversed(factors), strict=True):
        g = g + (factor - _dot(y, g) / _dot(s, y)) * s
    return g
