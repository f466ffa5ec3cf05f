"""Training steps on the ``fast`` backend, beside ``numpy``, and beside PyTorch; float32.

The workloads are a perceptron 784-256-256-10 with Adam, batch 64 and 1,024; a convolutional
network on 64 images of 28 by 28 with SGD; and a transformer block (16 sequences of 64 vectors of
128, 4 heads, causal, layer_norm, GELU) with Adam. All start from the same weights and see the
same data; the losses and weights after three steps are compared before anything is timed. Then
the backends take turns, step by step.

    python -m benchmarks.backends
    python -m benchmarks.backends --workloads transformer --rounds 50
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from typing import Any

import numpy as np

from benchmarks import measure

Arrays = dict[str, Any]
STEPS = 3  # so many steps are compared


# --- the workloads: parameters and data as arrays, the loss in each library ----------------------


class Workload:
    """A model as a function of its parameters. ``ops`` is the functions of the library."""

    optimizer = "Adam"
    lr = 0.001

    def parameters(self) -> Arrays:
        raise NotImplementedError

    def data(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def loss(self, ops: Any, p: Any, x: Any, target: Any) -> Any:
        raise NotImplementedError


def weights(shapes: dict[str, tuple[int, ...]]) -> Arrays:
    """Random weights, for shapes of two axes or more; zeros for the others; ones for gammas."""
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


class Perceptron(Workload):
    sizes = (784, 256, 256, 10)

    def __init__(self, batch: int, shrink: int = 1) -> None:
        self.batch = max(batch // shrink, 2)

    def parameters(self) -> Arrays:
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (n, m) in enumerate(itertools.pairwise(self.sizes)):
            shapes |= {f"w{i}": (m, n), f"b{i}": (m,)}
        return weights(shapes)

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        images = rng.random((self.batch, self.sizes[0]), dtype=np.float32)
        return images, rng.integers(0, self.sizes[-1], self.batch)

    def loss(self, ops: Any, p: Any, x: Any, target: Any) -> Any:
        x = ops.relu(ops.linear(x, p["w0"], p["b0"]))
        x = ops.relu(ops.linear(x, p["w1"], p["b1"]))
        return ops.cross_entropy(ops.linear(x, p["w2"], p["b2"]), target)


class Convolutional(Workload):
    optimizer, lr = "SGD", 0.01

    def __init__(self, shrink: int = 1) -> None:
        self.batch = max(64 // shrink, 2)

    def parameters(self) -> Arrays:
        shapes = {"w0": (16, 1, 3, 3), "b0": (16,), "w1": (32, 16, 3, 3), "b1": (32,)}
        return weights(shapes | {"w2": (10, 32 * 5 * 5), "b2": (10,)})

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        images = rng.random((self.batch, 1, 28, 28), dtype=np.float32)
        return images, rng.integers(0, 10, self.batch)

    def loss(self, ops: Any, p: Any, x: Any, target: Any) -> Any:
        x = ops.max_pool2d(ops.relu(ops.conv2d(x, p["w0"], p["b0"])), 2)
        x = ops.max_pool2d(ops.relu(ops.conv2d(x, p["w1"], p["b1"])), 2)
        x = ops.reshape(x, (self.batch, 32 * 5 * 5))
        return ops.cross_entropy(ops.linear(x, p["w2"], p["b2"]), target)


class Transformer(Workload):
    length, width, heads = 64, 128, 4

    def __init__(self, shrink: int = 1) -> None:
        self.batch = max(16 // shrink, 1)

    def parameters(self) -> Arrays:
        w = self.width
        shapes = {"qkv": (3 * w, w), "out": (w, w), "up": (4 * w, w), "down": (w, 4 * w)}
        for name in list(shapes):
            shapes[f"b_{name}"] = (shapes[name][0],)  # type: ignore[assignment]
        for i in (0, 1):
            shapes |= {f"gamma{i}": (w,), f"beta{i}": (w,)}  # type: ignore[dict-item]
        return weights(shapes)  # type: ignore[arg-type]

    def data(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(1)
        shape = (self.batch, self.length, self.width)
        x, target = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
        return x, target

    def loss(self, ops: Any, p: Any, x: Any, target: Any) -> Any:
        x = x + self.attention(ops, p, ops.layer_norm(x, p["gamma0"], p["beta0"]))
        h = ops.layer_norm(x, p["gamma1"], p["beta1"])
        h = ops.gelu(ops.linear(h, p["up"], p["b_up"]))
        x = x + ops.linear(h, p["down"], p["b_down"])
        return ops.squared_error(x, target)

    def attention(self, ops: Any, p: Any, x: Any) -> Any:
        size = self.width // self.heads
        heads = ops.linear(x, p["qkv"], p["b_qkv"])
        heads = ops.reshape(heads, (self.batch, self.length, 3, self.heads, size))
        q, k, v = ops.permute(heads, (2, 0, 3, 1, 4))
        y = ops.permute(ops.attention(q, k, v), (0, 2, 1, 3))
        y = ops.reshape(y, (self.batch, self.length, self.width))
        return ops.linear(y, p["out"], p["b_out"])


def workloads(shrink: int) -> dict[str, Workload]:
    return {
        "perceptron 64": Perceptron(64, shrink),
        "perceptron 1024": Perceptron(1024, shrink),
        "convolutional": Convolutional(shrink),
        "transformer": Transformer(shrink),
    }


# --- the libraries -------------------------------------------------------------------------------


class TinynodeOps:
    """tinynode's functions under the workloads' names."""

    def __init__(self, functions: Any) -> None:
        self.linear, self.relu, self.conv2d = functions.linear, functions.relu, functions.conv2d
        self.max_pool2d, self.reshape = functions.max_pool2d, functions.reshape
        self.layer_norm, self.gelu = functions.layer_norm, functions.gelu
        self.permute = functions.permute_dims
        self.cross_entropy = functions.softmax_cross_entropy
        self.squared_error = functions.mean_squared_error
        self.functions = functions

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.functions.scaled_dot_product_attention(q, k, v, causal=True)


class TinynodeModel:
    def __init__(self, workload: Workload, device: str) -> None:
        import tinynode  # here, as the other library: only what is measured is imported

        self.library, self.device, self.workload = tinynode, device, workload
        self.ops = TinynodeOps(tinynode.functions)
        with tinynode.using_device(device):
            self.data = [tinynode.Variable(x, requires_grad=False) for x in workload.data()]
            arrays = workload.parameters()
            self.parameters = {n: tinynode.nn.Parameter(a, name=n) for n, a in arrays.items()}
        kind = getattr(tinynode.nn, workload.optimizer)
        self.optimizer = kind(list(self.parameters.values()), lr=workload.lr)

    def step(self) -> float:
        with self.library.using_device(self.device):
            loss = self.workload.loss(self.ops, self.parameters, *self.data)
            self.optimizer.cleargrads()
            loss.backward()
            self.optimizer.update()
            return float(loss)

    def arrays(self) -> Arrays:
        return {name: p.array for name, p in self.parameters.items()}


class TorchOps:
    """PyTorch's functions under the workloads' names."""

    def __init__(self, torch: Any) -> None:
        functional = torch.nn.functional
        self.linear, self.relu, self.conv2d = functional.linear, torch.relu, functional.conv2d
        self.max_pool2d, self.reshape = functional.max_pool2d, torch.reshape
        self.gelu, self.permute = functional.gelu, torch.permute
        self.cross_entropy, self.squared_error = functional.cross_entropy, functional.mse_loss
        self.functional = functional

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        return self.functional.layer_norm(x, gamma.shape, gamma, beta)

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class TorchModel:
    def __init__(self, workload: Workload) -> None:
        import torch  # only where it is installed and measured

        torch.set_num_threads(1)
        self.workload, self.ops = workload, TorchOps(torch)
        self.data = [torch.from_numpy(x) for x in workload.data()]
        arrays = workload.parameters()
        self.parameters = {n: torch.from_numpy(a).requires_grad_() for n, a in arrays.items()}
        kind = getattr(torch.optim, workload.optimizer)
        self.optimizer = kind(list(self.parameters.values()), lr=workload.lr, fused=True)

    def step(self) -> float:
        loss = self.workload.loss(self.ops, self.parameters, *self.data)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def arrays(self) -> Arrays:
        return {name: p.detach().numpy() for name, p in self.parameters.items()}


def make_model(name: str, workload: Workload) -> Any:
    return TorchModel(workload) if name == "torch" else TinynodeModel(workload, name)


# --- measuring -----------------------------------------------------------------------------------


def check_results(models: dict[str, Any], lr: float) -> None:
    """After a few steps, losses and weights agree with those of ``numpy``."""
    losses = {name: [model.step() for _ in range(STEPS)] for name, model in models.items()}
    for name, model in models.items():
        np.testing.assert_allclose(losses[name], losses["numpy"], 1e-4, err_msg=name)
        for key, wanted in models["numpy"].arrays().items():
            # where a gradient is nearly 0, Adam divides noise by noise: a step of lr at most
            np.testing.assert_allclose(
                model.arrays()[key], wanted, 1e-3, lr * STEPS, err_msg=f"{name}: {key}"
            )


def measure_workload(models: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            begin = time.perf_counter()
            model.step()
            times[name].append(time.perf_counter() - begin)
    return times


def chosen_workloads(names: str, shrink: int) -> dict[str, Workload]:
    known = workloads(shrink)
    chosen = {n: w for n, w in known.items() if any(part in n for part in names.split(","))}
    if not chosen:
        raise SystemExit(f"unknown workload {names!r}; choose from {', '.join(known)}")
    return chosen


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A training step on each backend.")
    parser.add_argument("--workloads", default="", help="parts of their names, with commas")
    parser.add_argument("--libraries", default="torch", help="compared beside the backends")
    parser.add_argument("--rounds", type=int, default=60, help="medians are over these")
    parser.add_argument("--shrink", type=int, default=1, help="divides the batches, for a test")
    options = parser.parse_args(arguments)
    found = measure.available(["tinynode", "torch"], options.libraries)
    names = ["numpy", "fast", *(name for name in found if name == "torch")]
    print(measure.describe_setting(["numpy", *found]))
    print(f"one step in ms, medians of {options.rounds} rounds")
    rows = []
    for title, workload in chosen_workloads(options.workloads, options.shrink).items():
        models = {name: make_model(name, workload) for name in names}
        check_results(models, workload.lr)
        times = measure_workload(models, options.rounds)
        ms = [f"{statistics.median(times[name]) * 1e3:.2f}" for name in names]
        ratios = [
            f"{measure.median_ratio(times[name], times['fast']):.2f}"
            for name in names
            if name != "fast"
        ]
        rows.append([title, *ms, *ratios])
    head = ["workload", *names, *(f"{name} / fast" for name in names if name != "fast")]
    measure.print_table(head, rows)


if __name__ == "__main__":
    main()
