"""The cost of a jvp, in runs of the function: ``python -m benchmarks.forward_mode``.

The networks are a perceptron (64 rows, 784-100-10, with tanh and with relu), a small convolutional
network (16 images), and a transformer block (16 sequences of 64 vectors). The direction is one of
the input. Times of function and jvp alternate; the lower quartile of each counts.

Goals: the jvp costs at most 5 times the function, and compiled at most 2.2 times. The quotients
hold for one thread: set ``OPENBLAS_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tinynode as tn
from benchmarks.models import Block, ConvNet, Perceptron, TinynodeOps
from tinynode import functions

EAGER_GOAL, COMPILED_GOAL = 5.0, 2.2
OPS: Any = TinynodeOps(functions)


def parameters_of(model: Any) -> dict[str, Any]:
    """The parameters of a model on the current device."""
    return {name: tn.asarray(host) for name, host in model.parameters().items()}


def perceptron(activation: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], Any]:
    """784-100-10 on 64 rows, and an input."""
    model = Perceptron(64, (784, 100, 10))
    p = parameters_of(model)

    def network(x: Any) -> Any:
        hidden = activation(functions.linear(x, p["w0"], p["b0"]))
        return functions.linear(hidden, p["w1"], p["b1"])

    return network, model.data()[0]


def convolution() -> tuple[Callable[[Any], Any], Any]:
    """Two convolutions with pooling, a linear layer, and an input of 16 images."""
    model = ConvNet(16)
    p = parameters_of(model)

    def network(x: Any) -> Any:
        for i in ("0", "1"):
            x = functions.relu(functions.conv2d(x, p[f"w{i}"], p[f"b{i}"]))
            x = functions.max_pool2d(x, 2)
        return functions.linear(functions.reshape(x, (16, -1)), p["w2"], p["b2"])

    return network, model.data()[0]


def block() -> tuple[Callable[[Any], Any], Any]:
    """A transformer block of width 128 with 4 heads, and an input of 16 sequences."""
    model = Block(16)
    p = parameters_of(model)

    def network(x: Any) -> Any:
        return model.output(OPS, p, x)

    return network, model.parameters()["x"]


def quartiles(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The lower quartile of the times of each call, taken in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + 3):
        for call, found in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if number >= 3:  # the first calls record and plan
                found.append(time.perf_counter() - start)
    return [sorted(found)[len(found) // 4] for found in times]


def measure(network: Callable[[Any], Any], host: Any, rounds: int) -> list[float]:
    """Seconds of the function and of the jvp, eager; then of both compiled."""
    x = tn.asarray(host, requires_grad=False)
    v = tn.asarray(np.ones_like(host), requires_grad=False)

    def forward_mode(x: Any, v: Any) -> Any:
        return tn.jvp(network, (x,), (v,))

    compiled, compiled_jvp = tn.compile(network), tn.compile(forward_mode)
    eager = quartiles([lambda: network(x), lambda: forward_mode(x, v)], rounds)
    return eager + quartiles([lambda: compiled(x), lambda: compiled_jvp(x, v)], rounds)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="numpy,fast", help="names, with commas")
    parser.add_argument("--rounds", type=int, default=60, help="how often each call is timed")
    options = parser.parse_args(arguments)
    print("milliseconds                eager f     jvp   ratio  compiled f     jvp   ratio")
    for device in options.devices.split(","):
        with tn.using_device(device):
            networks = {
                "perceptron, tanh": perceptron(functions.tanh),
                "perceptron, relu": perceptron(functions.relu),
                "convolution": convolution(),
                "transformer block": block(),
            }
            for name, (network, host) in networks.items():
                a, b, c, d = (1000 * one for one in measure(network, host, options.rounds))
                missed = "  missed" if b > EAGER_GOAL * a or d > COMPILED_GOAL * c else ""
                print(
                    f"{device:6} {name:18} {a:9.2f} {b:7.2f} {b / a:7.2f} {c:11.2f} {d:7.2f} "
                    f"{d / c:7.2f}{missed}"
                )


if __name__ == "__main__":
    main()
