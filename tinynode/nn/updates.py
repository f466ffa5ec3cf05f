"""Updates: an optimizer's step for a single parameter, as a function.

Requirement: eager code and nets compute a step by the same lines. So a step is a FunctionNode
from arrays to new arrays. Every changing value is an input: the parameter, the gradient, the
moments, and *numbers* such as the learning rate. Numbers are Python numbers in eager code, and
float64 arrays of shape () in a net.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.devices import Array, Arrays, is_float16, namespace_of, widened_array
from tinynode.errors import GraphError, describe
from tinynode.functions.checked import checked, checked_flag, checked_float


class UpdateFunction(FunctionNode):
    """Base class: p, g, moments, numbers -> p', moments'. No gradient.

    Attributes:
        numbers: the optimizer's attributes used as inputs, by name; ``count`` is the number
            of the parameter's step, 1 for the first.
        moments: the names of the moments, in the order of the inputs. An optimizer without a
            moment, such as SGD without momentum, leaves the input out.
        keeps_form: True if p' and the moments' have the shapes and dtypes of p and the moments.
    """

    numbers: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    keeps_form = True
    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        """The step. For a parameter of float16 in float32: eps and squares would round to 0."""
        p, *_ = inputs
        if not is_float16(p):
            return self.step(inputs)
        xp = namespace_of(p)
        count = len(inputs) - len(self.numbers)
        wide = [widened_array(x) for x in inputs[:count]]
        results = self.step((*wide, *inputs[count:]))
        olds = (p, *inputs[2:count])  # a rule of one's own may give moments of float16
        return tuple([xp.astype(y, x.dtype) for y, x in zip(results, olds, strict=True)])

    def step(self, inputs: Arrays) -> Arrays:
        """The formula, of inputs as in ``forward``."""
        raise NotImplementedError(f"{type(self).__name__} has no step: define it in the class.")


JOINED_SIZE = 1_000
"""Parameters with more elements are updated one by one: the arithmetic takes most of the time."""
JOINED_COUNT = 8
"""Fewer small parameters are updated one by one."""


def updated(
    function: UpdateFunction, columns: Sequence[Sequence[Array]], numbers: Sequence[Any]
) -> list[list[Array]]:
    """``function.forward`` for each parameter; many small arrays of NumPy are joined.

    For arrays of 10 elements, the calls of NumPy take nearly all of the time. The formulas in this
    file are elementwise. So one call on a long array gives the same bits as a call per parameter.

    Args:
        function: the update of one parameter.
        columns: the parameters, the gradients, then a list for each moment.
        numbers: the numbers, the same for all parameters.

    Returns:
        The new parameters, then a list for each moment.
    """
    groups = _alike(function, columns[0])
    if len(groups) == 1 and len(columns[0]) >= JOINED_COUNT:  # the usual case, quickly
        return _updated_together(function, columns, numbers)
    results: list[list[Any]] = []
    for places in groups:
        own = [[column[place] for place in places] for column in columns]
        if len(places) < JOINED_COUNT:
            found = [function.forward((*arrays, *numbers)) for arrays in zip(*own, strict=True)]
            parts = [list(column) for column in zip(*found, strict=True)]
        else:
            parts = _updated_together(function, own, numbers)
        results = results or [[None] * len(columns[0]) for _ in parts]
        for result, part in zip(results, parts, strict=True):
            for place, array in zip(places, part, strict=True):
                result[place] = array
    return results


def _alike(function: UpdateFunction, parameters: Sequence[Array]) -> list[list[int]]:
    """The places of the parameters: together for small arrays of one dtype."""
    is_known = function.is_elementwise and type(function).__module__ == __name__
    if len(parameters) < JOINED_COUNT or not is_known:
        return [[place] for place in range(len(parameters))]
    groups: dict[Any, list[int]] = {}
    for place, p in enumerate(parameters):
        is_small = type(p) is numpy.ndarray and p.size <= JOINED_SIZE and p.flags.c_contiguous
        key = p.dtype if is_small else place
        if key in groups:
            groups[key].append(place)
        else:
            groups[key] = [place]
    return list(groups.values())


def _updated_together(
    function: UpdateFunction, columns: Sequence[Sequence[Array]], numbers: Sequence[Any]
) -> list[list[Array]]:
    """The results of ``updated``, from one call on arrays of all elements."""
    joined = [numpy.concatenate(column, axis=None) for column in columns]
    results = function.forward((*joined, *numbers))
    return [_separate(result, columns[0]) for result in results]


def _separate(joined: Array, like: Sequence[Array]) -> list[Array]:
    """The parts of a long array, with the shapes of other arrays.

    Each part is a copy: a graph with a single part does not hold the whole.
    """
    parts = []
    start = 0
    for p in like:
        stop = start + p.size
        part = joined[start:stop]
        if p.ndim != 1:
            part = part.reshape(p.shape)
        parts.append(part.copy())
        start = stop
    return parts


def rounded(number: Any, like: Array) -> Any:
    """A number in the dtype of an array; a Python number is rounded at its use."""
    if type(number) in (int, float):
        return number
    return namespace_of(like).asarray(number, dtype=like.dtype)


def decayed(g: Array, p: Array, weight_decay: float) -> Array:
    """The gradient of the loss plus weight_decay / 2 * sum(p^2): g + weight_decay * p."""
    return g + weight_decay * p if weight_decay else g


def weight(beta: float) -> float:
    """The weight of a new number beside an old one of weight 1, in a mean with decay beta."""
    return (1 - beta) / beta if beta else 1.0


class SGDUpdate(UpdateFunction):
    """p' = p - lr * g.   p, g: (s), lr: () -> p': (s). No gradient."""

    input_counts = (3,)
    numbers = ("lr",)

    def step(self, inputs: Arrays) -> Arrays:
        p, g, lr = inputs
        return (p - rounded(lr, g) * g,)


class MomentumUpdate(UpdateFunction):
    """v' = momentum * v + g,   p' = p - lr * v'.

    p, g, v: (s), lr, momentum: () -> p', v': (s). No gradient.
    """

    input_counts = (5,)
    output_counts = (2,)
    numbers = ("lr", "momentum")
    moments = ("v",)

    def step(self, inputs: Arrays) -> Arrays:
        p, g, v, lr, momentum = inputs
        v = rounded(momentum, g) * v + g
        return p - rounded(lr, g) * v, v


class DecayedSGDUpdate(UpdateFunction):
    """The formula of ``SGD`` with ``weight_decay`` or ``nesterov``; no v without momentum.

    p, g, v: (s), lr, momentum: () -> p', v': (s). No gradient.
    """

    input_counts = (4, 5)
    output_counts = (1, 2)
    numbers = ("lr", "momentum")
    moments = ("v",)

    def __init__(self, weight_decay: float, nesterov: bool) -> None:
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)
        self.nesterov = checked_flag(self, "nesterov", nesterov)

    def step(self, inputs: Arrays) -> Arrays:
        p, grad, *moments, lr, momentum = inputs
        g = decayed(grad, p, self.weight_decay)
        if not moments:
            return (p - rounded(lr, grad) * g,)
        momentum = rounded(momentum, grad)
        v = momentum * moments[0] + g
        step = g + momentum * v if self.nesterov else v
        return p - rounded(lr, grad) * step, v


class AdamUpdate(UpdateFunction):
    """The formula of ``Adam``, after p <- p - lr * weight_decay * p as in ``AdamW``.

    p, g, m, v: (s), lr, count: () -> p', m', v': (s). No gradient.
    """

    input_counts = (6,)
    output_counts = (3,)
    numbers = ("lr", "count")
    moments = ("m", "v")

    def __init__(self, betas: tuple[float, float], eps: float, weight_decay: float = 0.0) -> None:
        self.betas = checked(self, "betas", betas)
        self.eps = checked_float(self, "eps", eps)
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)

    def step(self, inputs: Arrays) -> Arrays:
        p, g, m, v, lr, count = inputs
        b1, b2 = self.betas
        if self.weight_decay:
            p = p * rounded(1 - lr * self.weight_decay, g)
        # b v + (1 - b) g^2 as b (v + (1 - b) / b g^2): in a single new array
        square = weight(b2) * g
        square *= g
        if b2:
            square += v
            square *= b2
        # the corrections, as numbers: sqrt(v / r) is sqrt(v) / sqrt(r)
        steps = int(count)  # the power of an array of the library may round in another way
        r = (1 - b2**steps) ** 0.5
        root = namespace_of(g).sqrt(square)  # p may be a scalar of the array library by now
        root += rounded(r * self.eps, g)
        mean = weight(b1) * g
        if b1:
            mean += m
            mean *= b1
        new = mean / root
        new *= rounded(-lr * r / (1 - b1**steps), g)
        new += p
        return new, mean, square


class RMSpropUpdate(UpdateFunction):
    """The formula of ``RMSprop``; the moments a and b are left out if the settings need none.

    p, g, v, a, b: (s), lr: () -> p', v', a', b': (s). No gradient.
    """

    input_counts = (4, ...)
    output_counts = (2, ...)
    numbers = ("lr",)
    moments = ("v", "a", "b")

    def __init__(
        self, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool
    ) -> None:
        self.alpha = checked_float(self, "alpha", alpha)
        self.eps = checked_float(self, "eps", eps)
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)
        self.momentum = checked_float(self, "momentum", momentum)
        self.centered = checked_flag(self, "centered", centered)

    def step(self, inputs: Arrays) -> Arrays:
        p, grad, v, *others, lr = inputs
        sqrt, kept = namespace_of(grad).sqrt, []
        g = decayed(grad, p, self.weight_decay)
        v = self.alpha * v + (1 - self.alpha) * g * g
        variance = v
        if self.centered:
            a = self.alpha * others[0] + (1 - self.alpha) * g
            variance = v - a * a
            kept.append(a)
        step = g / (sqrt(variance) + self.eps)
        if self.momentum:
            step = self.momentum * others[-1] + step
            kept.append(step)
        return (p - rounded(lr, grad) * step, v, *kept)


class AdagradUpdate(UpdateFunction):
    """The formula of ``Adagrad``.   p, g, s: (s), lr, count: () -> p', s': (s). No gradient."""

    input_counts = (5,)
    output_counts = (2,)
    numbers = ("lr", "count")
    moments = ("s",)

    def __init__(self, lr_decay: float, weight_decay: float, start: float, eps: float) -> None:
        self.lr_decay = checked_float(self, "lr_decay", lr_decay)
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)
        self.start = checked_float(self, "start", start)
        self.eps = checked_float(self, "eps", eps)

    def step(self, inputs: Arrays) -> Arrays:
        p, grad, s, lr, count = inputs
        g = decayed(grad, p, self.weight_decay)
        s = s + g * g
        lr = lr / (1 + (count - 1) * self.lr_decay)
        root = namespace_of(grad).sqrt(s + self.start)
        return p - rounded(lr, grad) * g / (root + self.eps), s


class NAdamUpdate(UpdateFunction):
    """The formula of ``NAdam``.

    p, g, m, v: (s), lr, count: () -> p', m', v': (s). No gradient.
    """

    input_counts = (6,)
    output_counts = (3,)
    numbers = ("lr", "count")
    moments = ("m", "v")

    def __init__(
        self, betas: tuple[float, float], eps: float, weight_decay: float, momentum_decay: float
    ) -> None:
        self.betas = checked(self, "betas", betas)
        self.eps = checked_float(self, "eps", eps)
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)
        self.momentum_decay = checked_float(self, "momentum_decay", momentum_decay)

    def step(self, inputs: Arrays) -> Arrays:
        p, grad, m, v, lr, count = inputs
        b1, b2 = self.betas
        steps = int(count)
        mu, next_mu, product = nadam_numbers(b1, self.momentum_decay, steps)
        g = decayed(grad, p, self.weight_decay)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        root = namespace_of(grad).sqrt(v / (1 - b2**steps)) + self.eps
        mean = next_mu / (1 - product * next_mu) * m + (1 - mu) / (1 - product) * g
        return p - rounded(lr, grad) * mean / root, m, v


def nadam_numbers(b1: float, decay: float, count: int) -> tuple[float, float, float]:
    """mu_t and mu_(t+1) of ``NAdam``, and the product mu_1 * ... * mu_t, for t = count."""
    known, product = _products.get((b1, decay), (0, 1.0))
    if known > count:  # another optimizer, or an older state
        known, product = 0, 1.0
    for t in range(known + 1, count + 1):
        product *= _nadam_mu(b1, decay, t)
    _products[b1, decay] = count, product
    return _nadam_mu(b1, decay, count), _nadam_mu(b1, decay, count + 1), product


def _nadam_mu(b1: float, decay: float, t: int) -> float:
    fall: float = 0.96 ** (t * decay)
    return b1 * (1.0 - 0.5 * fall)


_products: dict[tuple[float, float], tuple[int, float]] = {}
"""By b1 and decay of ``NAdam``: the count of the last step, and the product for this step."""


class LionUpdate(UpdateFunction):
    """The formula of ``Lion``.   p, g, m: (s), lr: () -> p', m': (s). No gradient."""

    input_counts = (4,)
    output_counts = (2,)
    numbers = ("lr",)
    moments = ("m",)

    def __init__(self, betas: tuple[float, float], weight_decay: float) -> None:
        self.betas = checked(self, "betas", betas)
        self.weight_decay = checked_float(self, "weight_decay", weight_decay)

    def step(self, inputs: Arrays) -> Arrays:
        p, g, m, lr = inputs
        b1, b2 = self.betas
        p = p * rounded(1 - lr * self.weight_decay, g)
        direction = namespace_of(g).sign(b1 * m + (1 - b1) * g)
        return p - rounded(lr, g) * direction, b2 * m + (1 - b2) * g


class OwnStep(UpdateFunction):
    """The result of an optimizer's own ``update_one``, called anew at each run.

    p, g, moments: (s), count: () -> p', moments': (s). No gradient.
    """

    input_counts = (3, ...)
    output_counts = (1, ...)
    numbers = ("count",)
    keeps_form = False
    is_elementwise = False

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def forward(self, inputs: Arrays) -> Arrays:
        p, g, *moments, count = inputs
        names = self.optimizer.moment_names
        given = dict(zip(names, moments, strict=True))
        p, found = own_step(self.optimizer, p, g, given, int(count))
        return (p, *[found[name] for name in names])


def own_step(
    optimizer: Any, array: Array, grad: Array, moments: dict[str, Array], count: int
) -> tuple[Array, dict[str, Array]]:
    """The results of an optimizer's own ``update_one``, checked.

    Raises:
        GraphError: no pair, other moments than those of ``moment_names``, or another shape or
            dtype than that of the parameter.
    """
    rule = optimizer.rule
    title = f"{type(optimizer).__name__}.{getattr(rule, '__name__', 'update_one')}"
    found = rule(array, grad, moments, count)
    if not isinstance(found, tuple | list) or len(found) != 2 or not isinstance(found[1], Mapping):
        raise GraphError(
            f"{title}: expected a pair, the next array and a dict of the moments, got "
            f"{describe(found)}. Without moments, return (array, {{}})."
        )
    names, new = set(optimizer.moment_names), found[1]
    if set(new) != names:
        raise GraphError(
            f"{title}: returned the moments {sorted(new)}, expected those of moment_names, "
            f"{sorted(names)}."
        )
    results = [("next array", found[0], array)]
    results += [(f"moment {name!r}", one, moments[name]) for name, one in new.items()]
    for name, one, old in results:
        is_like = getattr(one, "shape", None) == array.shape
        if not is_like or one.dtype not in (array.dtype, old.dtype):
            raise GraphError(
                f"{title}: the {name} must be like the parameter, {describe(array)}; got "
                f"{describe(one)}. For the dtype, end with xp.astype(..., array.dtype)."
            )
    xp = namespace_of(array)
    return found[0], {name: xp.astype(one, moments[name].dtype) for name, one in new.items()}
