"""Seven workloads, from a chain of tiny operations to a transformer block, side by side.

W1 chain of 500 products and 500 sums on (10,), forward and backward, per operation. W2 perceptron
784-256-256-10 with Adam, one step, batch 64 and 1,024. W3 convolutional net with SGD, one step,
batch 64. W4 transformer block, forward and backward. W5 ``sum(tanh(x) * sigmoid(x) + x * x)`` on
10^7 elements, value and gradient. W6 chain of 100,000 additions. W7 third derivative of
``sin(x) * exp(x)``, and a Hessian-vector product of a perceptron 64-64-10. All in float32.

tinynode runs on ``numpy``, on ``fast``, and compiled on ``fast``. Everybody's results are compared
with a float64 reference by hand before anything is timed; then the libraries take turns in one
process. Beside the time on the clock stands that of the processor, all threads together, which
other programs on the machine disturb less. Each number of threads has a process of its own.

    python -m benchmarks.workloads
    python -m benchmarks.workloads --only W1 W5 --threads 1 2 --rounds 30 --json results.json
    python -m benchmarks.workloads --only W2 --libraries torch,torch.compile
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# for NumPy and what else is imported below: in this process, so many threads
os.environ["OMP_NUM_THREADS"] = os.environ.get("BENCHMARK_THREADS", "1")
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"]  # JAX's own pool
os.environ["JAX_PLATFORMS"] = "cpu"
if os.environ["OMP_NUM_THREADS"] == "1":
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np

from benchmarks import measure, models
from benchmarks.chains import LIBRARIES as CHAINS
from benchmarks.chains import end_gradient, products_and_sums, start_values, sums

THREADS = int(os.environ["OMP_NUM_THREADS"])
PEERS = ("torch", "jax", "autograd", "mygrad", "torch.compile")
TINYNODE = {"numpy device": "numpy", "fast": "fast", "compiled": "fast"}
"""What is measured of tinynode, and on which device."""
BY_HAND = ("by hand", "in blocks by hand")
CALLS = 3  # so many calls are made before results are compared: the third runs a finished plan
LR, BETA1, BETA2, ADAM_EPS = 0.001, 0.9, 0.999, 1e-8
LEAST = 2e-3  # a sample takes so many seconds at least; quick calls are repeated
Run = Callable[[], Any]


def host(x: Any) -> Any:
    """A result of any library as an array of NumPy."""
    if hasattr(x, "detach"):  # PyTorch, tinynode
        x = x.detach()
    array = getattr(x, "array", x)
    return np.asarray(getattr(array, "data", array) if "mygrad" in str(type(x)) else array)


def load_torch() -> Any:
    import torch  # here, as the other libraries: only what is measured is imported

    torch.set_num_threads(THREADS)
    return torch


# --- training: W2, W3, W4 ------------------------------------------------------------------------


def adam_by_hand(p: Any, g: Any, m: Any, v: Any, count: int) -> None:
    """In place."""
    rate = LR * (1 - BETA2**count) ** 0.5 / (1 - BETA1**count)
    m *= BETA1
    m += (1 - BETA1) * g
    v *= BETA2
    v += (1 - BETA2) * g * g
    p -= rate * m / (np.sqrt(v) + ADAM_EPS * (1 - BETA2**count) ** 0.5)


class Training:
    """A model in each library. A step gives the loss, and the new parameters or the gradients.

    Args:
        model: one of ``models``.
        optimizer: "Adam", "SGD", or "" for no update: then a step gives the gradients.
    """

    def __init__(self, model: Any, optimizer: str, known: Sequence[str]) -> None:
        self.model, self.optimizer, self.known = model, optimizer, known

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        if self.optimizer == "Adam":  # where a gradient is nearly 0, it divides noise by noise
            return 1e-4, LR
        if self.optimizer:
            return 1e-4, LR / 100
        return 1e-4, 1e-5 * float(np.abs(wanted).max(initial=0))

    def by_hand(self, dtype: Any = np.float32) -> Run:
        p = {name: array.astype(dtype) for name, array in self.model.parameters().items()}
        floats = [x.astype(dtype) if x.dtype.kind == "f" else x for x in self.model.data()]
        moments = {name: (np.zeros_like(a), np.zeros_like(a)) for name, a in p.items()}
        count = 0

        def step() -> Any:
            nonlocal count
            count += 1
            loss, gradients = self.model.by_hand(p, *floats)
            if not self.optimizer:
                return [loss, *[gradients[name] for name in p]]
            for name, array in p.items():
                if self.optimizer == "SGD":
                    array -= LR * gradients[name]
                else:
                    adam_by_hand(array, gradients[name], *moments[name], count)
            return [loss, *p.values()]

        return step

    def reference(self) -> Run:
        return self.by_hand(np.float64)

    def tinynode(self, compiled: bool) -> Run:
        import tinynode as tn

        ops = models.TinynodeOps(tn.functions)
        p = {n: tn.nn.Parameter(a, name=n) for n, a in self.model.parameters().items()}
        data = [tn.asarray(x, requires_grad=False) for x in self.model.data()]
        parameters = list(p.values())

        def loss_of(*batch: Any) -> Any:
            return self.model.loss(ops, p, *batch)

        function = tn.compile(loss_of) if compiled else loss_of
        optimizer = getattr(tn.nn, self.optimizer)(parameters, lr=LR) if self.optimizer else None

        def step() -> Any:
            for parameter in parameters:
                parameter.cleargrad()
            loss = function(*data)
            loss.backward()
            if optimizer is None:
                return [loss, *[parameter.grad for parameter in parameters]]
            optimizer.update()
            return [loss, *parameters]

        return step

    def torch(self, compiled: bool = False) -> Run:
        torch = load_torch()
        ops = models.TorchOps(torch)
        p = {n: torch.from_numpy(a).requires_grad_() for n, a in self.model.parameters().items()}
        data = [torch.from_numpy(x) for x in self.model.data()]
        parameters = list(p.values())

        def loss_of(*batch: Any) -> Any:
            return self.model.loss(ops, p, *batch)

        function = torch.compile(loss_of) if compiled else loss_of
        kind = getattr(torch.optim, self.optimizer, None)
        optimizer = kind(parameters, lr=LR, fused=True) if kind else None

        def step() -> Any:
            for parameter in parameters:
                parameter.grad = None
            loss = function(*data)
            loss.backward()
            if optimizer is None:
                return [loss, *[parameter.grad for parameter in parameters]]
            optimizer.step()
            return [loss, *parameters]

        return step

    def jax(self) -> Run:
        """The whole step under ``jit``, its state given up."""
        import jax

        ops = models.JaxOps(jax)
        value_and_grad = jax.value_and_grad(lambda p, *batch: self.model.loss(ops, p, *batch))
        p = {n: jax.numpy.asarray(a) for n, a in self.model.parameters().items()}
        data = [jax.numpy.asarray(x) for x in self.model.data()]
        zeros = {n: jax.numpy.zeros_like(a) for n, a in p.items()}
        if not self.optimizer:
            gradients = jax.jit(value_and_grad)

            def backward() -> Any:
                loss, found = jax.block_until_ready(gradients(p, *data))
                return [loss, *[found[name] for name in p]]

            return backward

        def update(state: Any, *batch: Any) -> Any:
            p, m, v, count = state
            loss, g = value_and_grad(p, *batch)
            if self.optimizer == "SGD":
                return loss, ({n: p[n] - LR * g[n] for n in p}, m, v, count)
            count = count + 1
            m = {n: BETA1 * m[n] + (1 - BETA1) * g[n] for n in p}
            v = {n: BETA2 * v[n] + (1 - BETA2) * g[n] * g[n] for n in p}
            rest1, rest2 = 1 - BETA1**count, 1 - BETA2**count
            root = jax.numpy.sqrt
            p = {n: p[n] - LR * (m[n] / rest1) / (root(v[n] / rest2) + ADAM_EPS) for n in p}
            return loss, (p, m, v, count)

        compiled = jax.jit(update)
        state = (p, zeros, zeros, jax.numpy.float32(0))

        def step() -> Any:
            nonlocal state
            loss, state = jax.block_until_ready(compiled(state, *data))
            return [loss, *[state[0][name] for name in p]]

        return step

    def autograd(self) -> Run:
        import autograd
        import autograd.numpy

        ops, data = models.NumPyLikeOps(autograd.numpy), self.model.data()
        p = self.model.parameters()
        gradients = autograd.value_and_grad(lambda p: self.model.loss(ops, p, *data))
        moments = {name: (np.zeros_like(a), np.zeros_like(a)) for name, a in p.items()}
        count = 0

        def step() -> Any:
            nonlocal count
            count += 1
            loss, found = gradients(p)
            for name, array in p.items():
                adam_by_hand(array, found[name], *moments[name], count)
            return [loss, *p.values()]

        return step

    def mygrad(self) -> Run:
        import mygrad
        import mygrad.nnet

        ops, data = models.MyGradOps(mygrad, mygrad.nnet), self.model.data()
        arrays = self.model.parameters()
        moments = {name: (np.zeros_like(a), np.zeros_like(a)) for name, a in arrays.items()}
        count = 0

        def step() -> Any:
            nonlocal count
            count += 1
            p = {name: mygrad.tensor(array, copy=False) for name, array in arrays.items()}
            loss = self.model.loss(ops, p, *data)
            loss.backward()
            for name, array in arrays.items():
                array.flags.writeable = True
                adam_by_hand(array, p[name].grad, *moments[name], count)
            return [loss, *arrays.values()]

        return step


# --- chains: W1, W6 ------------------------------------------------------------------------------


class Chain:
    """A chain of small operations: ``y``'s gradients, for x, w and b."""

    def __init__(self, chain: Any, operations: int, known: Sequence[str]) -> None:
        self.chain, self.operations, self.known = chain, operations, known

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        return 1e-4, 1e-6

    def reference(self) -> Run:
        x, w, b = (array.astype(np.float64) for array in start_values())

        def run() -> Any:
            if self.chain is sums:
                ones = np.ones(10)
                return [ones, None, ones * self.operations]
            library = CHAINS["numpy"]()
            y = library.forward(self.chain, (x, w, b), self.operations)
            return library.backward(y, np.ones(10))

        return run

    def _of(self, library: Any) -> Run:
        start, gradient = start_values(), end_gradient()

        def run() -> Any:
            return library.backward(library.forward(self.chain, start, self.operations), gradient)

        return run

    def by_hand(self) -> Run:
        return self._of(CHAINS["numpy"]())

    def tinynode(self, compiled: bool) -> Run:
        library = CHAINS["tinynode"]()
        if not compiled:
            return self._of(library)
        import tinynode

        function = tinynode.compile(self.chain)
        start, gradient = start_values(), end_gradient()

        def run() -> Any:
            return library.backward(library.forward(function, start, self.operations), gradient)

        return run

    def torch(self) -> Run:
        load_torch()
        return self._of(CHAINS["torch"]())

    def autograd(self) -> Run:
        return self._of(CHAINS["autograd"]())

    def mygrad(self) -> Run:
        return self._of(CHAINS["mygrad"]())

    def jax(self) -> Run:
        import jax

        def gradients(x: Any, w: Any, b: Any, gy: Any) -> Any:
            return jax.vjp(lambda *p: self.chain(*p, self.operations), x, w, b)[1](gy)

        compiled = jax.jit(gradients)
        start, gradient = start_values(), end_gradient()

        def run() -> Any:
            return jax.block_until_ready(compiled(*start, gradient))

        return run


