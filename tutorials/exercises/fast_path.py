"""Exercise fast_path: one array is enough.

``forward`` of ``Softsign`` makes three arrays: |x|, 1 + |x|, and the result. Write
``forward_fast``, which runs on the device ``fast``:

1. It makes one array, which is the result. Functions of NumPy write into a given array:
   np.abs(x, out=y), np.add(y, 1.0, out=y), np.divide(x, y, out=y).
2. It leaves x as it is, and retains what ``forward`` retains.
3. It serves float32 and float64. For every other dtype it returns tn.Fallback with a reason that
   names the dtype.
"""

import numpy as np

import tinynode as tn


class Softsign(tn.FunctionNode):
    """y = x / (1 + |x|), for x of any shape.   dL/dx = dL/dy / (1 + |x|)^2."""

    def forward(self, inputs):
        (x,) = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0,))
        return (x / (1.0 + xp.abs(x)),)

    def forward_fast(self, inputs):
        return tn.Fallback("not written yet")

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g / (1.0 + abs(x)) ** 2,)


if __name__ == "__main__":  # python fast_path.py
    for device in "numpy", "fast":
        x = tn.asarray(np.array([-3.0, 0.0, 1.0]), device=device)
        print(device, Softsign().apply((x,))[0].array)
    print(tn.show.fallbacks())
