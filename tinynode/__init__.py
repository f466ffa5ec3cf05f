"""tinynode: a define-by-run autodiff framework to read, step through and use.

import tinynode as tn

x = tn.asarray([1.0, 2.0, 3.0])
y = tn.functions.sum(x * x)
y.backward()
x.grad                            # array([2., 4., 6.], dtype=float32)
"""

import importlib
import typing

from tinynode import (
    array_api,
    distributed,
    functions,
    gradient_check,
    habits,
    hooks,
    interop,
    net,
    nn,
    random,
    transforms,
)
from tinynode import collector as collector  # raises the threshold of Python's collector
from tinynode.array_api import array_namespace
from tinynode.array_api import numpy_functions as numpy_functions  # for core.array_methods
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
from tinynode.interop.old_style import Function, FunctionAdapter
from tinynode.net import compile, trace
from tinynode.random import seed
from tinynode.transforms import (
    custom_fixed_point,
    custom_root,
    gradient,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    newton,
    value_and_grad,
    vjp,
    vmap,
)
from tinynode.transforms.checkpoint import checkpoint, forget

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
    "show": "tinynode.show",
    "diagnose": "tinynode.doctor",
    "summary": "tinynode.nn.summary",
    "testing": "tinynode.testing",
}
"""The names that import a module at the first use: many programs draw no pictures."""

if typing.TYPE_CHECKING:
    from tinynode import show as show
    from tinynode import testing as testing
    from tinynode.doctor import diagnose as diagnose
    from tinynode.nn.summary import summary as summary
else:

    def __getattr__(name: str) -> typing.Any:
        """A late name, or the error for a wrong name; Python asks for missing names only."""
        if name not in _LATE:
            raise habits.missing_attribute("tn", name, __all__, functions.__all__)
        module = importlib.import_module(_LATE[name])
        globals()[name] = getattr(module, name, module)
        return globals()[name]
