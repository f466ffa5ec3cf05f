"""The module names of version 0.1 keep working.

``import tinynode.variable`` and ``from tinynode.backend import Fallback`` give the modules below.
tinynode uses the new names.
"""

import sys

import tinynode.checkpoint as checkpoint_module
from tinynode import devices
from tinynode.core import (
    backprop,
    conversion,
    debug,
    function,
    function_node,
    hooks,
    variable,
    variable_node,
)

MOVED = {
    "backend": devices,
    "backprop": backprop,
    "conversion": conversion,
    "debug": debug,
    "forget": checkpoint_module,
    "function": function,
    "function_hook": hooks,
    "function_node": function_node,
    "variable": variable,
    "variable_node": variable_node,
}
"""The modules by the names of version 0.1, without ``tinynode.``."""

for old_name, module in MOVED.items():
    sys.modules[f"tinynode.{old_name}"] = module
