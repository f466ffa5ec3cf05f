"""The workloads, in each library.

Models are written once. A model has parameters by name, a batch, and the loss as a function of
both; ``ops`` are the functions of a library under the same names. ``by_hand`` is the loss and the
gradients in plain NumPy, in the dtype of the parameters. In float64 ``by_hand`` is the reference.

A workload has a method for each library. The method returns a function for a single run with
results. ``reference`` is the same in float64 by hand. ``tolerances`` are relative and absolute
tolerances for results in float32. ``tools.benchmarks.workloads`` runs the workloads;
``tools.benchmarks.backends`` runs the training steps.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tools.benchmarks.chains import LIBRARIES as CHAINS
from tools.benchmarks.chains import end_gradient, start_values, sums

Arrays = dict[str, Any]
Run = Callable[[], Any]
CUBIC, ROOT = 0.044715, math.sqrt(2 / math.pi)  # of the GELU with tanh
EPS = 1e-5  # of layer_norm
LR, BETA1, BETA2, ADAM_EPS = 0.001, 0.9, 0.999, 1e-8


def draw(shapes: dict[str, tuple[int, ...]]) -> Arrays:
    """Random weights for shapes of two axes or more; zeros for biases, ones for gammas."""
    rng = np.random.default_rng(0)
    arrays: Arrays = {}
    for name, shape in shapes.items():
        if name.startswith("gamma"):
            arrays[name] = np.ones(shape, np.float32)
        elif len(shape) == 1:
            arrays[name] = np.zeros(shape, np.float32)
        else:
            scale = (1 / np.prod(shape[1:])) ** 0.5
            arrays[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return arrays


class Perceptron:
    """W2: 784-256-256-10, relu, softmax cross entropy."""

    def __init__(self, batch: int, sizes: tuple[int, ...] = (784, 256, 256, 10)) -> None:
        self.batch, self.sizes = batch, sizes

    def parameters(self) -> Arrays:
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (n, m) in enumerate(itertools.pairwise(self.sizes)):
            shapes |= {f"w{i}": (m, n), f"b{i}": (m,)}
        return draw(shapes)

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        images = rng.random((self.batch, self.sizes[0]), dtype=np.float32)
        return images, rng.integers(0, self.sizes[-1], self.batch)

    def loss(self, ops: Any, p: Any, x: Any, labels: Any) -> Any:
        x = ops.relu(ops.linear(x, p["w0"], p["b0"]))
        x = ops.relu(ops.linear(x, p["w1"], p["b1"]))
        return ops.cross_entropy(ops.linear(x, p["w2"], p["b2"]), labels)

    def by_hand(self, p: Arrays, x: Any, labels: Any) -> tuple[Any, Arrays]:
        h0 = np.maximum(x @ p["w0"].T + p["b0"], 0)
        h1 = np.maximum(h0 @ p["w1"].T + p["b1"], 0)
        loss, g2 = cross_entropy_by_hand(h1 @ p["w2"].T + p["b2"], labels)
        g1 = (g2 @ p["w2"]) * (h1 > 0)
        g0 = (g1 @ p["w1"]) * (h0 > 0)
        gradients = {"w0": g0.T @ x, "w1": g1.T @ h0, "w2": g2.T @ h1}
        for i, g in enumerate((g0, g1, g2)):
            gradients[f"b{i}"] = g.sum(axis=0)
        return loss, gradients


class ConvNet:
    """W3: conv 3x3x16, relu, pool, conv 3x3x32, relu, pool, linear 10; images of 28 by 28."""

    def __init__(self, batch: int, side: int = 28) -> None:
        self.batch, self.side = batch, side
        self.left = ((side - 2) // 2 - 2) // 2  # rows and columns after both

    def parameters(self) -> Arrays:
        shapes = {"w0": (16, 1, 3, 3), "b0": (16,), "w1": (32, 16, 3, 3), "b1": (32,)}
        return draw(shapes | {"w2": (10, 32 * self.left**2), "b2": (10,)})

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        images = rng.random((self.batch, 1, self.side, self.side), dtype=np.float32)
        return images, rng.integers(0, 10, self.batch)

    def loss(self, ops: Any, p: Any, x: Any, labels: Any) -> Any:
        x = ops.max_pool2d(ops.relu(ops.conv2d(x, p["w0"], p["b0"])), 2)
        x = ops.max_pool2d(ops.relu(ops.conv2d(x, p["w1"], p["b1"])), 2)
        x = ops.reshape(x, (self.batch, -1))
        return ops.cross_entropy(ops.linear(x, p["w2"], p["b2"]), labels)

    def by_hand(self, p: Arrays, x: Any, labels: Any) -> tuple[Any, Arrays]:
        """With the channels last; the columns of both convolutions are kept."""
        columns0, y0 = convolution_by_hand(x.transpose(0, 2, 3, 1), p["w0"], p["b0"])
        h0, won0 = pool_by_hand(np.maximum(y0, 0))
        columns1, y1 = convolution_by_hand(h0, p["w1"], p["b1"])
        h1, won1 = pool_by_hand(np.maximum(y1, 0))
        flat = h1.transpose(0, 3, 1, 2).reshape(self.batch, -1)
        loss, g2 = cross_entropy_by_hand(flat @ p["w2"].T + p["b2"], labels)
        gh1 = (g2 @ p["w2"]).reshape(self.batch, 32, self.left, self.left).transpose(0, 2, 3, 1)
        g1 = unpool_by_hand(gh1, won1, y1.shape) * (y1 > 0)
        gw1, gb1 = weight_gradient_by_hand(columns1, g1, p["w1"])
        g0 = unpool_by_hand(input_gradient_by_hand(g1, p["w1"]), won0, y0.shape) * (y0 > 0)
        gw0, gb0 = weight_gradient_by_hand(columns0, g0, p["w0"])
        gradients = {"w0": gw0, "b0": gb0, "w1": gw1, "b1": gb1}
        return loss, gradients | {"w2": g2.T @ flat, "b2": g2.sum(axis=0)}


class Block:
    """W4: a transformer block, norms first, causal attention, GELU; the loss is sum(y * target).

    The input ``x`` is among the parameters: in a network, ``x`` needs a gradient.
    """

    def __init__(self, batch: int, length: int = 64, width: int = 128, heads: int = 4) -> None:
        self.batch, self.length, self.width, self.heads = batch, length, width, heads

    def parameters(self) -> Arrays:
        w = self.width
        shapes: dict[str, tuple[int, ...]] = {
            "qkv": (3 * w, w),
            "out": (w, w),
            "up": (4 * w, w),
            "down": (w, 4 * w),
        }
        shapes |= {f"b_{name}": (shape[0],) for name, shape in shapes.items()}
        for i in (0, 1):
            shapes |= {f"gamma{i}": (w,), f"beta{i}": (w,)}
        rng = np.random.default_rng(2)
        x = rng.standard_normal((self.batch, self.length, w), dtype=np.float32)
        return draw(shapes) | {"x": x}

    def data(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(1)
        return (rng.standard_normal((self.batch, self.length, self.width), dtype=np.float32),)

    def loss(self, ops: Any, p: Any, target: Any) -> Any:
        return ops.sum(self.output(ops, p, p["x"]) * target)

    def output(self, ops: Any, p: Any, x: Any) -> Any:
        x = x + self.attention(ops, p, ops.layer_norm(x, p["gamma0"], p["beta0"]))
        h = ops.layer_norm(x, p["gamma1"], p["beta1"])
        h = self.gelu(ops, ops.linear(h, p["up"], p["b_up"]))
        return x + ops.linear(h, p["down"], p["b_down"])

    def gelu(self, ops: Any, x: Any) -> Any:
        return ops.gelu(x)

    def attention(self, ops: Any, p: Any, x: Any) -> Any:
        size = self.width // self.heads
        heads = ops.linear(x, p["qkv"], p["b_qkv"])
        heads = ops.reshape(heads, (self.batch, self.length, 3, self.heads, size))
        q, k, v = ops.unstack(ops.permute(heads, (2, 0, 3, 1, 4)))
        y = ops.permute(ops.attention(q, k, v), (0, 2, 1, 3))
        return ops.linear(
            ops.reshape(y, (self.batch, self.length, self.width)), p["out"], p["b_out"]
        )

    def by_hand(self, p: Arrays, target: Any) -> tuple[Any, Arrays]:
        """The plain derivation; matrices of (batch * length) rows."""
        w, x, g = self.width, p["x"].reshape(-1, self.width), target.reshape(-1, self.width)
        n0, norm0 = norm_by_hand(x, p["gamma0"], p["beta0"])
        q, k, v = self.heads_of(n0 @ p["qkv"].T + p["b_qkv"])
        scale = q.dtype.type(1 / math.sqrt(w // self.heads))
        q = q * scale
        scores = q @ k.swapaxes(2, 3)
        scores[..., ~np.tri(self.length, dtype=bool)] = -np.inf
        scores -= scores.max(axis=3, keepdims=True)
        a = np.exp(scores, out=scores)
        a /= a.sum(axis=3, keepdims=True)
        o = (a @ v).transpose(0, 2, 1, 3).reshape(-1, w)
        x1 = x + o @ p["out"].T + p["b_out"]
        n1, norm1 = norm_by_hand(x1, p["gamma1"], p["beta1"])
        h = n1 @ p["up"].T + p["b_up"]
        t = np.tanh(ROOT * (h + CUBIC * h * h * h))
        y = 0.5 * h * (1 + t)
        loss = ((x1 + y @ p["down"].T + p["b_down"]) * g).sum()
        slope = 0.5 * (1 + t) + (0.5 * ROOT) * h * (1 - t * t) * (1 + (3 * CUBIC) * h * h)
        gh = (g @ p["down"]) * slope
        grads = {"down": g.T @ y, "b_down": g.sum(0), "up": gh.T @ n1, "b_up": gh.sum(0)}
        gx1, grads["gamma1"], grads["beta1"] = norm_gradient_by_hand(
            gh @ p["up"], norm1, p["gamma1"]
        )
        gx1 += g
        grads |= {"out": gx1.T @ o, "b_out": gx1.sum(0)}
        go = (gx1 @ p["out"]).reshape(self.batch, self.length, self.heads, -1).swapaxes(1, 2)
        ga = go @ v.swapaxes(2, 3)
        gs = a * (ga - (ga * a).sum(axis=3, keepdims=True))
        gq, gk, gv = (gs @ k) * scale, gs.swapaxes(2, 3) @ q, a.swapaxes(2, 3) @ go
        gqkv = np.stack([gq, gk, gv]).transpose(1, 3, 0, 2, 4).reshape(-1, 3 * w)
        grads |= {"qkv": gqkv.T @ n0, "b_qkv": gqkv.sum(0)}
        gx, grads["gamma0"], grads["beta0"] = norm_gradient_by_hand(
            gqkv @ p["qkv"], norm0, p["gamma0"]
        )
        return loss, grads | {"x": (gx + gx1).reshape(p["x"].shape)}

    def heads_of(self, qkv: Any) -> Any:
        shape = (self.batch, self.length, 3, self.heads, self.width // self.heads)
        return qkv.reshape(shape).transpose(2, 0, 3, 1, 4)


# --- by hand -------------------------------------------------------------------------------------


def cross_entropy_by_hand(scores: Any, labels: Any) -> tuple[Any, Any]:
    """The mean loss, and the gradient of the scores."""
    log_p = scores - scores.max(axis=1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    g = np.exp(log_p)
    g[rows, labels] -= 1
    g /= len(labels)
    return -log_p[rows, labels].mean(), g


def convolution_by_hand(x: Any, w: Any, b: Any) -> tuple[Any, Any]:
    """Columns (n oh ow, c 3 3) of x (n, height, width, c), and the output with channels last."""
    windows = sliding_window_view(x, (3, 3), (1, 2))
    columns = windows.reshape(-1, w[0].size)
    return columns, (columns @ w.reshape(len(w), -1).T + b).reshape(*windows.shape[:3], len(w))


def weight_gradient_by_hand(columns: Any, g: Any, w: Any) -> tuple[Any, Any]:
    matrix = g.reshape(-1, len(w))
    return (matrix.T @ columns).reshape(w.shape), matrix.sum(axis=0)


def input_gradient_by_hand(g: Any, w: Any) -> Any:
    """Each element of the window adds a part."""
    n, rows, columns, _ = g.shape
    gx = np.zeros((n, rows + 2, columns + 2, w.shape[1]), g.dtype)
    for i, j in itertools.product(range(3), range(3)):
        gx[:, i : i + rows, j : j + columns] += g @ w[:, :, i, j]
    return gx


def pool_by_hand(x: Any) -> tuple[Any, Any]:
    """The largest of 2 by 2, channels last, and its index among the four."""
    n, rows, columns, c = x.shape
    cut = x[:, : rows // 2 * 2, : columns // 2 * 2]
    parts = cut.reshape(n, rows // 2, 2, columns // 2, 2, c)
    four = parts.transpose(2, 4, 0, 1, 3, 5).reshape(4, n, rows // 2, columns // 2, c)
    return four.max(axis=0), four.argmax(axis=0)


def unpool_by_hand(g: Any, won: Any, shape: tuple[int, ...]) -> Any:
    gx = np.zeros(shape, g.dtype)
    rows, columns = shape[1] // 2 * 2, shape[2] // 2 * 2
    for number in range(4):
        gx[:, number // 2 : rows : 2, number % 2 : columns : 2] = g * (won == number)
    return gx


def norm_by_hand(x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
    """layer_norm of rows, with x normalised, and the factor of x."""
    centred = x - x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPS)
    centred *= r
    return centred * gamma + beta, (centred, r)


def norm_gradient_by_hand(g: Any, norm: Any, gamma: Any) -> tuple[Any, Any, Any]:
    y, r = norm
    gy = g * gamma
    shift = gy.mean(axis=1, keepdims=True) + y * (gy * y).mean(axis=1, keepdims=True)
    return r * (gy - shift), (g * y).sum(axis=0), g.sum(axis=0)


# --- the libraries' functions, under the names of the models -------------------------------------


class TinynodeOps:
    def __init__(self, functions: Any) -> None:
        self.linear, self.relu, self.conv2d = functions.linear, functions.relu, functions.conv2d
        self.max_pool2d, self.reshape = functions.max_pool2d, functions.reshape
        self.layer_norm, self.permute = functions.layer_norm, functions.permute_dims
        self.unstack, self.sum, self.tanh = functions.unstack, functions.sum, functions.tanh
        self.cross_entropy = functions.softmax_cross_entropy
        self.squared_error, self.exact_gelu = functions.mean_squared_error, functions.gelu
        self.functions = functions

    def gelu(self, x: Any) -> Any:
        return self.functions.gelu(x, approximate=True)

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.functions.scaled_dot_product_attention(q, k, v, causal=True)


class TorchOps:
    def __init__(self, torch: Any) -> None:
        functional = torch.nn.functional
        self.linear, self.relu, self.conv2d = functional.linear, torch.relu, functional.conv2d
        self.max_pool2d, self.reshape = functional.max_pool2d, torch.reshape
        self.unstack, self.permute, self.sum = torch.unbind, torch.permute, torch.sum
        self.tanh, self.cross_entropy = torch.tanh, functional.cross_entropy
        self.squared_error, self.exact_gelu = functional.mse_loss, functional.gelu
        self.functional = functional

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        return self.functional.layer_norm(x, gamma.shape, gamma, beta)

    def gelu(self, x: Any) -> Any:
        return self.functional.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class NumPyLikeOps:
    """For libraries with a namespace like NumPy's: JAX and autograd."""

    def __init__(self, namespace: Any) -> None:
        self.np = namespace
        self.reshape, self.permute, self.sum = (
            namespace.reshape,
            namespace.transpose,
            namespace.sum,
        )
        self.tanh = namespace.tanh

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return self.np.matmul(x, w.T) + b

    def relu(self, x: Any) -> Any:
        return self.np.maximum(x, 0)

    def unstack(self, x: Any) -> Any:
        return [x[i] for i in range(x.shape[0])]

    def cross_entropy(self, scores: Any, labels: Any) -> Any:
        shifted = scores - self.np.max(scores, axis=1, keepdims=True)
        log_sums = self.np.log(self.np.sum(self.np.exp(shifted), axis=1))
        return self.np.mean(log_sums - shifted[np.arange(len(labels)), labels])

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        centred = x - self.np.mean(x, axis=-1, keepdims=True)
        variance = self.np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.np.sqrt(variance + EPS) * gamma + beta

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + self.np.tanh(ROOT * (x + CUBIC * x * x * x)))

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        scores = self.np.matmul(q, self.np.swapaxes(k, 2, 3)) * (1 / math.sqrt(q.shape[-1]))
        allowed = np.tri(q.shape[2], k.shape[2], dtype=bool)
        scores = self.np.where(allowed, scores, -np.inf)
        e = self.np.exp(scores - self.np.max(scores, axis=-1, keepdims=True))
        return self.np.matmul(e / self.np.sum(e, axis=-1, keepdims=True), v)


