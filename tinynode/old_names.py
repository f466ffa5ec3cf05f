"""The module names of version 0.1 keep working.

``import tinynode.variable`` and ``from tinynode.backend import Fallback`` give the modules below.
tinynode uses the new names.
"""

import sys

from tinynode import devices, functions, transforms
from tinynode.core import (
    backprop,
    conversion,
    function_node,
    hooks,
    variable,
    variable_node,
)
from tinynode.hooks import debug
from tinynode.interop import old_style
from tinynode.transforms import checkpoint as checkpoint_module

MOVED = {
    "backend": devices,
    "backprop": backprop,
    "conversion": conversion,
    "debug": debug,
    "derivatives": transforms,
    "forget": checkpoint_module,
    "function": old_style,
    "function_hook": hooks,
    "function_node": function_node,
    "variable": variable,
    "variable_node": variable_node,
}
"""The modules by the names of version 0.1, without ``tinynode.``."""

MOVED |= {
    f"functions.{name}": functions
    for name in (
        *("broadcasting", "casting", "elementwise", "error_function", "extrema", "gathering"),
        *("indexes", "linear", "matrices", "rearranging", "reduction", "regression", "rounding"),
        *("selection", "shaping", "sorting", "statistics", "windows", "writing", "zero_safe"),
    )
}
MOVED["functions.norms"] = functions.linalg

MOVED_FUNCTIONS = {
    "activation": ("Sigmoid",),
    "arithmetic": ("Pow", "PowConstant", "pow"),
    "convolution": ("bilinear",),
    "linalg": ("Cross",),
    "loss": (
        *("RowWeights", "SoftmaxCrossEntropy", "SoftmaxCrossEntropyGrad", "nll"),
        *("sigmoid_cross_entropy", "softmax_cross_entropy"),
    ),
}
"""The public names that other modules of ``tinynode.functions`` have now, by the old module."""

for old_name, module in MOVED.items():
    sys.modules[f"tinynode.{old_name}"] = module
for module_name, names in MOVED_FUNCTIONS.items():
    for name in names:
        old_home = sys.modules[f"tinynode.functions.{module_name}"]
        setattr(old_home, name, getattr(functions, name))
