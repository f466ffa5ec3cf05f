"""The lessons of earlier steps: all that the learner's package has, at each step.

Requirement: a rewrite of an operation can lose the lesson of an earlier step. So one check calls
all operations that the package has so far, after the checks of a step. The values are NumPy's, the
gradients agree with small steps, and the operations are careful (``tinynode_course.careful``).
Numbers beside arrays, seeds, settings and optimizers follow.

An operation is an element of ``CALLS``. What the package does not have yet is left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinynode_course.careful import expect_careful
from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_gradients,
    expect_true,
)

HINTS = {
    "check_earlier_lessons": Hint(
        "A part of an earlier step fails. Which part does the message name, and what did this "
        "step change there?",
        "Values are those of NumPy, gradients agree with small steps, float32 stays, no array of "
        "others is written.",
    )
}

MATRIX = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]])
POSITIVE = MATRIX**2 + 0.5
SQUARE = np.array([[0.5, 1.0, -2.0], [1.5, 0.25, 0.75], [-1.0, 2.0, 1.25]])
VECTOR = np.array([0.5, -2.0, 1.5])
BOX = np.sin(np.arange(24.0)).reshape(2, 3, 4)
IMAGE = np.sin(np.arange(50.0)).reshape(1, 2, 5, 5)
FILTERS = np.cos(np.arange(24.0)).reshape(3, 2, 2, 2)
SEQUENCE = np.sin(np.arange(12.0)).reshape(4, 3)
LABELS = np.array([2, 0])


@dataclass(frozen=True)
class Call:
    """A call of an operation.

    Attributes:
        name: the operation, a name of the package.
        call: takes the package and a Variable for each input.
        value: takes the arrays; gives the value by NumPy.
        inputs: arrays of float64.
        view: True if the result may share memory with the input.
        since: a name that the package has from the step on at which the call is right.
    """

    name: str
    call: Callable[..., Any]
    value: Callable[..., Any]
    inputs: tuple[Any, ...]
    view: bool = False
    since: str = "Variable"


def _plain(name: str, value: Callable[..., Any], *inputs: Any, view: bool = False) -> Call:
    """A call with Variables alone."""
    return Call(name, lambda work, *xs: getattr(work, name)(*xs), value, inputs, view)


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _windows(x: Any, size: int, stride: int) -> Any:
    """The windows of images: (n, channels, oh, ow, size, size)."""
    every = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    return every[:, :, ::stride, ::stride]


def _conv2d(x: Any, w: Any, b: Any) -> Any:
    return np.einsum("nchwij,ocij->nohw", _windows(x, 2, 2), w) + b[:, None, None]


def _attention(query: Any, key: Any, value: Any) -> Any:
    return _softmax(query @ key.T / np.sqrt(query.shape[1])) @ value


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * gamma + beta


CALLS = (
    _plain("negative", np.negative, MATRIX),
    _plain("square", np.square, MATRIX),
    _plain("exp", np.exp, MATRIX),
    _plain("sin", np.sin, MATRIX),
    _plain("cos", np.cos, MATRIX),
    _plain("tanh", np.tanh, MATRIX),
    _plain("sigmoid", lambda x: 1 / (1 + np.exp(-x)), MATRIX),
    _plain("relu", lambda x: np.maximum(x, 0), MATRIX),
    _plain("sqrt", np.sqrt, POSITIVE),
    _plain("add", np.add, MATRIX, POSITIVE),
    _plain("subtract", np.subtract, MATRIX, POSITIVE),
    _plain("multiply", np.multiply, MATRIX, POSITIVE),
    _plain("divide", np.divide, MATRIX, POSITIVE),
    Call("add", lambda work, x: x + x, lambda x: 2 * x, (MATRIX,), since="sum_to"),
    Call("multiply", lambda work, x: x * x, lambda x: x * x, (MATRIX,), since="sum_to"),
    Call(
        "add",
        lambda work, x: _three_times(work.square(x)),
        lambda x: 3 * x * x,
        (MATRIX,),
        since="sum_to",
    ),
    Call(
        "reshape",
        lambda work, x: work.reshape(x, (3, 2)),
        lambda x: x.reshape(3, 2),
        (MATRIX,),
        view=True,
    ),
    Call(
        "broadcast_to",
        lambda work, x: work.broadcast_to(x, (2, 3)),
        lambda x: np.broadcast_to(x, (2, 3)),
        (VECTOR,),
    ),
    Call(
        "sum_to",
        lambda work, x: work.sum_to(x, (1, 3)),
        lambda x: x.sum(axis=0, keepdims=True),
        (MATRIX,),
    ),
    Call("sum", lambda work, x: work.sum(x, axis=1), lambda x: x.sum(axis=1), (BOX,)),
    Call("mean", lambda work, x: work.mean(x, axis=0), lambda x: x.mean(axis=0), (BOX,)),
    Call("var", lambda work, x: work.var(x, axis=1), lambda x: x.var(axis=1), (BOX,)),
    _plain("linear", lambda x, w, b: x @ w.T + b, MATRIX, SQUARE, VECTOR),
    _plain("matmul", np.matmul, MATRIX, SQUARE),
    _plain("matrix_transpose", lambda x: x.swapaxes(-1, -2), BOX, view=True),
    Call(
        "permute_dims",
        lambda work, x: work.permute_dims(x, (1, -1, 0)),
        lambda x: x.transpose(1, 2, 0),
        (BOX,),
        view=True,
    ),
    _plain("softmax", _softmax, MATRIX),
    _plain("mean_squared_error", lambda x, y: np.mean((x - y) ** 2), MATRIX, POSITIVE),
    Call(
        "softmax_cross_entropy",
        lambda work, x: work.softmax_cross_entropy(x, LABELS),
        lambda x: -np.log(_softmax(x)[np.arange(2), LABELS]).mean(),
        (MATRIX,),
    ),
    Call(
        "conv2d",
        lambda work, x, w, b: work.conv2d(x, w, b, stride=2),
        _conv2d,
        (IMAGE, FILTERS[:2], VECTOR[:2]),
    ),
    Call(
        "max_pool2d",
        lambda work, x: work.max_pool2d(x, 3, 1),
        lambda x: _windows(x, 3, 1).max(axis=(4, 5)),
        (IMAGE,),
    ),
    Call(
        "max_pool2d",
        lambda work, x: work.max_pool2d(x, 3, 2),
        lambda x: _windows(x, 3, 2).max(axis=(4, 5)),
        (IMAGE,),
    ),
    Call(
        "embedding",
        lambda work, w: work.embedding(LABELS, w),
        lambda w: w[LABELS],
        (SQUARE,),
    ),
    _plain("scaled_dot_product_attention", _attention, SEQUENCE, SEQUENCE[::-1], SEQUENCE**2),
    _plain("layer_norm", _layer_norm, MATRIX, VECTOR, VECTOR + 1),
)


def _three_times(y: Any) -> Any:
    return y + y + y


def check_earlier_lessons(work: Any) -> None:
    """All so far: right values and gradients, float32 stays, no foreign array is written"""
    if not hasattr(work, "Variable"):
        return
    has_backward = hasattr(work.Variable, "backward")  # from step 4
    for one in CALLS:
        if hasattr(work, one.name) and hasattr(work, one.since):
            _check_operation(work, one, has_backward)
    if has_backward:
        _check_numbers(work)
        _check_seeds(work)
    if hasattr(work, "using_config"):  # from step 10
        _check_settings(work)
    if hasattr(work, "softmax_cross_entropy"):  # from step 9
        nn = importlib.import_module(f"{work.__name__}.nn")
        _check_optimizers(nn)
        _check_layers(work, nn)


def _check_operation(work: Any, one: Call, has_backward: bool) -> None:
    def function(*xs: Any) -> Any:
        return one.call(work, *xs)

    y = function(*[work.Variable(array.copy()) for array in one.inputs])
    look = f"the forward of {one.name}"
    expect_close(f"the value of {one.name}", y.array, one.value(*one.inputs), look)
    if has_backward:
        look = f"the backward of {one.name}"
        expect_gradients(one.name, function, one.inputs, work.Variable, look)
    if hasattr(work, "sum_to"):  # from step 7: broadcasting gives views that cannot be written
        _expect_writable(work, one, function)
    expect_careful(
        work, one.name, function, *one.inputs, view=one.view, backward=has_backward, again=False
    )


def _expect_writable(work: Any, one: Call, function: Callable[..., Any]) -> None:
    xs = [work.Variable(array.copy()) for array in one.inputs]
    y = function(*xs)
    y.grad = np.ones_like(y.array)
    y.backward()
    look = "np.broadcast_to gives a view: np.broadcast_to(...).copy()"
    for i, x in enumerate(xs):
        what = f"the gradient of input {i} of {one.name} can be written"
        expect_true(what, x.grad.flags.writeable, look)


def _check_numbers(work: Any) -> None:
    x = work.Variable(np.array([0.5, -2.0], np.float32))
    look = "as_operands: a number beside float32 is float32 too"
    for name, y in (("x + 2.0", x + 2.0), ("3.0 - x", 3.0 - x), ("x * np.ones(2)", x * 1.5)):
        expect_equal(f"the dtype of {name}, for x of float32", str(y.array.dtype), "float32", look)


def _check_seeds(work: Any) -> None:
    """The beginning of y.backward(), and its sums."""
    for seed, expected in ((None, -1.0), (np.zeros(1, np.float32), 0.0)):
        x = work.Variable(np.array([0.5], np.float32))
        y = work.negative(x)
        y.grad = seed
        y.backward()
        given = "none" if seed is None else "a zero"
        look = "backward: without y.grad, begin with ones of the shape and dtype of y"
        expect_close(f"the gradient of -x, with {given} in y.grad", x.grad, [expected], look)
        dtype = str(x.grad.dtype)
        expect_equal("the dtype of this gradient, for float32", dtype, "float32", look)
    if hasattr(x, "cleargrad"):  # from step 5
        y = work.negative(x)
        y.backward()
        look = "run_backward, write_to_leaves: x.grad + gx, without another dtype"
        expect_equal("the dtype of a sum of gradients", str(x.grad.dtype), "float32", look)


def _check_settings(work: Any) -> None:
    look = "configuration.py: using_config sets the value, and brings the old one back"
    for before in (True, False):
        work.config.train = before
        try:
            for value in (True, False):
                with work.using_config("train", value):
                    what = f"config.train inside of using_config('train', {value})"
                    expect_equal(what, work.config.train, value, look)
                expect_equal("config.train afterwards", work.config.train, before, look)
            try:
                with work.using_config("train", not before):
                    raise LookupError
            except LookupError:
                what = "config.train after an error in the block"
                expect_equal(what, work.config.train, before, look)
        finally:
            work.config.train = True


def _check_optimizers(nn: Any) -> None:
    """Three parameters and two updates, against the formulas."""
    settings = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.01}
    _expect_updates(nn.SGD, {"lr": 0.1}, nn.Parameter, lambda t, p, g: p - 0.1 * g[-1])
    _expect_updates(nn.Adam, settings, nn.Parameter, _adam)
    if hasattr(nn, "AdamW"):
        decay = {**settings, "weight_decay": 0.5}
        _expect_updates(nn.AdamW, decay, nn.Parameter, lambda t, p, g: _adam(t, p * 0.95, g))


def _check_layers(work: Any, nn: Any) -> None:
    """First values by the seed, and the arguments of layers."""
    weights = []
    for number in (1, 2, 1):
        work.seed(number)
        weights.append(nn.Linear(3, 2).weight.array)
    expect_equal("the same first weights after the same seed", weights[2], weights[0], "seed")
    differ = not np.array_equal(weights[0], weights[1])
    expect_true("other first weights after another seed", differ, "seed: default_rng(n)")
    if hasattr(nn, "Embedding"):  # from step 17
        rows = nn.Embedding(5, 4).weight.array
        expect_true("the rows of an Embedding differ at first", np.std(rows) > 0, "nn.Embedding")
    if hasattr(nn, "MaxPool2d"):  # from step 16
        y = nn.MaxPool2d(3, 2)(work.Variable(IMAGE))
        expected = _windows(IMAGE, 3, 2).max(axis=(4, 5))
        expect_close("the value of MaxPool2d(3, 2)", y.array, expected, "nn.MaxPool2d: the stride")


def _adam(t: int, p: Any, gradients: list[Any]) -> Any:
    """Step t of Adam with lr=0.1, betas=(0.8, 0.95) and eps=0.01, by the sums over all steps."""
    m = sum(0.2 * 0.8 ** (t - 1 - k) * g for k, g in enumerate(gradients))
    v = sum(0.05 * 0.95 ** (t - 1 - k) * g**2 for k, g in enumerate(gradients))
    return p - 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.95**t)) + 0.01)


def _expect_updates(
    optimizer: Any, settings: dict[str, Any], parameter: Any, formula: Callable[..., Any]
) -> None:
    name = optimizer.__name__
    values = [np.array([1.0, -2.0]), np.array([[0.5]]), np.array([3.0, 0.25, -1.0])]
    parameters = [parameter(value.copy()) for value in values]
    made = optimizer(iter(parameters), **settings)  # the parameters come one by one
    gradients: list[list[Any]] = [[] for _ in values]
    for t in (1, 2):
        for i, p in enumerate(parameters):
            gradients[i].append(np.cos(np.arange(p.array.size) + i + t).reshape(p.array.shape))
            p.grad = gradients[i][-1].copy()
        made.update()
        values = [formula(t, value, gradients[i]) for i, value in enumerate(values)]
        for i, (p, value) in enumerate(zip(parameters, values, strict=True)):
            what = f"parameter {i} of three after update {t} of {name}"
            expect_close(what, p.array, value, f"{name}: each parameter has moments of its own")
    expect_true("the parameters are still there", len(list(made.parameters)) == 3, "Optimizer")
