"""The functions that are one call of NumPy, or nearly so: a kernel could only repeat them.

A recorded net is one of them: its plan calls the kernels.
"""

from __future__ import annotations

from tinynode import functions
from tinynode.net.program import NetFunction

_NAMES = """
Abs Acos Acosh Add AddAll AddAt ArgMax ArgMin ArgSort AsType Asin Asinh Atan Atan2 Atanh
BroadcastTo Ceil Concat Copy CopySign Cos Cosh CumulativeSum Divide Equal Exp Expm1 Flip Floor
FloorDivide GetItem GetItemGrad Greater GreaterEqual Hypot Identity Less LessEqual Log Log10 Log1p
Log2 LogAddExp Max Maximum Mean Min Minimum Multiply Negative NotEqual PermuteDims Positive Pow
PowConstant Prod ReLU ReLUGrad Reciprocal Remainder Reshape Roll Round Sign Sin Sinh Sqrt Square
Subtract TakeAlongAxis TakeRows Tan Tanh ToDevice Trunc Where
"""

PLAIN: frozenset[type] = frozenset(
    [NetFunction, *(getattr(functions, name) for name in _NAMES.split())]
)