class JaxOps(NumPyLikeOps):
    def __init__(self, jax: Any) -> None:
        super().__init__(jax.numpy)
        self.lax = jax.lax

    def conv2d(self, x: Any, w: Any, b: Any) -> Any:
        return self.lax.conv(x, w, (1, 1), "VALID") + b[:, None, None]

    def max_pool2d(self, x: Any, size: int) -> Any:
        window = (1, 1, size, size)
        return self.lax.reduce_window(x, -np.inf, self.lax.max, window, window, "VALID")


class MyGradOps:
    def __init__(self, mygrad: Any, nnet: Any) -> None:
        self.matmul, self.nnet = mygrad.matmul, nnet
        self.relu = nnet.activations.relu

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return self.matmul(x, w.T) + b

    def cross_entropy(self, scores: Any, labels: Any) -> Any:
        return self.nnet.losses.softmax_crossentropy(scores, labels)


# --- the workloads: each method makes a function for a run ---------------------------------------


def load_torch() -> Any:
    import torch  # here, as the other libraries: only if measured

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
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

    def __init__(self, model: Any, optimizer: str) -> None:
        self.model, self.optimizer = model, optimizer

    def tolerances(self, wanted: Any) -> tuple[float, float]:
        if self.optimizer == "Adam":  # where a gradient is nearly 0, Adam divides noise by noise
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

        ops = TinynodeOps(tn.functions)
        p = {n: tn.nn.Parameter(a, name=n) for n, a in self.model.parameters().items()}
        data = [tn.asarray(x, requires_grad=False) for x in self.model.data()]
        parameters = list(p.values())

        def loss_of(*batch: Any) -> Any:
            return self.model.loss(ops, p, *batch)

        optimizer = getattr(tn.nn, self.optimizer)(parameters, lr=LR) if self.optimizer else None
        whole = compiled and optimizer is not None  # else the results are the gradients
        function = tn.compile(loss_of) if compiled and not whole else loss_of

        def update(*batch: Any) -> Any:
            for parameter in parameters:
                parameter.cleargrad()
            loss = function(*batch)
            loss.backward()
            if optimizer is not None:
                optimizer.update()
            return loss

        update = tn.compile(update) if whole else update

        def step() -> Any:
            loss = update(*data)
            if optimizer is None:
                return [loss, *[parameter.grad for parameter in parameters]]
            return [loss, *parameters]

        return step

    def torch(self, compiled: bool = False) -> Run:
        torch = load_torch()
        ops = TorchOps(torch)
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
        """The whole step under ``jit``, with the state donated."""
        import jax

        ops = JaxOps(jax)
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

        ops, data = NumPyLikeOps(autograd.numpy), self.model.data()
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

        ops, data = MyGradOps(mygrad, mygrad.nnet), self.model.data()
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

    def __init__(self, chain: Any, operations: int) -> None:
        self.chain, self.operations = chain, operations

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


