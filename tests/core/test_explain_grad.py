"""explain_grad: each reason for a gradient, or for none, is told from the others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import OperandError

F = tn.functions
DEVICES = ["numpy", "strict", "fast"]


def leaf(name: str | None = "w", values: object = (1.0, 2.0, 3.0), **options: bool) -> tn.Variable:
    return tn.Variable(np.asarray(values, dtype="float64"), name=name, **options)


def words(text: str) -> str:
    """A text with its line breaks as blanks: where a line breaks is no part of the reason."""
    return " ".join(text.split())


def assert_says(text: str, *parts: str, but_not: tuple[str, ...] = ()) -> None:
    told = words(text)
    for part in parts:
        assert part in told, told
    for part in but_not:
        assert part not in told, told


# --- there is none, by the variable itself ---------------------------------------------------


def test_empty() -> None:
    assert_says(tn.Variable(name="w").explain_grad(), "w.grad is None: the variable is empty")


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_no_floating_dtype(dtype: str) -> None:
    x = tn.Variable(np.ones(2, dtype))
    assert_says(
        x.explain_grad(), f"it is {dtype}, and only floating", but_not=("requires_grad=False",)
    )


def test_no_gradient_required() -> None:
    w = leaf()
    h = F.exp(leaf(requires_grad=False))
    for x in (leaf(requires_grad=False), tn.as_variable(np.ones(2)), w.detach(), h):
        text = x.explain_grad()
        assert_says(text, "it requires no gradient", "requires_grad=False", "detach()")
        assert_says(text, "as_variable", "none of which requires a gradient")


def test_a_buffer_is_known_as_one() -> None:
    text = nn.Buffer(np.ones(2)).explain_grad()
    assert_says(text, "it is a Buffer", but_not=("as_variable",))


def test_never_used() -> None:
    w = leaf()
    with tn.no_backprop_mode():
        h = w * 2.0
    assert_says(w.explain_grad(), "no recorded function has used it", "no_backprop_mode()")
    assert_says(h.explain_grad(), "it requires no gradient", "under no_backprop_mode()")
    w * 2.0  # a recorded function: from now on it has been used
    assert_says(w.explain_grad(), "it is a leaf", but_not=("no recorded function",))


def test_a_replaced_array_of_another_shape_is_a_new_leaf() -> None:
    w = leaf()
    (w * w).sum()
    w.array = np.ones(5)
    assert_says(w.explain_grad(), "replaced by one of another shape")


def test_a_leaf_without_backward_and_one_that_was_cleared_are_not_told_apart() -> None:
    w = leaf()
    y = (w * w).sum()
    before = w.explain_grad()
    y.backward()
    w.cleargrad()
    assert w.explain_grad() == before
    assert_says(before, "no backward has run", "cleargrad()", "y does not depend on it")
    assert_says(before, "w.explain_grad(y) says")


def test_an_intermediate() -> None:
    w = leaf()
    h = w * w
    h.name = "h"
    y = F.exp(h).sum()
    text = h.explain_grad()
    assert_says(text, "computed by Multiply", "retain_grad=True", "1; 0 of them have one")
    y.backward()
    assert_says(h.explain_grad(), "h.grad is None", "1; 1 of them has one")


def test_an_unchained_variable() -> None:
    h = leaf() * 2.0
    h.unchain()
    assert_says(h.explain_grad(), "unchain()", "its rank is 1", but_not=("computed by",))


def test_what_a_function_retained_may_stand_for_another_variable() -> None:
    w = leaf()
    y = w * w
    old, _ = y.creator_node.get_retained_inputs()
    assert old is w
    w.array = np.ones(3)
    fresh, _ = y.creator_node.get_retained_inputs()
    assert fresh is not w
    assert_says(fresh.explain_grad(), "another Variable stands in its place")
    y.sum().backward()
    assert w.grad is not None and fresh.grad is None


# --- there is none, seen from a result -------------------------------------------------------


def test_reached_but_not_there() -> None:
    w = leaf()
    y = (w * w + F.exp(w)).sum()
    y.name = "loss"
    text = w.explain_grad(y)
    assert_says(text, "loss depends on it (by ", "Multiply", "Exp", "loss.backward() has not run")
    y.backward()
    assert w.grad is not None


def test_a_function_without_a_gradient_is_named_as_a_reason() -> None:
    w = leaf()
    y = F.floor(w).sum()
    y.backward()
    assert w.grad is None
    assert_says(w.explain_grad(y), "y depends on it (by Floor)", "it is not differentiable")
    assert tn.grad([y], [w]) == [None]  # what it advises to try


def test_an_intermediate_seen_from_a_result() -> None:
    h = leaf() * 2.0
    y = F.exp(h).sum()
    text = h.explain_grad(y)
    assert_says(text, "y depends on it (by Exp), and it was computed by Multiply")
    y.backward(retain_grad=True)
    assert h.grad is not None


def test_the_variable_that_backward_starts_from() -> None:
    y = leaf().sum()
    y.backward()
    assert_says(y.explain_grad(y), "it is the variable that backward starts from")
    w = leaf()
    assert_says(w.explain_grad(w), "w has no recorded graph behind it: it is a leaf")


def test_not_reached() -> None:
    w, v = leaf(), leaf("v")
    (w * v).sum()
    y = (v * v).sum()
    text = w.explain_grad(y)
    assert_says(text, "y does not depend on it", "It depends on v ((3,), float64)")
    assert_says(text, but_not=("as another variable", "cut by"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("way", ["array", "detach", "Variable"])
def test_the_array_went_in_without_the_variable(device: str, way: str) -> None:
    w = tn.asarray([1.0, 2.0], device=device)
    v = tn.asarray([3.0, 4.0], device=device)
    with tn.using_device(device):
        again = tn.Variable(w.array)
    other = {"array": w.array, "detach": w.detach(), "Variable": again}[way]
    y = (v * other).sum()
    assert_says(
        w.explain_grad(y), "y does not depend on it", "as another variable", "Give x itself"
    )
    assert_says(v.explain_grad(y), "y depends on it")


def test_the_array_went_in_where_nothing_was_retained() -> None:
    w, v = leaf(), leaf("v")
    constant = w.detach()
    y = (v + constant).sum()  # Add retains nothing: the array is known as long as constant lives
    assert_says(w.explain_grad(y), "as another variable")


def test_a_way_through_whole_numbers_is_none_for_a_gradient() -> None:
    w, v = leaf(), leaf("v")
    y = F.sum(F.take(v, F.argmax(w, keepdims=True, axis=0)))
    assert_says(w.explain_grad(y), "y was computed with it, but only through", "argmax")
    y.backward()
    assert w.grad is None and v.grad is not None


def test_the_graph_was_cut() -> None:
    w, v = leaf(), leaf("v")
    h = w * w
    h.name = "h"
    y = (h * v).sum()
    assert_says(w.explain_grad(y), "y depends on it (by Multiply)")
    h.unchain()
    assert_says(
        w.explain_grad(y), "does not depend on it", "cut by unchain()", "h ((3,), float64)"
    )


def test_a_result_without_a_graph() -> None:
    w = leaf()
    w * w
    with tn.no_backprop_mode():
        y = w * w
    assert_says(w.explain_grad(y), "y requires no gradient", "no_backprop_mode()")
    z = w * w
    z.unchain()
    assert_says(w.explain_grad(z), "y has no recorded graph", "cut it off")
    assert_says(w.explain_grad(z.detach()), "y requires no gradient")


def test_a_reason_of_the_variable_itself_goes_before_what_a_result_says() -> None:
    v = leaf("v")
    y = (v * v).sum()
    assert_says(tn.Variable(np.arange(3)).explain_grad(y), "it is int64")


@pytest.mark.slow
def test_a_graph_of_100000_functions() -> None:
    w, v = leaf(), leaf("v")
    w * v
    y = v
    for _ in range(100_000):
        y = y + 1.0
    assert_says(w.explain_grad(y), "y does not depend on it")
    assert_says(v.explain_grad(y), "y depends on it (by Add")
    assert_says(y.explain_grad(), "Leaves behind it that require a gradient: 1;")


def test_a_graph_with_more_ways_than_one_can_walk() -> None:
    w, y = leaf(), leaf("v")
    for _ in range(200):
        y = y + y
    assert_says(w.explain_grad(y), "y does not depend on it")


def test_many_leaves_are_counted() -> None:
    w, others = leaf(), [leaf(f"v{i}") for i in range(20)]
    w * others[0]
    y = others[0]
    for other in others[1:]:
        y = y + other
    assert_says(w.explain_grad(y), "and 14 more")


# --- there is one ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_leaf_with_a_gradient(device: str) -> None:
    w = tn.asarray([3.0, -4.0], device=device)
    (w * w).sum().backward()
    text = w.explain_grad()
    assert_says(
        text,
        f"The gradient of this variable (x) is there: shape (2,), float32, on {w.device}; norm 10",
    )
    assert_says(text, "entries from -8 to 6", "Each backward pass that reaches it adds to it")
    assert_says(text, but_not=("graph of its own", "retain_grad", "assigned"))


def test_a_kept_gradient_of_an_intermediate() -> None:
    h = leaf() * 2.0
    h.sum().backward(retain_grad=True)
    assert_says(h.explain_grad(), "computed by Multiply", "retain_grad=True")


def test_a_gradient_of_nan_of_zeros_and_of_nothing() -> None:
    w = leaf()
    w.grad = np.asarray([1.0, np.nan, np.inf])
    assert_says(w.explain_grad(), "2 of its 3 entries are nan or inf", "debug=True")
    w.grad = np.zeros(3)
    assert_says(w.explain_grad(), "all of it is 0")
    none = leaf(values=np.zeros((0, 2)))
    none.grad = np.zeros((0, 2))
    assert_says(none.explain_grad(), "it has no entries")


def test_a_gradient_of_double_backprop_and_an_assigned_one() -> None:
    w = leaf()
    (w * w * w).sum().backward(enable_double_backprop=True)
    assert_says(w.explain_grad(), "grad_var can be differentiated")
    constant = leaf(requires_grad=False)
    constant.grad = np.ones(3)
    assert_says(constant.explain_grad(), "It was assigned")


def test_a_gradient_of_an_array_that_was_replaced() -> None:
    w = leaf()
    (w * w).sum().backward()
    w.array = np.ones(5)
    assert_says(w.explain_grad(), "shape (3,)", "another shape than the array, (5,)")


# --- the text itself -------------------------------------------------------------------------


def test_nothing_changes() -> None:
    w = leaf()
    h = w * w
    y = h.sum()
    for _ in range(2):
        for x in (w, h, y):
            x.explain_grad()
            x.explain_grad(y)
    assert w.grad is None and h.grad is None and y.grad is None and leaf()._node is None
    fresh = leaf()
    fresh.explain_grad(y)
    assert fresh._node is None  # asking makes no node: the answer would change by it
    y.backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_prompt_shows_it_as_print_does_and_lines_are_short() -> None:
    w = leaf("a_rather_long_name_of_a_variable_in_a_program" * 2)
    w * w
    text = w.explain_grad()
    assert repr(text) == str(text) and "\n" in text
    assert max(map(len, leaf().explain_grad().splitlines())) <= 92
    assert str(pickle.loads(pickle.dumps(text))) == str(text)


def test_y_must_be_a_variable() -> None:
    with pytest.raises(OperandError, match="explain_grad: y must be a Variable or None, got list"):
        leaf().explain_grad([1])


def test_the_optimizer_names_the_parameter_the_reason_and_what_to_try() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(tn.TinynodeError) as caught:
        nn.SGD(model).update()
    assert_says(str(caught.value), "parameter weight", "no backward ran", "loss.backward()")
