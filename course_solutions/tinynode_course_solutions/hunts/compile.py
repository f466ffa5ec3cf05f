"""The hunt of the elective compile, solved: call twice, mix kinds, ask for what is promised."""

import numpy as np


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def expect_same(engine, function, *calls):
    """The compiled function has the results of the function, also after all calls."""
    f = engine.compiled(function)
    results = [f(*inputs) for inputs in calls]
    for inputs, result in zip(calls, results, strict=True):
        expected = function(*inputs)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        assert np.array_equal(result, expected)
    return f


def test_each_function(engine):
    calls = (numbers(1, 4), numbers(2, 4)), (numbers(3, 4), numbers(4, 4))
    expect_same(engine, lambda a, b: a - b / engine.exp(a), *calls)
    expect_same(engine, lambda a, b: (1.0 - a) * (2.0 / b) + 3.0, *calls)
    expect_same(engine, lambda a, b: engine.maximum(a, -b), *calls)


def test_lines_that_look_equal(engine):
    calls = ((numbers(1, 4), numbers(2, 4)),)
    expect_same(engine, lambda a, b: (a - b) * (b - a), *calls)
    expect_same(engine, lambda a, b: (a + b) * (a - b), *calls)


def test_simple_numbers(engine):
    calls = ((numbers(1, 4),),)
    for function in (
        lambda x: (x + 0) * engine.exp(x),
        lambda x: (x + 1) - (x - 1),
        lambda x: 0 - x,
        lambda x: x * 0 + x * 1,
        lambda x: engine.apply("neg", -x) - (-x),
    ):
        expect_same(engine, function, *calls)
    expect_same(engine, lambda x: x + np.zeros((2, 4)), *calls)


def test_arrays_that_are_read_again(engine):
    def function(x):
        y = engine.exp(x)
        z = y * 2.0
        return engine.exp(z / 3.0) * (z - 1.0) + y

    expect_same(engine, function, (numbers(1, 4),), (numbers(2, 4),))


def test_two_widths(engine):
    def function(a, b):
        narrow = engine.exp(a) * a * a
        return (engine.exp(b) + 0.1) * engine.exp(narrow * b) - b

    calls = ((numbers(1, 4).astype("float32"), numbers(2, 4)),)
    expect_same(engine, function, *calls)


def test_signature(engine):
    f = expect_same(
        engine, lambda x, n: engine.exp(x) * n, (numbers(1, 4), 2.0), (numbers(1, 4), 3.0)
    )
    f(numbers(5, 4), 2.0)
    assert f.recorded == 2
    g = engine.compiled(lambda x: x * 1.5)
    for x in (numbers(1, 4), numbers(1, 4).astype("float32"), numbers(1, 5), numbers(2, 4)):
        assert g(x).dtype == x.dtype and np.array_equal(g(x), x * 1.5)
    assert g.recorded == 3


def test_a_decision_is_refused(engine):
    def choose(x):
        return x if x + 1.0 else -x

    try:
        engine.compiled(choose)(numbers(1, 1))
    except TypeError:
        return
    raise AssertionError("a decision was recorded")
