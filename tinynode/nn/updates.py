"""Updates: an optimizer's step for a single parameter, as a function.

Requirement: eager code and nets compute a step by the same lines. So a step is a FunctionNode
from arrays to new arrays. Every changing value is an input: the parameter, the gradient, the
moments, and *numbers* such as the learning rate. Numbers are Python numbers in eager code, and
float64 arrays of shape () in a net.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.errors import GraphError


class UpdateFunction(FunctionNode):
    """Base class: p, g, moments, numbers -> p', moments'. No gradient.

    Attributes:
        numbers: the optimizer's attributes used as inputs, by name; ``count`` is the number
            of the parameter's step, 1 for the first.
    """

    numbers: tuple[str, ...] = ()


def rounded(number: Any, like: Array) -> Any:
    """A number in the dtype of an array; a Python number is rounded at its use."""
    if type(number) in (int, float):
        return number
    return namespace_of(like).asarray(number, dtype=like.dtype)


class SGDUpdate(UpdateFunction):
    """p' = p - lr * g.   p, g: (s), lr: () -> p': (s). No gradient."""

    numbers = ("lr",)

    def forward(self, inputs: Arrays) -> Arrays:
        p, g, lr = inputs
        return (p - rounded(lr, g) * g,)


class MomentumUpdate(UpdateFunction):
    """v' = momentum * v + g,   p' = p - lr * v'.

    p, g, v: (s), lr, momentum: () -> p', v': (s). No gradient.
    """

    numbers = ("lr", "momentum")

    def forward(self, inputs: Arrays) -> Arrays:
        p, g, v, lr, momentum = inputs
        v = rounded(momentum, g) * v + g
        return p - rounded(lr, g) * v, v


class AdamUpdate(UpdateFunction):
    """The formula of ``Adam``, after p <- p - lr * weight_decay * p as in ``AdamW``.

    p, g, m, v: (s), lr, count: () -> p', m', v': (s). No gradient.
    """

    numbers = ("lr", "count")

    def __init__(self, betas: tuple[float, float], eps: float, weight_decay: float = 0.0) -> None:
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay

    def forward(self, inputs: Arrays) -> Arrays:
        p, g, m, v, lr, count = inputs
        b1, b2 = self.betas
        if self.weight_decay:
            p = p * rounded(1 - lr * self.weight_decay, g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        m_hat = m / rounded(1 - b1**count, g)
        v_hat = v / rounded(1 - b2**count, g)
        root = namespace_of(g).sqrt(v_hat)  # p may be a scalar of the array library by now
        return p - rounded(lr, g) * m_hat / (root + self.eps), m, v


class OwnStep(UpdateFunction):
    """The result of an optimizer's own ``step``, called anew at each run.

    p, g, moments: (s), count: () -> p', moments': (s). No gradient.
    """

    numbers = ("count",)

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def forward(self, inputs: Arrays) -> Arrays:
        p, g, *moments, count = inputs
        names = self.optimizer.moment_names
        given = dict(zip(names, moments, strict=True))
        p, found = self.optimizer.step(p, g, given, int(count))
        if set(found) != set(names):
            raise GraphError(
                f"{type(self.optimizer).__name__}.step: returned the moments {sorted(found)}, "
                f"expected those of moment_names, {sorted(names)}."
            )
        return (p, *[found[name] for name in names])
