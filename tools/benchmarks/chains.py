"""A long chain of small operations in each library, for ``overhead`` and ``memory``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Start = tuple[Any, Any, Any]
Gradients = tuple[Any, Any, Any]
Chain = Callable[[Any, Any, Any, int], Any]


NUMBERS = 0.999, 0.001
"""A factor and a summand: the values of a long chain neither grow nor fade."""


def start_values(shape: tuple[int, ...] = (10,)) -> Start:
    """x, w and b of shape (10,), or the first elements for shape ()."""
    x = np.linspace(-1, 1, 10, dtype=np.float32)
    w = np.full(10, NUMBERS[0], np.float32)
    b = np.linspace(0.001, 0.002, 10, dtype=np.float32)
    if shape:
        return x, w, b
    return np.asarray(x[0]), np.asarray(w[0]), np.asarray(b[0])


def end_gradient(shape: tuple[int, ...] = (10,)) -> Any:
    return np.ones(shape, np.float32)


def products_and_sums(y: Any, w: Any, b: Any, operations: int) -> Any:
    """Half of the operations are products, half are sums."""
    for _ in range(operations // 2):
        y = y * w + b
    return y


def with_numbers(y: Any, w: Any, b: Any, operations: int) -> Any:
    """``products_and_sums`` with Python's numbers in place of w and b."""
    factor, summand = NUMBERS
    for _ in range(operations // 2):
        y = y * factor + summand
    return y


def sums(y: Any, w: Any, b: Any, operations: int) -> Any:
    """Sums only: the graph retains no array."""
    for _ in range(operations):
        y = y + b
    return y


class NumPyLibrary:
    """``products_and_sums`` by hand, without a graph: forward keeps every y.

    ``with_numbers`` keeps nothing, and only y has a gradient.
    """

    def forward(self, chain: Chain, start: Start, operations: int) -> Any:
        y, w, b = start
        self.products = operations // 2
        self.has_numbers = chain is with_numbers
        if self.has_numbers:
            return with_numbers(y, w, b, operations)
        assert chain is products_and_sums
        self.w, self.kept = w, []
        for _ in range(operations // 2):
            self.kept.append(y)
            y = y * w + b
        return y

    def backward(self, y: Any, gradient: Any) -> Gradients:
        if self.has_numbers:
            for _ in range(self.products):
                gradient = gradient * NUMBERS[0]
            return gradient, None, None
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