# --- one large formula: W5 -----------------------------------------------------------------------


class Formula:
    """``sum(tanh(x) * sigmoid(x) + x * x)``: value and gradient."""

    known = (*TINYNODE, *BY_HAND, *PEERS)

    def __init__(self, size: int) -> None:
        self.x = np.random.default_rng(0).standard_normal(size, dtype=np.float32)

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        return 1e-4, 1e-5

    def by_hand(self, dtype: Any = np.float32) -> Run:
        x = self.x.astype(dtype, copy=False)

        def run() -> Any:
            t, s = np.tanh(x), 1 / (1 + np.exp(-x))
            return (t * s + x * x).sum(), (1 - t * t) * s + t * s * (1 - s) + 2 * x

        return run

    def reference(self) -> Run:
        return self.by_hand(np.float64)

    def in_blocks_by_hand(self) -> Run:
        """Blocks of 16,384 elements, everything with ``out``."""
        x, block = self.x, 1 << 14
        t, s, u = (np.empty(block, x.dtype) for _ in range(3))

        def run() -> Any:
            gradient, total = np.empty_like(x), 0.0
            for low in range(0, len(x), block):
                part, g = x[low : low + block], gradient[low : low + block]
                n = len(part)
                total += float(_one_block(part, g, t[:n], s[:n], u[:n]))
            return total, gradient

        return run

    def tinynode(self, compiled: bool) -> Run:
        import tinynode as tn

        f = tn.functions
        x = tn.Variable(self.x)

        def formula(x: Any) -> Any:
            return f.sum(f.tanh(x) * f.sigmoid(x) + x * x)

        function = tn.value_and_grad(formula)
        function = tn.compile(function) if compiled else function
        return lambda: function(x)

    def torch(self, compiled: bool = False) -> Run:
        torch = load_torch()
        x = torch.from_numpy(self.x).requires_grad_()

        def formula(x: Any) -> Any:
            return torch.sum(torch.tanh(x) * torch.sigmoid(x) + x * x)

        function = torch.compile(formula) if compiled else formula

        def run() -> Any:
            x.grad = None
            y = function(x)
            y.backward()
            return y, x.grad

        return run

    def jax(self) -> Run:
        import jax

        def formula(x: Any) -> Any:
            return jax.numpy.sum(jax.numpy.tanh(x) * jax.nn.sigmoid(x) + x * x)

        function, x = jax.jit(jax.value_and_grad(formula)), jax.numpy.asarray(self.x)
        return lambda: jax.block_until_ready(function(x))

    def autograd(self) -> Run:
        import autograd
        import autograd.numpy as anp

        def formula(x: Any) -> Any:
            return anp.sum(anp.tanh(x) * (1 / (1 + anp.exp(-x))) + x * x)

        function = autograd.value_and_grad(formula)
        return lambda: function(self.x)

    def mygrad(self) -> Run:
        import mygrad
        from mygrad.nnet.activations import sigmoid

        def run() -> Any:
            x = mygrad.tensor(self.x, copy=False)
            y = mygrad.sum(mygrad.tanh(x) * sigmoid(x) + x * x)
            y.backward()
            return y, x.grad

        return run


