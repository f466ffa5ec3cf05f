"""xp.special: values of scipy.special, rules to second order, errors without a rule."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.array_api.special import COMPOSED_BY_SCIPY, OtherSpecial, Special, call_ufunc
from tinynode.array_api.special_nodes import MissingRule
from tinynode.array_api.special_rules import RULES
from tinynode.gradient_check import check_backward, check_double_backward

scipy_special: Any = pytest.importorskip("scipy.special", reason="values come from SciPy")

OWN = ("erf", "erfc", "erfinv", "gammaln", "digamma", "psi", "expit", "log_expit")
"""The functions of one argument that tinynode.functions computes."""

POINTS: dict[str, tuple[float, ...]] = {
    "bdtr": (2, 5, 0.3),
    "bdtrc": (2, 5, 0.3),
    "betainc": (1.3, 2.1, 0.4),
    "betaincc": (1.3, 2.1, 0.4),
    "betainccinv": (1.3, 2.1, 0.4),
    "betaincinv": (1.3, 2.1, 0.4),
    "binom": (4.3, 1.7),
    "chdtr": (3.2, 0.4),
    "chdtrc": (3.2, 0.4),
    "chdtri": (3.2, 0.4),
    "expn": (2, 1.3),
    "fdtr": (3.0, 4.0, 0.7),
    "fdtrc": (3.0, 4.0, 0.7),
    "fdtri": (3.0, 4.0, 0.7),
    "gdtr": (1.2, 2.1, 0.8),
    "gdtrc": (1.2, 2.1, 0.8),
    "hyp1f1": (0.5, 1.2, 0.7),
    "hyp2f1": (0.5, 1.2, 2.1, 0.3),
    "hyperu": (0.5, 1.2, 0.7),
    "jn": (2, 1.3),
    "kn": (2, 1.3),
    "log_ndtr": (-1.3,),
    "nbdtr": (2, 3, 0.4),
    "nbdtrc": (2, 3, 0.4),
    "ndtri_exp": (-0.7,),
    "owens_t": (0.7, 1.2),
    "pdtr": (2, 1.3),
    "pdtrc": (2, 1.3),
    "polygamma": (2, 1.4),
    "radian": (1.0, 2.0, 3.0),
    "stdtr": (3.2, 0.4),
    "stdtrit": (3.2, 0.4),
    "yn": (2, 1.3),
    "zeta": (2.3, 1.4),
}
"""A point within the domain; the other functions have (0.37, 0.62)."""

DEVICES = ("numpy", "strict", "fast")
NAMES = sorted({*RULES, *OWN})


def special_of(device: str) -> Special:
    return Special(tn.get_device(device))


def point(name: str, dtype: str = "float64") -> list[Any]:
    """Two values for each argument near the point; whole numbers stay as they are."""
    numbers = POINTS.get(name, (0.37, 0.62)[: len(RULES.get(name, (None,)))])
    steps = [0.0 if isinstance(x, int) else 0.05 for x in numbers]
    return [numpy.asarray([x, x + h], dtype=dtype) for x, h in zip(numbers, steps, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device", DEVICES)
def test_values_are_those_of_scipy(device: str, dtype: str) -> None:
    own = special_of(device)
    for name in NAMES:
        arrays = point(name, dtype)
        y = call_method(own, name, [tn.asarray(x, device=device) for x in arrays])
        exact = [x.astype(numpy.int64) if x[0] == x[1] else x.astype(float) for x in arrays]
        expected = getattr(scipy_special, name)(*exact)
        tolerance = 1e-11 if dtype == "float64" else 2e-5
        numpy.testing.assert_allclose(tn.to_host(y.array), expected, tolerance, err_msg=name)
        assert str(y.dtype).endswith(dtype), name
        assert y.device is tn.get_device(device)


def call_method(own: Special, name: str, arguments: list[Any]) -> Any:
    return (
        own.call(name, *arguments) if name in COMPOSED_BY_SCIPY else getattr(own, name)(*arguments)
    )


class OneArgument:
    """A function of the arguments with rules; the others are constants."""

    def __init__(self, device: str, name: str) -> None:
        arrays = [tn.asarray(x, device=device, requires_grad=False) for x in point(name)]
        self.positions = [i for i, rule in enumerate(RULES.get(name, (True,))) if rule is not None]
        self.own, self.name, self.arrays = special_of(device), name, arrays

    def __call__(self, *xs: Any) -> Any:
        arguments = list(self.arrays)
        for i, x in zip(self.positions, xs, strict=True):
            arguments[i] = x
        return call_method(self.own, self.name, arguments)

    def inputs(self) -> tuple[Any, ...]:
        return tuple(self.arrays[i].array for i in self.positions)


@pytest.mark.parametrize("name", NAMES)
def test_rules_are_right_to_second_order(name: str) -> None:
    f = OneArgument("numpy", name)
    gy, ggx = numpy.asarray([0.7, -1.1]), tuple(numpy.asarray([0.3, 0.9]) for _ in f.inputs())
    check_backward(f, f.inputs(), gy, eps=1e-5, atol=1e-7, rtol=1e-6)
    check_double_backward(f, f.inputs(), gy, ggx, eps=1e-5, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("device", ["strict", "fast"])
def test_rules_are_right_on_other_devices(device: str) -> None:
    for name in NAMES:
        results = []
        for where in ("numpy", device):
            f = OneArgument(where, name)
            xs = [tn.asarray(x, device=where, requires_grad=True) for x in f.inputs()]
            gs = tn.grad([functions.sum(f(*xs))], xs, enable_double_backprop=True)
            total = functions.sum(gs[0] * gs[0])
            ggs = tn.grad([total], xs) if total.requires_grad else []
            results.append([tn.to_host(g.array) for g in [*gs, *ggs] if g is not None])
        numpy.testing.assert_allclose(results[1], results[0], 1e-9, err_msg=name)


def test_float32_gradients_are_float32() -> None:
    for name in NAMES:
        f = OneArgument("numpy", name)
        f.arrays = [x.astype("float32") for x in f.arrays]
        xs = [tn.asarray(x, requires_grad=True) for x in f.inputs()]
        for x, g in zip(xs, tn.grad([functions.sum(f(*xs))], xs), strict=True):
            assert g.dtype == x.dtype == numpy.float32, name
            assert numpy.all(numpy.isfinite(g.array)), name


def test_float16_gradients_are_float16() -> None:
    """Rules run in float32, and an argument without a rule takes a gradient of 0."""
    for name in sorted({*NAMES} - {"bdtr", "bdtrc", "nbdtr", "nbdtrc"}):  # integers are exact
        arrays = [x.astype("float16") for x in point(name)]
        xs = [tn.asarray(x, requires_grad=True) for x in arrays]
        y = call_method(special_of("numpy"), name, xs)
        gs = tn.grad([y], xs, [tn.Variable(numpy.zeros(y.shape, "float16"))])
        assert all(g is None or g.dtype == numpy.float16 for g in gs), name


def test_arguments_broadcast() -> None:
    a, b = numpy.asarray([[1.3], [2.2]]), numpy.asarray(0.8)
    x = numpy.asarray([0.2, 0.5, 0.7])
    own = special_of("numpy")

    def f(x: Any) -> Any:
        return own.betainc(a, b, x)

    numpy.testing.assert_allclose(f(x).array, scipy_special.betainc(a, b, x))
    check_backward(f, x, numpy.arange(1.0, 7).reshape(2, 3), eps=1e-5)
    with pytest.raises(ValueError, match=r"xp.special.betainc.*do not broadcast"):
        own.betainc(numpy.ones(2), 1.0, numpy.ones(3))


def test_numbers_and_integers() -> None:
    own = special_of("numpy")
    assert own.xlogy(2, numpy.ones(2, dtype="float32")).dtype == numpy.float32
    assert own.xlogy(numpy.float64(2), numpy.ones(2, dtype="float32")).dtype == numpy.float32
    assert own.ndtr(numpy.asarray([0, 1])).dtype == numpy.float64
    assert own.ndtr(0).array == 0.5
    mixed = own.xlogy(numpy.asarray([2, 3]), numpy.ones(2, dtype="float32"))
    assert mixed.dtype == numpy.float32
    assert special_of("strict").erf(1.0).device is tn.get_device("strict")
    with pytest.raises(tn.errors.OperandError, match=r"special.ndtr"):
        own.ndtr("1")


def test_an_argument_without_a_rule_gives_values_and_refuses_gradients() -> None:
    own = special_of("numpy")
    a = tn.asarray(numpy.asarray([1.5, 2.5]), requires_grad=True)
    x = tn.asarray(numpy.asarray([0.3, 0.4]), requires_grad=True)
    y = own.gammainc(a, x)
    numpy.testing.assert_allclose(y.array, scipy_special.gammainc(a.array, x.array))
    assert tn.grad([functions.sum(y)], [x])[0] is not None
    with pytest.raises(NotImplementedError, match=r"special.gammainc has.*argument 0.*detach"):
        functions.sum(y).backward()
    functions.sum(own.gammainc(a.detach(), x)).backward()


def test_other_functions_give_values_and_refuse_gradients() -> None:
    for device in DEVICES:
        own = special_of(device)
        x = tn.asarray(numpy.asarray([0.3, 0.4]), device=device, requires_grad=True)
        y = own.kolmogorov(x)
        expected = scipy_special.kolmogorov([0.3, 0.4])
        numpy.testing.assert_allclose(tn.to_host(y.array), expected)
        assert y.requires_grad
        functions.sum(x * 2.0 + 0.0 * y).backward()  # a gradient of exact zeros passes
        with pytest.raises(NotImplementedError, match=r"xp.special.kolmogorov has no gradient"):
            functions.sum(y).backward()


def test_other_functions_have_several_outputs_constants_and_keywords() -> None:
    own = special_of("strict")
    x = tn.asarray(numpy.asarray([0.3, 0.4]), device="strict", requires_grad=True)
    sine, cosine = own.sici(x)
    numpy.testing.assert_allclose(tn.to_host(cosine.array), scipy_special.sici([0.3, 0.4])[1])
    with pytest.raises(NotImplementedError, match="sici"):
        functions.sum(sine).backward()
    bessel = own.spherical_jn(2, x, derivative=True)
    expected = scipy_special.spherical_jn(2, numpy.asarray([0.3, 0.4]), derivative=True)
    numpy.testing.assert_allclose(tn.to_host(bessel.array), expected)
    roots, weights = own.roots_legendre(3)
    assert roots.device is weights.device is tn.get_device("strict")
    assert own.comb(5, 2, exact=True).array == 10
    with pytest.raises(tn.errors.OperandError, match="kolmogorov: out must be"):
        own.kolmogorov(x, out=x)
    assert "kolmogorov" in repr(own.kolmogorov) and isinstance(own.kolmogorov, OtherSpecial)


def test_a_missing_rule_refuses_gradients_of_gradients() -> None:
    g = tn.asarray(numpy.zeros(2), requires_grad=True)
    (zero,) = MissingRule("f", None).apply((g, numpy.ones(2)))
    assert zero.array.tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match=r"xp.special.f"):
        functions.sum(zero).backward()


def test_complex_arguments_give_values_and_refuse_gradients() -> None:
    z = numpy.asarray([0.3 + 0.1j, 0.4 - 1j])
    y = special_of("numpy").erfcx(z)
    numpy.testing.assert_allclose(y.array, scipy_special.erfcx(z))


def test_names_that_scipy_composes_are_not_offered() -> None:
    own = special_of("numpy")
    for name in sorted(COMPOSED_BY_SCIPY):
        assert getattr(own, name, None) is None
    assert {"xlogy", "xlog1py"}.isdisjoint(COMPOSED_BY_SCIPY)
    for name in ("no_such_function", "_ufuncs", "SpecialFunctionError"):
        with pytest.raises(AttributeError, match=name):
            getattr(own, name)


def test_without_scipy_the_functions_of_tinynode_work() -> None:
    own = special_of("numpy")
    x = numpy.asarray([0.3, 0.4])
    with mock.patch.dict(sys.modules, {"scipy": None, "scipy.special": None}):
        for name in OWN:
            assert getattr(own, name)(x).shape == (2,)
        own.logsumexp(x)
        own.polygamma(1, x)
        for name in ("ndtr", "kolmogorov"):
            with pytest.raises(ImportError, match=r"pip install scipy.*tinynode\[scipy\]"):
                getattr(own, name)(x)


def test_softmax_of_large_numbers() -> None:
    own = special_of("numpy")
    for axis in (None, (0, 1), 1):
        x = numpy.full((1, 2), 1e16)
        numpy.testing.assert_array_equal(own.softmax(x, axis=axis).array, [[0.5, 0.5]])
        numpy.testing.assert_allclose(own.log_softmax(x, axis=axis).array, numpy.log(0.5))


POLES = {
    "digamma": (0.0, -1.0),
    "erfcinv": (0.0, 2.0),
    "erfinv": (1.0, -1.0),
    "gammaln": (0.0, -2.0),
    "logit": (0.0, 1.0),
    "ndtri": (0.0, 1.0),
    "entr": (0.0, -1.0),
    "cbrt": (0.0, 0.0),
    "exp1": (0.0, 0.0),
    "k0": (0.0, 0.0),
}


@pytest.mark.parametrize("name", sorted(POLES))
def test_a_zero_gradient_stays_zero_at_a_pole(name: str) -> None:
    own = special_of("numpy")
    x = tn.asarray(numpy.asarray([*POLES[name], 0.4]), requires_grad=True)
    y = functions.where(numpy.asarray([False, False, True]), getattr(own, name)(x), 0.0)
    (g,) = tn.grad([functions.sum(y)], [x], enable_double_backprop=True)
    assert g.array[:2].tolist() == [0.0, 0.0] and abs(g.array[2]) > 0.05
    if name in ("digamma", "gammaln", "k0"):  # elsewhere the second derivative is NaN
        (gg,) = tn.grad([functions.sum(g)], [x])
        assert gg.array[:2].tolist() == [0.0, 0.0] and abs(gg.array[2]) > 0.1


def test_xlogy_has_the_derivative_at_a_zero_factor() -> None:
    """x log(y) has the derivative log(y) in x, at x = 0 too; a masked product would give 0."""
    own = special_of("numpy")
    x = tn.asarray(numpy.asarray([0.0, 0.0]), requires_grad=True)
    y = tn.asarray(numpy.asarray([2.0, 0.5]), requires_grad=True)
    gx, gy = tn.grad([functions.sum(own.xlogy(x, y))], [x, y], enable_double_backprop=True)
    numpy.testing.assert_allclose(gx.array, numpy.log(y.array))
    assert gy.array.tolist() == [0.0, 0.0]
    (gxy,) = tn.grad([functions.sum(gy)], [x])
    numpy.testing.assert_allclose(gxy.array, 1 / y.array)


def test_log_ndtr_keeps_its_digits_far_below_zero() -> None:
    x = tn.asarray(numpy.asarray([-1e8, -1e3, -40.0, 0.0, 40.0]), requires_grad=True)
    (g,) = tn.grad(
        [functions.sum(special_of("numpy").log_ndtr(x))], [x], enable_double_backprop=True
    )
    # the asymptotic series of the ratio of density and distribution function
    far, near = (z + 1 / z - 2 / z**3 + 10 / z**5 - 74 / z**7 for z in (1e3, 40.0))
    expected = [1e8, far, near, numpy.sqrt(2 / numpy.pi), 0.0]
    numpy.testing.assert_allclose(g.array, expected, rtol=1e-9, atol=1e-300)
    (gg,) = tn.grad([functions.sum(g)], [x])
    numpy.testing.assert_allclose(gg.array[3:], [-2 / numpy.pi, 0.0], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    "keywords", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1}]
)
def test_logsumexp(keywords: dict[str, Any]) -> None:
    own = special_of("numpy")
    a = numpy.asarray([[0.3, -1.0, 800.0], [2.0, 0.1, 799.0]])
    b = numpy.asarray([[1.0, 0.0, 2.0], [0.5, 3.0, 1.0]])
    numpy.testing.assert_allclose(
        own.logsumexp(a, **keywords).array, scipy_special.logsumexp(a, **keywords)
    )
    numpy.testing.assert_allclose(
        own.logsumexp(a, b=b, **keywords).array, scipy_special.logsumexp(a, b=b, **keywords)
    )
    signed = own.logsumexp(a, b=-b, return_sign=True, **keywords)
    expected = scipy_special.logsumexp(a, b=-b, return_sign=True, **keywords)
    for found, wanted in zip(signed, expected, strict=True):
        numpy.testing.assert_allclose(found.array, wanted)
    small = numpy.clip(a, -1, 3)

    def f(a: Any, b: Any) -> Any:
        return own.logsumexp(a, b=b, **keywords)

    check_backward(f, (small, b), numpy.ones_like(f(small, b).array), eps=1e-5)


def test_softmax_and_multigammaln() -> None:
    own = special_of("numpy")
    x = numpy.asarray([[3.3, 1.2], [2.1, 4.0]])
    for axis in (None, 0):
        for name in ("softmax", "log_softmax"):
            expected = getattr(scipy_special, name)(x, axis=axis)
            numpy.testing.assert_allclose(getattr(own, name)(x, axis=axis).array, expected)
    numpy.testing.assert_allclose(own.multigammaln(x, 3).array, scipy_special.multigammaln(x, 3))
    check_backward(lambda x: own.multigammaln(x, 3), x, numpy.ones((2, 2)), eps=1e-5)


def test_other_forms_of_zeta_polygamma_and_gammasgn() -> None:
    own = special_of("numpy")
    x = tn.asarray(numpy.asarray([2.5, 3.5]), requires_grad=True)
    numpy.testing.assert_allclose(own.zeta(x).array, scipy_special.zeta(x.array))
    with pytest.raises(NotImplementedError, match=r"special.zeta.*argument 0"):
        functions.sum(own.zeta(x)).backward()
    numpy.testing.assert_allclose(
        own.polygamma(numpy.asarray([1, 2]), x).array, scipy_special.polygamma([1, 2], x.array)
    )
    assert own.gammasgn(-x).array.tolist() == scipy_special.gammasgn([-2.5, -3.5]).tolist()
    assert not own.gammasgn(x).requires_grad


def test_ufuncs_of_scipy_are_found() -> None:
    x = tn.asarray(numpy.asarray([0.0, 0.4]), requires_grad=True)
    ufuncs = sys.modules["scipy.special._ufuncs"]
    y = call_ufunc(ufuncs.stdtr, (numpy.asarray([3.0, 3.0]), x))
    (g,) = tn.grad([functions.sum(y)], [x])
    assert abs(g.array[0] - 0.3675525969) < 1e-9
    assert call_ufunc(ufuncs.ndtr, (x,)).array[0] == 0.5
    assert call_ufunc(numpy.sin, (x,)) is None


def test_each_rule_states_its_formula() -> None:
    for name, rules in RULES.items():
        assert any(rules), name
        for rule in rules:
            assert rule is None or rule.__doc__, name
