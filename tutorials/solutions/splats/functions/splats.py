"""Splats: a picture as a sum of soft spots, with gradients of places, sizes and colours."""

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
    down, right = offsets(places, height, width)
    square = down[:, :, None] ** 2 + right[:, None, :] ** 2
    return np.exp(-0.5 * square / sizes[:, None, None] ** 2)


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
        places, sizes, colours = inputs
        self.retain_inputs((0, 1, 2))
        w = weights_of(places, sizes, self.height, self.width)
        return (np.einsum("nhw,nc->hwc", w, colours),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        places, sizes, colours = self.get_retained_inputs()
        w = weights_of(places, sizes, self.height, self.width)
        down, right = offsets(places, self.height, self.width)
        s = np.einsum("hwc,nc->nhw", gy, colours) * w
        by_row, by_column = s.sum(axis=2), s.sum(axis=1)
        moved = [(by_row * down).sum(axis=1), (by_column * right).sum(axis=1)]
        g_place = np.stack(moved, axis=1) / sizes[:, None] ** 2
        square = (by_row * down**2).sum(axis=1) + (by_column * right**2).sum(axis=1)
        return g_place, square / sizes**3, np.einsum("nhw,hwc->nc", w, gy)


def splats(places, sizes, colours, height, width):
    """A picture of splats: (n, 2), (n), (n, 3) -> (height, width, 3)."""
    return Splats(height, width).apply((places, sizes, colours))[0]
