"""tinynode: a define-by-run autodiff framework to read, step through and use.

import tinynode as tn

x = tn.asarray([1.0, 2.0, 3.0])
y = tn.functions.sum(x * x)
y.backward()
x.grad                            # array([2., 4., 6.], dtype=float32)
"""

import typing

from tinynode import collector as collector  # raises the threshold of Python's collector
from tinynode import functions, habits, late_imports, random
from tinynode import hooks as hooks  # debug mode is one of them
from tinynode.configuration import (
    config,
    enable_grad,
    force_backprop_mode,
    global_config,
    is_debug,
    no_backprop_mode,
    no_grad,
    set_debug,
    using_config,
)
from tinynode.core.backprop import backward, grad
from tinynode.core.conversion import as_array, as_variable, asarray, to_host
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    Backend,
    Device,
    Fallback,
    get_device,
    namespace_of,
    register_backend,
    synchronize,
    using_device,
)
from tinynode.errors import TinynodeError
from tinynode.random import seed

__version__ = "0.2.0"

__all__ = [
    "Backend",
    "Device",
    "Fallback",
    "Function",
    "FunctionAdapter",
    "FunctionHook",
    "FunctionNode",
    "TinynodeError",
    "Variable",
    "VariableNode",
    "__version__",
    "array_api",
    "array_namespace",
    "as_array",
    "as_variable",
    "asarray",
    "backward",
    "checkpoint",
    "compile",
    "config",
    "custom_fixed_point",
    "custom_root",
    "diagnose",
    "distributed",
    "enable_grad",
    "fixed_point",
    "force_backprop_mode",
    "forget",
    "functions",
    "get_device",
    "global_config",
    "grad",
    "gradient",
    "gradient_check",
    "hessian",
    "hooks",
    "hvp",
    "interop",
    "is_debug",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "namespace_of",
    "net",
    "newton",
    "nn",
    "no_backprop_mode",
    "no_grad",
    "random",
    "register_backend",
    "seed",
    "set_debug",
    "show",
    "summary",
    "synchronize",
    "testing",
    "to_host",
    "trace",
    "transforms",
    "using_config",
    "using_device",
    "value_and_grad",
    "vjp",
    "vmap",
]
__dir__ = __all__.copy  # for completion


_LATE = {
    "Function": "tinynode.interop.old_style",
    "FunctionAdapter": "tinynode.interop.old_style",
    "array_api": "tinynode.array_api",
    "array_namespace": "tinynode.array_api",
    "checkpoint": "tinynode.transforms.checkpoint",
    "compile": "tinynode.net.compile",
    "custom_fixed_point": "tinynode.transforms",
    "custom_root": "tinynode.transforms",
    "fixed_point": "tinynode.transforms",
    "diagnose": "tinynode.doctor",
    "distributed": "tinynode.distributed",
    "forget": "tinynode.transforms.checkpoint",
    "gradient": "tinynode.transforms",
    "gradient_check": "tinynode.gradient_check",
    "hessian": "tinynode.transforms",
    "hvp": "tinynode.transforms",
    "interop": "tinynode.interop",
    "jacfwd": "tinynode.transforms",
    "jacobian": "tinynode.transforms",
    "jacrev": "tinynode.transforms",
    "jvp": "tinynode.transforms",
    "linearize": "tinynode.transforms",
    "net": "tinynode.net",
    "newton": "tinynode.transforms",
    "nn": "tinynode.nn",
    "numpy_functions": "tinynode.array_api.numpy_functions",
    "show": "tinynode.show",
    "summary": "tinynode.nn.summary",
    "testing": "tinynode.testing",
    "trace": "tinynode.net.trace",
    "transforms": "tinynode.transforms",
    "value_and_grad": "tinynode.transforms",
    "vjp": "tinynode.transforms",
    "vmap": "tinynode.transforms.vmap",
}
"""The names whose modules are imported at the first use: ``x * y`` needs none of them."""

if typing.TYPE_CHECKING:
    from tinynode import array_api as array_api
    from tinynode import distributed as distributed
    from tinynode import gradient_check as gradient_check
    from tinynode import interop as interop
    from tinynode import net as net
    from tinynode import nn as nn
    from tinynode import show as show
    from tinynode import testing as testing
    from tinynode import transforms as transforms
    from tinynode.array_api import array_namespace as array_namespace
    from tinynode.array_api import numpy_functions as numpy_functions
    from tinynode.doctor import diagnose as diagnose
    from tinynode.interop.old_style import Function as Function
    from tinynode.interop.old_style import FunctionAdapter as FunctionAdapter
    from tinynode.net.compile import compile as compile
    from tinynode.net.trace import trace as trace
    from tinynode.nn.summary import summary as summary
    from tinynode.transforms import custom_fixed_point as custom_fixed_point
    from tinynode.transforms import custom_root as custom_root
    from tinynode.transforms import fixed_point as fixed_point
    from tinynode.transforms import gradient as gradient
    from tinynode.transforms import hessian as hessian
    from tinynode.transforms import hvp as hvp
    from tinynode.transforms import jacfwd as jacfwd
    from tinynode.transforms import jacobian as jacobian
    from tinynode.transforms import jacrev as jacrev
    from tinynode.transforms import jvp as jvp
    from tinynode.transforms import linearize as linearize
    from tinynode.transforms import newton as newton
    from tinynode.transforms import value_and_grad as value_and_grad
    from tinynode.transforms import vjp as vjp
    from tinynode.transforms.checkpoint import checkpoint as checkpoint
    from tinynode.transforms.checkpoint import forget as forget
    from tinynode.transforms.vmap import vmap as vmap
else:

    def __getattr__(name: str) -> typing.Any:
        """A late name, or the error for a wrong name; Python asks for missing names only."""
        if name not in _LATE:
            raise habits.missing_attribute("tn", name, __all__, functions.__all__)
        module = late_imports.import_late(_LATE[name])
        globals()[name] = getattr(module, name, module)
        return globals()[name]
