"""Norms and deviations of numbers whose squares leave the range of the dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import tinynode as tn

F = tn.functions
NUMBERS = np.array([[1.0, -2.0, 0.5, 3.0], [0.25, 1.5, 1.0, -1.0]])
DEVICES = ["numpy", "fast"]
SCALES = [
    *[("float64", scale) for scale in (1e-307, 1e-200, 1.0, 1e200, 1e307)],
    *[("float32", scale) for scale in (1e-37, 1e-30, 1e-20, 1.0, 1e20, 1e37)],
    *[("float16", scale) for scale in (1e-4, 1.0, 1e4)],
]


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def normalize_rows(x: Any) -> Any:
    return F.normalize(x, eps=0.0)


def cosine(x: Any) -> Any:
    return F.cosine_similarity(x[0], x[1], eps=0.0)


def norm_of(p: float) -> Callable[[Any], Any]:
    return lambda x: F.linalg.vector_norm(x, axis=1, ord=p)


def ones_beside(x: Any) -> Any:
    return F.astype(x, x.dtype)[0] * 0.0 + 1.0


# homogeneous functions f(k x) = k^degree f(x): at other scales the values are known
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    **{f"norm {p}": (norm_of(p), 1) for p in (0.5, 1.5, 2, 3, 10, -1, -3)},
    "frobenius": (lambda x: F.linalg.matrix_norm(x), 1),
    "normalize": (normalize_rows, 0),
    "cosine": (cosine, 0),
    "std": (lambda x: F.std(x, axis=1), 1),
    "std of all": (lambda x: F.std(x, correction=1), 1),
    "layer_norm": (lambda x: F.layer_norm(x, ones_beside(x), eps=0.0), 0),
    "rms_norm": (lambda x: F.rms_norm(x, ones_beside(x), eps=0.0), 0),
    "group_norm": (lambda x: F.group_norm(x, 2, None, None, eps=0.0), 0),
    "batch_norm": (lambda x: F.batch_norm(x.T, None, None, eps=0.0), 0),
}
LINALG = ("frobenius",)  # no float16


def value_and_gradient(f: Any, x: Any) -> list[Any]:
    """f(x), and the gradient of the sum of f(x) times 1, 2, ..."""

    def total(x: Any) -> Any:
        y = F.reshape(f(x), -1)
        return F.sum(y * F.astype(tn.asarray(np.arange(1.0, 1.0 + y.size)), y.dtype))

    return [tn.to_host(f(x)), tn.to_host(tn.gradient(total)(x))]


@pytest.mark.parametrize("run", [lambda f: f, tn.compile, lambda f: lambda x: tn.checkpoint(f, x)])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_homogeneous_functions_are_right_at_every_scale(name: str, device: str, run: Any) -> None:
    f, degree = FUNCTIONS[name]
    expected = value_and_gradient(f, tn.asarray(NUMBERS))
    with tn.using_device(device):
        for dtype, scale in SCALES:
            scale = 2.0 ** round(math.log2(scale))
            x = tn.asarray((NUMBERS * scale).astype(dtype), device=device)
            found = value_and_gradient(run(f), x)
            tolerance = 64 * np.finfo(dtype).eps
            for one, right, power in zip(found, expected, (degree, degree - 1), strict=True):
                right = right * scale**power
                if not np.all(np.abs(right[right != 0]) < np.finfo(dtype).max):
                    break  # the result is not representable
                least = 4 * float(np.finfo(dtype).smallest_subnormal)
                bound = tolerance * np.max(np.abs(right)) + least
                np.testing.assert_allclose(one, right, rtol=0, atol=bound, err_msg=str(scale))


@pytest.mark.parametrize("device", DEVICES)
def test_one_large_number_beside_small_ones(device: str) -> None:
    x = tn.asarray(np.array([1e20, 1.0, 1.0], "float32"), device=device, requires_grad=True)
    for norm in (F.linalg.vector_norm, tn.compile(F.linalg.vector_norm)):
        y = norm(x)
        np.testing.assert_allclose(y.array, np.float32(1e20))
        (gx,) = tn.grad([y], [x])
        np.testing.assert_allclose(gx.array, [1.0, 1e-20, 1e-20], rtol=1e-6)


def test_rows_of_different_scales_are_each_right() -> None:
    rows = np.array([[1.0, 2.0], [1e20, 2e20], [1e-30, 2e-30], [0.0, 0.0], [np.inf, 1.0]], "f4")
    expected = np.hypot(*rows.T.astype("f8"))
    for norm in (norm_of(2.0), tn.compile(norm_of(2.0)), tn.vmap(F.linalg.vector_norm)):
        for device in DEVICES:
            found = norm(tn.asarray(rows, device=device)).array
            np.testing.assert_allclose(found, expected.astype("f4"), rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_no_warning_about_squares_reaches_the_user(device: str) -> None:
    x = tn.asarray(np.array([[1e20, 2e20]], "float32"), device=device)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        F.linalg.vector_norm(x)
        F.std(x)
        F.group_norm(x, 1, None, None)


def test_a_norm_at_zero_has_no_second_derivative_and_says_so() -> None:
    """The first derivative is 0 by definition; a second of 0 would be wrong without a word."""
    x = tn.asarray(np.zeros(2))
    assert F.linalg.vector_norm(x).array == 0.0
    np.testing.assert_array_equal(tn.gradient(F.linalg.vector_norm)(x).array, [0.0, 0.0])
    for squared in (lambda x: F.linalg.vector_norm(x) ** 2, F.linalg.vector_norm):
        for second in (tn.hessian(squared), tn.compile(tn.hessian(squared))):
            assert not np.isfinite(np.diagonal(second(x).array)).any()
    np.testing.assert_array_equal(tn.hessian(lambda x: F.vecdot(x, x))(x).array, 2 * np.eye(2))


def test_debug_mode_names_the_guard_of_a_length_of_zero() -> None:
    x = tn.Variable(np.zeros(2))
    with tn.using_config(debug=True), np.errstate(all="ignore"):
        (gx,) = tn.grad([F.linalg.vector_norm(x) ** 2], [x], enable_double_backprop=True)
        with pytest.raises(tn.errors.NonFiniteError, match=r"vecdot\(x, x\)"):
            F.sum(gx).backward()


def test_std_of_equal_numbers_has_no_gradient() -> None:
    x = tn.asarray(np.full(3, 2.0))
    for gradient in (tn.gradient(F.std), tn.compile(tn.gradient(F.std))):
        assert np.isnan(gradient(x).array).all()


@pytest.mark.parametrize("scale", [2.0**-100, 1.0, 2.0**100])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_gradients_of_singular_vectors_square_no_singular_value(
    scale: float, shape: tuple[int, int]
) -> None:
    def total(x: Any) -> Any:
        u, _, vt = F.linalg.svd(x, full_matrices=False)
        return F.sum(u[:, 0] ** 2 * u[:, 1]) + F.sum(vt[0] ** 3)

    a = np.random.default_rng(0).normal(size=shape).astype("f4")
    a[0, 0] += 3.0
    expected = tn.gradient(total)(tn.asarray(a.astype("f8"))).array / scale
    found = tn.gradient(total)(tn.asarray(a * np.float32(scale))).array
    signs = np.sign(np.sum(found * expected))
    np.testing.assert_allclose(found * signs, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def exact_norm(x: Any, p: float) -> Any:
    with mpmath.workdps(40):
        powers = [mpmath.power(abs(mpmath.mpf(float(number))), p) for number in x]
        return mpmath.power(mpmath.fsum(powers), mpmath.mpf(1) / p)


def test_norms_agree_with_mpmath_at_the_ends_of_the_range() -> None:
    rng = np.random.default_rng(0)
    for dtype, ends in (("float32", (-40, 37)), ("float64", (-310, 307))):
        for _ in range(50):
            x = (rng.normal(size=4) * 10.0 ** rng.integers(*ends)).astype(dtype)
            for p in (2, 3, 1.5, -1):
                exact = exact_norm(x, p)
                found = float(F.linalg.vector_norm(tn.asarray(x), ord=p).array)
                bound = 8 * np.finfo(dtype).eps * float(exact)
                assert abs(found - float(exact)) <= bound + np.finfo(dtype).smallest_subnormal


def test_a_compiled_gradient_of_det_is_right_for_singular_matrices_after_others() -> None:
    regular, singular = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 2.0], [2.0, 4.0]])
    gradient = tn.compile(tn.gradient(F.linalg.det))
    for x, cofactors in (
        (regular, [[3.0, -1.0], [-1.0, 2.0]]),
        (singular, [[4.0, -2.0], [-2.0, 1.0]]),
    ):
        np.testing.assert_allclose(gradient(tn.asarray(x)).array, cofactors, rtol=1e-12)
