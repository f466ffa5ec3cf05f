"""The jobs of ``tools.benchmarks.transforms``, each written once for all libraries.

tinynode, ``torch.func`` and JAX have the same names for the transforms. So a job is a function of
``t``, with the transforms of a library, and ``ops``, with the functions (see
``tools.benchmarks.models``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tools.benchmarks import models

Make = Callable[[Any, Any], Callable[..., Any]]


class Job:
    """A function of arrays, in each library.

    Args:
        make: from the transforms ``t`` and the functions ``ops`` to the measured function.
        arguments: the arguments of the measured function: arrays in NumPy, in tuples and dicts.
        forward: as ``make``, for the function without a transform, of the same arguments. The
            result is the first part of the measured result. Optional.
        loop: as ``make``, for a Python loop with the same result. Optional.
        by_hand: the measured function in plain NumPy. Optional.
    """

    def __init__(
        self,
        make: Make,
        arguments: Any,
        *,
        forward: Make | None = None,
        loop: Make | None = None,
        by_hand: Callable[..., Any] | None = None,
    ) -> None:
        self.make, self.forward, self.loop = make, forward, loop
        self.arguments, self.by_hand = arguments, by_hand


# --- (a) per-example gradients -------------------------------------------------------------------


def perceptron(ops: Any, p: Any, x: Any) -> Any:
    return ops.linear(ops.relu(ops.linear(x, p["w0"], p["b0"])), p["w1"], p["b1"])


def loss_of_one(ops: Any, p: Any, x: Any, label: Any) -> Any:
    return ops.cross_entropy(perceptron(ops, p, x[None]), label[None])


def per_example(t: Any, ops: Any) -> Callable[..., Any]:
    def loss(p: Any, x: Any, label: Any) -> Any:
        return loss_of_one(ops, p, x, label)

    each: Callable[..., Any] = t.vmap(t.grad(loss), (None, 0, 0))
    return each


def per_example_in_a_loop(t: Any, ops: Any) -> Callable[..., Any]:
    def loss(p: Any, x: Any, label: Any) -> Any:
        return loss_of_one(ops, p, x, label)

    gradient = t.grad(loss)

    def each(p: Any, x: Any, labels: Any) -> Any:
        rows = [gradient(p, x[i], labels[i]) for i in range(x.shape[0])]
        return {name: t.stack([row[name] for row in rows]) for name in p}

    return each


def per_example_by_hand(p: Any, x: Any, labels: Any) -> Any:
    h = np.maximum(x @ p["w0"].T + p["b0"], 0)
    scores = h @ p["w1"].T + p["b1"]
    g = np.exp(scores - scores.max(axis=1, keepdims=True))
    g /= g.sum(axis=1, keepdims=True)
    g[np.arange(len(labels)), labels] -= 1
    gh = (g @ p["w1"]) * (h > 0)
    return {
        "w0": gh[:, :, None] * x[:, None, :],
        "b0": gh,
        "w1": g[:, :, None] * h[:, None, :],
        "b1": g,
    }


def per_example_job(batch: int, sizes: tuple[int, int, int]) -> Job:
    n, m, k = sizes
    rng = np.random.default_rng(1)
    p = models.draw({"w0": (m, n), "b0": (m,), "w1": (k, m), "b1": (k,)})
    x = rng.random((batch, n), dtype=np.float32)
    labels = rng.integers(0, k, batch)
    loop = per_example_in_a_loop
    return Job(per_example, (p, x, labels), loop=loop, by_hand=per_example_by_hand)


# --- (b), (c): Jacobians and Hessians ------------------------------------------------------------


def tanh_network(ops: Any, x: Any, p: Any) -> Any:
    return ops.tanh(ops.linear(ops.tanh(ops.linear(x, p["w0"], p["b0"])), p["w1"], p["b1"]))


def jacobian_rev(t: Any, ops: Any) -> Callable[..., Any]:
    rows: Callable[..., Any] = t.jacrev(lambda x, p: tanh_network(ops, x, p))
    return rows


def jacobian_fwd(t: Any, ops: Any) -> Callable[..., Any]:
    columns: Callable[..., Any] = t.jacfwd(lambda x, p: tanh_network(ops, x, p))
    return columns


def hessian(t: Any, ops: Any) -> Callable[..., Any]:
    matrix: Callable[..., Any] = t.hessian(lambda x, p: ops.sum(tanh_network(ops, x, p)))
    return matrix


def square_job(make: Make, n: int) -> Job:
    p = models.draw({"w0": (n, n), "b0": (n,), "w1": (n, n), "b1": (n,)})
    return Job(make, (np.random.default_rng(1).standard_normal(n, dtype=np.float32), p))


# --- (d) Hessian-vector products -----------------------------------------------------------------


def hessian_vector_job(batch: int) -> Job:
    of = models.HessianVector(batch)

    def product(t: Any, ops: Any) -> Callable[..., Any]:
        def along(p: Any, v: Any, x: Any, labels: Any) -> Any:
            return t.hvp(lambda *p: of.loss(ops, x, labels, *p), p, v)

        return along

    return Job(product, (tuple(of.p), tuple(of.v), of.x, of.labels))


# --- (e) forward mode ----------------------------------------------------------------------------


def forward_mode_job(f: Callable[..., Any], p: Any, x: Any, *data: Any) -> Job:
    """The jvp of ``f(ops, p, x, *data)`` along a direction of x."""

    def tangent(t: Any, ops: Any) -> Callable[..., Any]:
        def both(p: Any, x: Any, v: Any, *data: Any) -> Any:
            return t.jvp(lambda x: f(ops, p, x, *data), (x,), (v,))

        return both

    def value(t: Any, ops: Any) -> Callable[..., Any]:
        return lambda p, x, v, *data: (f(ops, p, x, *data),)

    v = np.random.default_rng(3).standard_normal(x.shape, dtype=np.float32)
    return Job(tangent, (p, x, v, *data), forward=value)


def forward_mode_of_model(model: Any) -> Job:
    return forward_mode_job(model.loss, model.parameters(), *model.data())


def forward_mode_of_block(model: models.Block) -> Job:
    p = model.parameters()
    return forward_mode_job(model.output, p, p.pop("x"))


def jobs(tiny: bool) -> dict[str, Callable[[], Job]]:
    """The makers of the jobs; tiny jobs have the same structure and take no time."""
    batch = 3 if tiny else 64
    small, large = ((4, 5, 3), (6, 5, 3)) if tiny else ((64, 64, 10), (784, 100, 10))
    square, variables = (3, 3) if tiny else (30, 50)
    layers = (8, 6, 6, 10) if tiny else (784, 256, 256, 10)
    net = models.ConvNet(2, 12) if tiny else models.ConvNet(64)
    block = models.Block(2, 3, 8, 2) if tiny else models.Block(16)
    return {
        "gradients 64-64-10": lambda: per_example_job(batch, small),
        "gradients 784-100-10": lambda: per_example_job(batch, large),
        "jacrev": lambda: square_job(jacobian_rev, square),
        "jacfwd": lambda: square_job(jacobian_fwd, square),
        "hessian": lambda: square_job(hessian, variables),
        "hvp": lambda: hessian_vector_job(2 if tiny else 32),
        "jvp perceptron": lambda: forward_mode_of_model(models.Perceptron(batch, layers)),
        "jvp convolution": lambda: forward_mode_of_model(net),
        "jvp transformer": lambda: forward_mode_of_block(block),
    }


# --- the libraries: transforms, functions, and arrays --------------------------------------------


class Tinynode:
    """tinynode on the current device, eager or compiled."""

    def __init__(self, compiled: bool) -> None:
        import tinynode as tn

        self.tn, self.compiled = tn, compiled
        self.ops = models.TinynodeOps(tn.functions)
        self.grad, self.vmap, self.jvp, self.hvp = tn.gradient, tn.vmap, tn.jvp, tn.hvp
        self.jacrev, self.jacfwd, self.hessian = tn.jacrev, tn.jacfwd, tn.hessian
        self.stack = tn.functions.stack

    def array(self, x: Any) -> Any:
        return self.tn.asarray(x, requires_grad=False)

    def ready(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as measured."""
        return self.tn.compile(function) if self.compiled else function