def _one_block(x: Any, g: Any, t: Any, s: Any, u: Any) -> Any:
    """g = dy/dx; gives the block's part of y. t, s and u are scratch."""
    np.negative(x, s)
    np.exp(s, s)
    np.add(s, np.float32(1), s)
    np.reciprocal(s, s)
    np.tanh(x, t)
    np.multiply(t, s, u)  # u = t s
    np.multiply(x, x, g)
    np.add(g, u, g)
    total = g.sum(dtype=np.float32)
    np.multiply(t, u, g)
    np.subtract(s, g, g)  # (1 - t t) s
    np.multiply(u, s, s)
    np.subtract(u, s, u)  # t s (1 - s)
    np.add(g, u, g)
    np.multiply(x, np.float32(2), u)
    np.add(g, u, g)
    return total


# --- higher derivatives: W7 ----------------------------------------------------------------------


class Third:
    """The third derivative of ``sin(x) * exp(x)``, element by element."""

    known = (*TINYNODE, "torch", "jax", "autograd")

    def __init__(self, size: int) -> None:
        self.x = np.linspace(-2, 2, size, dtype=np.float32)

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        return 1e-4, 1e-5

    def reference(self) -> Run:
        x = self.x.astype(np.float64)
        return lambda: [2 * np.exp(x) * (np.cos(x) - np.sin(x))]

    def tinynode(self, compiled: bool) -> Run:
        import tinynode as tn

        f, x = tn.functions, tn.Variable(self.x)

        def third(x: Any) -> Any:
            y = f.sin(x) * f.exp(x)
            for order in (1, 2, 3):
                again = order < 3
                (y,) = tn.grad([f.sum(y)], [x], enable_double_backprop=again)
            return y

        function = tn.compile(third) if compiled else third
        return lambda: [function(x)]

    def torch(self) -> Run:
        torch = load_torch()
        x = torch.from_numpy(self.x).requires_grad_()

        def run() -> Any:
            y = torch.sin(x) * torch.exp(x)
            for order in (1, 2, 3):
                (y,) = torch.autograd.grad(y.sum(), x, create_graph=order < 3)
            return [y]

        return run

    def jax(self) -> Run:
        import jax

        def f(x: Any) -> Any:
            return jax.numpy.sin(x) * jax.numpy.exp(x)

        function = jax.jit(jax.vmap(jax.grad(jax.grad(jax.grad(f)))))
        x = jax.numpy.asarray(self.x)
        return lambda: [jax.block_until_ready(function(x))]

    def autograd(self) -> Run:
        import autograd
        import autograd.numpy as anp

        def f(x: Any) -> Any:
            return anp.sin(x) * anp.exp(x)

        third = autograd.elementwise_grad(autograd.elementwise_grad(autograd.elementwise_grad(f)))
        return lambda: [third(self.x)]


