"""Compiled functions notice changes of the values that they read from outside."""

from __future__ import annotations

import functools
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.net.compile import MOST_RECORDINGS
from tinynode.net.surroundings import MOST_PARTS

factor = 2.0
table = {"factors": [1.0, 2.0]}


def with_global_number(x: Any) -> Any:
    return x * factor


def with_global_dict(x: Any) -> Any:
    for number in table["factors"]:
        x = x * number
    return x


def with_default(x: Any, factors: list[float] = [2.0]) -> Any:  # noqa: B006
    for number in factors:
        x = x * number
    return x


def number_of(x: Any) -> list[float]:
    return [float(value) for value in x.array]


X = np.array([1.0, 3.0])


def test_a_list_of_the_closure_that_grows() -> None:
    layers: list[Callable[[Any], Any]] = [fn.exp]

    def f(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    compiled = tn.compile(f)
    for more in (fn.sin, fn.tanh):
        for _ in range(3):
            np.testing.assert_allclose(compiled(X).array, f(tn.Variable(X)).array)
        layers.append(more)
    np.testing.assert_allclose(compiled(X).array, f(tn.Variable(X)).array)
    assert len(compiled.recordings) == 3


def test_a_number_of_the_closure_that_is_bound_anew() -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return x * scale

    compiled = tn.compile(f)
    assert number_of(compiled(X)) == [2.0, 6.0]
    scale = 5.0
    assert number_of(compiled(X)) == [5.0, 15.0]
    gradient = tn.compile(tn.gradient(lambda x: fn.sum(f(x) * scale)))
    assert number_of(gradient(X)) == [25.0, 25.0]


def test_a_mutable_default() -> None:
    compiled = tn.compile(with_default)
    bound = tn.compile(functools.partial(with_default))
    assert number_of(compiled(X)) == number_of(bound(X)) == [2.0, 6.0]
    factors = with_default.__defaults__[0]  # type: ignore[index]
    factors.append(10.0)
    try:
        assert number_of(compiled(X)) == number_of(bound(X)) == [20.0, 60.0]
    finally:
        factors.pop()
    assert number_of(compiled(X)) == [2.0, 6.0]
    assert len(compiled.recordings) == 2  # the first fits again


def test_names_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, of_table = tn.compile(with_global_number), tn.compile(with_global_dict)
    assert number_of(compiled(X)) == number_of(of_table(X)) == [2.0, 6.0]
    monkeypatch.setitem(globals(), "factor", 3.0)
    monkeypatch.setitem(table, "factors", [3.0])
    assert number_of(compiled(X)) == number_of(of_table(X)) == [3.0, 9.0]


class Scaled:
    @tn.compile
    def __call__(self, x: Any) -> Any:
        return x * table["factors"][-1]


def test_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = Scaled()
    assert number_of(scaled(X)) == [2.0, 6.0]
    monkeypatch.setitem(table, "factors", [4.0])
    assert number_of(scaled(X)) == [4.0, 12.0]


def test_a_counter_makes_few_recordings() -> None:
    step = 0

    @tn.compile
    def f(x: Any) -> Any:
        return x * (step + 1)

    for step in range(30):
        assert number_of(f(X)) == [step + 1.0, 3.0 * (step + 1)]
    assert len(f.recordings) == MOST_RECORDINGS


def test_of_a_long_list_the_length_counts() -> None:
    numbers = [1.0] * (MOST_PARTS + 1)

    @tn.compile
    def f(x: Any) -> Any:
        return x * sum(numbers)

    assert number_of(f(X))[0] == MOST_PARTS + 1
    numbers.append(1.0)
    assert number_of(f(X))[0] == MOST_PARTS + 2


def test_variables_and_arrays_around_need_no_other_recording() -> None:
    weights = {"w": tn.Variable(np.array([1.0, 2.0]))}

    @tn.compile
    def f(x: Any) -> Any:
        return x * weights["w"]

    assert number_of(f(X)) == [1.0, 6.0]
    weights["w"].array = np.array([2.0, 4.0])
    assert number_of(f(X)) == [2.0, 12.0] and len(f.recordings) == 1
    weights["w"] = tn.Variable(np.array([0.0, 1.0]))
    assert number_of(f(X)) == [0.0, 3.0] and len(f.recordings) == 2


def test_a_list_that_the_function_fills_is_no_reason_to_record() -> None:
    calls: list[int] = []

    @tn.compile
    def f(x: Any) -> Any:
        calls.append(len(calls))
        return x * 2.0

    for _ in range(3):
        assert number_of(f(X)) == [2.0, 6.0]
    assert calls == [0]


def total_with_table(x: Any) -> Any:
    return fn.sum(with_global_dict(x) * x)


class OfTable(tn.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * table["factors"][-1]


of_table = tn.nn.Sequential(OfTable())


@pytest.mark.parametrize(
    "function",
    [
        tn.gradient(total_with_table),
        tn.gradient(tn.compile(total_with_table)),
        tn.vmap(with_global_dict),
        functools.partial(with_global_dict),
        lambda x: tn.checkpoint(with_global_dict, x),
        lambda x: tn.vmap(lambda one: one * table["factors"][-1])(x),
        lambda x: with_global_dict(x) + 1.0,
        lambda x: of_table(x) + 1.0,
        of_table,
    ],
)
def test_what_the_functions_inside_read(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, before = tn.compile(function), function(tn.Variable(X)).array
    np.testing.assert_allclose(compiled(tn.Variable(X)).array, before)
    monkeypatch.setitem(table, "factors", [4.0, 5.0])
    now = function(tn.Variable(X)).array
    np.testing.assert_allclose(compiled(tn.Variable(X)).array, now)
    assert not np.array_equal(before, now) and len(compiled.recordings) == 2


def test_a_list_of_the_closure_of_a_function_inside() -> None:
    factors = [2.0]

    def inner(x: Any) -> Any:
        return fn.sum(x * x * factors[0])

    compiled = [tn.compile(f(inner)) for f in (tn.gradient, tn.jacfwd, tn.hessian)]
    for factors[0] in (2.0, 3.0):
        for gradient in compiled[:2]:
            assert number_of(gradient(X)) == [2.0 * factors[0], 6.0 * factors[0]]
        np.testing.assert_array_equal(compiled[2](X).array, np.eye(2) * 2.0 * factors[0])


def scaled_sum(x: Any) -> Any:
    return fn.sum(x * x * factor)


def scaled_square(x: Any, theta: Any) -> Any:
    return x * x - theta * factor


slope = tn.gradient(scaled_sum)
root = tn.custom_root(scaled_square, lambda theta: fn.sqrt(theta * factor))
fixed_point = tn.custom_fixed_point(
    lambda x, theta: theta * factor + 0.0 * x, lambda t: t * factor
)


@pytest.mark.parametrize(
    ("function", "power"),
    [
        (lambda x: slope(x), 1.0),
        (lambda x: root(x), 0.5),
        (lambda x: fixed_point(x), 1.0),
        (lambda x: tn.vmap(root)(x), 0.5),
        (lambda x: tn.newton(scaled_square, 1.0, x), 0.5),
    ],
)
def test_a_global_number_behind_a_transform(
    function: Any, power: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a transform's result that is a name of the module."""
    compiled = tn.compile(function)
    first = compiled(X).array
    monkeypatch.setattr(sys.modules[__name__], "factor", 8.0)
    np.testing.assert_allclose(compiled(X).array, 4.0**power * first)


def test_arguments_of_a_partial() -> None:
    factors = [2.0]
    compiled = tn.compile(functools.partial(with_default, factors=factors))
    assert number_of(compiled(X)) == [2.0, 6.0]
    factors.append(2.0)
    assert number_of(compiled(X)) == [4.0, 12.0]


@pytest.mark.parametrize(
    "numbers",
    [deque([2.0]), OrderedDict({0: 2.0}), Counter({0: 2})],
    ids=lambda x: type(x).__name__,
)
def test_other_containers(numbers: Any) -> None:
    compiled = tn.compile(lambda x: x * numbers[0])
    assert number_of(compiled(X)) == [2.0, 6.0]
    numbers[0] = 5
    assert number_of(compiled(X)) == [5.0, 15.0]
