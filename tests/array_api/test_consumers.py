"""Code that others wrote against the Array API standard, differentiated without a change.

SciPy, scikit-learn, array-api-extra and xarray are in the extra ``consumers``.
"""

from __future__ import annotations

import functools
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import GradientCutWarning

for _library in ("scipy", "sklearn", "array_api_extra", "xarray"):
    pytest.importorskip(_library, reason=f"the extra `consumers` with {_library} is not installed")

from consumer_cases import CASES, Case, differences, on_numpy, weights_of  # noqa: E402

OUT_OF_REACH = {
    "stats.norm.logpdf": TypeError,
    "stats.linregress": TypeError,
    "stats.expectile": TypeError,
    "signal.lfilter": TypeError,
    "signal.welch": TypeError,
    "fft.dct": TypeError,
    "integrate.simpson": TypeError,
    "integrate.simpson(x)": TypeError,
    "signal.convolve": TypeError,
    "signal.correlate": TypeError,
    "signal.detrend": TypeError,
    "signal.detrend(constant)": TypeError,
    "signal.savgol_filter": TypeError,
}
"""Calls that go through ``numpy.asarray`` inside: the error that a reader sees."""
NAMES = {case.name: case for case in CASES}
WITH_GRADIENT = [name for name in NAMES if name not in OUT_OF_REACH]


@functools.cache
def expected(name: str) -> tuple[float, Any]:
    case = NAMES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return on_numpy(case, case.x), differences(case)


def gradient_of(case: Case, device: str) -> tuple[float, Any]:
    """The weighted sum of the result, and its gradient."""
    x = tn.asarray(case.x, dtype="float64", device=device, requires_grad=True)
    xp = x.__array_namespace__()

    def constant(values: Any) -> tn.Variable:
        return xp.asarray(np.asarray(values).tolist())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", GradientCutWarning)
        y = case.call(x, constant)
    assert isinstance(y, tn.Variable) and y.requires_grad
    total = xp.sum(y * constant(weights_of(y.shape)))
    total.backward()
    return float(total), tn.to_host(x.grad)


def check(name: str, device: str) -> None:
    value, gradient = gradient_of(NAMES[name], device)
    wanted, wanted_gradient = expected(name)
    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", WITH_GRADIENT[::6])
def test_value_and_gradient_of_a_call(name: str) -> None:
    check(name, "numpy")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_value_and_gradient_of_each_call(name: str, device: str) -> None:
    check(name, device)


NOT_ON_STRICT = {
    "integrate.tanhsinh": "SciPy passes Python's bool as a dtype",
    "integrate.tanhsinh(limit)": "SciPy passes Python's bool as a dtype",
    "integrate.tanhsinh(infinite)": "SciPy passes Python's bool as a dtype",
    "integrate.nsum(infinite)": "SciPy adds up bools",
    "differentiate.derivative": "SciPy writes at an array of integers",
    "differentiate.derivative(x)": "SciPy writes at an array of integers",
    "differentiate.jacobian": "SciPy writes at an array of integers",
    "differentiate.hessian": "SciPy writes at an array of integers",
    "optimize.find_root": "SciPy writes at an array of integers",
    "optimize.bracket_root": "SciPy writes at an array of integers",
    "xarray.mean": "xarray asks for the attribute kind of a dtype",
    "xarray.var": "xarray asks for the attribute kind of a dtype",
    "xarray.where": "xarray passes Python's float as a dtype",
}
"""Calls that go beyond the standard, so array_api_strict refuses them."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WITH_GRADIENT if name not in NOT_ON_STRICT])
def test_value_and_gradient_on_strict_arrays(name: str) -> None:
    check(name, "strict")


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_a_call_out_of_reach_is_an_error(name: str) -> None:
    with pytest.raises(OUT_OF_REACH[name], match="requires a gradient"):
        gradient_of(NAMES[name], "numpy")


def test_a_cut_in_the_code_of_others_gives_a_warning() -> None:
    import scipy.signal

    x = tn.asarray(0.3, dtype="float64", requires_grad=True)
    with pytest.warns(GradientCutWarning, match=r"float\(x\) in scipy: .* the gradient ends here"):
        scipy.signal.butter(2, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(x) == 0.3  # here the number is meant


def test_enough_calls_are_differentiated() -> None:
    assert len(WITH_GRADIENT) >= 160


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_ON_STRICT)
def test_what_array_api_strict_refuses_is_still_refused(name: str) -> None:
    with pytest.raises((AttributeError, IndexError, TypeError, ValueError)):
        gradient_of(NAMES[name], "strict")


def test_the_published_table_has_these_calls() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "array-api-calls.md").read_text()
    rows = re.findall(r"^\| `(.+?)` \| (\w+)", page, re.MULTILINE)
    assert [name for name, _ in rows] == list(NAMES)
    assert {name for name, verdict in rows if verdict != "right"} == OUT_OF_REACH.keys()
    assert re.search(r"^\| tinynode on NumPy \| \d+ \| \d+ \| 0 \|$", page, re.MULTILINE)
