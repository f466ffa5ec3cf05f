"""Situations of public bug reports about autodiff: one line of words, and the right numbers.

Each row of ``ROWS`` runs on two devices, eagerly, as a compiled function and with its gradient
inside of the compiled function. What no row can say stands in a test of its own below.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from report_cases import ROWS, double

import tinynode as tn
from tinynode import nn

pytestmark = pytest.mark.usefixtures("without_numpy_warnings")

F = tn.functions
DEVICES = ["numpy", "fast"]
LIMITS = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-12}


def answers(f: Callable[..., Any], arrays: Any, device: str, way: str) -> list[Any]:
    """The value, and the gradients of its sum."""

    def whole(*xs: Any) -> Any:
        y = f(*xs)
        return [y, *tn.grad([F.sum(y)], list(xs))]

    if way == "compiled":
        f = tn.compile(f)
    run = tn.compile(whole) if way == "compiled gradient" else whole
    place = tn.get_device(device)
    with tn.using_device(device):
        for _ in range(1 if way == "eager" else 2):  # the second call runs the recorded program
            found = run(*[tn.Variable(place.from_host(np.asarray(x))) for x in arrays])
    return [tn.to_host(one.array) for one in found]


def parameters() -> Iterator[Any]:
    for name, *row in ROWS:
        yield pytest.param(*row, id=name.replace(" ", "-"))


@pytest.mark.parametrize(("f", "arrays", "value", "gradients"), list(parameters()))
def test_the_numbers_are_right(f: Any, arrays: Any, value: Any, gradients: Any) -> None:
    limit = LIMITS[str(arrays[0].dtype)]
    for device in DEVICES:
        for way in ["eager", "compiled", "compiled gradient"]:
            found, *slopes = answers(f, arrays, device, way)
            what = f"{way} on {device}"
            if value is not None:
                np.testing.assert_allclose(found, value, limit, err_msg=what)
            for ours, wanted in zip(slopes, gradients, strict=False):
                np.testing.assert_allclose(ours, wanted, limit, err_msg=f"gradient, {what}")


# --- what is no row ------------------------------------------------------------------------------


def on_each(test: Any) -> Any:
    return pytest.mark.parametrize("device", DEVICES)(test)


def test_the_curve_of_a_squared_length_at_zero_is_no_silent_zero() -> None:
    curves = tn.hessian(lambda x: F.linalg.vector_norm(x) ** 2)(np.zeros(2)).array
    assert (np.isnan(curves) | (curves == 2 * np.eye(2))).all(), "each entry is right, or NaN"


@on_each
@pytest.mark.parametrize("first", [np.eye(3), np.zeros((3, 3))])
def test_a_determinant_recorded_on_another_kind_of_matrix(first: Any, device: str) -> None:
    with tn.using_device(device):
        slopes = tn.compile(tn.gradient(F.linalg.det))
        place = tn.get_device(device)
        slopes(place.from_host(first))
        for matrix, wanted in [
            (np.diag([1.0, 2, 0]), np.diag([0.0, 0, 2])),
            (np.eye(3), np.eye(3)),
        ]:
            found = tn.to_host(slopes(place.from_host(matrix)).array)
            np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("ends", [[3e30, 1e30], [3e-30, 1e-30]])
def test_singular_values_far_from_one_have_vectors_with_slopes(ends: Any) -> None:
    def turned(x: Any) -> Any:
        return F.linalg.svd(x)[0][0, 1]

    found, near = [tn.gradient(turned)(np.diag(x)).array for x in (ends, [3.0, 1.0])]
    np.testing.assert_allclose(np.abs(found * ends[1]), np.abs(near), rtol=1e-9, atol=1e-12)


def test_a_copied_result_is_no_silent_leaf() -> None:
    x = tn.Variable(double(2))
    try:
        F.sum(copy.deepcopy(x * 3.0)).backward()
    except (TypeError, RuntimeError, ValueError):
        return
    np.testing.assert_array_equal(x.grad.array, [3.0])


def test_a_result_without_a_graph_is_a_number_for_others() -> None:
    weight, average = tn.Variable(double(1, 2)), tn.Variable(double(0, 0), requires_grad=False)
    with tn.no_grad():
        measured = weight * 2.0
        average = average * 0.9 + weight * 0.1
    assert not measured.requires_grad and not average.requires_grad
    np.testing.assert_array_equal(measured.numpy(), [2, 4])


@pytest.mark.parametrize("make", [lambda: [1.0], lambda: {0: 1.0}])
def test_a_captured_container_that_changes(make: Any) -> None:
    factors = make()
    f = tn.compile(lambda x, own=factors: x * factors[0] * own[0])
    assert f(double(1)).array == 1
    factors[0] = 3.0
    assert f(double(1)).array == 9


@on_each
def test_a_weight_without_axes_takes_a_step(device: str) -> None:
    with tn.using_device(device):
        for w in [tn.Variable(np.array(1.0)), nn.Parameter(np.ones(()))]:
            (w * w).backward()
            w.array = w.array - 0.1 * w.grad
            (F.exp(np.float64(0)) * w + F.where(np.bool_(True), w, 0.0)).backward()
            assert tn.to_host(w.array) == pytest.approx(0.8)


@pytest.mark.parametrize("f", [F.acosh, F.log, F.sqrt, F.asin, F.atanh])
def test_a_number_outside_of_a_domain_warns_alike(f: Any) -> None:
    def warned(run: Callable[[], Any]) -> bool:
        with np.errstate(all="warn"), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            run()
        return bool(found)

    x = double(-3)
    ways = [lambda: f(x), lambda: tn.jvp(f, (x,), (x,)), lambda: tn.vmap(f)(x)]
    assert [warned(way) for way in ways] in ([True] * 3, [False] * 3)


def test_an_inner_training_step_has_a_second_order() -> None:
    def cube(w: Any) -> Any:
        return F.sum(w**3)

    def meta(w: Any) -> Any:
        return cube(w - 0.1 * tn.gradient(cube)(w))

    second = 3 * 0.7**2 * 0.4
    assert tn.gradient(meta)(double(1)).array == pytest.approx([second])
    w = tn.Variable(double(1))
    meta(w).backward()
    assert w.grad == pytest.approx([second])
    assert not tn.gradient(cube)(double(1)).requires_grad
    assert not tn.grad([cube(w)], [w])[0].requires_grad


@on_each
def test_an_array_of_others_beside_a_number(device: str) -> None:
    functions = [
        lambda a: 2 * a,
        lambda a: 1 - a,
        lambda a: 1 / a,
        lambda a: 2**a,
        lambda a: len(a) * a,
    ]
    with tn.using_device(device):
        x = tn.get_device(device).from_host(double(2, 4))
        for f in functions:
            found = tn.to_host(tn.compile(f)(x).array)
            np.testing.assert_array_equal(found, f(double(2, 4)))


def test_running_statistics_of_examples_are_refused_and_stay_whole() -> None:
    layer = nn.BatchNorm(2)
    with pytest.raises(Exception, match=r"vmap|running"):
        tn.vmap(lambda x: layer(x))(np.ones((3, 4, 2), np.float32))
    assert layer(np.ones((4, 2), np.float32)).shape == (4, 2)


def test_a_root_is_found_inside_of_a_compiled_function() -> None:
    def root(a: Any) -> Any:
        def equation(x: Any, b: Any) -> Any:
            return x * x - b

        return tn.custom_root(equation, lambda b: F.sqrt(b))(a)

    assert tn.compile(tn.gradient(lambda a: F.sum(root(a))))(double(4)).array == pytest.approx(
        [0.25]
    )
    _, along = tn.linearize(lambda x: tn.vmap(F.tanh)(x), double(0))
    assert along(double(2)).array == pytest.approx([2])


def test_a_power_of_a_negative_base_with_a_complex_exponent() -> None:
    base, exponent = np.array([-2.0]), np.array([0.5 + 1j])
    found = tn.gradient(lambda x: F.sum(F.real(x**exponent)))(base).array
    step = 1e-6
    ends = [((base + one + 0j) ** exponent).real for one in (step, -step)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_complex_numbers_are_detached_and_recomputed_in_compiled_functions() -> None:
    x = tn.Variable(np.array([1 + 2j]))
    assert tn.compile(lambda z: z.detach() * z)(x).array == -3 + 4j
    assert tn.compile(lambda z: tn.checkpoint(lambda w: w * w, z))(x).array == -3 + 4j


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "bool"])
def test_the_dtype_of_a_sum_is_the_dtype_that_was_asked_for(dtype: str) -> None:
    xp, x = tn.array_namespace(), tn.asarray(np.ones(3, dtype))
    for name in ["sum", "prod", "cumulative_sum", "cumulative_prod"]:
        assert str(getattr(xp, name)(x, dtype=xp.int16).dtype).endswith("int16")
    whole = tn.asarray(np.full(3, 100, "uint8"))
    assert str(xp.vecdot(whole, whole).dtype).endswith("uint8")
    zero = tn.Variable(double(0), requires_grad=False)
    assert xp.nextafter(zero, 1.0).array > 0


def test_code_of_others_that_writes_into_slices_is_right() -> None:
    signal = pytest.importorskip("scipy.signal", reason="SciPy is not installed")
    x, kernel = [tn.Variable(np.arange(1.0, n), requires_grad=False) for n in (200, 4)]
    found = signal.oaconvolve(x, kernel)
    np.testing.assert_allclose(tn.to_host(found.array), np.convolve(x.array, kernel.array))


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_pixel_that_lost_in_its_window_has_the_gradient_0(device: str) -> None:
    """exp(900) is infinite, and 0 times infinity made the gradients of the losers NaN."""
    with tn.using_device(device):
        x = tn.asarray(np.reshape([900.0, 1.0, 2.0, 3.0], (1, 1, 2, 2)), requires_grad=True)
        y = F.sum(F.exp(F.max_pool2d(x, 2)))
        y.backward(enable_double_backprop=True)
        assert tn.to_host(x.grad).ravel().tolist() == [np.inf, 0.0, 0.0, 0.0]
        (gg,) = tn.grad([x.grad_var], [x], [tn.asarray(np.full((1, 1, 2, 2), np.inf))])
        assert tn.to_host(gg).ravel().tolist() == [np.inf, 0.0, 0.0, 0.0]


def test_a_sign_that_was_read_has_no_gradient() -> None:
    """copysign(x, exp(900)) has no slope in the sign; 0 times infinity made it NaN."""
    x = tn.asarray([900.0, -3.0], requires_grad=True)
    F.sum(F.copysign(x, F.exp(x))).backward()
    assert x.grad.tolist() == [1.0, -1.0]
    scores = tn.asarray([[-1e30, 1e30]], requires_grad=True)
    F.sum(F.hinge(scores, np.asarray([1]), reduction="none") * np.inf).backward()
    assert scores.grad.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("name", ["fmod", "remainder", "atan2", "hypot", "copysign"])
def test_a_function_of_real_numbers_refuses_complex_ones(name: str) -> None:
    """fmod took the real parts in silence."""
    z, x = np.array([1 + 5j]), np.array([7.0])
    for one, other, which in ((z, x, "x1"), (x, z, "x2")):
        with pytest.raises(tn.TinynodeError, match=rf"{name}: {which} must be real, got"):
            getattr(F, name)(one, other)
