"""Optimizer updates: one pass over cache-sized blocks of each parameter.

Adam and AdamW have a kernel, for eager code and for plans. SGD has none in eager code, as it is
two to four passes, which NumPy does as quickly; in a plan these write to memory that is there.

Every parameter gets a new array, since a graph may retain the old one. An update that raises must
leave the moments as they were, so they are written to other arrays as well. In eager code these
are what the last update read, since the moments are the optimizer's own, and fresh memory costs
page faults; a plan has memory of its own.
"""

from __future__ import annotations

import functools
import math
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy import add, multiply, subtract

from tinynode import nn
from tinynode.devices import Fallback, count_use, kernel_uses
from tinynode.nn.updates import AdamUpdate
from tinynode_fast.blocks import BLOCK, Arrays, Entry, Kernel, run
from tinynode_fast.elementwise import FLOATS

Step: TypeAlias = tuple[Any, Any, dict[str, Any], int]
"""The arguments of ``Optimizer.step``: array, gradient, moments, count."""


class AdamNumbers(NamedTuple):
    """What ``adam`` multiplies by; ``rate`` and ``eps`` hold the corrections of m and v."""

    b1: Any
    rest1: Any
    b2: Any
    rest2: Any
    rate: Any
    eps: Any
    kept: Any


def adam(by: AdamNumbers, inputs: Arrays, outputs: Arrays, scratch: Arrays) -> None:
    """m <- b1 m + rest1 g, v <- b2 v + rest2 g^2, and kept p - rate m / (sqrt(v) + eps)."""
    (p, g, old_m, old_v), (new, m, v), (spare,) = inputs, outputs, scratch
    multiply(old_m, by.b1, m)
    multiply(g, by.rest1, spare)
    add(m, spare, m)
    multiply(old_v, by.b2, v)
    multiply(g, g, spare)
    multiply(spare, by.rest2, spare)
    add(v, spare, v)
    numpy.sqrt(v, spare)
    add(spare, by.eps, spare)
    numpy.divide(m, spare, spare)
    multiply(spare, by.rate, spare)
    if by.kept != 1:
        multiply(p, by.kept, new)
        p = new
    subtract(p, spare, new)


class AdamSettings(NamedTuple):
    """The constants of an ``AdamUpdate``."""

    betas: tuple[float, float]
    eps: float
    weight_decay: float


@functools.lru_cache(16)  # the parameters of a step have the same
def adam_kernel(settings: AdamSettings, lr: float, count: float, dtype: Any) -> Kernel:
    """With the two corrections in the rate and in eps: fewer passes, and the same formula."""
    b1, b2 = settings.betas
    root = math.sqrt(1 - b2**count)
    kept = 1 - lr * settings.weight_decay
    rate = lr * root / (1 - b1**count)
    numbers = (b1, 1 - b1, b2, 1 - b2, rate, settings.eps * root, kept)
    return partial(adam, AdamNumbers(*(numpy.asarray(value, dtype) for value in numbers)))


@dataclass(frozen=True)
class AdamStep:
    """``AdamUpdate`` in a plan: p, g, m, v, lr, count, and where p', m' and v' are written."""

    settings: AdamSettings

    def __call__(self, *arrays: Any) -> None:
        p, g, m, v, lr, count, *written = arrays
        kernel = adam_kernel(self.settings, float(lr), float(count), p.dtype)
        if p.size <= BLOCK:
            kernel((p, g, m, v), tuple(written), (numpy.empty_like(p),))
            return
        inputs = tuple([x.reshape(-1) for x in (p, g, m, v)])
        run(kernel, inputs, tuple([y.reshape(-1) for y in written]), scratch=1)


def settings_of(node: AdamUpdate) -> AdamSettings:
    """A node's constants, which are those of plans and of optimizers."""
    return AdamSettings((node.betas[0], node.betas[1]), node.eps, node.weight_decay)


def adam_update(node: Any, arrays: Arrays) -> Any:
    """``AdamUpdate`` in one pass, to new arrays: the first run of a net."""
    p = arrays[0]
    if p.dtype not in FLOATS or not all(x.flags.c_contiguous for x in arrays):
        return None
    outputs = tuple([numpy.empty(p.shape, p.dtype) for _ in range(3)])
    AdamStep(settings_of(node))(*arrays, *outputs)
    return outputs


KERNELS = {AdamUpdate: Entry("adam_update", 0, adam_update)}


def descend(p: Any, g: Any, lr: Any, out: Any) -> None:
    """p - lr g."""
    multiply(g, lr.astype(g.dtype), out)
    subtract(p, out, out)


def gather(v: Any, g: Any, momentum: Any, out: Any) -> None:
    """momentum v + g."""
    multiply(v, momentum.astype(v.dtype), out)
    add(out, g, out)


Moments: TypeAlias = dict[str, Any]


class Used(NamedTuple):
    """The moments that an update gave for a parameter, and those it read, which nobody needs."""

    given: Moments
    read: Moments


_used: weakref.WeakKeyDictionary[Any, list[Used]] = weakref.WeakKeyDictionary()
"""The moments of each optimizer's last update."""


def _targets(optimizer: Any, steps: Sequence[Step]) -> list[Moments]:
    """Arrays for the next moments: those read by the last update where all are as it left them.

    They are taken: nobody else gets them, whatever happens to this update.
    """
    used = _used.pop(optimizer, [])
    moments = [moments for _, _, moments, _ in steps]
    if len(used) == len(steps) and all(
        now[name] is array
        for now, last in zip(moments, used, strict=True)
        for name, array in last.given.items()
    ):
        return [last.read for last in used]
    return [{name: numpy.empty_like(m) for name, m in now.items()} for now in moments]


def update_parameters(optimizer: Any, steps: Sequence[Step]) -> Any:
    """The next arrays and moments of all parameters, or why there is no kernel for them."""
    start = time.perf_counter()
    if type(optimizer) not in (nn.Adam, nn.AdamW):
        return Fallback("no kernel for this class")
    for array, _, moments, _ in steps:
        if array.dtype not in FLOATS:
            return Fallback(f"{array.dtype} has no kernel")
        for x in (array, *moments.values()):
            if not x.flags.c_contiguous:
                return Fallback("an array is not in one piece of memory")
    new = [numpy.empty(array.shape, array.dtype) for array, _, _, _ in steps]
    targets = _targets(optimizer, steps)
    # a gradient that is not in one piece is copied here
    gradients = [grad.reshape(-1) for _, grad, _, _ in steps]
    decay = getattr(optimizer, "weight_decay", 0.0)
    settings = AdamSettings(tuple(optimizer.betas), optimizer.eps, decay)
    for y, g, target, (array, _, moments, count) in zip(
        new, gradients, targets, steps, strict=True
    ):
        kernel = adam_kernel(settings, optimizer.lr, count, array.dtype)
        inputs = (array.reshape(-1), g, *[moments[name].reshape(-1) for name in target])
        outputs = (y.reshape(-1), *[m.reshape(-1) for m in target.values()])
        run(kernel, inputs, outputs, scratch=1)
    seconds = time.perf_counter() - start
    count_use(kernel_uses, ("fast", type(optimizer).__name__, "update_parameters"), seconds)
    _used[optimizer] = [Used(target, step[2]) for target, step in zip(targets, steps, strict=True)]
    return list(zip(new, targets, strict=True))
