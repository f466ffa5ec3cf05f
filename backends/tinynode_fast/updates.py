"""Optimizer updates: one pass over cache-sized blocks of each parameter.

Adam and AdamW have a kernel, for eager code and for plans. SGD has none in eager code: NumPy does
its two to four passes as quickly. In a plan the passes write to memory of the plan.

In eager code every parameter gets a new array, since a graph may retain the old array. The moments
get new arrays too: after an error the old moments are unchanged. A plan may give the same memory
for an input and its output; see ``overwriting``.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy
from numpy import add, multiply, subtract

from tinynode import nn
from tinynode.devices import Arrays, Fallback, count_use, kernel_uses
from tinynode.nn.updates import AdamUpdate
from tinynode_fast.blocks import run
from tinynode_fast.kernel import FLOATS
from tinynode_fast.limits import LIMITS

Step: TypeAlias = tuple[Any, Any, dict[str, Any], int]
"""The arguments of ``Optimizer.step``: array, gradient, moments, count."""


def adam(numbers: Arrays, inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """m <- b1 m + c1 g, v <- b2 v + c2 g^2, and kept p - rate m / (sqrt(v) + eps).

    The numbers are b1, c1, b2, c2, rate, eps and kept. Each output may be its input.
    """
    (p, g, old_m, old_v), (new, m, v), (spare,) = inputs, outputs, scratch
    b1, c1, b2, c2, rate, eps, kept = numbers
    multiply(old_m, b1, m)
    multiply(g, c1, spare)
    add(m, spare, m)
    multiply(old_v, b2, v)
    multiply(g, g, spare)
    multiply(spare, c2, spare)
    add(v, spare, v)
    numpy.sqrt(v, spare)
    add(spare, eps, spare)
    numpy.divide(m, spare, spare)
    multiply(spare, rate, spare)
    if kept != 1:
        multiply(p, kept, new)
        p = new
    subtract(p, spare, new)


@functools.lru_cache(LIMITS.numbers)
def adam_numbers(
    betas: tuple[float, float], eps: float, decay: float, lr: float, count: float, dtype: Any
) -> Arrays:
    """The numbers of ``adam``: rate and eps hold the corrections of m and v, for fewer passes."""
    b1, b2 = betas
    root = math.sqrt(1 - b2**count)
    numbers = b1, 1 - b1, b2, 1 - b2, lr * root / (1 - b1**count), eps * root, 1 - lr * decay
    return tuple([numpy.asarray(value, dtype) for value in numbers])


def adam_step(rule: Any, lr: float, count: float, inputs: Arrays, outputs: Arrays) -> None:
    """Read p, g, m and v, and write p', m' and v'; a gradient in pieces is copied.

    The rule is an ``AdamUpdate``, or an optimizer.
    """
    decay = getattr(rule, "weight_decay", 0.0)
    numbers = adam_numbers(tuple(rule.betas), rule.eps, decay, lr, count, inputs[0].dtype)
    flat = tuple([x.reshape(-1) for x in inputs])
    run(partial(adam, numbers), flat, tuple([y.reshape(-1) for y in outputs]), scratch=1)


def adam_call(node: AdamUpdate, *arrays: Any) -> None:
    """Read p, g, m, v, lr and count, and write p', m' and v', in a plan."""
    adam_step(node, float(arrays[4]), float(arrays[5]), arrays[:4], arrays[6:])


def adam_update(node: AdamUpdate, *arrays: Any) -> Arrays:
    """``AdamUpdate`` in one pass, to new arrays: the first run of a net."""
    outputs = tuple([numpy.empty(arrays[0].shape, arrays[0].dtype) for _ in range(3)])
    adam_call(node, *arrays, *outputs)
    return outputs


def descend(p: Any, g: Any, lr: Any, out: Any) -> None:
    """p - lr g; ``out`` may be p."""
    subtract(p, multiply(g, lr.astype(g.dtype)), out)


def gather(v: Any, g: Any, momentum: Any, out: Any) -> None:
    """momentum v + g; ``out`` may be v."""
    multiply(v, momentum.astype(v.dtype), out)
    add(out, g, out)


def update_parameters(optimizer: Any, steps: Sequence[Step]) -> Any:
    """The next arrays and moments of all parameters, or ``Fallback`` with the reason."""
    start = time.perf_counter()
    if type(optimizer) not in (nn.Adam, nn.AdamW):
        return Fallback("no kernel for this class")
    others = [step[0].dtype for step in steps if step[0].dtype not in FLOATS]
    if others:
        return Fallback(f"{others[0]} has no kernel")
    results = []
    for array, g, moments, count in steps:
        new = numpy.empty(array.shape, array.dtype)
        targets = {name: numpy.empty(m.shape, m.dtype) for name, m in moments.items()}
        inputs = (array, g, *moments.values())
        adam_step(optimizer, optimizer.lr, count, inputs, (new, *targets.values()))
        results.append((new, targets))
    seconds = time.perf_counter() - start
    count_use(kernel_uses, ("fast", type(optimizer).__name__, "update_parameters"), seconds)
    return results
