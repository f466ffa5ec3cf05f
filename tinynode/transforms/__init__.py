"""Transforms: derivatives of functions, as functions, and vmap.

``gradients`` has value_and_grad, gradient and hvp; ``linear`` has vjp, jvp and linearize;
``jacobians`` has jacrev, jacfwd and hessian, with sparse patterns in ``colouring``. Each one calls
the function on fresh Variables, and differentiates the recorded graph with ``tinynode.grad``.
``implicit`` has custom_root, custom_fixed_point, newton and fixed_point; ``implicit_operators``
has the operators of nets. ``vmap`` calls the function on Variables with a hidden axis;
``batching`` has the border of the hidden axis. Transforms compose: one may stand in the function
of another.
"""

import tinynode.array_api
import tinynode.net  # noqa: F401 - the package first: see late_imports
from tinynode.transforms.batching import batched, is_lifted, note_move
from tinynode.transforms.gradients import gradient, hvp, value_and_grad
from tinynode.transforms.implicit import (
    custom_fixed_point,
    custom_root,
    fixed_point,
    newton,
)
from tinynode.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from tinynode.transforms.linear import jvp, linearize, vjp
from tinynode.transforms.linear_map import LinearMap
from tinynode.transforms.shared_writes import finish_write
from tinynode.transforms.trees import or_zeros
from tinynode.transforms.vmap import vmap

__all__ = [
    "LinearMap",
    "batched",
    "custom_fixed_point",
    "custom_root",
    "finish_write",
    "fixed_point",
    "gradient",
    "hessian",
    "hvp",
    "is_lifted",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "newton",
    "note_move",
    "or_zeros",
    "value_and_grad",
    "vjp",
    "vmap",
]
__dir__ = __all__.copy  # for completion
