"""What functions do at the edges, against values worked out by hand.

Finite differences do not see these points: kinks, poles, masked branches, ties, overflow, dtypes
that creep, and inputs that are refused.
"""

from __future__ import annotations

import math
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import GraphError, InvalidType, OperandError, RequiresGradError, dtype_name

on_each_device = pytest.mark.parametrize("device", ["numpy", "strict:device1"])


def variable(values, device="numpy", dtype="float64", **more):
    return tn.asarray(np.asarray(values, dtype), device=device, **more)


def host(x):
    return tn.to_host(x.array)


def derivatives(f, x, order=2):
    """The first derivatives of an elementwise function, by its own gradients; zeros for None."""
    found = []
    y = f(x)
    for _ in range(order):
        gradient = None
        if y is not None:
            (gradient,) = tn.grad([y], [x], enable_double_backprop=True)
        found.append(np.zeros(x.shape) if gradient is None else host(gradient))
        y = gradient
    return found


def assert_derivatives(f, x, *expected):
    with np.errstate(all="ignore"):
        found = derivatives(f, x, len(expected))
    for one, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, values, rtol=1e-14)


# --- ties ----------------------------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize(("f", "sign"), [(fn.max, 1.0), (fn.min, -1.0)])
def test_ties_share_evenly(f, sign, device):
    x = variable([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], device) * sign
    third = 1 / 3
    assert_derivatives(lambda x: f(x, axis=1), x, [[0, 0.5, 0.5], [third] * 3], np.zeros((2, 3)))
    assert_derivatives(f, x, [[0, 0.5, 0.5], [0, 0, 0]], np.zeros((2, 3)))
    assert_derivatives(
        lambda x: f(x, axis=0, keepdims=True), x, [[0, 1, 1], [1, 0, 0]], np.zeros((2, 3))
    )


def test_max_shares_of_ties_follow_the_gradient_of_the_output():
    x = variable([[3.0, 3.0], [1.0, 2.0]])
    gy = variable([6.0, 5.0])
    (gx,) = tn.grad([fn.max(x, axis=1)], [x], [gy], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [[3, 3], [0, 5]])
    (ggy,) = tn.grad([gx], [gy], [variable([[1.0, 5.0], [7.0, 9.0]])])
    np.testing.assert_array_equal(host(ggy), [3, 9])


# --- kinks and powers ----------------------------------------------------------------------------


@on_each_device
def test_kinks_have_gradient_zero(device):
    x = variable([-2.0, -0.0, 0.0, 3.0], device)
    assert_derivatives(fn.relu, x, [0, 0, 0, 1], [0, 0, 0, 0])
    assert_derivatives(fn.abs, x, [-1, 0, 0, 1], [0, 0, 0, 0])


@on_each_device
@pytest.mark.parametrize(
    ("exponent", "first", "second"),
    [(0, 0, 0), (1, 1, 0), (2, 0, 2), (3, 0, 0), (0.5, inf, -inf), (-1, -inf, inf)],
)
def test_powers_at_zero(exponent, first, second, device):
    x = variable([0.0], device)
    assert_derivatives(lambda x: x**exponent, x, [first], [second])
    power = variable([float(exponent)], device, requires_grad=False)
    assert_derivatives(lambda x: x**power, x, [first], [second])


@on_each_device
def test_powers_at_zero_by_the_exponent(device):
    y = variable([0.0, 1.0, 2.0], device)
    x = variable([0.0, 0.0, 0.0], device, requires_grad=False)
    assert_derivatives(lambda y: x**y, y, [0, 0, 0], [0, 0, 0])


def test_a_power_to_zero_leads_back_to_its_base():
    x = variable([2.0, 0.0])
    (gx,) = tn.grad([x**0], [x])
    np.testing.assert_array_equal(host(gx), [0, 0])


@on_each_device
def test_powers_of_exponent_zero_away_from_zero(device):
    """d2/dxdy x^y = x^(y-1) (1 + y ln x), which is 1 / x at y = 0."""
    x, y = variable([2.0, 4.0], device), variable([0.0, 0.0], device)
    (gx,) = tn.grad([x**y], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [0, 0])
    (gxy,) = tn.grad([gx], [y])
    np.testing.assert_allclose(host(gxy), [0.5, 0.25], rtol=1e-15)


@on_each_device
def test_stationary_point_of_the_logarithm_is_not_masked(device):
    x = variable([1.0], device)
    assert_derivatives(lambda x: fn.log(x) ** 2 / 2, x, [0], [1])
    assert_derivatives(lambda x: fn.log(x) * fn.log(x) / 2, x, [0], [1])
    assert_derivatives(lambda x: fn.sqrt(x) - x / 2, x, [0], [-0.25])
    assert_derivatives(lambda x: 1 / x + x, x, [0], [2])


# --- masked branches -----------------------------------------------------------------------------

MASKED = [
    ("log", fn.log, [1, -1, 2]),
    ("sqrt", fn.sqrt, [0.5, -0.25, 0.375]),
    ("number / x", lambda x: 1 / x, [-1, 2, -6]),
    ("array / x", lambda x: fn.divide(x.xp.ones_like(x.array), x), [-1, 2, -6]),
    ("x / x", lambda x: x / x, [0, 0, 0]),
    ("x / x^2", lambda x: x / (x * x), [-1, 2, -6]),
    ("x^0.5", lambda x: x**0.5, [0.5, -0.25, 0.375]),
    ("x^-1", lambda x: x**-1, [-1, 2, -6]),
    ("x^-2", lambda x: x**-2, [-2, 6, -24]),
    ("x^variable", lambda x: x ** variable(0.5, x.device), [0.5, -0.25, 0.375]),
    ("log of sqrt", lambda x: fn.log(fn.sqrt(x)), [0.5, -0.5, 1]),
    ("sqrt of x^3", lambda x: fn.sqrt(x**3), [1.5, 0.75, -0.375]),
]  # fmt: skip


