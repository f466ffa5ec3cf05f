"""Situations of public bug reports about autodiff as rows, for ``test_public_reports.py``."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, inf, pi, sqrt
from typing import Any

import numpy as np

import tinynode as tn

F = tn.functions


def half(*values: Any) -> Any:
    return np.array(values, np.float16)


def single(*values: Any) -> Any:
    return np.array(values, np.float32)


def double(*values: Any) -> Any:
    return np.array(values, np.float64)


def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of an elementwise function, as a function that has derivatives."""

    def derivative(x: Any) -> Any:
        return tn.grad([F.sum(f(x))], [x], enable_double_backprop=True)[0]

    return derivative


def masked(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: F.where(x > 0, f(x), 0.0)


def written(x: Any, s: Any) -> Any:
    y = x * 1.0
    y[[0, 0]] = s
    return y


def added(x: Any) -> Any:
    y = x * 1.0
    y[[0, 0]] += 5.0
    return y


def cleared(x: Any) -> Any:
    y = x * F.log(x)
    y[x == 0] = 0.0
    return y


def cross_entropy(x: Any) -> Any:
    return F.softmax_cross_entropy(x, np.array([0]))


def norm(order: float) -> Callable[[Any], Any]:
    return lambda x: F.linalg.vector_norm(x, ord=order)


def rows_of(number: float, dtype: Any = np.float32) -> Any:
    """Many rows around a number: a running sum in their own dtype drifts."""
    return np.repeat(
        np.array([[number - 1, number - 1], [number + 1, number + 1]], dtype), 100_000, 0
    )


def normal(x: float) -> float:
    return exp(-x * x / 2) / sqrt(2 * pi)


# a name, the situation, the function, its arguments, the value, the gradients of the sum
Row = tuple[str, Callable[..., Any], tuple[Any, ...], Any, tuple[Any, ...]]
HALVES = ([0.5, 0.5],)
ROWS: list[Row] = [
    # zeros behind a mask stay zeros
    ("the entropy of a sure event", masked(lambda x: x * F.log(x)), (double(0, 1),),
     [0, 0], ([0, 1],)),
    ("a root behind a mask", masked(F.sqrt), (double(0, 4),), [0, 2], ([0, 0.25],)),
    ("an exponential that is not chosen", masked(lambda x: F.expm1(-1 / x)), (double(0, 1),),
     [0, exp(-1) - 1], ([0, exp(-1)],)),
    ("sinh of an infinity not chosen", masked(lambda x: F.sinh(1 / x)), (double(0, 1),),
     [0, np.sinh(1)], ([0, -np.cosh(1)],)),
    ("a remainder by zero not chosen", masked(lambda x: 5.0 % x), (double(0, 3),),
     [0, 2], ([0, -1],)),
    ("a hypotenuse of nothing not chosen", masked(lambda x: F.hypot(x, x * 0)), (double(0, 3),),
     [0, 3], ([0, 1],)),
    ("recomputed behind a mask", lambda x: tn.checkpoint(masked(lambda z: z * F.log(z)), x),
     (double(0, 1),), [0, 0], ([0, 1],)),
    ("only the rows that count are read", lambda x: (x * F.log(x))[[1]], (double(0, 1),),
     [0], ([0, 1],)),
    ("a padded product", lambda x: F.prod(F.where(x > 0, F.log(x), 1.0)), (double(0, exp(2)),),
     2, ([0, exp(-2)],)),
    ("a padded logsumexp", lambda x: F.logsumexp(F.where(x > 0, F.log(x), -1.0)), (double(0, 1),),
     np.log(1 + exp(-1)), ([0, 1 / (1 + exp(-1))],)),
    ("a padded vecdot", lambda x: F.vecdot(F.where(x > 0, F.log(x), 0.0), x), (double(0, 1),), 0,
     ([0, 1],)),
    # sums of many rows
    ("a bias of many rows", lambda b: b + np.zeros((200_000, 1), "f4"),
     (single(0.1),), None, ([2e5],)),
    ("a mean of many rows", lambda x: F.mean(x, axis=0), (rows_of(100),), [100, 100], ()),
    ("a variance of many rows", lambda x: F.var(x, axis=0), (rows_of(100),), [1, 1], ()),
    ("a deviation of many rows", lambda x: F.std(x, axis=0), (rows_of(100),), [1, 1], ()),
    ("a column sum by einsum", lambda x: F.einsum("ij->j", x), (rows_of(100),), [2e7, 2e7], ()),
    ("the last running sum", lambda x: F.cumulative_sum(x, axis=0)[-1], (rows_of(100),),
     [2e7, 2e7], ()),
    ("the norm of many rows", lambda x: F.linalg.vector_norm(x, axis=0), (rows_of(1),),
     [sqrt(4e5)] * 2, ()),
    # logsumexp at large numbers
    ("two equal large logits", F.logsumexp, (double(1e16, 1e16),), 1e16, HALVES),
    ("two equal large logits, single", F.logsumexp, (single(1e7, 1e7),), 1e7, HALVES),
    ("two equal logits, half", F.logsumexp, (half(20, 20),), 20.69, HALVES),
    # squares out of range
    ("a long vector", norm(2), (single(1e20, 1, 1),), 1e20, ([1, 1e-20, 1e-20],)),
    ("a short vector", norm(2), (single(3e-30, 4e-30),), 5e-30, ([0.6, 0.8],)),
    ("a long vector of third order", norm(3), (single(1e20, 1e20),), 2 ** (1 / 3) * 1e20,
     ([2 ** (-2 / 3)] * 2,)),
    ("a large matrix", F.linalg.matrix_norm, (single([3e20, 0], [0, 4e20]),), 5e20,
     ([[0.6, 0], [0, 0.8]],)),
    ("a direction of a large vector", F.normalize, (single([3e20, 4e20]),), [[0.6, 0.8]],
     ([[0.32e-21, -0.24e-21]],)),
    ("the angle of large vectors", F.cosine_similarity, (single([1e20, 0]), single([3e20, 4e20])),
     [0.6], ()),
    ("the deviation of large numbers", F.std, (single(-1e25, 1e25),), 1e25, ([-0.5, 0.5],)),
    ("a layer of large numbers", lambda x: F.layer_norm(x, single(1, 1), single(0, 0)),
     (single([-1e25, 1e25]),), [[-1, 1]], ()),
    # a repeated index
    ("one number for a place named twice", written, (double(1, 2), np.float64(3)),
     [3, 2], ([0, 1], 1)),
    ("a sum at a place named twice", added, (double(1, 2),), [6, 2], ([1, 1],)),
    ("a row gathered twice", lambda x: x[[1, 1, 0]], (double(1, 2),), [2, 2, 1], ([1, 2],)),
    # tails
    ("a sure sigmoid", F.sigmoid, (half(8),), [0.99966], ([3.35e-4],)),
    ("a sure tanh", F.tanh, (single(10),), [1], ([4 * exp(-20)],)),
    ("exp(x) - 1 far below zero", F.expm1, (single(-20),), [-1], ([exp(-20)],)),
    ("a sure class", cross_entropy, (single([17, 0]),), exp(-17), ([[-exp(-17), exp(-17)]],)),
    ("a sure softmax", lambda x: F.softmax(x)[:, 0], (single([20, 0]),),
     [1], ([[exp(-20), -exp(-20)]],)),
    ("a sure binary class", lambda x: F.sigmoid_cross_entropy(x, np.array([1])), (single(20),),
     exp(-20), ([-exp(-20)],)),
    ("the tail of gelu", F.gelu, (single(-5.5),), [-5.5 * erfc(5.5 / sqrt(2)) / 2],
     ([erfc(5.5 / sqrt(2)) / 2 - 5.5 * normal(5.5)],)),
    ("the curve of softplus", slope(F.softplus), (single(20),), [1], ([exp(-20)],)),
    ("the curve of logaddexp", slope(lambda x: F.logaddexp(x, x * 0)), (single(20),),
     [1], ([exp(-20)],)),
    ("the curve of tanh", slope(F.tanh), (single(10),), [4 * exp(-20)], ([-8 * exp(-20)],)),
    # steps out of range before the result
    ("the angle of a far point", F.atan2, (half(256), half(256)),
     [pi / 4], ([1 / 512], [-1 / 512])),
    ("a small share of a logarithm", lambda x: 1e-10 * F.log(x), (single(2.0**-130),),
     [-1e-10 * 130 * np.log(2)], ([1e-10 * 2.0**130],)),
    ("a small share of a quotient", lambda x: 1e-10 * (x / single(2.0**-130)),
     (single(2.0**-130),),
     [1e-10], ([1e-10 * 2.0**130],)),
    ("a part of a square out of range", lambda x: F.square(x) * 0.25, (single(2.5e38),),
     inf, ([1.25e38],)),
    ("acosh of a large number", F.acosh, (single(1e20),), [np.arccosh(1e20)], ([1e-20],)),
    ("the slope of asinh far away", F.asinh, (single(1e20),), [np.arcsinh(1e20)], ([1e-20],)),
    ("the slope of atan far away", F.atan, (half(300),), [np.arctan(300)], ([1 / 90001],)),
    # einsum to a number, and corners
    ("einsum of halves to a number", lambda x: F.einsum("i,i->", x, x),
     (half(1, 2),), 5, ([2, 4],)),
    ("an infinite logit", F.logsumexp, (double(2, inf),), inf, ([0, 1],)),
    ("silu at minus infinity", F.silu, (double(-inf),), [0], ([0],)),
    ("gelu at minus infinity", F.gelu, (double(-inf),), [0], ([0],)),
    ("the length of nothing", norm(2), (double(0, 0),), 0, ([0, 0],)),
    # functions over examples
    *[(f"{f.__name__} over examples", tn.vmap(f), (double(at),), None, ([to],)) for f, at, to in [
        (F.sigmoid, 0, 0.25), (F.relu, 0, 0), (F.erf, 0, 2 / sqrt(pi)), (F.leaky_relu, -1, 0.01),
        (F.erfinv, 0, sqrt(pi) / 2), (F.erfc, 0, -2 / sqrt(pi)), (F.softplus, 0, 0.5)]],
    ("the cross entropy of zeros over examples",
     tn.vmap(lambda x: F.sigmoid_cross_entropy(x, np.array([1]))), (double([0.0], [0.0]),), None,
     ([[-0.5], [-0.5]],)),
    ("an array of others over examples", tn.vmap(lambda x: np.array([2.0, 3.0]) * x),
     (double([1, 1], [2, 2]),), [[2, 3], [4, 6]], ([[2, 3], [2, 3]],)),
    ("positions of others over examples", tn.vmap(lambda x: x[np.array([1, 1])]),
     (double([1, 2], [3, 4]),), [[2, 2], [4, 4]], ([[0, 2], [0, 2]],)),
    ("a mask of others over examples", tn.vmap(lambda x: F.where(np.array([True, False]), x, 0.0)),
     (double([1, 2], [3, 4]),), [[1, 0], [3, 0]], ([[1, 0], [1, 0]],)),
    ("an inner function over no examples", tn.vmap(lambda x: x[[0, 1], [1, 0]]),
     (np.zeros((0, 2, 2)),), np.zeros((0, 2)), (np.zeros((0, 2, 2)),)),
]  # fmt: skip
