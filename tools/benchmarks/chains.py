"""A long chain of small operations in each library, for ``overhead`` and ``memory``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Start = tuple[Any, Any, Any]
Gradients = tuple[Any, Any, Any]
Chain = Callable[[Any, Any, Any, int], Any]


def start_values() -> Start:
    """x, w and b of shape (10,): the values of a long chain neither grow nor fade."""
    x = np.linspace(-1, 1, 10, dtype=np.float32)
    return x, np.full(10, 0.999, np.float32), np.linspace(0.001, 0.002, 10, dtype=np.float32)


def end_gradient() -> Any:
    return np.ones(10, np.float32)


def products_and_sums(y: Any, w: Any, b: Any, operations: int) -> Any:
    """Half of the operations are products, half are sums."""
    for _ in range(operations // 2):
        y = y * w + b
    return y


def sums(y: Any, w: Any, b: Any, operations: int) -> Any:
    """Sums only: the graph retains no array."""
    for _ in range(operations):
        y = y + b
    return y


class NumPyLibrary:
    """``products_and_sums`` by hand, without a graph: forward keeps every y."""

    def forward(self, chain: Chain, start: Start, operations: int) -> Any:
        assert chain is products_and_sums
        y, w, b = start
        self.w, self.kept = w, []
        for _ in range(operations // 2):
            self.kept.append(y)
            y = y * w + b
        return y

    def backward(self, y: Any, gradient: Any) -> Gradients:
        gy, gw, gb = gradient, np.zeros_like(self.w), np.zeros_like(self.w)
        for kept in reversed(self.kept):
            gb = gb + gy
            gw = gw + gy * kept
            gy = gy * self.w
        return gy, gw, gb


class VariableLibrary:
    """A library of variables with a recorded graph."""

    def leaf(self, array: Any) -> Any:
        raise NotImplementedError

    def forward(self, chain: Chain, start: Start, operations: int) -> Any:
        self.leaves = [self.leaf(array) for array in start]
        return chain(*self.leaves, operations)

    def backward(self, y: Any, gradient: Any) -> Gradients:
        y.backward(gradient)
        x, w, b = self.leaves
        return x.grad, w.grad, b.grad


class TinynodeLibrary(VariableLibrary):
    def __init__(self) -> None:
        import tinynode  # here, as the others: only measured libraries are imported

        self.leaf = tinynode.Variable

    def backward(self, y: Any, gradient: Any) -> Gradients:
        y.grad = gradient
        y.backward()
        x, w, b = self.leaves
        return x.grad, w.grad, b.grad


class TorchLibrary(VariableLibrary):
    def __init__(self) -> None:
        import torch  # only if installed and measured

        torch.set_num_threads(1)
        self.library = torch

    def leaf(self, array: Any) -> Any:
        return self.library.tensor(array, requires_grad=True)

    def backward(self, y: Any, gradient: Any) -> Gradients:
        return super().backward(y, self.library.from_numpy(gradient))


class MyGradLibrary(VariableLibrary):
    def __init__(self) -> None:
        import mygrad  # only if installed and measured

        self.leaf = mygrad.tensor


class AutogradLibrary:
    """autograd differentiates functions; the chain is a function."""

    def __init__(self) -> None:
        import autograd  # only if installed and measured

        self.make_vjp = autograd.make_vjp

    def forward(self, chain: Chain, start: Start, operations: int) -> Any:
        self.vjp, y = self.make_vjp(chain, argnum=(0, 1, 2))(*start, operations)
        return y

    def backward(self, y: Any, gradient: Any) -> Gradients:
        gx, gw, gb = self.vjp(gradient)
        return gx, gw, gb


LIBRARIES: dict[str, Callable[[], Any]] = {
    "numpy": NumPyLibrary,
    "tinynode": TinynodeLibrary,
    "torch": TorchLibrary,
    "autograd": AutogradLibrary,
    "mygrad": MyGradLibrary,
}
