"""Bug hunt 06, solved: diamonds, long and short ways, set gradients, shapes and dtypes."""

import numpy as np


def gradient(engine, function, x):
    x = engine.Variable(np.array(x))
    y = function(x)
    y.backward()
    return x.grad


def close(one, other):
    return np.shape(one) == np.shape(other) and np.allclose(one, other)


def test_formulas(engine):
    x = np.array([0.3, -1.2, 2.0])
    assert close(gradient(engine, lambda x: 3.0 - engine.square(engine.sin(x)), x), -np.sin(2 * x))
    assert close(gradient(engine, lambda x: engine.exp(-x) - x, x), -np.exp(-x) - 1)
    assert close(gradient(engine, lambda x: engine.square(engine.square(x)), x), 4 * x**3)
    assert close((5.0 - engine.Variable(x)).array, 5.0 - x)


def test_product(engine):
    a, b = engine.Variable(np.array(2.0)), engine.Variable(np.array(5.0))
    (a * b).backward()
    assert (float(a.grad), float(b.grad)) == (5.0, 2.0)


def test_long_and_short_ways(engine):
    square = engine.square
    for function in (
        lambda a: square(square(a)) + a,
        lambda a: a + square(square(a)),
        lambda a: square(a) * a + a,
    ):
        x = np.array([0.9, 1.1])
        high, low = (function(engine.Variable((x + e) ** 2)).array for e in (1e-6, -1e-6))
        slope = gradient(engine, lambda x, f=function: f(square(x)), x)
        assert np.allclose(slope, (high - low) / 2e-6)


def test_no_gradient_is_shared(engine):
    a, b = engine.Variable(np.array([1.0])), engine.Variable(np.array([1.0]))
    y = a + b
    z = y + a
    z.backward()
    assert (a.grad.tolist(), b.grad.tolist(), y.grad.tolist()) == ([2.0], [1.0], [1.0])


def test_each_operation_runs_once(engine):
    runs = []

    class Count(engine.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

        def backward(self, target_input_indexes, grad_outputs):
            runs.append(self)
            return (grad_outputs[0] * 2.0,)

    x = engine.Variable(np.array([1.0]))
    (y,) = Count().apply((x,))
    (engine.square(y) + engine.sin(y)).backward()
    assert len(runs) == 1


def test_ranks(engine):
    x, y = engine.Variable(np.array(1.0)), engine.Variable(np.array(1.0))
    deep = engine.square(engine.square(x))
    assert [one.rank for one in (x, deep, y + deep, deep + y)] == [0, 2, 3, 3]
    assert (y + deep).creator_node.rank == 2


def test_a_set_gradient(engine):
    x = engine.Variable(np.array([1.0, 2.0]))
    y = -x
    y.grad = np.array([10.0, 100.0])
    y.backward()
    assert x.grad.tolist() == [-10.0, -100.0]
    x.cleargrad()
    assert x.grad is None
    engine.negative(x).backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_arrays(engine):
    y = engine.square(engine.Variable(np.array(3.0)))
    assert isinstance(y.array, np.ndarray)
    x = engine.Variable(np.array([1.0], dtype=np.float32))
    assert (x * 2.0).array.dtype == np.float32


def test_operations_of_ones_own(engine):
    class Split(engine.FunctionNode):
        def forward(self, inputs):
            return inputs[0][:1], inputs[0][1:]

        def backward(self, target_input_indexes, grad_outputs):
            return (np.concatenate(grad_outputs),)

    class Wrong(engine.FunctionNode):
        def forward(self, inputs):
            return inputs[0]

    x = engine.Variable(np.array([1.0, 2.0]))
    outputs = Split().apply((x,))
    assert [y.creator_node is outputs[0].creator_node for y in outputs] == [True, True]
    try:
        Wrong().apply((x,))
    except TypeError:
        return
    raise AssertionError("a forward without a tuple was not refused")
