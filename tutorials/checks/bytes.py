"""Checks of the elective bytes: the count of a training step, and a checkpoint."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_gradients,
    expect_true,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_bytes_of": Hint(
        "Two arrays may be one memory. How do you count a memory once?",
        "A dictionary by id of the base array: while isinstance(array.base, np.ndarray): "
        "array = array.base.",
    ),
    "check_step_bytes": Hint(
        "Which four kinds of arrays does a step of training hold, and in which two kinds "
        "would a weight be counted?",
        "parameters, gradients, moments, activations = (weights and kept arrays together) - "
        "weights.",
    ),
    "check_gradients": Hint(
        "backward has the inputs and no graph. What must run again before a gradient can exist?",
        "New Variables of the inputs, the function again, y.grad = the incoming gradient, "
        "y.backward(), the grad of each leaf.",
    ),
    "check_bits": Hint(
        "Which of your lines computes something else than the function without a checkpoint?",
        "The same function on the same numbers; None for an input that wants no gradient.",
    ),
    "check_kept": Hint(
        "What exists between forward and backward, and what must not?",
        "forward runs in no_backprop_mode and retains the inputs only.",
    ),
    "check_dropout": Hint(
        "The function draws random numbers. Which numbers does the second run draw?",
        "forward keeps the generator's state; backward notes the state of now, sets the kept "
        "one, runs, sets the noted one again.",
    ),
    "check_again": Hint(
        "What is left in your object from the first backward pass?",
        "New Variables in each backward.",
    ),
}

MEMORY = "memory.py, bytes_of: each memory once, and all of its bytes"
LOOK = "functions/checkpoint.py, Checkpoint"


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """In this block, the garbage collector does not run."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def layer(work: Any) -> Any:
    """tanh(x W^T + b), as a function of Variables."""

    def function(x: Any, w: Any, b: Any) -> Any:
        return work.tanh(work.linear(x, w, b))

    return function


