"""A usual training step: forward, backward and Adam, float32.

A perceptron 784-256-256-10 with relu and softmax cross entropy, on random images of the size of
the well-known 28 by 28 digits. Each library starts from the same weights and sees the same
batches. The losses and weights after the first steps are compared. Then the libraries are timed in
turn.

    python -m tools.benchmarks.digits_step
    python -m tools.benchmarks.digits_step --batch 1024
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tools.benchmarks import measure

SIZES = (784, 256, 256, 10)
LR, BETA1, BETA2, EPS = 0.001, 0.9, 0.999, 1e-8
Batch = tuple[Any, Any]


def start_weights() -> list[Any]:
    """W1, b1, W2, b2, W3, b3; each W is (out, in)."""
    rng = np.random.default_rng(0)
    arrays: list[Any] = []
    for size, out in itertools.pairwise(SIZES):
        arrays.append((rng.standard_normal((out, size)) * (2 / size) ** 0.5).astype(np.float32))
        arrays.append(np.zeros(out, np.float32))
    return arrays


def batches(number: int, size: int) -> list[Batch]:
    rng = np.random.default_rng(1)
    images = rng.random((number, size, SIZES[0]), dtype=np.float32)
    labels = rng.integers(0, SIZES[-1], (number, size))
    return list(zip(images, labels, strict=True))


class NumPyModel:
    """By hand: the gradients written out, Adam in place."""

    def __init__(self) -> None:
        self.weights = start_weights()
        self.moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        self.count = 0

    def step(self, images: Any, labels: Any) -> float:
        w1, b1, w2, b2, w3, b3 = self.weights
        h1 = np.maximum(images @ w1.T + b1, 0)
        h2 = np.maximum(h1 @ w2.T + b2, 0)
        scores = h2 @ w3.T + b3
        scores -= scores.max(axis=1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.arange(len(labels))
        g3 = np.exp(log_p)
        g3[rows, labels] -= 1
        g3 /= np.float32(len(labels))
        g2 = (g3 @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        gradients = [g1.T @ images, g1.sum(axis=0), g2.T @ h1, g2.sum(axis=0)]
        self.adam([*gradients, g3.T @ h2, g3.sum(axis=0)])
        return float(-log_p[rows, labels].mean())

    def adam(self, gradients: list[Any]) -> None:
        self.count += 1
        rate = LR * (1 - BETA2**self.count) ** 0.5 / (1 - BETA1**self.count)
        eps = EPS * (1 - BETA2**self.count) ** 0.5
        for w, g, (m, v) in zip(self.weights, gradients, self.moments, strict=True):
            m *= BETA1
            m += (1 - BETA1) * g
            v *= BETA2
            v += (1 - BETA2) * g * g
            w -= rate * m / (np.sqrt(v) + eps)

    def arrays(self) -> list[Any]:
        return self.weights


class TinynodeModel:
    def __init__(self) -> None:
        from tinynode import functions, nn  # here, as the other library: only if measured

        self.loss = functions.softmax_cross_entropy
        layers = [nn.Linear(n, m) for n, m in itertools.pairwise(SIZES)]
        self.model = nn.Sequential(layers[0], functions.relu, layers[1], functions.relu, layers[2])
        self.parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
        for p, array in zip(self.parameters, start_weights(), strict=True):
            p.array = array
        self.optimizer = nn.Adam(self.model, lr=LR)

    def step(self, images: Any, labels: Any) -> float:
        loss = self.loss(self.model(images), labels)
        self.optimizer.cleargrads()
        loss.backward()
        self.optimizer.update()
        return float(loss)

    def arrays(self) -> list[Any]:
        return [p.array for p in self.parameters]


class TorchModel:
    def __init__(self) -> None:
        import torch  # only if installed and measured

        torch.set_num_threads(1)
        self.library = torch
        layers = [torch.nn.Linear(n, m) for n, m in itertools.pairwise(SIZES)]
        relu = torch.nn.ReLU()
        self.model = torch.nn.Sequential(layers[0], relu, layers[1], relu, layers[2])
        self.parameters = list(self.model.parameters())
        with torch.no_grad():
            for p, array in zip(self.parameters, start_weights(), strict=True):
                p.copy_(torch.from_numpy(array))
        self.optimizer = torch.optim.Adam(self.parameters, lr=LR, fused=True)

    def step(self, images: Any, labels: Any) -> float:
        scores = self.model(self.library.from_numpy(images))
        loss = self.library.nn.functional.cross_entropy(scores, self.library.from_numpy(labels))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def arrays(self) -> list[Any]:
        return [p.detach().numpy() for p in self.parameters]


MODELS: dict[str, Callable[[], Any]] = {
    "numpy": NumPyModel,
    "tinynode": TinynodeModel,
    "torch": TorchModel,
}


def check_results(models: dict[str, Any], data: list[Batch]) -> None:
    """Compare losses and weights after a few steps with the results by hand."""
    by_hand = NumPyModel()
    losses = [by_hand.step(*batch) for batch in data]
    for name, model in models.items():
        np.testing.assert_allclose([model.step(*b) for b in data], losses, 1e-4, err_msg=name)
        for array, wanted in zip(model.arrays(), by_hand.arrays(), strict=True):
            np.testing.assert_allclose(array, wanted, atol=LR / 10, err_msg=name)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A training step, side by side.")
    parser.add_argument("--libraries", default=",".join(MODELS), help="compared with tinynode")
    parser.add_argument("--batch", type=int, default=64, help="images in a batch")
    parser.add_argument("--rounds", type=int, default=100, help="medians are over these")
    options = parser.parse_args(arguments)
    names = measure.available(MODELS, options.libraries)
    models = {name: MODELS[name]() for name in names}
    data = batches(4, options.batch)
    check_results(models, data[:3])
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(options.rounds):
        for name, model in models.items():
            begin = time.perf_counter()
            model.step(*data[turn % len(data)])
            times[name].append(time.perf_counter() - begin)
    print(measure.describe_setting(names))
    print(
        f"one step of {'-'.join(map(str, SIZES))}, batch {options.batch}, "
        f"medians of {options.rounds} rounds"
    )
    rows = []
    for name, seconds in times.items():
        ratio = measure.median_ratio(times["tinynode"], seconds)
        rows.append([name, f"{statistics.median(seconds) * 1e3:.2f}", f"{ratio:.2f}"])
    measure.print_table(["library", "step, ms", "tinynode / it"], rows)


if __name__ == "__main__":
    main()
