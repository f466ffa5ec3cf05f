"""Splats: a picture as a sum of soft spots, with gradients of places, sizes and colours.

Elective splats: write weights_of, and forward and backward of Splats.
"""

import numpy as np
from mynode.core.function_node import FunctionNode


def offsets(places, height, width):
    """From each splat to each pixel, down and right: (n, 2) -> (n, height), (n, width).

    The middle of pixel (row, column) is at (row + 0.5, column + 0.5).
    """
    rows = np.arange(height, dtype=places.dtype) + 0.5
    columns = np.arange(width, dtype=places.dtype) + 0.5
    return rows - places[:, :1], columns - places[:, 1:]


def weights_of(places, sizes, height, width):
    """w = e^(-(distance / size)^2 / 2) of each splat at each pixel: (n, height, width)."""
    raise NotImplementedError("elective splats: weights_of")


class Splats(FunctionNode):
    """y = the sum over the splats of w c, with w = e^(-(down^2 + right^2) / (2 size^2)).

    places: (n, 2), sizes: (n), colours c: (n, 3) -> y: (height, width, 3). With s = gy c^T w, for
    each splat and pixel, all sums over the pixels:

        g_colour = sum of w gy    g_place = (sum of s down, sum of s right) / size^2
        g_size = sum of s (down^2 + right^2) / size^3

    Source: Kerbl, Kopanas, Leimkühler and Drettakis, 3D Gaussian Splatting, 2023; here in two
    dimensions, and without an order: splats add up.
    """

    def __init__(self, height, width):
        self.height = height
        self.width = width

    def forward(self, inputs):
        raise NotImplementedError("elective splats: Splats.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("elective splats: Splats.backward")


def splats(places, sizes, colours, height, width):
    """A picture of splats: (n, 2), (n), (n, 3) -> (height, width, 3)."""
    return Splats(height, width).apply((places, sizes, colours))[0]
