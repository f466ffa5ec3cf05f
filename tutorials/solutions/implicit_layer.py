"""Capstone exercise, solved: Kepler's equation as a differentiable function."""

import tinynode as tn
from tinynode import functions as F


class Kepler(tn.FunctionNode):
    """E with E - e sin E = M.   M, e: (s), floating, 0 <= e < 1 -> E: (s).

    With r = 1 - e cos E:   dL/dM = dL/dE / r,   dL/de = dL/dE sin E / r
    """

    def forward(self, inputs):
        """The arrays (M, e) -> the arrays (E,)."""
        m, e = inputs
        xp = tn.namespace_of(m)
        angle = m + 0.85 * e * xp.sign(xp.sin(m))
        for _ in range(20):
            angle = angle - (angle - e * xp.sin(angle) - m) / (1.0 - e * xp.cos(angle))
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return (angle,)

    def backward(self, target_input_indexes, grad_outputs):
        """The Variables (dL/dE,) -> the Variables (dL/dM, dL/de)."""
        (gy,) = grad_outputs
        (e,) = self.get_retained_inputs()
        (angle,) = self.get_retained_outputs()
        gm = gy / (1.0 - e * F.cos(angle))
        return gm, gm * F.sin(angle)


def kepler(m, e):
    """The solution E, as a Variable; m and e have the same shape."""
    return Kepler().apply((m, e))[0]


if __name__ == "__main__":  # python implicit_layer.py
    m, e = tn.asarray([0.5, 2.0], requires_grad=True), tn.asarray([0.1, 0.6], requires_grad=True)
    angle = kepler(m, e)
    F.sum(angle).backward()
    print(angle.array, m.grad, e.grad)
