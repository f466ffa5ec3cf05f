"""All steps of an LSTM or GRU in one function agree with the steps one by one, in all modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import InvalidType
from tinynode.functions.recurrent import (
    GRUSteps,
    LSTMSteps,
    all_steps,
    gru_step,
    lstm_step,
)

STEPS, ROWS, SIZE = 4, 2, 3


def inputs(kind: str) -> list[tn.Variable]:
    """x, the states, the weight, and the bias of a GRU."""
    rng = np.random.default_rng(1)
    gates = {"LSTM": 4, "GRU": 3}[kind] * SIZE
    states = [(ROWS, SIZE)] * (2 if kind == "LSTM" else 1)
    shapes = [(STEPS, ROWS, gates), *states, (gates, SIZE)]
    if kind == "GRU":
        shapes.append((gates,))
    return [tn.Variable(rng.standard_normal(s)) for s in shapes]


def in_one(kind: str, reverse: bool) -> Callable[..., list[tn.Variable]]:
    """The states by one function."""
    node = {"LSTM": LSTMSteps, "GRU": GRUSteps}[kind]
    return lambda *xs: list(node(reverse).apply(xs)[: node.states])


def one_by_one(kind: str, reverse: bool) -> Callable[..., list[tn.Variable]]:
    """The states by differentiable functions for each step."""

    def run(x: Any, *others: Any) -> list[tn.Variable]:
        if kind == "LSTM":
            states, weights, step = others[:2], (others[2], None), lstm_step
        else:
            states, weights, step = others[:1], others[1:], gru_step
        found = all_steps(step, fn.unstack(x), states, weights, reverse)
        return [fn.stack(one) for one in zip(*found, strict=True)]

    return run


def loss(states: list[tn.Variable], used: str) -> tn.Variable:
    """A loss of all states, of h alone, or of c alone."""
    chosen = {"all": states, "h": states[:1], "c": states[1:]}[used]
    return sum((fn.sum(fn.sin(y) * (k + 1.0)) for k, y in enumerate(chosen)), tn.asarray(0.0))


CASES = [("LSTM", "all"), ("LSTM", "h"), ("LSTM", "c"), ("GRU", "all")]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("kind", "used"), CASES)
def test_gradients_of_both_orders_are_those_of_the_steps(
    kind: str, used: str, reverse: bool
) -> None:
    results = []
    for make in (in_one, one_by_one):
        xs = inputs(kind)
        y = loss(make(kind, reverse)(*xs), used)
        first = tn.grad([y], xs, enable_double_backprop=True)
        again = tn.grad([sum(fn.sum(gx**2) for gx in first)], xs)
        plain = tn.grad([loss(make(kind, reverse)(*xs), used)], xs)
        results.append([y, *first, *again, *plain])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one.array, other.array, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_only_the_gradients_asked_for_are_computed(kind: str) -> None:
    xs = inputs(kind)
    whole = tn.grad([loss(in_one(kind, False)(*xs), "all")], xs)
    for position, wanted in enumerate(whole):
        (gx,) = tn.grad([loss(in_one(kind, False)(*xs), "all")], [xs[position]])
        np.testing.assert_array_equal(gx.array, wanted.array)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_transforms_agree(kind: str) -> None:
    x, *others = inputs(kind)

    def gradients(make: Any) -> Callable[..., Any]:
        def run(x: tn.Variable) -> Any:
            y = loss(make(kind, False)(x, *others), "all")
            (gx,) = tn.grad([y], [x], enable_double_backprop=True)
            return gx

        return run

    examples = tn.asarray(np.stack([x.array, 2.0 * x.array]))
    direction = tn.asarray(np.ones(x.shape))

    def losses(make: Any) -> Callable[..., Any]:
        return lambda x: loss(make(kind, False)(x, *others), "all")

    found = []
    for make in (in_one, one_by_one):
        run = gradients(make)
        found.append(
            [
                tn.vmap(run)(examples),
                tn.compile(run)(x),
                tn.jvp(losses(make), (x,), (direction,))[1],
                tn.hvp(losses(make), x, direction),
                tn.grad([tn.checkpoint(losses(make), x)], [x])[0],
            ]
        )
    for one, other in zip(*found, strict=True):
        one, other = [y[-1] if isinstance(y, tuple) else y for y in (one, other)]
        np.testing.assert_allclose(one.array, other.array, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_shapes_that_do_not_fit_are_refused(kind: str) -> None:
    for position in range(len(inputs(kind))):
        xs = inputs(kind)
        xs[position] = xs[position][..., :-1]
        with pytest.raises(InvalidType, match=r"(?s)Expect: .*in_types.*Try: give the layer's"):
            in_one(kind, False)(*xs)
