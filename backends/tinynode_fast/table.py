"""The table of kernels, by the exact class of the FunctionNode; eager code and plans share it."""

from __future__ import annotations

from tinynode import functions
from tinynode.functions import activation, convolution
from tinynode.net.program import NetFunction
from tinynode.nn.updates import AdamUpdate
from tinynode_fast import elementwise, images, rows, updates
from tinynode_fast.kernel import SINGLES, Elementwise, Kernel
from tinynode_fast.limits import LIMITS
from tinynode_fast.rows import Rowwise

KERNELS: dict[type, Kernel] = {
    functions.Sigmoid: Elementwise(elementwise.sigmoid, 0, (), (0,)),
    activation.SiLU: Elementwise(elementwise.silu, 0, (0,)),
    activation.SiLUGrad: Elementwise(elementwise.silu_gradient, 1, (0, 1)),
    activation.GELU: Elementwise(elementwise.gelu, 1, (0,), dtypes=SINGLES),
    activation.GELUGrad: Elementwise(elementwise.gelu_gradient, 2, (0, 1), dtypes=SINGLES),
    activation.TanhGELU: Elementwise(elementwise.tanh_gelu, 1, (0,)),
    activation.TanhGELUGrad: Elementwise(elementwise.tanh_gelu_gradient, 2, (0, 1)),
    activation.Softmax: Rowwise(rows.softmax, 0, (), (0,)),
    activation.LogSoftmax: Rowwise(rows.log_softmax, 1, (), (0,)),
    functions.SoftmaxCrossEntropy: Kernel(rows.cross_entropy, 0, (1,), (1,)),
    functions.SoftmaxCrossEntropyGrad: Kernel(rows.cross_entropy_gradient, 0, (0, 1, 2)),
    functions.Standardize: Kernel(rows.standardize, 0, (), (0, 2), least=LIMITS.standardize),
    functions.StandardizeGrad: Kernel(
        rows.standardize_gradient, 0, (0, 1, 2), least=LIMITS.standardize
    ),
    functions.Sum: Kernel(rows.sum_axes, least=LIMITS.sums),
    functions.SumTo: Kernel(rows.sum_to, least=LIMITS.sums),
    functions.MatMul: Kernel(rows.matmul, 0, (0, 1), dtypes=None, least=LIMITS.small),
    functions.Linear: Kernel(rows.linear, 0, (0, 1), least=LIMITS.small),
    convolution.Conv2d: Kernel(images.conv2d, 0, (0, 1)),
    convolution.Conv2dGradX: Kernel(images.conv2d_gradient_x, 0, (0, 1)),
    convolution.Conv2dGradW: Kernel(images.conv2d_gradient_w, 0, (0, 1)),
    functions.MaxPool2d: Kernel(images.max_pool, 0, (), (1,), least=LIMITS.small),
    functions.MaxPool2dGrad: Kernel(images.max_pool_gradient, 0, (1,), least=LIMITS.small),
    AdamUpdate: Kernel(updates.adam_update),
}

_PLAIN_NAMES = """
Abs Acos Acosh Add AddAll AddAt ArgMax ArgMin ArgSort AsType Asin Asinh Atan Atan2 Atanh
BroadcastTo Ceil Concat Copy CopySign Cos Cosh CumulativeSum Divide Equal Exp Expm1 Flip Floor
FloorDivide GetItem GetItemGrad Greater GreaterEqual Hypot Identity Less LessEqual Log Log10 Log1p
Log2 LogAddExp Max Maximum Mean Min Minimum Multiply Negative NotEqual PermuteDims Positive Pow
PowConstant Prod ReLU ReLUGrad Reciprocal Remainder Reshape Roll Round Sign Sin Sinh Sqrt Square
Subtract TakeAlongAxis TakeRows Tan Tanh ToDevice Trunc Where
"""

PLAIN: frozenset[type] = frozenset(
    [NetFunction, *(getattr(functions, name) for name in _PLAIN_NAMES.split())]
)
"""The functions of about one call of NumPy: a kernel would gain no time. A recorded net stands
here too, because the plan of the net calls the kernels."""
