"""The optimizers' updates on a GPU: one kernel for each parameter, where CuPy has one a step.

Not yet run on a GPU; the tests do with these formulas what they do with those in ``kernels.py``.

Requirement: as ``step`` does, an update gives new arrays, for the parameter and for its moments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import cupy

from tinynode.backend import Fallback, count_use, kernel_uses
from tinynode.nn.optimizers import SGD, Adam, AdamW
from tinynode_cupy.kernels import Elementwise, compile_elementwise

Step: TypeAlias = tuple[Any, Any, dict[str, Any], int]
"""A parameter's array, its gradient, its moments, and the number of this step."""
Result: TypeAlias = tuple[Any, dict[str, Any]]

SGD_SOURCE = Elementwise("tinynode_sgd", "T p, T g, T lr", "T next", "next = p - lr * g;")
MOMENTUM_SOURCE = Elementwise(
    "tinynode_momentum",
    "T p, T g, T v, T lr, T momentum",
    "T next, T next_v",
    "next_v = momentum * v + g; next = p - lr * next_v;",
)
# b3 = 1 - b1, b4 = 1 - b2, d1 = 1 - b1^t, d2 = 1 - b2^t: rounded once each, as in step()
ADAM_SOURCE = Elementwise(
    "tinynode_adam",
    "T p, T g, T m, T v, T lr, T b1, T b2, T b3, T b4, T d1, T d2, T eps, T shrink",
    "T next, T next_m, T next_v",
    "next_m = b1 * m + b3 * g; next_v = b2 * v + b4 * g * g; "
    "next = p * shrink - lr * (next_m / d1) / (sqrt(next_v / d2) + eps);",
)

_sgd = compile_elementwise(SGD_SOURCE)
_momentum = compile_elementwise(MOMENTUM_SOURCE)
_adam = compile_elementwise(ADAM_SOURCE)


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
    rates = (optimizer.lr, b1, b2, 1 - b1, 1 - b2, 1 - b1**count, 1 - b2**count)
    p, m, v = _adam(p, g, moments["m"], moments["v"], *rates, optimizer.eps, shrink)
    return p, {"m": m, "v": v}


_UPDATES: dict[type, Callable[[Any, Step], Result]] = {
    Adam: _update_adam,
    AdamW: _update_adamw,
    SGD: _update_sgd,
}


def update_parameters(optimizer: Any, steps: Sequence[Step]) -> Any:
    """The next arrays and moments of all parameters, or why there is no kernel for them."""
    start = time.perf_counter()
    update = _UPDATES.get(type(optimizer))
    if update is None:
        return Fallback("no kernel for this class")
    for array, *_ in steps:
        if str(array.dtype) not in ("float32", "float64"):
            return Fallback(f"{array.dtype} has no kernel")
    with cupy.cuda.Device(steps[0][0].device.id):
        results = [update(optimizer, step) for step in steps]
    seconds = time.perf_counter() - start  # to start the work: the GPU goes on with it
    count_use(kernel_uses, ("cupy", type(optimizer).__name__, "update_parameters"), seconds)
    return results