class TorchOps(models.TorchOps):
    """PyTorch's own attention has no forward mode on a CPU."""

    def __init__(self, torch: Any) -> None:
        super().__init__(torch)
        self.torch = torch

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(2, 3) * (1 / math.sqrt(q.shape[-1]))
        hidden = self.torch.ones(q.shape[2], k.shape[2], dtype=self.torch.bool).triu(1)
        return self.functional.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v


class Torch:
    """PyTorch's ``torch.func``."""

    def __init__(self) -> None:
        torch = models.load_torch()
        func = torch.func
        self.ops = TorchOps(torch)
        self.grad, self.vmap, self.jvp = func.grad, func.vmap, func.jvp
        self.jacrev, self.jacfwd, self.hessian = func.jacrev, func.jacfwd, func.hessian
        self.array, self.stack = torch.from_numpy, torch.stack

    def hvp(self, f: Any, p: Any, v: Any) -> Any:
        return self.jvp(self.grad(f, argnums=tuple(range(len(p)))), p, v)[1]

    def ready(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class JAX:
    """JAX with or without ``jit``."""

    def __init__(self, jitted: bool) -> None:
        import jax

        self.jax, self.jitted = jax, jitted
        self.ops = models.JaxOps(jax)
        self.grad, self.vmap, self.jvp = jax.grad, jax.vmap, jax.jvp
        self.jacrev, self.jacfwd, self.hessian = jax.jacrev, jax.jacfwd, jax.hessian
        self.array, self.stack = jax.numpy.asarray, jax.numpy.stack

    def hvp(self, f: Any, p: Any, v: Any) -> Any:
        return self.jvp(self.grad(f, argnums=tuple(range(len(p)))), p, v)[1]

    def ready(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function = self.jax.jit(function) if self.jitted else function
        return lambda *args: self.jax.block_until_ready(function(*args))
