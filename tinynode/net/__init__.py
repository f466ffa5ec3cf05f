"""The static side: operators, nets, and backward nets.

A net is a program: operators by name, in run order. ``trace`` records a net from define-by-run
code. ``backward`` builds the net of the gradients by the registry's rule.
"""

import tinynode.nn  # noqa: F401 - the package first: see late_imports
from tinynode.net.compile import CompiledFunction, compile
from tinynode.net.gradient import append_backward, backward, build_grad_op
from tinynode.net.net_op import NetOp
from tinynode.net.operator import Operator
from tinynode.net.registry import OpInfo, OpInfoMap, get_op_info, register_op
from tinynode.net.scope import Scope
from tinynode.net.serialization import dumps, load_net, loads, save_net
from tinynode.net.trace import Trace, trace

__all__ = [
    "CompiledFunction",
    "NetOp",
    "OpInfo",
    "OpInfoMap",
    "Operator",
    "Scope",
    "Trace",
    "append_backward",
    "backward",
    "build_grad_op",
    "compile",
    "dumps",
    "get_op_info",
    "load_net",
    "loads",
    "register_op",
    "save_net",
    "trace",
]
__dir__ = __all__.copy  # for completion