class HessianVector:
    """The Hessian of a perceptron's loss times a vector: tanh, softmax cross entropy."""

    known = (*TINYNODE, "by hand", "torch", "jax", "autograd")

    def __init__(self, batch: int) -> None:
        rng = np.random.default_rng(0)
        shapes = ((64, 64), (64,), (10, 64), (10,))
        self.p, self.v = (
            [rng.standard_normal(s, dtype=np.float32) * np.float32(0.1) for s in shapes]
            for _ in range(2)
        )
        self.x = rng.standard_normal((batch, 64), dtype=np.float32)
        self.labels = rng.integers(0, 10, batch)

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        return 1e-4, 1e-5

    def loss(self, ops: Any, x: Any, labels: Any, w0: Any, b0: Any, w1: Any, b1: Any) -> Any:
        h = ops.tanh(ops.linear(x, w0, b0))
        return ops.cross_entropy(ops.linear(h, w1, b1), labels)

    def by_hand(self, dtype: Any = np.float32) -> Run:
        """Every line of the gradient, and its derivative along v below it."""
        w0, b0, w1, b1 = (array.astype(dtype) for array in self.p)
        u0, c0, u1, c1 = (array.astype(dtype) for array in self.v)
        x, rows = self.x.astype(dtype), np.arange(len(self.x))

        def run() -> Any:
            h = np.tanh(x @ w0.T + b0)
            slope = 1 - h * h
            dh = slope * (x @ u0.T + c0)
            scores = h @ w1.T + b1
            dscores = dh @ w1.T + h @ u1.T + c1
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            g = e / e.sum(axis=1, keepdims=True)
            dg = g * (dscores - (g * dscores).sum(axis=1, keepdims=True))
            g[rows, self.labels] -= 1
            g /= len(x)
            dg /= len(x)
            back, dback = g @ w1, dg @ w1 + g @ u1
            da = dback * slope - 2 * back * h * dh
            return da.T @ x, da.sum(axis=0), dg.T @ h + g.T @ dh, dg.sum(axis=0)

        return run

    def reference(self) -> Run:
        return self.by_hand(np.float64)

    def tinynode(self, compiled: bool) -> Run:
        import tinynode as tn

        ops = models.TinynodeOps(tn.functions)
        x, labels = (tn.asarray(a, requires_grad=False) for a in (self.x, self.labels))
        p = tuple([tn.Variable(array) for array in self.p])
        v = tuple([tn.asarray(array, requires_grad=False) for array in self.v])

        def product(p: Any, v: Any, x: Any, labels: Any) -> Any:
            return tn.hvp(lambda *p: self.loss(ops, x, labels, *p), p, v)

        function = tn.compile(product) if compiled else product
        return lambda: function(p, v, x, labels)

    def torch(self) -> Run:
        torch = load_torch()
        ops = models.TorchOps(torch)
        x, labels = torch.from_numpy(self.x), torch.from_numpy(self.labels)
        p = [torch.from_numpy(array).requires_grad_() for array in self.p]
        v = [torch.from_numpy(array) for array in self.v]

        def run() -> Any:
            loss = self.loss(ops, x, labels, *p)
            return torch.autograd.grad(torch.autograd.grad(loss, p, create_graph=True), p, v)

        return run

    def jax(self) -> Run:
        import jax

        ops = models.JaxOps(jax)
        asarray = jax.numpy.asarray
        p, v = (tuple([asarray(array) for array in arrays]) for arrays in (self.p, self.v))

        def product(p: Any, v: Any, x: Any, labels: Any) -> Any:
            gradient = jax.grad(lambda p: self.loss(ops, x, labels, *p))
            return jax.jvp(gradient, (p,), (v,))[1]

        function, x, labels = jax.jit(product), asarray(self.x), asarray(self.labels)
        return lambda: jax.block_until_ready(function(p, v, x, labels))

    def autograd(self) -> Run:
        import autograd
        import autograd.numpy as anp

        ops = models.NumPyLikeOps(anp)

        def loss(p: Any) -> Any:
            return self.loss(ops, self.x, self.labels, *p)

        def along(p: Any) -> Any:
            return sum(anp.sum(g * v) for g, v in zip(gradient(p), self.v, strict=True))

        gradient, p = autograd.grad(loss), tuple(self.p)
        product = autograd.grad(along)
        return lambda: product(p)