def inputs(seed: int, dtype: str = "float64") -> list[Any]:
    """x: (4, 3), w: (2, 3) and b: (2)."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for shape in ((4, 3), (2, 3), (2,))]


def check_bytes_of(work: Any) -> None:
    """bytes_of counts each memory once"""
    from mynode.memory import bytes_of

    a, b = np.zeros(10), np.zeros((2, 3), dtype=np.float32)
    expect_equal("bytes_of of no arrays", bytes_of([]), 0, MEMORY)
    expect_equal("bytes_of of float64 (10) and float32 (2, 3)", bytes_of([a, b]), 104, MEMORY)
    expect_equal("bytes_of of the same array three times", bytes_of([a, a, a]), 80, MEMORY)
    views = [a.reshape(2, 5), a[:4], b.T]
    expect_equal(
        "bytes_of of two views of an array, and one of another", bytes_of(views), 104, MEMORY
    )
    expect_equal("bytes_of of a view of a view", bytes_of([a[2:][3:]]), 80, MEMORY)


def trained(work: Any, optimizer_of: Any, dtype: str = "float64") -> tuple[Any, Any]:
    """A loss after backward, and the optimizer; one update has been made."""
    from mynode import nn

    x, w, b = inputs(1, dtype)
    unused = np.zeros(7, dtype=dtype)
    optimizer = optimizer_of([nn.Parameter(w), nn.Parameter(b), nn.Parameter(unused)])
    loss: Any = None
    for number in range(2):
        optimizer.cleargrads()
        x_variable = work.Variable(x, requires_grad=False)
        w_now, b_now, unused_now = optimizer.parameters
        y = layer(work)(x_variable, w_now, b_now)
        loss = work.sum(work.square(y))
        loss.backward()
        if number == 0:
            unused_now.grad = np.zeros_like(unused)
            optimizer.update()
    return loss, optimizer


def check_step_bytes(work: Any) -> None:
    """step_bytes counts four kinds"""
    from mynode import nn
    from mynode.memory import step_bytes

    look = "memory.py, step_bytes: 6 + 2 + 7 parameters; 7 have no gradient in this step"
    for dtype, size in (("float64", 8), ("float32", 4)):
        loss, optimizer = trained(work, nn.Adam, dtype)
        found = step_bytes(loss, optimizer)
        kinds = ["activations", "gradients", "moments", "weights"]
        if not isinstance(found, dict) or sorted(found) != kinds:
            raise CheckFailed(
                "step_bytes(loss, optimizer)", f"a dictionary of {kinds}", repr(found), look
            )
        expect_equal(f"weights, {dtype}", found["weights"], 15 * size, look)
        expect_equal(f"gradients, {dtype}", found["gradients"], 8 * size, look)
        expect_equal(f"moments of Adam, {dtype}", found["moments"], 30 * size, look)
        look = "kept: x (4, 3), and y (4, 2), which tanh and square keep both; W is no activation"
        expect_equal(f"activations, {dtype}", found["activations"], (12 + 8) * size, look)
    loss, optimizer = trained(work, nn.SGD)
    expect_equal("moments of SGD", step_bytes(loss, optimizer)["moments"], 0, look)


def check_gradients(work: Any) -> None:
    """a checkpoint has the value and the gradients of its function"""
    from mynode.functions.checkpoint import checkpoint

    function = layer(work)

    def by_checkpoint(*xs: Any) -> Any:
        return checkpoint(function, *xs)

    arrays = inputs(2)
    y = by_checkpoint(*map(work.Variable, arrays))
    plain = function(*map(work.Variable, arrays))
    expect_equal("checkpoint(function, x, w, b)", y, plain.array, f"{LOOK}.forward")
    look = f"{LOOK}.backward: y.grad = grad_outputs[0], then y.backward()"
    expect_gradients("a checkpoint", by_checkpoint, arrays, work.Variable, look)


def check_bits(work: Any) -> None:
    """two checkpoints in a row give the same bits as none"""
    from mynode.functions.checkpoint import checkpoint

    function = layer(work)

    def gradients(call: Any) -> Any:
        x, w, b = (work.Variable(a) for a in inputs(3))
        x.requires_grad = x.node.requires_grad = False
        y = call(x, w, b)
        v, c = (work.Variable(a) for a in inputs(4)[1:])
        work.sum(call(work.linear(y, work.Variable(np.ones((3, 2)))), v, c)).backward()
        return [one.grad for one in (x, w, b, v, c)]

    def by_checkpoint(*xs: Any) -> Any:
        return checkpoint(function, *xs)

    right, found = gradients(function), gradients(by_checkpoint)
    for name, one, other in zip(("x", "w", "b", "v", "c"), right, found, strict=True):
        if one is None:
            expect_true("x, which requires no gradient, has none", other is None, LOOK)
        else:
            expect_equal(f"the gradient of {name}", other, one, f"{LOOK}.backward")


def check_kept(work: Any) -> None:
    """between forward and backward, the inputs alone are kept"""
    from mynode.functions.checkpoint import checkpoint

    inner: list[Any] = []
    recorded = []

    def function(x: Any, w: Any) -> Any:
        y = work.tanh(work.linear(x, w))
        inner.append(weakref.ref(y.array))
        recorded.append(work.config.enable_backprop)
        return work.tanh(y)

    with without_collector():
        x, w = (work.Variable(a) for a in inputs(5)[:2])
        y = checkpoint(function, x, w)
        look = f"{LOOK}.forward: with no_backprop_mode():"
        expect_equal("the calls of the function in forward", len(inner), 1, look)
        expect_equal("a graph is recorded in forward", recorded, [False], look)
        expect_true(
            "an array inside of the function is free after forward", inner[0]() is None, look
        )
        expect_true("a graph is recorded after forward", work.config.enable_backprop, look)
        kept = y.creator_node.get_retained_inputs()
        same = len(kept) == 2 and kept[0] is x.array and kept[1] is w.array
        expect_true("the two input arrays are retained, and no copies", same, f"{LOOK}.forward")
        y.grad = np.ones(y.shape)
        y.backward()
        look = f"{LOOK}.backward: call the function again, with new Variables"
        expect_equal("the calls of the function after backward", len(inner), 2, look)
        expect_true("the arrays of the second run are free too", inner[1]() is None, look)


def check_dropout(work: Any) -> None:
    """with dropout, both runs draw the same numbers, and the generator goes on"""
    from mynode import random
    from mynode.functions.checkpoint import checkpoint

    def function(x: Any, w: Any) -> Any:
        return work.dropout(work.linear(work.dropout(x), w), 0.25)

    def both(call: Any) -> Any:
        work.seed(11)
        x, w = (work.Variable(a) for a in inputs(6)[:2])
        y = call(call(x, w), w.array.T.copy()) if call is function else call(x, w)
        y.grad = np.ones(y.shape)
        between = random.get_generator().random(3)
        y.backward()
        return x.grad, w.grad, between, random.get_generator().random(3)

    def plain(x: Any, w: Any) -> Any:
        return function(x, w)

    right = both(plain)
    found = both(lambda *xs: checkpoint(function, *xs))
    look = f"{LOOK}: forward keeps the generator's state, and backward sets it before the run"
    for name, one, other in zip(("x", "w"), right, found, strict=False):
        expect_close(f"the gradient of {name} through dropout", other, one, look, rtol=0, atol=0)
    expect_equal("numbers drawn between forward and backward", found[2], right[2], look)
    look = f"{LOOK}.backward: after the run, set the generator's state of before backward"
    expect_equal("numbers drawn after backward", found[3], right[3], look)


def check_again(work: Any) -> None:
    """a second backward adds the same gradient, and no input changes"""
    from mynode.functions.checkpoint import checkpoint

    def function(x: Any, w: Any) -> Any:
        return work.dropout(work.tanh(work.linear(x, w)))

    arrays = inputs(7)[:2]
    x, w = (work.Variable(a.copy()) for a in arrays)
    y = checkpoint(function, x, w)
    gy = np.random.default_rng(8).normal(size=y.shape)
    y.grad = gy.copy()
    y.backward()
    first = x.grad.copy()
    y.grad = gy.copy()
    y.backward()
    look = f"{LOOK}.backward: new Variables in each call; keep nothing from the last call"
    expect_equal("x.grad after two backward passes", x.grad, first + first, look)
    expect_true(
        "x and w are unchanged",
        all(np.array_equal(one.array, a) for one, a in zip((x, w), arrays, strict=True)),
        look,
    )


_MEMORY, _CHECKPOINT = "memory.py", "functions/checkpoint.py"
_BASE = "        while isinstance(array.base, np.ndarray):\n            array = array.base\n"
_KEPT = "        self.state = get_generator().bit_generator.state\n"

MISTAKES = (
    (
        "an array counts as often as it stands",
        mistake("bytes", _MEMORY, "memories[id(array)]", "memories[len(memories)]"),
    ),
    ("views have a memory of their own", mistake("bytes", _MEMORY, _BASE, "")),
    (
        "a view's own bytes, by the memory of its base",
        mistake(
            "bytes",
            _MEMORY,
            _BASE + "        memories[id(array)] = array.nbytes",
            "        nbytes = array.nbytes\n" + _BASE + "        memories[id(array)] = nbytes",
        ),
    ),
    (
        "elements of 8 bytes",
        mistake("bytes", _MEMORY, "= array.nbytes", "= 8 * array.size"),
    ),
    (
        "weights are activations",
        mistake(
            "bytes",
            _MEMORY,
            "weights + kept_arrays(loss)) - bytes_of(weights)",
            "kept_arrays(loss))",
        ),
    ),
    (
        "the first moment alone",
        mistake("bytes", _MEMORY, "for m in held.values()", "for m in list(held.values())[:1]"),
    ),
    (
        "a gradient for each parameter is supposed",
        mistake(
            "bytes",
            _MEMORY,
            "bytes_of([p.grad for p in parameters if p.grad is not None])",
            "bytes_of(weights)",
        ),
    ),
    (
        "forward records a graph, and keeps it",
        mistake(
            "bytes",
            _CHECKPOINT,
            "        with no_backprop_mode():\n            y = self.function",
            "        y = self.y = self.function",
            ("return (y.array,)", "return (y.array + 0.0,)"),
        ),
    ),
    (
        "the output is kept",
        mistake(
            "bytes",
            _CHECKPOINT,
            "*[Variable(x) for x in inputs])",
            "*[Variable(x) for x in inputs])\n        self.inside = y",
            ("with no_backprop_mode():", "if True:"),
        ),
    ),
    (
        "dropout draws another mask in the second run",
        mistake("bytes", _CHECKPOINT, "        generator.state = self.state\n", ""),
    ),
    (
        "the state is kept after the first run",
        mistake(
            "bytes",
            _CHECKPOINT,
            _KEPT,
            "",
            ("        return (y.array,)\n", _KEPT + "        return (y.array,)\n"),
        ),
    ),
    (
        "the generator stays where the second run ended",
        mistake("bytes", _CHECKPOINT, "        generator.state = later\n", ""),
    ),
    (
        "the generator goes back to forward",
        mistake("bytes", _CHECKPOINT, "generator.state = later", "generator.state = self.state"),
    ),
    (
        "the incoming gradient is ignored",
        mistake("bytes", _CHECKPOINT, "y.grad = grad_outputs[0]", "y.grad = 0.0 * y.array + 1.0"),
    ),
    (
        "the first input alone",
        mistake(
            "bytes",
            _CHECKPOINT,
            "return tuple(x.grad for x in xs)",
            "return tuple(x.grad if x is xs[0] else 0.0 * x.array for x in xs)",
        ),
    ),
    (
        "inputs are copied",
        mistake(
            "bytes",
            _CHECKPOINT,
            "self.retain_inputs(tuple(range(len(inputs))))",
            "self.copies = tuple(x.copy() for x in inputs)",
            ("self.get_retained_inputs()", "self.copies"),
        ),
    ),
    (
        "the second backward finds the gradients of the first",
        mistake(
            "bytes",
            _CHECKPOINT,
            "        xs = []\n",
            "        xs = self.xs = getattr(self, 'xs', [])\n",
            (
                "        return tuple(x.grad for x in xs)",
                "        return tuple(x.grad for x in xs[: len(self.inputs)])",
            ),
            (
                "        y = self.function(*xs)",
                "        y = self.function(*xs[: len(self.inputs)])",
            ),
        ),
    ),
)
