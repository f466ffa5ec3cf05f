"""Masks: a gradient of zero stays zero before a mask, however the functions run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.functions.masking import FiniteOperands

F = tn.functions
DEVICES = ["numpy", "fast"]


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


OPERANDS: dict[str, Callable[[Any], Any]] = {
    "x log x": lambda x: x * F.log(x),
    "(log x)^2": lambda x: F.log(x) ** 2,
    "(x - 1)^1.5": lambda x: (x - 1.0) ** 1.5,
    "square": lambda x: F.square(F.log(x)),
    "abs": lambda x: F.abs(F.sqrt(x - 1.0)) * 1.0,
    "exp(1/x)": lambda x: F.exp(1 / x),
    "expm1": lambda x: F.expm1(1 / x),
    "sin(1/x)": lambda x: F.sin(1 / x),
    "cos(1/x)": lambda x: F.cos(1 / x),
    "atan": lambda x: F.atan(F.sqrt(x - 1.0)),
    "tanh": lambda x: F.tanh(F.sqrt(x - 1.0)),
    "sigmoid": lambda x: F.sigmoid(F.sqrt(x - 1.0)),
    "log_sigmoid": lambda x: F.log_sigmoid(F.sqrt(x - 1.0)),
    "silu": lambda x: F.silu(-1 / x),
    "gelu": lambda x: F.gelu(F.sqrt(x - 1.0)),
    "tanh gelu": lambda x: F.gelu(F.sqrt(x - 1.0), approximate=True),
    "erf": lambda x: F.erf(F.sqrt(x - 1.0)),
    "erfc": lambda x: F.erfc(F.sqrt(x - 1.0)),
    "a scale": lambda x: tn.asarray([[3.0]]) * F.log(x)[None] * tn.asarray(2.0),
}
"""At x = 0, an operand of the last function is infinite or NaN."""


def by_where(x: Any, y: Any) -> Any:
    return F.where(x > 0, y, 0.0)


def by_index(x: Any, y: Any) -> Any:
    return F.reshape(y, (1, 2))[0, [1]] * 1.0


def by_write(x: Any, y: Any) -> Any:
    y = F.reshape(y, (1, 2))
    return F.set_item(y, (0, [0]), 0.0)


def by_list(x: Any, y: Any) -> Any:
    return y[[1]] * 1.0


def by_take(x: Any, y: Any) -> Any:
    return F.take(F.reshape(y, (1, 2)), np.array([1]), axis=1)


def by_take_along_axis(x: Any, y: Any) -> Any:
    return F.take_along_axis(y, np.array([1]))


def by_embedding(x: Any, y: Any) -> Any:
    return F.embedding(np.array([1]), F.reshape(y, (2, 1)))


MASKS = [by_where, by_index, by_write, by_list, by_take, by_take_along_axis, by_embedding]
Function = Callable[[Any], Any]


def plain(operand: Function, mask: Any) -> Function:
    return lambda x: mask(x, operand(x))


def compiled(operand: Function, mask: Any) -> Function:
    return tn.compile(plain(operand, mask))  # type: ignore[no-any-return]


def compiled_operand(operand: Function, mask: Any) -> Function:
    inner = tn.compile(operand)
    return lambda x: mask(x, inner(x))


def compiled_mask(operand: Function, mask: Any) -> Function:
    inner = tn.compile(mask)
    return lambda x: inner(x, operand(x))


def checkpointed(operand: Function, mask: Any) -> Function:
    return lambda x: tn.checkpoint(plain(operand, mask), x)


def checkpointed_operand(operand: Function, mask: Any) -> Function:
    return lambda x: mask(x, tn.checkpoint(operand, x))


def checkpointed_mask(operand: Function, mask: Any) -> Function:
    return lambda x: tn.checkpoint(mask, x, operand(x))


def compiled_checkpoint(operand: Function, mask: Any) -> Function:
    return tn.compile(checkpointed(operand, mask))  # type: ignore[no-any-return]


def vmapped(operand: Function, mask: Any) -> Function:
    return lambda x: tn.vmap(plain(operand, mask))(x[None])


def vmapped_in_a_net(operand: Function, mask: Any) -> Function:
    return tn.compile(vmapped(operand, mask))  # type: ignore[no-any-return]


RUNS = [
    *(plain, compiled, compiled_operand, compiled_mask, checkpointed, checkpointed_operand),
    *(checkpointed_mask, compiled_checkpoint, vmapped, vmapped_in_a_net),
]


def derivatives(f: Function, x: Any) -> list[Any]:
    """First and second derivative of the sum."""
    (gx,) = tn.grad([F.sum(f(x))], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([F.sum(gx)], [x])
    return [gx.array, ggx.array]


def derivatives_in_a_net(f: Function, x: Any) -> list[Any]:
    """The same, computed inside of a compiled function."""

    def both(x: Any) -> Any:
        (gx,) = tn.grad([F.sum(f(x))], [x], enable_double_backprop=True)
        return gx, tn.grad([F.sum(gx)], [x])[0]

    return [y.array for y in tn.compile(both)(x)]


def check(name: str, mask: Any, run: Any, found_by: Any, device: str) -> None:
    x = tn.asarray(np.array([0.0, 2.5]), device=device, requires_grad=True)
    alone = tn.asarray(np.array([2.5]), requires_grad=True)
    expected = derivatives(OPERANDS[name], alone)
    with tn.using_device(device):
        found = found_by(run(OPERANDS[name], mask), x)
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, [0.0, right[0]], rtol=1e-9)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", OPERANDS)
def test_a_masked_operand_that_is_infinite_gives_no_nan(name: str, run: Any) -> None:
    check(name, by_where, run, derivatives, "numpy")
    check(name, by_where, run, derivatives_in_a_net, "numpy")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("device", DEVICES)
def test_all_masks_keep_zeros(device: str, mask: Any, run: Any) -> None:
    check("x log x", mask, run, derivatives, device)
    check("x log x", mask, run, derivatives_in_a_net, device)


def test_powers_above_2_keep_zeros() -> None:
    x = tn.Variable(np.array([0.0, 2.5]))

    def f(x: Any) -> Any:
        return F.sum(F.where(x > 0, F.log(x) ** 3, 0.0))

    expected = [0.0, 3 * np.log(2.5) ** 2 / 2.5]
    for g in (tn.gradient(f), tn.compile(tn.gradient(f)), tn.gradient(tn.compile(f))):
        np.testing.assert_allclose(g(x).array, expected)


@pytest.mark.parametrize("run", RUNS)
def test_a_gradient_that_is_zero_without_a_mask_hides_nothing(run: Any) -> None:
    """(log x)^2 / 2 has the gradient 0 at 1, and the second derivative 1."""
    x = tn.Variable(np.array([1.0, 1.0]))
    for found_by in (derivatives, derivatives_in_a_net):
        found = found_by(run(lambda x: F.log(x) ** 2 / 2, by_where), x)
        np.testing.assert_allclose(found, [[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("run", RUNS)
def test_an_undefined_derivative_that_no_mask_hides_stays_undefined(run: Any) -> None:
    def everywhere(x: Any, y: Any) -> Any:
        return F.where(x < 5, y, 0.0)

    x = tn.Variable(np.array([0.0, 2.5]))
    for found_by in (derivatives, derivatives_in_a_net):
        (first, _) = found_by(run(lambda x: x * F.log(x), everywhere), x)
        assert not np.isfinite(first[0]) and np.isfinite(first[1])


@pytest.mark.parametrize("compiled", [False, True])
def test_without_a_mask_zero_times_infinity_is_nan(compiled: bool) -> None:
    x, y = tn.Variable(np.array([1.0])), tn.Variable(np.array([np.inf]))
    f = tn.compile(F.multiply) if compiled else F.multiply
    (gx,) = tn.grad([f(x, y)], [x], [tn.Variable(np.array([0.0]))])
    assert np.isnan(gx.array)


def test_only_functions_with_an_infinite_operand_get_a_hook() -> None:
    x = tn.Variable(np.array([0.0, 2.0]))
    y = x * 3.0
    z = y * F.log(x)
    products = [y.creator, z.creator]
    F.sum(F.where(x > 0, z, 0.0)).backward()
    assert x.grad[0] == 0.0
    assert [one.is_masked for one in products] == [True, True]
    assert [list(one.local_function_hooks) for one in products] == [[], [FiniteOperands.name]]


def test_a_multiply_alone_is_not_marked() -> None:
    x = tn.Variable(np.array([2.0]))
    y = x * x
    y.backward()
    assert not y.creator.is_masked and "is_masked" not in vars(y.creator)


def test_an_error_in_a_hooked_backward_leaves_the_function_usable() -> None:
    class Fails(tn.FunctionNode):
        finite_slope = True

        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            return (inputs[0] * 1.0,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (x,) = self.get_retained_inputs()
            if fails:
                raise KeyError("planted")
            return (grad_outputs[0] * x,)

    x = tn.Variable(np.array([np.inf, 2.0]))
    y = F.where(x.array < 5, Fails().apply((x,))[0], 0.0)
    fails = True
    with pytest.raises(KeyError):
        tn.grad([F.sum(y)], [x])
    fails = False
    np.testing.assert_array_equal(tn.grad([F.sum(y)], [x])[0].array, [0.0, 2.0])


def test_a_function_of_a_user_with_a_finite_slope_keeps_zeros_in_vmap() -> None:
    class Times(tn.FunctionNode):
        finite_slope = True

        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0, 1))
            return (inputs[0] * inputs[1],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            x, y = self.get_retained_inputs()
            return grad_outputs[0] * y, grad_outputs[0] * x

    def total(x: Any) -> Any:
        def one(x: Any) -> Any:
            return F.where(x > 0, Times().apply((x, F.log(x)))[0], 0.0)

        return F.sum(tn.vmap(one)(x))

    x = tn.Variable(np.array([[0.0, 1.0], [2.0, 0.0]]))
    expected = np.where(x.array > 0, np.log(x.array) + 1.0, 0.0)
    for g in (tn.gradient(total), tn.compile(tn.gradient(total)), tn.gradient(tn.compile(total))):
        np.testing.assert_allclose(g(x).array, expected)


@pytest.mark.parametrize("f", [tn.jvp, tn.hvp])
def test_tangents_of_masked_elements_are_zero(f: Any) -> None:
    x, v = tn.Variable(np.array([0.0, 2.5])), tn.Variable(np.array([1.0, 2.0]))

    def masked(x: Any) -> Any:
        return F.sum(by_where(x, x * F.log(x)))

    def along(x: Any) -> Any:
        return f(masked, (x,), (v,))[1] if f is tn.jvp else f(masked, x, v)

    expected = 2 * (np.log(2.5) + 1) if f is tn.jvp else [0.0, 2 / 2.5]
    np.testing.assert_allclose(along(x).array, expected)
    np.testing.assert_allclose(tn.compile(along)(x).array, expected)


def log_det(x: Any) -> Any:
    return F.linalg.slogdet(x)[1]


def solution(x: Any) -> Any:
    return F.linalg.solve(x, F.identity(x)[..., [0]])


def eigenvectors(x: Any) -> Any:
    return F.linalg.eigh(x + F.matrix_transpose(x))[1]


def left_vectors(x: Any) -> Any:
    return F.linalg.svd(x)[0]


def orthogonal(x: Any) -> Any:
    return F.linalg.qr(x)[0]


NAN, INF = np.full((2, 2), np.nan), np.array([[np.inf, 1.0], [1.0, 2.0]])
EQUAL_VALUES = np.eye(2)


@pytest.mark.parametrize("run", ["eager", "compiled", "vmapped"])
@pytest.mark.parametrize(
    ("f", "hidden"),
    [
        (F.linalg.det, NAN),
        (F.linalg.det, INF),
        (F.linalg.inv, NAN),
        (F.linalg.cholesky, INF),
        (F.linalg.pinv, INF),
        (F.linalg.pinv, NAN),
        (log_det, NAN),
        (solution, NAN),
        (orthogonal, INF),
        (eigenvectors, NAN),
        (eigenvectors, EQUAL_VALUES),
        (left_vectors, EQUAL_VALUES),
        (left_vectors, INF),
        (left_vectors, NAN),
        (F.linalg.eigvalsh, NAN),
    ],
)
def test_a_masked_matrix_keeps_its_zeros(f: Any, hidden: Any, run: str) -> None:
    matrices = np.array([[[3.0, 1.0], [1.0, 2.0]], hidden, [[1.0, 0.5], [0.5, 4.0]]])
    usual = np.where(np.isin(np.arange(3), 1)[:, None, None], matrices[::2].mean(0), matrices)
    mask = np.array([True, False, True])

    def total(x: Any) -> Any:
        y = f(x)
        return F.sum(F.where(np.reshape(mask, (3, *(1,) * (len(y.shape) - 1))), y * y * y, 0.0))

    gradient = tn.gradient(total)
    expected = gradient(tn.Variable(usual)).array
    assert not expected[1].any()
    x = tn.Variable(matrices)
    if run == "vmapped":
        given = tn.vmap(gradient)(x[None])[0]
    else:
        given = (tn.compile(gradient) if run == "compiled" else gradient)(x)
    np.testing.assert_allclose(given.array, expected, atol=1e-12)
