"""The optimizers' updates on a GPU: a kernel for each parameter, not for each operation.

Not yet run on a GPU; the formulas are tested like the formulas of ``kernels.py``.

Requirement: an update gives new arrays for the parameter and the moments, as ``update_one`` does.
Eager code gives the kernels Python numbers. In a net the numbers lie on the GPU, and the host does
not wait for them. Adam's corrections are computed there, once for all parameters of a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import cupy

from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Fallback, count_use, kernel_uses
from tinynode.nn.optimizers import SGD, Adam, AdamW
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate
from tinynode_cupy.kernels import ElementwiseSource, compile_elementwise

Step: TypeAlias = tuple[Any, Any, dict[str, Any], int]
"""The array, the gradient and the moments of a parameter, and the number of the step."""
Result: TypeAlias = tuple[Any, dict[str, Any]]

SGD_SOURCE = ElementwiseSource(
    "tinynode_sgd", "T p, T g, float64 lr", "T next", "next = p - T(lr) * g;"
)
MOMENTUM_SOURCE = ElementwiseSource(
    "tinynode_momentum",
    "T p, T g, T v, float64 lr, float64 momentum",
    "T next, T next_v",
    "next_v = T(momentum) * v + g; next = p - T(lr) * next_v;",
)
# b3 = 1 - b1, b4 = 1 - b2, d1 = 1 - b1^t, d2 = 1 - b2^t: rounded once each, as in update_one()
ADAM_SOURCE = ElementwiseSource(
    "tinynode_adam",
    "T p, T g, T m, T v, float64 lr, float64 d1, float64 d2, float64 shrink, "
    "T b1, T b2, T b3, T b4, T eps",
    "T next, T next_m, T next_v",
    "next_m = b1 * m + b3 * g; next_v = b2 * v + b4 * g * g; "
    "next = p * T(shrink) - T(lr) * (next_m / T(d1)) / (sqrt(next_v / T(d2)) + eps);",
)
NUMBERS_SOURCE = ElementwiseSource(
    "tinynode_adam_numbers",
    "T lr, T count, T b1, T b2, T decay",
    "T d1, T d2, T shrink",
    "d1 = 1 - pow(b1, count); d2 = 1 - pow(b2, count); shrink = 1 - lr * decay;",
)

_sgd = compile_elementwise(SGD_SOURCE)
_momentum = compile_elementwise(MOMENTUM_SOURCE)
_adam = compile_elementwise(ADAM_SOURCE)
_numbers = compile_elementwise(NUMBERS_SOURCE)


def _update_sgd(optimizer: Any, step: Step) -> Result:
    p, g, moments, _ = step
    if not optimizer.momentum:
        return _sgd(p, g, optimizer.lr), {}
    p, v = _momentum(p, g, moments["v"], optimizer.lr, optimizer.momentum)
    return p, {"v": v}


def _update_adam(optimizer: Any, step: Step) -> Result:
    return _adam_step(optimizer, step, 1.0)


def _update_adamw(optimizer: Any, step: Step) -> Result:
    return _adam_step(optimizer, step, 1.0 - optimizer.lr * optimizer.weight_decay)


def _adam_step(optimizer: Any, step: Step, shrink: float) -> Result:
    p, g, moments, count = step
    b1, b2 = optimizer.betas
    rates = optimizer.lr, 1 - b1**count, 1 - b2**count, shrink
    arrays = p, g, moments["m"], moments["v"]
    p, m, v = _adam(*arrays, *rates, *_constants(optimizer))
    return p, {"m": m, "v": v}


def _constants(adam: Any) -> tuple[float, ...]:
    """The last arguments of the kernel, of an optimizer or an ``AdamUpdate``."""
    b1, b2 = adam.betas
    return b1, b2, 1 - b1, 1 - b2, adam.eps


_UPDATES: dict[type, Callable[[Any, Step], Result]] = {
    Adam: _update_adam,
    AdamW: _update_adamw,
    SGD: _update_sgd,
}


def update_parameters(optimizer: Any, steps: Sequence[Step]) -> Any:
    """The next arrays and moments of all parameters, or ``Fallback`` with the reason."""
    start = time.perf_counter()
    update = _UPDATES.get(type(optimizer))
    if update is None:
        return Fallback("no kernel for this class")
    if type(optimizer) is SGD and (optimizer.weight_decay or optimizer.nesterov):
        return Fallback("no kernel for weight_decay or nesterov")
    for array, *_ in steps:
        if str(array.dtype) not in ("float32", "float64"):
            return Fallback(f"{array.dtype} has no kernel")
    with cupy.cuda.Device(steps[0][0].device.id):
        results = [update(optimizer, step) for step in steps]
    seconds = time.perf_counter() - start  # to start the work: the GPU goes on with it
    count_use(kernel_uses, ("cupy", type(optimizer).__name__, "update_parameters"), seconds)
    return results


# --- in plans ------------------------------------------------------------------------------------


class UpdateKernel(FunctionNode):
    """A step of a parameter. No gradient: the node stands in nets that only run.

    The inputs and outputs are those of the update; for an ``AdamUpdate`` the outputs of
    ``AdamNumbers`` stand in place of the count.
    """

    def __init__(self, update: FunctionNode) -> None:
        self.update = update

    def forward(self, inputs: Arrays) -> Arrays:
        if isinstance(self.update, AdamUpdate):
            results: Arrays = _adam(*inputs, *_constants(self.update))
            return results
        if isinstance(self.update, MomentumUpdate):
            return tuple(_momentum(*inputs))
        return (_sgd(*inputs),)


class AdamNumbers(FunctionNode):
    """d1 = 1 - b1^count, d2 = 1 - b2^count, shrink = 1 - lr * weight_decay.

    lr, count: () -> d1, d2, shrink: (), float64.
    No gradient: the node stands in nets that only run.
    """

    def __init__(self, update: AdamUpdate) -> None:
        self.update = update

    def forward(self, inputs: Arrays) -> Arrays:
        return tuple(_numbers(*inputs, *self.update.betas, self.update.weight_decay))


KERNELS = (SGDUpdate, MomentumUpdate, AdamUpdate)
"""The updates that ``UpdateKernel`` computes."""