@on_each_device
@pytest.mark.parametrize(
    ("f", "at_one"), [row[1:] for row in MASKED], ids=[row[0] for row in MASKED]
)
def test_masked_branch_gives_zero_and_not_nan(f, at_one, device):
    x = variable([0.0, 1.0], device)
    expected = [[0, value] for value in at_one]
    assert_derivatives(lambda x: fn.where(x > 0, f(x), 0), x, *expected)


INFINITE_OPERANDS = {
    "x log x": lambda x: x * fn.log(x),
    "(log x)^2": lambda x: fn.log(x) ** 2,
    "(log x)^3": lambda x: fn.log(x) ** 3,
    "square": lambda x: fn.square(fn.log(x)),
    "abs": lambda x: fn.abs(fn.sqrt(x - 1.0)) * 1.0,
    "exp(1/x)": lambda x: fn.exp(1 / x),
    "sin(1/x)": lambda x: fn.sin(1 / x),
    "x^1.5": lambda x: (x - 1.0) ** 1.5,
}
"""Functions whose *operand* is infinite or NaN in the masked branch."""


def masked_by_where(x, y):
    return fn.where(x > 0, y, 0.0)


def masked_by_an_index(x, y):
    return y[x > 0]


def masked_by_a_write(x, y):
    y = y * 1.0
    y[x <= 0] = 0.0
    return y


@pytest.mark.parametrize("mask", [masked_by_where, masked_by_an_index, masked_by_a_write])
@pytest.mark.parametrize("name", INFINITE_OPERANDS)
def test_a_masked_operand_that_is_infinite_gives_no_nan(name, mask):
    x = variable([0.0, 2.0])
    alone = variable([2.0])
    f = INFINITE_OPERANDS[name]
    with np.errstate(all="ignore"):
        (gx,) = tn.grad([mask(x, f(x))], [x])
    (expected,) = tn.grad([f(alone)], [alone])
    np.testing.assert_allclose(host(gx), [0.0, host(expected)[0]])


def test_without_a_mask_an_undefined_derivative_stays_undefined():
    x = variable([0.0, 2.0])
    with np.errstate(all="ignore"):
        (gx,) = tn.grad([fn.where(x < 5, x * fn.log(x), 0.0)], [x])
    assert not np.isfinite(host(gx)[0])


@on_each_device
def test_masked_branch_by_the_other_operand(device):
    """0 / y is masked by x, and x ** y by its base: the gradients of y are 0 there."""
    y = variable([0.0, 2.0], device)
    x = variable([0.0, 1.0], device, requires_grad=False)
    assert_derivatives(lambda y: fn.where(y > 0, x / y, 0), y, [0, -0.25], [0, 0.25])
    power = variable([-1.0, 2.0], device)
    assert_derivatives(lambda power: fn.where(x > 0, x**power, 0), power, [0, 0], [0, 0])


def test_masked_branch_with_a_gradient_of_zero_and_of_one():
    """Only where the gradient is zero: elsewhere an infinite derivative stays infinite."""
    x = variable([0.0, 0.0, 4.0, 4.0])
    gy = variable([0.0, 1.0, 0.0, 1.0])
    with np.errstate(divide="ignore"):
        (gx,) = tn.grad([fn.sqrt(x)], [x], [gy])
    np.testing.assert_array_equal(host(gx), [0, inf, 0, 0.25])


def test_masked_branch_of_a_broadcast_operand():
    x = variable([0.0, 1.0])
    y = variable([[0.0], [2.0]])
    with np.errstate(all="ignore"):
        z = fn.where(y > 0, x / y, 0)
        gx, gy = tn.grad([z], [x, y], enable_double_backprop=True)
        gxy, gyy = tn.grad([fn.sum(gx) + fn.sum(gy)], [x, y])
    np.testing.assert_array_equal(host(gx), [0.5, 0.5])
    np.testing.assert_array_equal(host(gy), [[0], [-0.25]])
    np.testing.assert_array_equal(host(gxy), [-0.25, -0.25])
    np.testing.assert_array_equal(host(gyy), [[0], [-0.5 + 0.25]])


def test_zero_safe_multiply_replaces_only_where_both_hold():
    g = variable([0.0, 0.0, 0.0, 2.0, 2.0])
    d = variable([inf, math.nan, 3.0, inf, 3.0])
    z = fn.zero_safe_multiply(g, d)
    np.testing.assert_array_equal(host(z), [0, 0, 0, inf, 6])
    gg, gd = tn.grad([z], [g, d])
    np.testing.assert_array_equal(host(gg), [0, 0, 3, inf, 3])
    np.testing.assert_array_equal(host(gd), [0, 0, 0, 2, 2])
    with np.errstate(invalid="ignore"):
        gg, gd = tn.grad([z], [g, d], [variable([inf, inf, 1.0, 1.0, 1.0])])
    np.testing.assert_array_equal(host(gg), [0, 0, 3, inf, 3])
    np.testing.assert_array_equal(host(gd), [0, 0, 0, 2, 2])


def test_copy_has_memory_of_its_own_and_identity_has_not():
    x = variable([1.0, 2.0])
    assert not np.shares_memory(fn.copy(x).array, x.array)
    assert fn.identity(x).array is x.array and fn.identity(x) is not x


# --- overflow ------------------------------------------------------------------------------------


@on_each_device
def test_sigmoid_far_from_zero(device):
    x = variable([-1000.0, -100.0, 0.0, 100.0, 1000.0], device)
    y = fn.sigmoid(x)
    np.testing.assert_allclose(host(y), [0, math.exp(-100), 0.5, 1, 1], rtol=1e-14)
    tiny = math.exp(-100)
    assert_derivatives(fn.sigmoid, x, [0, tiny, 0.25, tiny, 0], [0, tiny, 0, -tiny, 0])


