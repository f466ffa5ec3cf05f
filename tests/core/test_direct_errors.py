"""Wrong arguments: the error names the function, the argument, the value, and what to try."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.functions import linalg

X = tn.asarray(np.arange(6.0).reshape(2, 3))
Y = tn.asarray(np.ones((2, 3)))
HALF = tn.asarray(np.eye(2, dtype=np.float16))
LAYER = nn.Linear(3, 2)


def assign(array: Any) -> None:
    tn.asarray(np.ones(3)).array = array


ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "split at None": (
        lambda: fn.split(X, None),
        TypeError,
        "split: indices_or_sections must be an integer or a tuple of integers, got NoneType None.",
    ),
    "split at text": (
        lambda: fn.split(X, "ab"),
        TypeError,
        "split: indices_or_sections must be an integer or a tuple of integers, got str 'ab'.",
    ),
    "split at a fraction": (
        lambda: fn.split(X, (2.7,), axis=1),
        TypeError,
        "split: indices_or_sections must be an integer or a tuple of integers, got tuple (2.7,).",
    ),
    "axes as an array": (
        lambda: fn.sum(X, axis=np.array([0, 1])),
        TypeError,
        "sum: axis must be an integer or a tuple of integers, got ndarray of shape (2,), int64.",
    ),
    "axis as a variable": (
        lambda: fn.sum(X, axis=tn.asarray(1.0)),
        TypeError,
        "sum: axis must be an integer or a tuple of integers, got Variable of shape (), float32.",
    ),
    "axis as a float": (
        lambda: fn.softmax(X, axis=1.0),
        TypeError,
        "softmax: axis must be an integer, got float 1.0.",
    ),
    **{
        name: (
            lambda f=f: f(HALF),
            TypeError,
            f"{name}: x is float16, which linear algebra does not know. Cast it: "
            "x.astype('float32').",
        )
        for name, f in {
            "inv": linalg.inv,
            "det": linalg.det,
            "slogdet": linalg.slogdet,
            "cholesky": linalg.cholesky,
            "qr": linalg.qr,
            "pinv": linalg.pinv,
            "svd": linalg.svd,
            "svdvals": linalg.svdvals,
            "eigh": linalg.eigh,
            "eigvalsh": linalg.eigvalsh,
        }.items()
    },
    "solve in float16": (
        lambda: linalg.solve(HALF, HALF),
        TypeError,
        "solve: x1 is float16, which linear algebra does not know. Cast it: x1.astype('float32').",
    ),
    "np.cumsum": (
        lambda: np.cumsum(X),
        TypeError,
        "np.cumsum: NumPy would lose the gradient of x. Write tn.functions.cumulative_sum(x, "
        "axis=0). Or take tn.to_host(x.array) where no gradient is needed.",
    ),
    **{
        f"dim of {name}": (
            lambda f=f: f(dim=0),
            TypeError,
            f"{name}: unknown keyword dim, got dim=0. The keyword here is axis.",
        )
        for name, f in {
            "sum": X.sum,
            "mean": X.mean,
            "max": lambda dim: fn.max(X, dim=dim),
            "min": lambda dim: fn.min(X, dim=dim),
            "softmax": lambda dim: fn.softmax(X, dim=dim),
            "log_softmax": lambda dim: fn.log_softmax(X, dim=dim),
            "concat": lambda dim: fn.concat([X, Y], dim=dim),
            "stack": lambda dim: fn.stack([X, Y], dim=dim),
        }.items()
    },
    "keepdim": (
        lambda: fn.sum(X, axis=0, keepdim=True),
        TypeError,
        "sum: unknown keyword keepdim, got keepdim=True. The keyword here is keepdims.",
    ),
    "retain_graph": (
        lambda: fn.sum(X).backward(retain_graph=True),
        TypeError,
        "backward: unknown keyword retain_graph, got retain_graph=True. A graph stays until its "
        "last Variable is dropped: leave the keyword out.",
    ),
    "create_graph": (
        lambda: fn.sum(X * X).backward(create_graph=True),
        TypeError,
        "backward: unknown keyword create_graph, got create_graph=True. The keyword here is "
        "enable_double_backprop.",
    ),
    "another keyword": (
        lambda: fn.sum(X, colour=1),
        TypeError,
        "sum: unknown keyword colour, got colour=1.",
    ),
    "truth of many": (
        lambda: bool(X > 0),
        ValueError,
        "bool(x): only a variable of size one is true or false, this one has shape (2, 3). For "
        "`if`, use x.xp.any(x.array) or x.xp.all(x.array); to choose by element, "
        "functions.where(x, a, b). Python's max, min and `in` compare too: use "
        "functions.maximum, functions.minimum, or any(x is y for y in ys).",
    ),
    "inputs of concat apart": (
        lambda: fn.concat(X, Y),
        TypeError,
        "concat: axis must be an integer, got Variable of shape (2, 3), float64. The inputs stand "
        "in one list: concat([x, y]).",
    ),
    **{
        f"{name} of two": (
            lambda f=f: f(X, Y),
            TypeError,
            f"{name}: axis must be an integer or a tuple of integers, got Variable of shape (2, "
            f"3), float64. For two arrays, element by element, use {name}imum(x, y).",
        )
        for name, f in {"max": fn.max, "min": fn.min}.items()
    },
    "the name of a file": (
        lambda: LAYER.load_state_dict("m.npz"),
        ValueError,
        "Linear.load_state_dict: the state must be arrays by name, got str 'm.npz'. A file is "
        "read first: load_state_dict(tinynode.nn.load('m.npz')).",
    ),
    "integers for floats": (
        lambda: assign(np.arange(3)),
        TypeError,
        "x.array: x requires a gradient, so the array must be floating, got ndarray of shape "
        "(3,), int64. Cast the array, array.astype('float64'), or make a new Variable.",
    ),
    "text as a learning rate": (
        lambda: nn.SGD(LAYER, lr="0.1"),
        TypeError,
        "SGD: lr must be a number, got str '0.1'.",
    ),
    "objects": (
        lambda: tn.Variable(np.array([None])),
        TypeError,
        "Variable: array must hold bools or numbers, got ndarray of shape (1,), object. Convert "
        "the array: numpy.asarray(array, dtype='float64').",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_names_the_argument_and_the_cure(name: str) -> None:
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=f"^{re.escape(text)}$"):
        call()


def test_arguments_of_other_kinds_are_taken() -> None:
    """Generators, NumPy integers and arrays of integers, where the meaning is clear."""
    np.testing.assert_array_equal(fn.stack(v for v in (X, Y)).array, [X.array, Y.array])
    assert fn.concat(v for v in (X, Y)).shape == (4, 3)
    np.testing.assert_array_equal(
        fn.tensordot(X, Y.T, axes=np.int64(1)).array, X.array @ Y.array.T
    )
    assert [part.shape for part in fn.split(X, np.array([1]), axis=1)] == [(2, 1), (2, 2)]
    assert [part.shape for part in fn.split(X, np.int64(3), axis=1)] == [(2, 1)] * 3
    assert fn.reshape(X, np.int64(6)).shape == (6,)
    assert fn.broadcast_arrays() == ()
