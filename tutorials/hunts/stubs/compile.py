"""Bug hunt of the elective compile: write tests that catch a wrong compiler.

``engine`` is a module with a compiler of 200 lines, for functions of NumPy arrays. It promises:

    f = engine.compiled(function)     a function with the same results as ``function``, bit by bit

``function`` may have + - * / between arrays, inputs and numbers, the minus sign,
``engine.exp(x)`` and ``engine.maximum(a, b)``, and returns one array. The first call with a new
signature records ``function``; the signature has the shape and the dtype of each array, and the
value of each other argument. Other calls run the record: ``f.recorded`` counts the recordings.
The record is improved: equal lines are computed once, x + 0, x - 0, x * 1 and -(-x) are x, and
arrays that are read no more take further results. A result is a new array, which no later call
changes. A decision by a value raises a TypeError.

The course plants 20 bugs, one at a time, in copies of the engine. Each of your tests gets the
engine, passes on the right one, and should fail on many a copy.

    python -m tinynode.learn hunt compile
"""

import numpy as np


def test_first_call(engine):
    """A test that catches nothing: one call, with one input and one function."""
    f = engine.compiled(engine.exp)
    x = np.array([0.0, 1.0])
    assert np.array_equal(f(x), np.exp(x))