# --- the list ------------------------------------------------------------------------------------

ALL = (*TINYNODE, "by hand", *PEERS)
CHAINED = (*TINYNODE, "by hand", "torch", "jax", "autograd", "mygrad")
NETS = (*TINYNODE, "by hand", "torch", "jax", "torch.compile")
# no compiled chain of 100,000: recording and planning it would be what is measured
DEEP = ("numpy device", "fast", "torch", "autograd", "mygrad")


def workloads(tiny: bool) -> dict[str, Callable[[], Any]]:
    """What makes each workload; tiny ones have the same shape and take no time."""
    size = 1000 if tiny else 10_000_000
    operations, deep = (10, 20) if tiny else (1000, 100_000)
    sizes = (8, 6, 6, 10) if tiny else (784, 256, 256, 10)
    few, many = (2, 3) if tiny else (64, 1024)
    net = models.ConvNet(2, 12) if tiny else models.ConvNet(64)
    block = models.Block(2, 3, 8, 2) if tiny else models.Block(16)
    return {
        "W1": lambda: Chain(products_and_sums, operations, CHAINED),
        "W2 batch 64": lambda: Training(models.Perceptron(few, sizes), "Adam", ALL),
        "W2 batch 1024": lambda: Training(models.Perceptron(many, sizes), "Adam", ALL),
        "W3": lambda: Training(net, "SGD", NETS),
        "W4": lambda: Training(block, "", NETS),
        "W5": lambda: Formula(size),
        "W6": lambda: Chain(sums, deep, DEEP),
        "W7 third derivative": lambda: Third(10 if tiny else 1000),
        "W7 Hessian-vector": lambda: HessianVector(2 if tiny else 32),
    }


