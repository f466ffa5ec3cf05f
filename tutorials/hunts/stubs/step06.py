"""Bug hunt 06: write tests that catch a wrong engine.

``engine`` is the package mynode as it is after step 6. It promises:

- ``Variable(array)`` is a leaf, of rank 0. Operations are add, subtract, multiply, negative,
  square, exp and sin, and the signs + - * between boxes, and between a box and a number.
- The array of a result is a NumPy array, also for inputs without an axis. A number takes the
  dtype of the box beside it.
- An operation has the largest rank of its inputs; its outputs have one more.
- ``y.backward()`` adds dy/dx to ``x.grad`` of every box behind y, in the shape of the box.
  ``y.grad`` is ones, if the user has not set it. Each operation runs once, the highest rank first.
- ``x.cleargrad()`` makes ``x.grad`` None.
- An operation of your own is a subclass of ``FunctionNode`` with ``forward`` and ``backward``. It
  may have many outputs. A forward that returns no tuple raises a TypeError.

The course plants 20 bugs, one at a time, in copies of the engine. Each of your tests gets the
engine, passes on the right one, and should fail on many a copy. Which graph does each rule need?

    python -m tinynode.learn hunt 06
"""

import numpy as np


def test_addition(engine):
    """A test that catches nothing: one operation, and no call of backward."""
    x = engine.Variable(np.array(2.0))
    y = engine.add(x, x)
    assert float(y.array) == 4.0
