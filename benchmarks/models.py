"""The models of the workloads, each written once, and what each library calls their functions.

A model is its parameters by name, a batch, and the loss as a function of both; ``ops`` are the
functions of a library under the same names. ``by_hand`` is the loss and its gradients in plain
NumPy, in the dtype of the parameters: in float64 it is the reference for everybody.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Arrays = dict[str, Any]
CUBIC, ROOT = 0.044715, math.sqrt(2 / math.pi)  # of the GELU with tanh
EPS = 1e-5  # of layer_norm


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

    ``x``, the input, is among the parameters: in a network it needs its gradient.
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
        x = p["x"]
        x = x + self.attention(ops, p, ops.layer_norm(x, p["gamma0"], p["beta0"]))
        h = ops.layer_norm(x, p["gamma1"], p["beta1"])
        h = ops.gelu(ops.linear(h, p["up"], p["b_up"]))
        x = x + ops.linear(h, p["down"], p["b_down"])
        return ops.sum(x * target)

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
    """Each place of the window adds its part."""
    n, rows, columns, _ = g.shape
    gx = np.zeros((n, rows + 2, columns + 2, w.shape[1]), g.dtype)
    for i, j in itertools.product(range(3), range(3)):
        gx[:, i : i + rows, j : j + columns] += g @ w[:, :, i, j]
    return gx


def pool_by_hand(x: Any) -> tuple[Any, Any]:
    """The largest of 2 by 2, channels last, and which of the four it is."""
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
    """layer_norm of rows; with it x normalised, and what it was multiplied by."""
    centred = x - x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPS)
    centred *= r
    return centred * gamma + beta, (centred, r)


def norm_gradient_by_hand(g: Any, norm: Any, gamma: Any) -> tuple[Any, Any, Any]:
    y, r = norm
    gy = g * gamma
    shift = gy.mean(axis=1, keepdims=True) + y * (gy * y).mean(axis=1, keepdims=True)
    return r * (gy - shift), (g * y).sum(axis=0), g.sum(axis=0)


# --- the libraries' functions, under the names that the models use -------------------------------


class TinynodeOps:
    def __init__(self, functions: Any) -> None:
        self.linear, self.relu, self.conv2d = functions.linear, functions.relu, functions.conv2d
        self.max_pool2d, self.reshape = functions.max_pool2d, functions.reshape
        self.layer_norm, self.permute = functions.layer_norm, functions.permute_dims
        self.unstack, self.sum, self.tanh = functions.unstack, functions.sum, functions.tanh
        self.cross_entropy = functions.softmax_cross_entropy
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
