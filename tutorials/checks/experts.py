"""Checks of the elective experts: routing of rows, the gate's gradient, and the balance loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_put_rows": Hint(
        "A row of x went to a place in y. Where does the gradient of this row stand?",
        "y = zeros, np.add.at(y, indices, x); gx = gy[indices].",
    ),
    "check_choose": Hint(
        "Which expert comes first if two have equal logits?",
        "np.argsort(-logits, axis=1, kind='stable')[:, :k].",
    ),
    "check_gate_weights": Hint(
        "Which probabilities stay, and what must their sum be for several experts?",
        "p * mask; for k > 1 divided by the sum of each row.",
    ),
    "check_balance_loss": Hint(
        "Two shares are multiplied: which one has a gradient, and which is counted?",
        "experts * sum of f P: f counts the choices, P = mean(p, axis=0).",
    ),
    "check_layer": Hint(
        "Which rows does one expert see, and how much does its answer count in each?",
        "For each expert: rows that chose it, expert(rows) * weight, put back at the rows.",
    ),
    "check_gradients": Hint(
        "Which way leads from the loss to the gate?",
        "The weight is a Variable: reshape and embedding keep the graph.",
    ),
    "check_balance_of_the_layer": Hint(
        "What does the layer remember of its last call, and as what?",
        "self.balance = balance_loss(p, self.chosen), a Variable.",
    ),
}

ROUTING = "functions/routing.py"
LOOK = "nn/experts.py, Experts.forward"


def numbers(*shape: int, seed: int = 0) -> Any:
    """Normally distributed numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def softmax_of(logits: Any) -> Any:
    """Softmax along the last axis."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def check_put_rows(work: Any) -> None:
    """put_rows adds rows at their places, and sends each gradient back"""
    from mynode.functions.routing import put_rows

    look = f"{ROUTING}, PutRows"
    x = numbers(4, 3)
    for indices in (np.array([5, 0, 2, 1]), np.array([2, 2, 0, 2])):
        right = np.zeros((6, 3))
        np.add.at(right, indices, x)
        y = put_rows(work.Variable(x.copy()), indices, 6)
        expect_close(f"put_rows at {indices}, 6 rows", y, right, f"{look}.forward")

        def function(v: Any, indices: Any = indices) -> Any:
            return put_rows(v, indices, 6)

        expect_gradients(
            f"put_rows at {indices}", function, [x], work.Variable, f"{look}.backward"
        )
    y = put_rows(work.Variable(x.astype("float32")), np.array([3, 1, 0, 2]), 4)
    expect_equal("the dtype of put_rows for float32", str(y.dtype), "float32", f"{look}.forward")
    y.grad = np.ones(y.shape, "float32")
    y.backward()


def check_choose(work: Any) -> None:
    """choose gives the largest logits first, and of equals the first"""
    from mynode.functions.routing import choose

    look = f"{ROUTING}, choose: np.argsort with kind='stable', of -logits"
    logits = np.array([[0.5, 2.0, -1.0, 1.0], [3.0, -2.0, 0.0, 4.0], [-1.0, -4.0, -3.0, -2.0]])
    expect_equal("choose, k = 1", choose(logits, 1), np.array([[1], [3], [0]]), look)
    right = np.array([[1, 3], [3, 0], [0, 3]])
    expect_equal("choose, k = 2", choose(logits, 2), right, look)
    equal = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    expect_equal("choose of equal logits", choose(equal, 2), np.array([[0, 1], [1, 2]]), look)


def check_gate_weights(work: Any) -> None:
    """gate_weights for one and for several experts, with gradients"""
    from mynode.functions.routing import gate_weights

    look = f"{ROUTING}, gate_weights"
    logits = numbers(5, 4, seed=1)
    p = softmax_of(logits)
    order = np.argsort(-logits, axis=1)
    for k in (1, 2, 3):
        chosen = order[:, :k]
        right = np.zeros_like(p)
        np.put_along_axis(right, chosen, np.take_along_axis(p, chosen, 1), 1)
        right = right if k == 1 else right / right.sum(axis=1, keepdims=True)
        hint = f"{look}: p itself" if k == 1 else f"{look}: divide by the sum of each row"
        expect_close(f"gate_weights, k = {k}", gate_weights(work.Variable(p), chosen), right, hint)

        def function(v: Any, chosen: Any = chosen) -> Any:
            return gate_weights(work.softmax(v), chosen)

        expect_gradients(f"gate_weights, k = {k}", function, [logits], work.Variable, hint)


def check_balance_loss(work: Any) -> None:
    """balance_loss, and its gradient by the means of p alone"""
    from mynode.functions.routing import balance_loss

    look = f"{ROUTING}, balance_loss: experts * sum of f * P; f sums to 1"
    even = np.full((4, 4), 0.25)
    chosen = np.arange(4)[:, None]
    expect_close(
        "balance_loss of even shares", balance_loss(work.Variable(even), chosen), 1.0, look
    )
    p = softmax_of(numbers(6, 3, seed=2))
    for k in (1, 2):
        chosen = np.argsort(-p, axis=1)[:, :k]
        f = np.array([np.sum(chosen == e) for e in range(3)]) / (6 * k)
        variable = work.Variable(p.copy())
        loss = balance_loss(variable, chosen)
        expect_close(f"balance_loss, k = {k}", loss, 3 * np.sum(f * p.mean(axis=0)), look)
        loss.backward()
        right = np.broadcast_to(3 * f / 6, p.shape)
        expect_close(f"the gradient of balance_loss, k = {k}", variable.grad, right, look)
    loss = balance_loss(work.Variable(p.astype("float32")), chosen)
    expect_equal("the dtype for float32", str(loss.dtype), "float32", look)


def layer_of(work: Any, k: int, seed: int) -> tuple[Any, list[Any], list[Any]]:
    """A layer of four experts, a list of the calls of its experts, and their matrices."""
    from mynode import nn
    from mynode.nn.experts import Experts

    calls: list[Any] = []

    class Noted(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, number: int, weight: Any) -> None:
            self.number = number
            self.weight = nn.Parameter(weight)

        def forward(self, x: Any) -> Any:
            calls.append((self.number, x.array.copy()))
            return work.tanh(work.linear(x, self.weight))

    matrices = [numbers(2, 3, seed=seed + e) for e in range(4)]
    layer = Experts(3, [Noted(e, matrix) for e, matrix in enumerate(matrices)], k)
    layer.gate.weight.array = numbers(4, 3, seed=seed + 10)
    layer.gate.bias.array = np.array([0.0, 0.1, -50.0, 0.2])  # nobody chooses expert 2
    return layer, calls, matrices


def by_hand(x: Any, gate: Any, bias: Any, matrices: list[Any], k: int) -> tuple[Any, Any]:
    """The output of the layer, with all experts for all rows, and the choices."""
    logits = x @ gate.T + bias
    p = softmax_of(logits)
    chosen = np.argsort(-logits, axis=1)[:, :k]
    weights = np.zeros_like(p)
    np.put_along_axis(weights, chosen, np.take_along_axis(p, chosen, 1), 1)
    if k > 1:
        weights = weights / weights.sum(axis=1, keepdims=True)
    y = sum(weights[:, e : e + 1] * np.tanh(x @ w.T) for e, w in enumerate(matrices))
    return y, chosen


def check_layer(work: Any) -> None:
    """the layer adds what the chosen experts give, by their weights"""
    x = numbers(7, 3, seed=5)
    for k in (1, 2):
        layer, calls, matrices = layer_of(work, k, seed=20)
        gate, bias = layer.gate.weight.array, layer.gate.bias.array
        right, chosen = by_hand(x, gate, bias, matrices, k)
        y = layer(work.Variable(x))
        expect_close(f"the output, k = {k}", y, right, LOOK)
        expect_equal(f"layer.chosen, k = {k}", layer.chosen, chosen, f"{LOOK}: keep choose(...)")
        for e in range(4):
            rows = [array for number, array in calls if number == e]
            wanted = x[(chosen == e).any(axis=1)]
            look = f"{LOOK}: an expert is called once, with its rows in order, or not at all"
            expect_equal(
                f"the calls of expert {e}, k = {k}", len(rows), int(len(wanted) > 0), look
            )
            if rows:
                expect_close(f"the rows of expert {e}, k = {k}", rows[0], wanted, look)


def check_gradients(work: Any) -> None:
    """gradients reach the used experts, the gate and x, and no unused expert"""
    x = numbers(6, 3, seed=6)
    gy = numbers(6, 2, seed=7)
    for k in (1, 2):
        layer, _, matrices = layer_of(work, k, seed=30)
        gate, bias = layer.gate.weight.array, layer.gate.bias.array

        def height(
            x: Any, gate: Any, bias: Any = bias, matrices: Any = matrices, k: int = k
        ) -> Any:
            return np.sum(gy * by_hand(x, gate, bias, matrices, k)[0])

        variable = work.Variable(x.copy())
        y = layer(variable)
        y.grad = gy.copy()
        y.backward()
        used = [bool(np.any(layer.chosen == e)) for e in range(4)]
        got = [expert.weight.grad is not None for expert in layer.experts]
        expect_equal(f"which experts have a gradient, k = {k}", got, used, f"{LOOK}: continue")
        look = f"{LOOK}: the weight is a Variable, with a graph back to the gate"
        for name, array, found in (
            ("x", x, variable.grad),
            ("gate.weight", gate, layer.gate.weight.grad),
        ):
            expect_true(f"{name} has a gradient, k = {k}", found is not None, look)
            measured = np.zeros_like(array)
            for index in np.ndindex(*array.shape):
                ends = []
                for step in (1e-6, -1e-6):
                    moved = array.copy()
                    moved[index] += step
                    ends.append(height(moved, gate) if name == "x" else height(x, moved))
                measured[index] = (ends[0] - ends[1]) / 2e-6
            expect_close(
                f"the gradient of {name}, k = {k}", found, measured, look, rtol=1e-5, atol=1e-7
            )


def check_balance_of_the_layer(work: Any) -> None:
    """the layer keeps its balance loss, with a gradient for the gate"""
    x = numbers(6, 3, seed=8)
    layer, _, _ = layer_of(work, 1, seed=40)
    layer(work.Variable(x, requires_grad=False))
    look = f"{LOOK}: self.balance = balance_loss(p, self.chosen)"
    logits = x @ layer.gate.weight.array.T + layer.gate.bias.array
    p = softmax_of(logits)
    f = np.array([np.mean(np.argmax(logits, axis=1) == e) for e in range(4)])
    expect_close("layer.balance", layer.balance, 4 * np.sum(f * p.mean(axis=0)), look)
    layer.balance.backward()
    gp = 4 * f / 6
    right = (p * (gp - (p * gp).sum(axis=1, keepdims=True))).T @ x
    expect_close(
        "the gradient of layer.balance at gate.weight", layer.gate.weight.grad, right, look
    )


_EXPERTS = "nn/experts.py"
_SKIP = "            if rows.size == 0:\n                continue"

MISTAKES = (
    (
        "a row replaces another row at its place",
        mistake("experts", ROUTING, "np.add.at(y, indices, x)", "y[indices] = x"),
    ),
    (
        "the first rows of the gradient",
        mistake("experts", ROUTING, "return gy[indices], None", "return gy[: len(indices)], None"),
    ),
    (
        "float64 for all",
        mistake(
            "experts", ROUTING, "(self.rows, *x.shape[1:]), x.dtype", "(self.rows, *x.shape[1:])"
        ),
    ),
    ("the smallest logits", mistake("experts", ROUTING, "argsort(-logits", "argsort(logits")),
    (
        "of equal logits the last",
        mistake(
            "experts",
            ROUTING,
            'np.argsort(-logits, axis=1, kind="stable")',
            'np.argsort(logits, axis=1, kind="stable")[:, ::-1]',
        ),
    ),
    (
        "the choices in the order of the experts",
        mistake(
            "experts",
            ROUTING,
            'return np.argsort(-logits, axis=1, kind="stable")[:, :k]',
            'return np.sort(np.argsort(-logits, axis=1, kind="stable")[:, :k], axis=1)',
        ),
    ),
    (
        "one expert has the weight 1",
        mistake("experts", ROUTING, "    if chosen.shape[1] == 1:\n        return kept\n", ""),
    ),
    (
        "two weights have any sum",
        mistake(
            "experts",
            ROUTING,
            "    return kept / sum(kept, axis=1, keepdims=True)",
            "    return kept",
        ),
    ),
    (
        "weights without a graph",
        mistake("experts", ROUTING, "kept = p * mask", "kept = Variable(p.array * mask)"),
    ),
    (
        "shares with the sum k",
        mistake("experts", ROUTING, "/ chosen.size", "/ len(chosen)"),
    ),
    (
        "the first choice alone counts",
        mistake(
            "experts",
            ROUTING,
            "np.bincount(chosen.ravel(), minlength=experts) / chosen.size",
            "np.bincount(chosen[:, 0], minlength=experts) / len(chosen)",
        ),
    ),
    (
        "the balance is not times the experts",
        mistake("experts", ROUTING, " * f.astype(p.dtype)) * experts", " * f.astype(p.dtype))"),
    ),
    (
        "a balance without a gradient",
        mistake("experts", ROUTING, "mean(p, axis=0) * f", "mean(Variable(p.array), axis=0) * f"),
    ),
    (
        "all experts compute all rows",
        mistake(
            "experts",
            _EXPERTS,
            "np.flatnonzero((self.chosen == e).any(axis=1))",
            "np.arange(x.shape[0])",
        ),
    ),
    (
        "an expert without rows is called",
        mistake(
            "experts", _EXPERTS, _SKIP, "            if x.shape[0] == 0:\n                continue"
        ),
    ),
    (
        "the weights are forgotten",
        mistake("experts", _EXPERTS, " * take_rows(weights, places)", ""),
    ),
    (
        "the weight of expert 0 for all",
        mistake("experts", _EXPERTS, "rows * len(self.experts) + e", "rows * len(self.experts)"),
    ),
    (
        "the first choice alone computes",
        mistake("experts", _EXPERTS, "(self.chosen == e).any(axis=1)", "self.chosen[:, 0] == e"),
    ),
    (
        "rows come back in another order",
        mistake("experts", _EXPERTS, "put_rows(part, rows,", "put_rows(part, rows[::-1].copy(),"),
    ),
    (
        "the last expert replaces the others",
        mistake("experts", _EXPERTS, "y = part if y is None else y + part", "y = part"),
    ),
    (
        "the balance loss of the logits",
        mistake(
            "experts",
            _EXPERTS,
            "balance_loss(p, self.chosen)",
            "balance_loss(logits, self.chosen)",
        ),
    ),
)