# --- a large formula: W5 -------------------------------------------------------------------------


class Formula:
    """``sum(tanh(x) * sigmoid(x) + x * x)``: value and gradient."""

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
        """Blocks of 16,384 elements; all operations with ``out``."""
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
        """Every line of the gradient, and below each line the derivative along v."""
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

        ops = TinynodeOps(tn.functions)
        x, labels = (tn.asarray(a, requires_grad=False) for a in (self.x, self.labels))
        p = tuple([tn.Variable(array) for array in self.p])
        v = tuple([tn.asarray(array, requires_grad=False) for array in self.v])

        def product(p: Any, v: Any, x: Any, labels: Any) -> Any:
            return tn.hvp(lambda *p: self.loss(ops, x, labels, *p), p, v)

        function = tn.compile(product) if compiled else product
        return lambda: function(p, v, x, labels)

    def torch(self) -> Run:
        torch = load_torch()
        ops = TorchOps(torch)
        x, labels = torch.from_numpy(self.x), torch.from_numpy(self.labels)
        p = [torch.from_numpy(array).requires_grad_() for array in self.p]
        v = [torch.from_numpy(array) for array in self.v]

        def run() -> Any:
            loss = self.loss(ops, x, labels, *p)
            return torch.autograd.grad(torch.autograd.grad(loss, p, create_graph=True), p, v)

        return run

    def jax(self) -> Run:
        import jax

        ops = JaxOps(jax)
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

        ops = NumPyLikeOps(anp)

        def loss(p: Any) -> Any:
            return self.loss(ops, self.x, self.labels, *p)

        def along(p: Any) -> Any:
            return sum(anp.sum(g * v) for g, v in zip(gradient(p), self.v, strict=True))

        gradient, p = autograd.grad(loss), tuple(self.p)
        product = autograd.grad(along)
        return lambda: product(p)
