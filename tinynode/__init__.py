"""tinynode: a define-by-run autodiff framework that one can read, step through and use.

import tinynode as tn

x = tn.asarray([1.0, 2.0, 3.0])
y = tn.functions.sum(x * x)
y.backward()
x.grad                            # array([2., 4., 6.], dtype=float32)
"""

from tinynode import functions, gradient_check, hooks, net, nn, random, show
from tinynode.backend import (
    Backend,
    Device,
    Fallback,
    get_device,
    namespace_of,
    register_backend,
    synchronize,
    to_host,
    using_device,
)
from tinynode.backprop import backward, grad
from tinynode.configuration import (
    config,
    force_backprop_mode,
    global_config,
    is_debug,
    no_backprop_mode,
    set_debug,
    using_config,
)
from tinynode.conversion import as_array, as_variable, asarray
from tinynode.derivatives import hvp, jacobian, value_and_grad
from tinynode.errors import TinynodeError
from tinynode.forget import forget
from tinynode.function import Function, FunctionAdapter
from tinynode.function_hook import FunctionHook
from tinynode.function_node import FunctionNode
from tinynode.net import compile, trace
from tinynode.random import seed
from tinynode.variable import Variable
from tinynode.variable_node import VariableNode

__version__ = "0.1.0"

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
    "as_array",
    "as_variable",
    "asarray",
    "backward",
    "compile",
    "config",
    "force_backprop_mode",
    "forget",
    "functions",
    "get_device",
    "global_config",
    "grad",
    "gradient_check",
    "hooks",
    "hvp",
    "is_debug",
    "jacobian",
    "namespace_of",
    "net",
    "nn",
    "no_backprop_mode",
    "random",
    "register_backend",
    "seed",
    "set_debug",
    "show",
    "synchronize",
    "to_host",
    "trace",
    "using_config",
    "using_device",
    "value_and_grad",
]
