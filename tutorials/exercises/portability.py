"""Exercise portability: a function without np.

``LogCosh`` is a smooth form of |x|: for each row of x, the mean of log(cosh(x)). It works on
NumPy. Make it work on any array library of the standard:

1. Replace every use of NumPy in ``forward``, the methods of its arrays included.
2. The output must have the dtype of the input: 32-bit numbers stay 32-bit numbers.
3. Write ``backward`` with Variables and functions (F), so that it runs on any device, and so that
   its result can be differentiated again.
4. Remove the import of NumPy.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F


class LogCosh(tn.FunctionNode):
    """y[i] = mean over j of log(cosh(x[i, j])).

    x: (n, d) -> y: (n).   With g = dL/dy:   dL/dx[i, j] = g[i] * tanh(x[i, j]) / d
    """

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        a = np.abs(x)
        # cosh(x) = e^a (1 + e^(-2a)) / 2: written like this, nothing overflows
        y = a + np.log1p(np.exp(-2.0 * a)) - np.log(2.0)
        return (y.mean(axis=1),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        gx = np.tanh(x.array) * g.array[:, np.newaxis] / x.shape[1]
        return (tn.Variable(gx),)


if __name__ == "__main__":  # python portability.py
    for device in "numpy", "fast":
        x = tn.asarray([[0.0, 1.0], [2.0, 3.0]], device=device, requires_grad=True)
        (y,) = LogCosh().apply((x,))
        F.sum(y).backward()
        print(device, y.dtype, tn.to_host(y.array), tn.to_host(x.grad).tolist())
