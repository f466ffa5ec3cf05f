"""Exercise devices: a forward for GPUs.

``Swish`` has a ``forward_cpu`` and a ``backward``. Write ``forward_gpu``:

1. It computes y with a single ``cupy.ElementwiseKernel``.
2. The kernel serves 32-bit and 64-bit numbers, so its arrays have the type T.
3. It retains what ``backward`` needs, as ``forward_cpu`` does, and returns a tuple.

Import cupy and make the kernel within ``forward_gpu``: so this file can be imported without CuPy.
You need no GPU. The check has a stand-in that runs short kernels, and says which part did not run.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F


class Swish(tn.FunctionNode):
    """y = x / (1 + exp(-x)).   With s = sigmoid(x), g = dL/dy:   dL/dx = g (s + y (1 - s))."""

    def forward_cpu(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (x / (1.0 + np.exp(-x)),)

    def forward_gpu(self, inputs):
        raise NotImplementedError("write forward_gpu with an ElementwiseKernel")

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        s = F.sigmoid(x)
        return (g * (s + x * s * (1.0 - s)),)


if __name__ == "__main__":  # python devices.py
    for device in "numpy", "cupy":
        try:
            x = tn.asarray([-1.0, 0.0, 1.0], device=device)
        except tn.TinynodeError as error:
            print(f"{device}: {str(error).splitlines()[0]}")
        else:
            print(f"{device}: {tn.to_host(Swish().apply((x,))[0].array)}")
