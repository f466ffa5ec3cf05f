"""The job ``train pinn``: a network that solves the heat equation.

A rod of length 1 has the temperature u(x, t). Its ends are held at 0:

    du/dt = K d2u/dx2      u(x, 0) = sin(pi x)      u(0, t) = u(1, t) = 0

The exact solution is u = sin(pi x) exp(-K pi^2 t). The network never sees the solution: the loss
contains the network's own derivatives.

Source: Raissi, Perdikaris and Karniadakis, Physics-informed Neural Networks, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from tinynode import functions, nn, random
from tinynode.commands.job import Job, Loaders
from tinynode.configuration import force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.devices import get_device, to_host
from tinynode.transforms.trees import or_zeros

K = 0.2
"""The conductivity."""
WEIGHT = 10.0
"""The factor of the error at the start and at the ends."""
POINTS = 16384
"""The number of random points (x, t) inside."""
SIDE = 65
"""The held-out points are a grid of 65 by 65."""


class Rod(nn.Module):
    """Points (x, t) to temperatures: (n, 2) -> (n, 1).

    The buffer ``edge`` has points of the start and the ends, (99, 2), and ``edge_values`` the
    known temperatures there, (99, 1).
    """

    def __init__(self) -> None:
        self.layers = nn.Sequential(
            nn.Linear(2, 32), functions.tanh, nn.Linear(32, 32), functions.tanh, nn.Linear(32, 1)
        )
        line = numpy.linspace(0.0, 1.0, 33)
        zero = numpy.zeros(33)
        start, left, right = (line, zero), (zero, line), (zero + 1, line)
        points = numpy.concatenate([numpy.stack(side, axis=1) for side in (start, left, right)])
        self.edge = nn.Buffer(on_device(points), name="edge")
        self.edge_values = nn.Buffer(on_device(exact(points) * (points[:, 1:] == 0)))

    def forward(self, points: Any) -> Variable:
        """The temperatures."""
        y: Variable = self.layers(2 * points - 1)
        return y


def exact(points: Any) -> Any:
    """The exact solution: (n, 2) -> (n, 1)."""
    x, t = points[:, :1], points[:, 1:]
    return numpy.sin(numpy.pi * x) * numpy.exp(-K * numpy.pi**2 * t)


def on_device(host: Any) -> Any:
    """A NumPy array on the current device, in ``config.dtype``."""
    return get_device().from_host(host.astype(random.host_dtype(None)))


def heat_loss(model: Rod, points: Variable, *rest: Variable) -> Variable:
    """mean((du/dt - K d2u/dx2)^2) + WEIGHT mean((u - known)^2), the second mean over the edge.

    points: (n, 2) -> (). Row i of u depends on row i of the points alone. So the rows of the
    gradient of sum(u) are the derivatives at the points.
    """
    with force_backprop_mode():  # in evaluation too
        p = asarray(points, requires_grad=True)
        slope = derivative(model(p), p)
        u_x, u_t = slope[:, :1], slope[:, 1:]
        u_xx = derivative(u_x, p)[:, :1]
        at_edge = functions.mean_squared_error(model(model.edge), model.edge_values)
        return functions.mean((u_t - K * u_xx) ** 2) + WEIGHT * at_edge


def derivative(y: Variable, x: Variable) -> Variable:
    """The derivative of sum(y) by x, as a Variable with a graph."""
    (gradient,) = grad([functions.sum(y)], [x], enable_double_backprop=True)
    return or_zeros(gradient, x)


def largest_error(model: Rod, points: Variable, solution: Variable) -> float:
    """The largest distance of the network from the exact solution."""
    return float(numpy.max(numpy.abs(to_host((model(points) - solution).array))))


def load_data(batch_size: int) -> Loaders:
    """Random points to train on. The grid stands beside the exact solution, in one batch."""
    inside = random.get_generator().random((POINTS, 2))
    line = numpy.linspace(0.0, 1.0, SIDE)
    grid = numpy.stack(numpy.meshgrid(line, line), axis=-1).reshape(-1, 2)
    return (
        nn.DataLoader(nn.ArrayDataset(inside), batch_size, shuffle=True),
        nn.DataLoader(nn.ArrayDataset(grid, exact(grid)), len(grid), seed=0),
    )


def result(model: nn.Module, measured: Mapping[str, float]) -> str:
    """The last line."""
    return f"largest error of the temperature: {measured['largest error']:.4f}"


JOB = Job(
    name="pinn",
    summary="a network that solves the heat equation: its loss has second derivatives",
    load_data=load_data,
    make_model=Rod,
    loss=heat_loss,
    metrics={"largest error": largest_error},
    result=result,
    epochs=30,
    batch_size=128,
    lr=0.01,
)
