"""Capstone exercise: Kepler's equation as a differentiable function.

Write the class ``Kepler`` and the function ``kepler``: E with E - e sin E = M.

- forward: Newton's method, on arrays, for all elements at the same time. Start with
  E = M + 0.85 e sign(sin M); then replace E by E - (E - e sin E - M) / (1 - e cos E) until nothing
  changes any more: 20 rounds are enough.
- backward: differentiate the equation. A change dM, de makes a change dE with
  dE - de sin E - e cos E dE = dM. Solve this for dE, and read off dE/dM and dE/de.
- Retain e and E, and no array of the iteration. Backward consists of functions of tinynode, for
  right gradients of second order.
"""

import tinynode as tn
from tinynode import functions as F


class Kepler(tn.FunctionNode):
    """E with E - e sin E = M.   M, e: (s), floating, 0 <= e < 1 -> E: (s)."""

    def forward(self, inputs):
        """The arrays (M, e) -> the arrays (E,)."""
        raise NotImplementedError("write forward")

    def backward(self, target_input_indexes, grad_outputs):
        """The Variables (dL/dE,) -> the Variables (dL/dM, dL/de)."""
        raise NotImplementedError("write backward")


def kepler(m, e):
    """The solution E, as a Variable; m and e have the same shape."""
    return Kepler().apply((m, e))[0]


if __name__ == "__main__":  # python implicit_layer.py
    m, e = tn.asarray([0.5, 2.0], requires_grad=True), tn.asarray([0.1, 0.6], requires_grad=True)
    angle = kepler(m, e)
    F.sum(angle).backward()
    print(angle.array, m.grad, e.grad)