@on_each_device
def test_log_softmax_of_large_values(device):
    x = variable([[1e5, 0.0], [-1e30, -1e30], [700.0, 710.0]], device)
    y = fn.log_softmax(x)
    low = -10 - math.log1p(math.exp(-10))
    expected = [[0, -1e5], [-math.log(2)] * 2, [low, low + 10]]
    np.testing.assert_allclose(host(y), expected, rtol=1e-12, atol=1e-14)
    (gx,) = tn.grad([y[:, 0]], [x])
    p = math.exp(low)
    np.testing.assert_allclose(host(gx), [[0, 0], [0.5, -0.5], [1 - p, p - 1]], rtol=1e-12)


@on_each_device
def test_cross_entropy_of_huge_scores(device):
    x = variable([[1e4, 0.0, -1e4], [1e4, 0.0, -1e4]], device)
    labels = tn.asarray(np.array([0, 2]), device=device)
    loss = fn.softmax_cross_entropy(x, labels, reduction="sum")
    assert float(loss) == 2e4
    (gx,) = tn.grad([loss], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [[0, 0, 0], [1, 0, -1]])
    (ggx,) = tn.grad([gx], [x])
    np.testing.assert_array_equal(host(ggx), np.zeros((2, 3)))


# --- softmax_cross_entropy and its labels ------------------------------------------------------


@on_each_device
@pytest.mark.parametrize("labels", [[0, 3], [0, -2], [7, 0]])
def test_labels_out_of_range_are_refused(labels, device):
    wrong = next(label for label in labels if label != 0)
    x = variable(np.zeros((2, 3)), device)
    given_labels = tn.asarray(np.array(labels), device=device)
    message = f"softmax_cross_entropy: labels must lie in 0 to 2 .*ignore_label=-1, got {wrong}"
    with pytest.raises(ValueError, match=message):
        fn.softmax_cross_entropy(x, given_labels)
    assert x.grad is None and float(fn.sum(x)) == 0


@on_each_device
@pytest.mark.parametrize("ignore_label", [-1, 1, 99])
def test_ignored_rows_do_not_count(ignore_label, device):
    x = variable([[0.0, 0.0], [5.0, 1.0], [0.0, 0.0]], device)
    labels = tn.asarray(np.array([0, ignore_label, 0]), device=device)
    loss = fn.softmax_cross_entropy(x, labels, ignore_label=ignore_label)
    np.testing.assert_allclose(float(loss), math.log(2), rtol=1e-15)
    (gx,) = tn.grad([loss], [x])
    np.testing.assert_allclose(host(gx), [[-0.25, 0.25], [0, 0], [-0.25, 0.25]], rtol=1e-15)


@on_each_device
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_all_labels_ignored_give_loss_and_gradient_zero(reduction, device):
    x = variable([[1.0, 2.0], [3.0, 4.0]], device)
    labels = tn.asarray(np.array([-1, -1]), device=device)
    loss = fn.softmax_cross_entropy(x, labels, reduction=reduction)
    np.testing.assert_array_equal(host(loss), np.zeros(loss.shape))
    (gx,) = tn.grad([loss], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), np.zeros((2, 2)))
    (ggx,) = tn.grad([gx], [x])
    np.testing.assert_array_equal(host(ggx), np.zeros((2, 2)))


def test_cross_entropy_by_hand():
    x = variable([[0.0, math.log(3)]])
    labels = tn.asarray(np.array([0]))
    loss = fn.softmax_cross_entropy(x, labels)
    np.testing.assert_allclose(float(loss), math.log(4), rtol=1e-15)
    (gx,) = tn.grad([loss], [x], enable_double_backprop=True)
    np.testing.assert_allclose(host(gx), [[-0.75, 0.75]], rtol=1e-15)
    (ggx,) = tn.grad([gx[:, 0]], [x])
    np.testing.assert_allclose(host(ggx), [[3 / 16, -3 / 16]], rtol=1e-14)


# --- dtypes --------------------------------------------------------------------------------------

BESIDE = {
    "x + 2.5": lambda x: x + 2.5,
    "2.5 - x": lambda x: 2.5 - x,
    "x * 2": lambda x: x * 2,
    "2.5 / x": lambda x: 2.5 / x,
    "x ** 2.5": lambda x: x**2.5,
    "2.5 ** x": lambda x: 2.5**x,
    "x // 0.3": lambda x: x // 0.3,
    "x + float64 scalar": lambda x: x + np.float64(2.5),
    "int64 scalar * x": lambda x: np.int64(3) * x,
    "x ** float64 scalar": lambda x: x ** np.float64(2),
    "x * float64 array": lambda x: x * x.device.from_host(np.array([1.5, 2.5])),
    "float64 array - x": lambda x: fn.subtract(x.device.from_host(np.array([1.5, 2.5])), x),
    "where with number": lambda x: fn.where(x > 0, x, 0.5),
    "where with array": lambda x: fn.where(x > 0, x, x.device.from_host(np.array([1.5, 2.5]))),
    "set_item number": lambda x: fn.set_item(x, 0, 0.5),
    "mean": fn.mean,
    "mean with weights": lambda x: fn.mean(x, weights=x.device.from_host(np.array([1.5, 2.5]))),
    "sum": fn.sum,
    "sigmoid": fn.sigmoid,
    "mean_squared_error": lambda x: fn.mean_squared_error(x, x.device.from_host(np.ones(2))),
}