GOALS = [  # workload, which of tinynode, against which library, at most
    ("W1", "compiled", "torch", 0.2),
    ("W2 batch 64", "compiled", "torch", 0.85),
    ("W2 batch 1024", "compiled", "torch", 1.0),
    ("W3", "compiled", "torch", 1.2),
    ("W4", "compiled", "torch", 1.0),
    ("W5", "compiled", "jax", 0.6),
    ("W7 Hessian-vector", "compiled", "torch", 0.5),
    ("W1", "numpy device", "torch", 1.8),
    ("W2 batch 64", "numpy device", "torch", 1.2),
    ("W2 batch 1024", "numpy device", "torch", 1.1),
    ("W3", "numpy device", "torch", 1.5),
    ("W4", "numpy device", "torch", 1.6),
    ("W5", "numpy device", "jax", 2.5),
    ("W6", "numpy device", "torch", 1.6),
    ("W7 Hessian-vector", "numpy device", "torch", 2.0),
]
WEIGHED = ("W2 batch 64", "W2 batch 1024", "W5")
MEMORY_GOAL, COMPILE_GOALS = 0.6, {"W2 batch 64": 50.0, "W4": 1000.0}


def make_run(workload: Any, name: str) -> Run:
    """One of the workload's contestants; called, it runs once and gives the results."""
    if name in TINYNODE:
        with on_device(name):
            run: Run = workload.tinynode(name == "compiled")
            return run
    if name == "torch.compile":
        run = workload.torch(compiled=True)
        return run
    run = getattr(workload, name.replace(" ", "_"))()
    return run


def on_device(name: str) -> Any:
    """The device of one of tinynode's contestants, as a context."""
    if name not in TINYNODE:
        return contextlib.nullcontext()
    import tinynode

    return tinynode.using_device(TINYNODE[name])


def check(workload: Any, runs: dict[str, Run]) -> None:
    """After a few calls, everybody's results are those of the reference."""
    by_reference = workload.reference()
    for _ in range(CALLS):
        wanted = by_reference()
    for name, run in runs.items():
        with on_device(name):
            for _ in range(CALLS):
                results = run()
        for position, (result, right) in enumerate(zip(results, wanted, strict=True)):
            if right is None:
                continue
            rtol, atol = workload.tolerances(right)
            what = f"{name}, result {position}"
            np.testing.assert_allclose(host(result), right, rtol, atol, err_msg=what)
            usual = np.abs(host(result) - right).mean()
            assert usual <= (atol + rtol * np.abs(right).max()) / 20, (what, usual)


