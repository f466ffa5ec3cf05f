"""Bug hunt 13: write tests that catch an engine with a wrong memory.

``engine`` is the package mynode as it is after step 13. It promises:

- A result that nobody holds is freed at once, also while the garbage collector is off
  (``gc.disable()``). So are its array and its node.
- An operation keeps the arrays that its backward reads, and no others: square and multiply their
  inputs, exp and tanh their output, add and negative nothing.
- A graph is recorded where an input wants a gradient (``requires_grad``), and not in a block
  ``with engine.no_backprop_mode():``. Blocks may stand in blocks, and may end by an error.
- Whole numbers want no gradient, in leaves and in results.
- ``y.backward()`` adds gradients to the leaves that want one; boxes on the way get none, and
  ``y.grad`` is None afterwards. A second backward adds again.
- backward raises a ValueError if y is a leaf, or has many numbers and no ``y.grad``.
- ``y.unchain()`` forgets the creator: backward stops there.

The course plants 20 bugs, one at a time, in copies of the engine. Each of your tests gets the
engine, passes on the right one, and should fail on many a copy.

    python -m tinynode.learn hunt 13
"""

import gc  # noqa: F401 - you will need it
import weakref  # noqa: F401

import numpy as np


def test_gradient(engine):
    """A test that catches nothing: the gradient of a chain of one operation."""
    x = engine.Variable(np.array(3.0))
    engine.square(x).backward()
    assert float(x.grad) == 6.0