@on_each_device
@pytest.mark.parametrize("name", BESIDE)
def test_float32_does_not_creep_to_float64(name, device):
    x = variable([1.0, 2.0], device, "float32")
    with tn.using_config(debug=True):
        y = BESIDE[name](x)
        assert dtype_name(y.dtype) == "float32"
        (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    assert name == "x // 0.3" or dtype_name(gx.dtype) == "float32"


@on_each_device
@pytest.mark.parametrize(
    "f", [fn.add, fn.subtract, fn.multiply, fn.divide, fn.pow, lambda x, y: fn.where(x > 1, x, y)]
)
def test_two_floats_promote_and_gradients_come_back_in_their_own(f, device):
    x = variable([1.0, 2.0], device, "float32")
    y = variable([[3.0, 4.0]], device, "float64")
    z = f(x, y)
    assert dtype_name(z.dtype) == "float64"
    gx, gy = tn.grad([z], [x, y], enable_double_backprop=True)
    assert [dtype_name(g.dtype) for g in (gx, gy)] == ["float32", "float64"]
    again = tn.grad([fn.sum(gx) + fn.sum(gy)], [x, y])
    assert [dtype_name(g.dtype) for g in again if g is not None] in (
        [],
        ["float32"],
        ["float64"],
        ["float32", "float64"],
    )


def test_bool_and_int_scalars_beside_integers_stay_integers():
    x = tn.asarray(np.array([1, 2], dtype=np.int32))
    assert [dtype_name(y.dtype) for y in (x + 1, x * True, 3 - x, x // 2)] == ["int32"] * 4
    assert dtype_name((x + 0.5).dtype) == "float64"


@on_each_device
def test_integers_get_no_gradient(device):
    x = tn.asarray(np.array([1, 2, 3]), device=device)
    assert not x.requires_grad
    y = x * 2 + x
    assert not y.requires_grad and y.creator_node is None
    w = variable([1.0, 2.0, 3.0], device)
    z = fn.where(x > 1, w, 0)
    fn.sum(z).backward()
    assert x.grad is None
    np.testing.assert_array_equal(tn.to_host(w.grad), [0, 1, 1])
    with pytest.raises(RequiresGradError, match="int64"):
        tn.asarray(np.array([1]), device=device, requires_grad=True)


def test_integer_input_beside_a_float_gets_none():
    x = tn.asarray(np.array([1, 2, 3]))
    w = variable([1.0, 2.0, 3.0])
    gx, gw = tn.grad([x * w], [x, w])
    assert gx is None
    np.testing.assert_array_equal(host(gw), [1, 2, 3])
    casted = fn.astype(w, "int64")
    assert not casted.requires_grad and tn.grad([casted], [w]) == [None]


# --- reading and writing by index ----------------------------------------------------------------


@on_each_device
def test_indexing_reads_what_numpy_reads_and_gradients_go_back_there(device):
    values = np.arange(12.0).reshape(3, 4)
    for index, count in [
        (np.s_[::-1, 1], [[0, 1, 0, 0]] * 3),
        (np.s_[2:0:-1, ...], [[0] * 4, [1] * 4, [1] * 4]),
        (np.s_[None, 1, None, 1:9], [[0] * 4, [0, 1, 1, 1], [0] * 4]),
        (np.s_[..., -1], [[0, 0, 0, 1]] * 3),
        (np.s_[5:], np.zeros((3, 4))),
    ]:
        x = variable(values, device)
        y = x[index]
        np.testing.assert_array_equal(host(y), values[index])
        (gx,) = tn.grad([y], [x])
        np.testing.assert_array_equal(host(gx), count)


def test_numpy_integers_and_integer_variables_of_no_axes_are_indices():
    x = variable([1.0, 2.0, 3.0])
    assert float(x[np.int8(2)]) == 3
    assert float(x[np.array(1)]) == 2
    assert float(x[tn.asarray(np.array(1))]) == 2


@on_each_device
def test_writing_is_functional(device):
    """y[1] = v makes a new node; z, computed from the old y, keeps what it saw."""
    x = variable([1.0, 2.0, 3.0], device)
    v = variable(10.0, device)
    y = x * x
    old_node = y.node
    z = fn.sum(y * y)
    y[1] = v * v
    assert y.node is not old_node
    np.testing.assert_array_equal(host(y), [1, 100, 9])
    total = fn.sum(y * y)
    gx, gv = tn.grad([total], [x, v], enable_double_backprop=True)
    np.testing.assert_array_equal(host(gx), [4, 0, 108])  # 4 x^3 but where it was written
    assert float(gv) == 4000
    gxx, gvv = tn.grad([fn.sum(gx) + gv], [x, v])
    np.testing.assert_array_equal(host(gxx), [12, 0, 108])
    assert float(gvv) == 1200
    (gx,) = tn.grad([z], [x])
    np.testing.assert_array_equal(host(gx), [4, 32, 108])
    np.testing.assert_array_equal(host(x), [1, 2, 3])


@on_each_device
def test_adding_in_place_is_functional(device):
    x = variable([1.0, 2.0], device)
    y = fn.exp(x)  # retains its output, which y += shall not change
    z = y
    expected = np.exp([1.0, 2.0])
    y += x
    assert z is y
    np.testing.assert_allclose(host(y), expected + host(x), rtol=1e-15)
    gx, *_ = tn.grad([y], [x], enable_double_backprop=True)
    np.testing.assert_allclose(host(gx), expected + 1, rtol=1e-15)
    (gxx,) = tn.grad([gx], [x])
    np.testing.assert_allclose(host(gxx), expected, rtol=1e-15)


def test_every_operator_in_place():
    x = variable([2.0, 4.0], requires_grad=False)
    y = x
    y += 1
    y -= 2
    y *= 6
    y /= 2
    y **= 2
    y //= 2
    assert y is x
    np.testing.assert_array_equal(host(x), [4, 40])
    square = variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=False)
    square @= variable([[0.0, 1.0], [1.0, 0.0]], requires_grad=False)
    np.testing.assert_array_equal(host(square), [[2, 1], [4, 3]])


def test_writing_through_a_chain_of_python_reaches_the_variable():
    """x[i] *= 2 is getitem, imul and setitem; a kept slice is a value of its own."""
    x = variable([1.0, 2.0, 3.0])
    y = x * 1
    y[0] *= 5
    part = y[1:]
    part[0] = 50.0
    np.testing.assert_array_equal(host(y), [5, 2, 3])
    np.testing.assert_array_equal(host(part), [50, 3])
    (gx,) = tn.grad([fn.sum(y)], [x])
    np.testing.assert_array_equal(host(gx), [5, 1, 1])


def test_writing_a_gradient_into_a_plain_variable_makes_it_require_one():
    buffer = tn.asarray(np.zeros(3))
    buffer = buffer.detach()
    x = variable(2.0)
    buffer[1] = x * 3
    assert buffer.requires_grad
    (gx,) = tn.grad([fn.sum(buffer)], [x])
    assert float(gx) == 3


def test_writing_over_everything_cuts_the_old_values_off():
    x = variable([1.0, 2.0])
    y = x * 2
    y[...] = 7.0
    (gx,) = tn.grad([y], [x])
    np.testing.assert_array_equal(host(gx), [0, 0])


@on_each_device
def test_writing_to_a_leaf_that_requires_a_gradient_is_refused(device):
    x = variable([1.0, 2.0], device)
    with pytest.raises(GraphError, match=r"x\[i\] = v: .*leaf.*x = x \+ v"):
        x[0] = 5.0
    with pytest.raises(GraphError, match=r"x \+= v: .*leaf"):
        x += 1.0
    np.testing.assert_array_equal(host(x), [1, 2])
    fn.sum(x * x).backward()
    np.testing.assert_array_equal(tn.to_host(x.grad), [2, 4])


def test_in_place_keeps_shape_and_dtype():
    x = variable([1.0, 2.0], dtype="float32")
    y = x * 1
    with pytest.raises(ValueError, match=r"x \+= v: the result has shape \(3, 2\), x has shape"):
        y += variable(np.ones((3, 2)), dtype="float32")
    np.testing.assert_array_equal(host(y), [1, 2])
    y *= variable([2.0, 3.0], dtype="float64")
    assert dtype_name(y.dtype) == "float32"
    y[0] = variable(9.0, dtype="float64")
    assert dtype_name(y.dtype) == "float32"
    np.testing.assert_array_equal(host(y), [9, 6])


def test_old_array_is_not_written_to():
    array = np.array([1.0, 2.0])
    x = tn.Variable(array, requires_grad=False)
    x[0] = 5.0
    x += 1.0
    np.testing.assert_array_equal(array, [1, 2])
    np.testing.assert_array_equal(host(x), [6, 3])


# --- what is refused -----------------------------------------------------------------------------


def ones(*shape, dtype="float32"):
    return tn.asarray(np.ones(shape), dtype=dtype)


LABELS = np.zeros(3, np.int64)

# what is called, the exception, and the words of its message
REFUSED = {
    "add text": (lambda: ones(3) + "a", OperandError, "add: y .*got str 'a'"),
    "None minus": (lambda: None - ones(3), OperandError, "subtract: x .*got NoneType None"),
    "multiply list": (lambda: ones(2) * [1, 2], OperandError, r"multiply: y .*list \[1, 2\]"),
    "add shapes": (lambda: ones(2, 3) + ones(2), InvalidType, r"Add.*\(2, 3\) and \(2,\)"),
    "less shapes": (lambda: ones(2) < ones(3), InvalidType, r"Less.*\(2,\) and \(3,\)"),
    "pow text": (lambda: ones(2) ** "a", OperandError, "pow: y .*got str 'a'"),
    "exp list": (lambda: fn.exp([1.0]), OperandError, r"exp: x .*list \[1.0\].*asarray"),
    "exp number": (lambda: fn.exp(1.0), OperandError, "exp: x .*got float 1.0"),
    "two numbers": (lambda: fn.add(1.0, 2.0), OperandError, "add: x .*got float 1.0"),
    "add_all nothing": (lambda: fn.add_all(), InvalidType, r"AddAll.*0 < 1"),
    "add_all shapes": (lambda: fn.add_all(ones(2), ones(3)), InvalidType, r"AddAll.*\(3,\)"),
    "add_all dtypes": (
        lambda: fn.add_all(ones(2), tn.asarray([1, 2])),
        InvalidType,
        "AddAll.*int64 != float32",
    ),
    "add_all number": (lambda: fn.add_all(ones(2), 1.0), OperandError, r"add_all: xs\[1\]"),
    "sum axis": (lambda: fn.sum(ones(2, 3), 2), ValueError, "sum: axis 2 .*2 axes"),
    "sum axis twice": (lambda: fn.sum(ones(2, 3), (0, -2)), ValueError, r"sum: axis \(0, -2\)"),
    "sum axis float": (lambda: fn.sum(ones(3), 1.5), OperandError, "sum: axis .*float 1.5"),
    "sum axis text": (lambda: fn.sum(ones(3), "a"), OperandError, "sum: axis .*str 'a'"),
    "mean of ints": (lambda: fn.mean(LABELS), InvalidType, "mean: x.*floating.*int64.*astype"),
    "mean weights": (
        lambda: fn.mean(ones(3), weights=ones(2, 3)),
        ValueError,
        r"mean: weights have shape \(2, 3\).*x, \(3,\)",
    ),
    "mean weights text": (lambda: fn.mean(ones(3), weights="a"), OperandError, "mean: weights"),
    "max of nothing": (lambda: fn.max(ones(0, 3)), ValueError, r"max: .*\(0, 3\): axis 0"),
    "min of nothing": (lambda: fn.min(ones(2, 0), 1), ValueError, r"min: .*\(2, 0\): axis 1"),
    "max axis": (lambda: fn.max(ones(2), 1), ValueError, "max: axis 1 .*1 axes"),
    "min axis": (lambda: fn.min(ones(2), -2), ValueError, "min: axis -2 .*1 axes"),
    "reshape": (lambda: fn.reshape(ones(2, 3), (4,)), ValueError, r"reshape: .*\(2, 3\).*\(4,\)"),
    "reshape -1": (lambda: fn.reshape(ones(6), (4, -1)), ValueError, r"reshape: .*\(4, -1\)"),
    "reshape -1 twice": (
        lambda: fn.reshape(ones(6), (-1, -1)),
        ValueError,
        "reshape: .*one entry",
    ),
    "reshape -2": (lambda: fn.reshape(ones(6), (-2, -3)), ValueError, r"reshape: .*\(-2, -3\)"),
    "reshape float": (lambda: fn.reshape(ones(6), (2.0, 3)), OperandError, "reshape: shape"),
    "permute_dims": (lambda: ones(2, 3).transpose(0, 0), ValueError, r"permute_dims: axes \(0, 0"),
    "permute_dims few": (
        lambda: fn.permute_dims(ones(2, 3), 1),
        ValueError,
        r"axes \(1,\).*\(2, 3",
    ),
    "broadcast_to": (
        lambda: fn.broadcast_to(ones(2, 3), (3, 2)),
        ValueError,
        r"broadcast_to: x has shape \(2, 3\), which cannot become \(3, 2\)",
    ),
    "broadcast_to fewer": (lambda: fn.broadcast_to(ones(2, 3), 3), ValueError, "broadcast_to: x"),
    "broadcast_to -1": (lambda: fn.broadcast_to(ones(3), (-1, 3)), ValueError, r"\(-1, 3\)"),
    "sum_to": (lambda: fn.sum_to(ones(2, 3), (2,)), ValueError, r"sum_to: .*\(2, 3\).*\(2,\)"),
    "concat nothing": (lambda: fn.concat([]), ValueError, "concat: xs is empty"),
    "concat shapes": (
        lambda: fn.concat([ones(2, 3), ones(2, 2)]),
        InvalidType,
        r"Concat.*2 != 3.*\(2, 3\).*\(2, 2\)",
    ),
    "concat axes": (lambda: fn.concat([ones(2), ones(2, 3)]), InvalidType, "Concat.*ndim"),
    "concat dtypes": (
        lambda: fn.concat([ones(2), tn.asarray([1, 2])]),
        InvalidType,
        "Concat.*int64 != float32",
    ),
    "concat axis": (lambda: fn.concat([ones(2)], axis=1), ValueError, "concat: axis 1 .*1 axes"),
    "concat number": (lambda: fn.concat([ones(2), 3.0]), OperandError, r"concat: xs\[1\]"),
    "split sections": (lambda: fn.split(ones(5), 2), ValueError, "split: indices_or_s.*=2 .* 5"),
    "split into none": (lambda: fn.split(ones(4), 0), ValueError, "split: indices_or_s.*=0 .* 4"),
    "split falling": (lambda: fn.split(ones(5), [3, 1]), ValueError, r"split: indices.* \(3, 1\)"),
    "split outside": (lambda: fn.split(ones(5), [7]), ValueError, r"split: indices.* \(7,\).*5"),
    "split below": (lambda: fn.split(ones(5), [-1]), ValueError, r"split: indices.* \(-1,\)"),
    "split axis": (lambda: fn.split(ones(5), 1, 1), ValueError, "split: axis 1 .*1 axes"),
    "index": (lambda: ones(2, 3)[0, 3], IndexError, r"get_item: index 3 .*axis 1 .*\(2, 3\)"),
    "index behind ...": (lambda: ones(2, 3)[..., 3], IndexError, "get_item: index 3 .*axis 1"),
    "index below": (lambda: ones(2)[-3], IndexError, r"get_item: index -3 .*axis 0"),
    "index too long": (lambda: ones(2)[0, 0], IndexError, r"get_item: .*\(0, 0\) has too many"),
    "index ... twice": (lambda: ones(2)[..., ...], IndexError, "get_item: .*too many"),
    "index bool": (lambda: ones(2)[True], OperandError, "get_item: .*bool True"),
    "index float": (lambda: ones(2)[1.5], OperandError, "get_item: .*float 1.5"),
    "index float slice": (lambda: ones(2)[0.5:], OperandError, "get_item: .*float 0.5"),
    "index step": (lambda: ones(2)[::0], ValueError, "get_item: the step of slice.* is 0"),
    "write shape": (
        lambda: fn.set_item(ones(3, 4), 0, ones(3)),
        ValueError,
        r"set_item: value has shape \(3,\).*selection, of shape \(4,\)",
    ),
    "write too many axes": (
        lambda: fn.set_item(ones(3), 0, ones(1, 2)),
        ValueError,
        r"set_item: value has shape \(1, 2\).*of shape \(\)",
    ),
    "write index": (lambda: fn.set_item(ones(3), 7, 1.0), IndexError, "set_item: index 7"),
    "write text": (lambda: fn.set_item(ones(3), 0, "a"), OperandError, "set_item: value .*str"),
    "where floats": (
        lambda: fn.where(ones(3), ones(3), ones(3)),
        OperandError,
        r"where: condition must be bool.*\(3,\), float32.*x > 0",
    ),
    "where bool": (
        lambda: fn.where(True, ones(3), 0),
        OperandError,
        "where: condition .*bool True",
    ),
    "where text": (lambda: fn.where(ones(3) > 0, "a", 2), OperandError, "where: x .*str 'a'"),
    "where shapes": (
        lambda: fn.where(ones(3) > 0, ones(3), ones(2)),
        InvalidType,
        r"Where.*\(3,\) and \(2,\)",
    ),
    "where shapes x": (
        lambda: fn.where(ones(3) > 0, ones(2), ones(1)),
        InvalidType,
        r"Where.*\(3,\) and \(2,\)",
    ),
    "where shapes of branches": (
        lambda: fn.where(ones(1) > 0, ones(2), ones(3)),
        InvalidType,
        r"Where.*\(2,\) and \(3,\)",
    ),
    "matmul": (
        lambda: ones(2, 3) @ ones(2, 3),
        InvalidType,
        r"MatMul.*3 != 2.*\(2, 3\).*last axis of x",
    ),
    "matmul 0-d": (lambda: ones() @ ones(3), InvalidType, "MatMul.*ndim >= 2.*0 < 2"),
    "matmul 0-d right": (lambda: ones(3) @ 2.0, InvalidType, "MatMul.*ndim >= 2.*0 < 2"),
    "matmul stacks": (
        lambda: ones(2, 3, 4) @ ones(5, 4, 2),
        InvalidType,
        r"MatMul.*\(2,\) and \(5,\)",
    ),
    "matrix_transpose": (lambda: fn.matrix_transpose(ones(3)), ValueError, r"matrix_t.*\(3,\)"),
    "linear": (
        lambda: fn.linear(ones(2, 3), ones(4, 2)),
        InvalidType,
        r"Linear.*3 != 2.*\(2, 3\).*\(4, 2\).*W has shape",
    ),
    "linear 0-d": (lambda: fn.linear(ones(), ones(4, 2)), InvalidType, r"Linear.*0 < 1"),
    "linear of integers": (
        lambda: fn.linear(tn.asarray(np.ones((2, 3), np.int64)), ones(4, 3)),
        InvalidType,
        r"Linear: x is int64, w is float32: cast one, such as x\.astype\('float32'\)\.",
    ),
    "linear w axes": (lambda: fn.linear(ones(3), ones(3)), InvalidType, "Linear.*1 != 2"),
    "linear dtypes": (
        lambda: fn.Linear().apply((ones(3), ones(4, 3, dtype="float64"))),
        InvalidType,
        "Linear.*float32 != float64",
    ),
    "linear bias": (
        lambda: fn.linear(ones(3), ones(4, 3), ones(3)),
        InvalidType,
        r"Linear.*3 != 4.*\(3,\)",
    ),
    "linear bias axes": (
        lambda: fn.linear(ones(3), ones(4, 3), ones(1, 4)),
        InvalidType,
        "Linear.*2 != 1",
    ),
    "linear bias dtype": (
        lambda: fn.Linear().apply((ones(3), ones(4, 3), ones(4, dtype="float64"))),
        InvalidType,
        "Linear.*float64 != float32",
    ),
    "linear w text": (lambda: fn.linear(ones(3), "a"), OperandError, "linear: w .*str 'a'"),
    "linear bias number": (
        lambda: fn.linear(ones(3), ones(4, 3), 1.0),
        OperandError,
        "linear: b .*float 1.0",
    ),
    "log_softmax axis": (lambda: fn.log_softmax(ones(3), 1), ValueError, "log_softmax: axis 1"),
    "log_softmax 0-d": (lambda: fn.log_softmax(ones()), ValueError, "log_softmax: axis -1"),
    "log_softmax empty": (
        lambda: fn.log_softmax(ones(2, 0)),
        ValueError,
        r"log_softmax.*\(2, 0\)",
    ),
    "scores 1-d": (
        lambda: fn.softmax_cross_entropy(ones(3), LABELS),
        InvalidType,
        r"SoftmaxCrossEntropy.*1 != 2.*\(3,\)",
    ),
    "scores of no class": (
        lambda: fn.softmax_cross_entropy(ones(3, 0), LABELS),
        InvalidType,
        r"SoftmaxCrossEntropy.*0 < 1",
    ),
    "integer scores": (
        lambda: fn.softmax_cross_entropy(np.ones((3, 2), np.int64), LABELS),
        InvalidType,
        "SoftmaxCrossEntropy.*floating.*int64",
    ),
    "labels length": (
        lambda: fn.softmax_cross_entropy(ones(2, 3), LABELS),
        InvalidType,
        r"SoftmaxCrossEntropy.*2 != 3",
    ),
    "labels one-hot": (
        lambda: fn.softmax_cross_entropy(ones(3, 3), np.eye(3, dtype=np.int64)),
        InvalidType,
        r"SoftmaxCrossEntropy.*2 != 1.*argmax",
    ),
    "labels floats": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), ones(3)),
        InvalidType,
        "SoftmaxCrossEntropy.*integer.*float32",
    ),
    "labels list": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), [0, 1, 0.5]),
        OperandError,
        r"softmax_cross_entropy: a list as labels must hold integers .*\[0, 1, 0.5\]",
    ),
    "reduction": (
        lambda: fn.softmax_cross_entropy(ones(3, 2), LABELS, "average"),
        ValueError,
        "softmax_cross_entropy: reduction .*got 'average'",
    ),
    "mean_squared_error": (
        lambda: fn.mean_squared_error(ones(3, 1), ones(3)),
        ValueError,
        r"mean_squared_error: x has shape \(3, 1\), y has \(3,\)",
    ),
    "mean_squared_error reduction": (
        lambda: fn.mean_squared_error(ones(3), ones(3), "average"),
        ValueError,
        "mean_squared_error: reduction .*got 'average'",
    ),
    "astype": (lambda: fn.astype(ones(3), "floaty"), ValueError, "astype: .*'floaty' on numpy"),
    "to_device": (lambda: fn.to_device(ones(3), "nowhere"), ValueError, "no backend 'nowhere'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_refused_with_names_and_shapes(name):
    call, exception, words = REFUSED[name]
    with pytest.raises(exception, match=f"(?s){words}") as caught:
        call()
    assert isinstance(caught.value, exception)


def test_type_checks_say_everything_at_once():
    with pytest.raises(InvalidType) as caught:
        ones(2, 3) + ones(2)
    assert str(caught.value).splitlines() == [
        "Invalid operation is performed in: Add (Forward)",
        "",
        "Expect: in_types[0].shape broadcasts with in_types[1].shape",
        "Actual: (2, 3) and (2,)",
        "in_types[0] (x): shape (2, 3), float32",
        "in_types[1] (y): shape (2,), float32",
        "Try: reshape or index (x[:, None]) so that the axes line up from the right.",
    ]


# --- random shapes and graphs --------------------------------------------------------------------

PARTIAL = {
    fn.add: (lambda x, y: np.ones_like(x + y), lambda x, y: np.ones_like(x + y)),
    fn.subtract: (lambda x, y: np.ones_like(x + y), lambda x, y: -np.ones_like(x + y)),
    fn.multiply: (lambda x, y: y + 0 * x, lambda x, y: x + 0 * y),
    fn.divide: (lambda x, y: 1 / y + 0 * x, lambda x, y: -x / y**2),
    fn.pow: (lambda x, y: y * x ** (y - 1), lambda x, y: x**y * np.log(x)),
}


def summed_to(z, shape):
    """The sum over the axes along which an array of ``shape`` was repeated."""
    z = z.sum(tuple(range(z.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1)
    return z.sum(axes, keepdims=True).reshape(shape)


@given(
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0),
    f=st.sampled_from(list(PARTIAL)),
    device=st.sampled_from(["numpy", "strict:device1"]),
    seed=st.integers(0, 1000),
)
def test_random_broadcasts(shapes, f, device, seed):
    """The gradient of a broadcast operand is the sum over the axes it was repeated along."""
    rng = np.random.default_rng(seed)
    s, t = shapes.input_shapes
    x, y = rng.uniform(0.5, 2, s), rng.uniform(0.5, 2, t)
    gz = rng.normal(size=shapes.result_shape)
    vx, vy = variable(x, device), variable(y, device)
    z = f(vx, vy)
    assert z.shape == shapes.result_shape
    gx, gy = tn.grad([z], [vx, vy], [variable(gz, device)])
    assert (gx.shape, gy.shape) == (s, t)
    by_x, by_y = PARTIAL[f]
    np.testing.assert_allclose(
        host(gx), summed_to(np.asarray(gz * by_x(x, y)), s), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        host(gy), summed_to(np.asarray(gz * by_y(x, y)), t), rtol=1e-12, atol=1e-12
    )


def np_sigmoid(x):
    return 1 / (1 + np.exp(-x))


# bounded functions, so that no graph of them explodes: of tinynode, and the same of NumPy
STEPS = [
    (lambda a, b: fn.sin(a), lambda a, b: np.sin(a)),
    (lambda a, b: fn.tanh(a), lambda a, b: np.tanh(a)),
    (lambda a, b: fn.sigmoid(a), lambda a, b: np_sigmoid(a)),
    (lambda a, b: fn.exp(-(a**2)), lambda a, b: np.exp(-(a**2))),
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: fn.cos(a) * b, lambda a, b: np.cos(a) * b),
    (lambda a, b: a / (b**2 + 1), lambda a, b: a / (b**2 + 1)),
    (lambda a, b: fn.log(a**2 + 1), lambda a, b: np.log(a**2 + 1)),
    (lambda a, b: fn.sqrt(b**2 + 1), lambda a, b: np.sqrt(b**2 + 1)),
    (
        lambda a, b: fn.mean(a, axis=-1, keepdims=True),
        lambda a, b: np.mean(a, axis=-1, keepdims=True),
    ),
    (lambda a, b: fn.log_softmax(a + b), lambda a, b: np_log_softmax(a + b)),
]


def np_log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def run_program(program, inputs, which):
    """Each step takes two earlier values; the result is the sum of the sums of all values."""
    values = list(inputs)
    for step, i, j in program:
        values.append(STEPS[step][which](values[i % len(values)], values[j % len(values)]))
    total = 0.0
    for value in values:
        total = total + value.sum()
    return total


@given(
    program=st.lists(
        st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 20), st.integers(0, 20)),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 1000),
)
def test_random_graphs(program, seed):
    """First and second derivatives of random graphs, along a random direction."""
    rng = np.random.default_rng(seed)
    hosts = [rng.normal(size=shape) for shape in ((2, 3), (3,), (2, 1))]
    directions = [rng.normal(size=h.shape) for h in hosts]
    xs = [variable(h) for h in hosts]
    ds = [variable(d, requires_grad=False) for d in directions]
    eps = 1e-5

    def moved(step):
        return [h + step * d for h, d in zip(hosts, directions, strict=True)]

    def slope(values):
        """The derivative along the directions, at some values, by tinynode."""
        variables = [variable(v) for v in values]
        gradients = tn.grad([run_program(program, variables, 0)], variables)
        return sum(float(fn.sum(g * d)) for g, d in zip(gradients, ds, strict=True))

    y = run_program(program, xs, 0)
    np.testing.assert_allclose(float(y), run_program(program, hosts, 1), rtol=1e-12, atol=1e-12)
    gxs = tn.grad([y], xs, enable_double_backprop=True)
    along = fn.add_all(*(fn.sum(g * d) for g, d in zip(gxs, ds, strict=True)))
    numeric = (run_program(program, moved(eps), 1) - run_program(program, moved(-eps), 1)) / (
        2 * eps
    )
    np.testing.assert_allclose(float(along), numeric, rtol=1e-6, atol=1e-7)
    ggs = tn.grad([along], xs)
    second = sum(0.0 if g is None else float(fn.sum(g * d)) for g, d in zip(ggs, ds, strict=True))
    numeric = (slope(moved(eps)) - slope(moved(-eps))) / (2 * eps)
    np.testing.assert_allclose(second, numeric, rtol=1e-4, atol=1e-5)


def test_the_cure_for_two_dtypes_casts_the_integers() -> None:
    """The message said to cast the matrix of a solver to int64."""
    with pytest.raises(InvalidType, match=r"b is int64: cast one, such as b\.astype\('float64'\)"):
        fn.linalg.solve_triangular(tn.Variable(np.eye(2)), tn.Variable(np.eye(2, dtype=np.int64)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_fmod_of_the_least_integer_is_that_of_numpy(dtype: str) -> None:
    """|-128| is -128 in int8, and the remainder by 3 was -1."""
    limits = np.iinfo(dtype)
    x = np.asarray([limits.min, limits.min + 1, -7 if limits.min else 7, 0, 5, limits.max], dtype)
    y = x[x != 0]
    expected = np.fmod(x[:, None], y)
    np.testing.assert_array_equal(fn.fmod(x[:, None], y).array, expected)
    np.testing.assert_array_equal(tn.compile(fn.fmod)(x[:, None], y).array, expected)