# --- measuring, in the process with the right number of threads ----------------------------------


def sample(name: str, run: Run, repeats: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor, for one call."""
    with on_device(name):
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            run()
        end, cpu_end = time.perf_counter(), time.process_time()
    return (end - wall) / repeats, (cpu_end - cpu) / repeats


def repeats_for(name: str, run: Run) -> int:
    once = min(sample(name, run, 1)[0] for _ in range(2))
    return max(1, int(LEAST / once))


def measure_workload(workload: Any, names: Sequence[str], rounds: int) -> dict[str, Any]:
    """For each library the wall and processor seconds of each round."""
    runs = {name: make_run(workload, name) for name in names if name in workload.known}
    check(workload, runs)
    repeats = {name: repeats_for(name, run) for name, run in runs.items()}
    times: dict[str, Any] = {name: {"wall": [], "cpu": []} for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            wall, cpu = sample(name, run, repeats[name])
            times[name]["wall"].append(wall)
            times[name]["cpu"].append(cpu)
    return times


def compile_times(workload: Any, times: int) -> dict[str, list[float]]:
    """Milliseconds that the first call of a compiled function takes longer than later ones."""
    found: dict[str, list[float]] = {"wall": [], "cpu": []}
    for _ in range(times):
        run = make_run(workload, "compiled")
        first = sample("compiled", run, 1)
        later = sample("compiled", run, 3)
        for kind, a, b in zip(found, first, later, strict=True):
            found[kind].append((a - b) * 1e3)
    return found


def measure_all(titles: Sequence[str], names: Sequence[str], options: Any) -> dict[str, Any]:
    made = workloads(options.tiny)
    results: dict[str, Any] = {"load": [os.getloadavg()[0]], "workloads": {}, "compile": {}}
    for title in titles:
        rounds = max(1, min(options.rounds, 3)) if title == "W6" else options.rounds
        results["workloads"][title] = measure_workload(made[title](), names, rounds)
        if title in COMPILE_GOALS:
            results["compile"][title] = compile_times(made[title](), min(options.rounds, 5))
        gc.collect()
    results["load"].append(os.getloadavg()[0])
    return results


STATUS = Path("/proc/self/status")


def peak_bytes(title: str, name: str, tiny: bool) -> int:
    """What a workload needs at its peak, beside its inputs; -1 where the system does not say.

    A tiny one runs before, so that what the library loads does not count.
    """
    workload = workloads(tiny)[title]()
    small = make_run(workloads(True)[title](), name)
    with on_device(name):
        for _ in range(CALLS):
            small()
    del small
    gc.collect()
    if not STATUS.exists():
        return -1
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory_line("VmRSS")
    run = make_run(workload, name)
    with on_device(name):
        for _ in range(CALLS):
            run()
    return memory_line("VmHWM") - before


def memory_line(key: str) -> int:
    """Bytes that Linux counts for this process: VmRSS now, VmHWM at the peak."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


# --- the report ----------------------------------------------------------------------------------


def in_own_process(threads: int, *arguments: str) -> Any:
    os.environ["BENCHMARK_THREADS"] = str(threads)
    return measure.run_python("-m", "benchmarks.workloads", *arguments)


def ratio(times: dict[str, Any], ours: str, theirs: str, kind: str) -> float | None:
    """The median of the ratios round by round; None if one of them was not measured."""
    if ours not in times or theirs not in times:
        return None
    return measure.median_ratio(times[ours][kind], times[theirs][kind])


def text(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def print_workload(title: str, times: dict[str, Any]) -> None:
    unit, scale = "ms", 1e3
    if title == "W1":
        unit, scale = "us per operation", 1e3  # of 1,000 operations
    print(f"\n{title}, {unit}")
    rows = []
    for name, one in times.items():
        row = [name]
        for kind in ("wall", "cpu"):
            row += [f"{statistics.median(one[kind]) * scale:.3g}"]
            row += [f"{min(one[kind]) * scale:.3g}"] if kind == "wall" else []
            row += [text(ratio(times, name, other, kind)) for other in ("torch", "jax")]
        rows.append(row)
    head = ["library", "median", "best", "/ torch", "/ jax", "CPU", "/ torch", "/ jax"]
    measure.print_table(head, rows)


def print_goals(results: dict[str, Any]) -> None:
    rows = []
    for title, ours, theirs, wanted in GOALS:
        times = results["workloads"].get(title, {})
        found = [ratio(times, ours, theirs, kind) for kind in ("wall", "cpu")]
        if found[0] is not None:
            rows.append([f"{title}: {ours} / {theirs}", f"{wanted:.2f}", *map(text, found)])
    if rows:
        print("\nwhere we want to be")
        measure.print_table(["ratio", "at most", "by the clock", "by the processor"], rows)
    for title, found in results["compile"].items():
        print(
            f"compiling {title}: median {statistics.median(found['wall']):.0f} ms, best "
            f"{min(found['wall']):.0f}, processor {statistics.median(found['cpu']):.0f} "
            f"(at most {COMPILE_GOALS[title]:.0f})"
        )


def weigh(titles: Sequence[str], names: Sequence[str], tiny: bool) -> dict[str, dict[str, int]]:
    """Peak bytes of each library in a process of its own."""
    shared = ["--tiny"] if tiny else []
    return {
        title: {
            name: in_own_process(1, "--peak", f"--only={title}", f"--libraries={name}", *shared)
            for name in (*TINYNODE, "torch", "jax")
            if name in names
        }
        for title in titles
        if title in WEIGHED
    }


def print_memory(weights: dict[str, dict[str, int]]) -> None:
    rows = []
    for title, peaks in weights.items():
        base = peaks.get("torch", 0)
        for name, peak in peaks.items():
            share = f"{peak / base:.2f}" if base > 0 and peak >= 0 else "-"
            rows.append([f"{title}: {name}", f"{peak / 1e6:.1f}", share])
    if rows:
        print(f"\npeak memory beside the inputs, MB (compiled / torch at most {MEMORY_GOAL})")
        measure.print_table(["workload", "MB", "/ torch"], rows)


def chosen(only: Sequence[str]) -> list[str]:
    """The titles that start with what was asked for."""
    known = list(workloads(True))
    found = [title for title in known if any(title.startswith(part) for part in only)]
    unknown = [part for part in only if not any(title.startswith(part) for title in known)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
    return found or known


def available(asked_for: str) -> list[str]:
    """Everything of tinynode, by hand, and the peers that are asked for and installed."""
    wanted = [name for name in asked_for.split(",") if name]
    unknown = sorted(set(wanted) - set(PEERS))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(PEERS)}")
    found = []
    for name in wanted:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            print(f"skipped: {name} is not installed (pip install -e '.[peers]')")
        else:
            found.append(name)
    return [*TINYNODE, *BY_HAND, *found]


def report(options: Any) -> dict[str, Any]:
    """Run everything and print it; what is measured, for JSON."""
    titles, names = chosen(options.only), available(options.libraries)
    packages = ["tinynode", "numpy", *(n for n in names if n in PEERS and "." not in n)]
    setting = measure.describe_setting(packages).removesuffix("; one thread")
    everything: dict[str, Any] = {"setting": setting, "threads": {}}
    shared = ["--child", f"--rounds={options.rounds}", f"--libraries={','.join(names)}"]
    shared += ["--tiny"] if options.tiny else []
    for threads in options.threads:
        results = in_own_process(threads, *shared, "--only", *titles)
        everything["threads"][str(threads)] = results
        load = " to ".join(f"{n:.1f}" for n in results["load"])
        print(f"\n{setting}; {threads} thread{'s'[: threads != 1]}; load {load}")
        print(f"medians of {options.rounds} rounds; ratios are medians of those of each round")
        for title, times in results["workloads"].items():
            print_workload(title, times)
        print_goals(results)
    everything["peak bytes"] = weigh(titles, names, options.tiny)
    print_memory(everything["peak bytes"])
    return everything


def parse(arguments: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(description="Workloads W1 to W7, side by side.")
    parser.add_argument("--only", nargs="+", default=[], help="starts of titles, such as W1 W5")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="such as 1 2")
    parser.add_argument("--libraries", default=",".join(PEERS[:-1]), help="compared with tinynode")
    parser.add_argument("--rounds", type=int, default=20, help="medians are over these")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.child:
        names = options.libraries.split(",")
        print(json.dumps(measure_all(chosen(options.only), names, options)))
    elif options.peak:
        print(json.dumps(peak_bytes(options.only[0], options.libraries, options.tiny)))
    else:
        everything = report(options)
        if options.json is not None:
            options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
