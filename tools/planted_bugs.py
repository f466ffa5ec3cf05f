"""Plant bugs in the functions, one at a time, and count how many the tests catch.

Requirement: the op table is the net under every gradient, so the holes in the table must be known.
Each mutant is a small change of a forward, a backward or a helper in ``tinynode/functions``.
Examples: a sign, a factor, a ``sum_to``, a retained input, a cut in the graph of a backward. The
mutant's code, compiled in memory, replaces the function's code for the tests; no file changes.

    python tools/planted_bugs.py                        every mutant; exit status 1 below 95 %
    python tools/planted_bugs.py --functions Multiply   mutants of a class or helper
    python tools/planted_bugs.py --modules loss         mutants of a file
    python tools/planted_bugs.py --list                 only list the mutants

    python tools/planted_bugs.py --equivalent           check that no test sees such mutants

A mutant meets the rows of the table that run the changed code, on NumPy; after these the tests of
edges; then the rows on array_api_strict. Survivors are named. A mutant without an effect for
callers stands in ``EQUIVALENT`` with the reason, and is not planted.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import io
import multiprocessing
import pathlib
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "backends"), str(ROOT / "tests")]

import op_drivers  # noqa: E402
import pytest  # noqa: E402
import strict_backend  # noqa: E402
from op_table import CASES, Case  # noqa: E402

import tinynode as tn  # noqa: E402
from tinynode import functions  # noqa: E402

GOAL = 0.95
SECONDS_PER_MUTANT = 60

# Helpers that compute; the others check arguments, tested by the messages in the edges.
HELPERS = {
    "_add_bias",
    "_affine",
    "_arg_extreme",
    "_batches",
    "_before",
    "_channel_axes",
    "_clamped",
    "_columns_as_matrices",
    "_convolve",
    "_double_erf",
    "_first",
    "_gelu",
    "_gelu_gradient",
    "_group_norm",
    "_hard_sigmoid",
    "_hard_silu",
    "_hard_silu_gradient",
    "_images_as_matrices",
    "_kernels_as_matrices",
    "_log_sigmoid",
    "_normal_distribution",
    "_number_of_true",
    "_paired_axes",
    "_parameter",
    "_parse",
    "_polynomial",
    "_pooling_windows",
    "_power_of_abs",
    "_product_of_others",
    "reduce_counted",
    "_root",
    "_running_axis",
    "_shape_with_new_axes",
    "signed_labels",
    "_silu",
    "_silu_gradient",
    "_single_erf",
    "_standardize",
    "symmetric",
    "_tanh_gelu",
    "_tanh_gelu_gradient",
    "_trailing_axes",
    "_transposed_image",
    "_turning_terms",
    "_variance",
    "_windows_on_signals",
    "_without_repeats",
    "axes_of",
    "batch_norm",
    "batch_norm_with_statistics",
    "batches",
    "bilinear",
    "broadcast_arrays",
    "check_labels",
    "cholesky",
    "clip",
    "common_shape",
    "conv1d",
    "conv2d",
    "conv_transpose2d",
    "crop_image",
    "cross",
    "cumulative_prod",
    "cumulative_sum",
    "diagonal",
    "dropout",
    "dropout_mask",
    "einsum",
    "elu",
    "embedding",
    "erf_array",
    "expand_dims",
    "fixed_batch_norm",
    "fold_columns",
    "gelu",
    "global_avg_pool2d",
    "global_max_pool2d",
    "glu",
    "group_norm",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "hinge",
    "huber",
    "in_blocks",
    "instance_norm",
    "integer",
    "kl_divergence",
    "layer_norm",
    "linear",
    "log_softmax_array",
    "log_softmax_gradient",
    "make_windows",
    "masked",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "moveaxis",
    "named_axes",
    "narrowed",
    "nll",
    "one_hot",
    "outer",
    "pad_image",
    "pair",
    "reduce",
    "repeat",
    "rms_norm",
    "roll",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid_array",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "softplus",
    "solve",
    "sort",
    "squeeze",
    "stack",
    "std",
    "take",
    "take_along_axis",
    "tensordot",
    "thaw_index",
    "tile",
    "trace",
    "unbroadcast",
    "unfold_images",
    "unstack",
    "upsample_nearest2d",
    "vecdot",
    "vector_norm",
    "widened",
    "written",
    "zero_safe_multiply",
    "zeros_beside",
}
HELPER_CLASSES = {"Windows"}
SKIPPED_METHODS = {"__init__", "__init_subclass__", "_check_labels", "_check_types"}
SKIPPED_METHODS |= {"check_type_forward", "label"}

# Names outside every graph (bools, integers), and calls that read only shapes or values: cutting
# the graph there has no effect.
NO_GRAPH = {"at_zero", "condition", "dead", "indices", "labels", "positions", "same", "winners"}
NO_GRAPH |= {"zero"}
FORM_ONLY = {
    "IsDead",
    "SameInfinity",
    "eye_beside",
    "_first",
    "equal",
    "floor",
    "sign",
    "zeros_beside",
}
FORM_ONLY |= {"_parameter", "as_operands", "greater", "less", "less_equal", "not_equal", "zip"}

# (owner, the changed line): the reason why no caller sees the difference
_ASKED_FOR_BY_NOBODY = "a gradient is computed for a constant, and nobody asks for it"
_SHORTCUT = "the branch saves time; without it the values are the same"
EQUIVALENT: dict[tuple[str, str], str] = {
    (
        "ReLU.backward",
        "return ReLUGrad().apply((y.detach(), gy))",
    ): "ReLUGrad has no gradient for y",
    (
        "ReLUGrad.backward",
        "return (None, ReLUGrad().apply((y.detach(), ggx))[0])",
    ): "ReLUGrad has no gradient for y",
    (
        "sigmoid_array",
        "y = xp.maximum(small, xp.astype(x >= 0, x.dtype))",
    ): "e^-0 is 1 as well",
    (
        "LeakyReLU.forward",
        "choose = xp.maximum if self.slope < 1.0 else xp.minimum",
    ): "with slope 1 both are x",
    (
        "LeakyReLU.backward",
        "return LeakyReLUGrad(self.slope).apply((x.detach(), gy))",
    ): "LeakyReLUGrad has no gradient for x",
    (
        "LeakyReLUGrad.backward",
        "return (None, LeakyReLUGrad(self.slope).apply((x.detach(), ggx))[0])",
    ): "LeakyReLUGrad has no gradient for x",
    (
        "ELUGrad.forward",
        "slopes = xp.exp(xp.minimum(x, xp.ones((), dtype=x.dtype, device=x.device)))",
    ): "it is multiplied by 0 where x is positive",
    (
        "ELUGrad.backward",
        "bend = exp(clip(x, max=1.0)) * (self.scale * self.alpha)",
    ): "0 replaces it where x is positive",
    (
        "Conv2dGradX.forward",
        "gx = -xp.empty(shape, dtype=gy.dtype, device=gy.device)",
    ): "every element is overwritten",
    (
        "in_blocks",
        "flat = [xp.reshape(x, (-2,)) for x in arrays]",
    ): "NumPy takes any negative length for -1",
    ("_single_erf", "inner = xp.clip(x, min=-6.0, max=7.0)"): "the tanh is 1 from 3.95",
    ("_single_erf", "inner = xp.clip(x, min=-7.0, max=6.0)"): "the tanh is -1 up to -3.95",
    (
        "_double_erf",
        "is_near = xp.astype(size < 1, x.dtype)",
    ): "both polynomials hold at 1",
    (
        "_double_erf",
        "near = _polynomial(NEAR, square)",
    ): "it is multiplied by 0 beyond 1",
    (
        "_double_erf",
        "return xp.copysign(near - far, x)",
    ): "one of both is 0, and the sign of x is taken",
    (
        "_double_erf",
        "size = xp.minimum(xp.abs(x), xp.asarray(7.0, dtype=x.dtype, device=x.device))",
    ): "erf is 1 from 6",
    ("one_hot", "wide = labels[:, None]"): "integers of different dtypes compare by value",
    ("SoftmaxCrossEntropyGrad.forward", "if True or self.smoothing:"): _SHORTCUT,
    (
        "SoftmaxCrossEntropyGrad.backward",
        "rows = RowWeights(*arguments).apply((log_p.detach(), g, *constants))[0]",
    ): "RowWeights has no gradient for log_p",
    (
        "RowWeights.backward",
        "total = gc * node.apply((log_p.detach(), one, *constants))[0]",
    ): "RowWeights has no gradient for log_p",
    (
        "RowWeights.backward",
        "shape = (log_p.shape[0],) if self.reduction != 'none' else ()",
    ): "ones of either shape broadcast alike",
    ("RowWeights.backward", "one = wrap_array(ones, gc.device, True)"): _ASKED_FOR_BY_NOBODY,
    (
        "sigmoid_cross_entropy",
        "flat = labels.xp.reshape(labels.raw, (-2,))",
    ): "NumPy takes any negative length for -1",
    (
        "Hinge.backward",
        "return (HingeGrad(self.ignore_label).apply((x.detach(), labels, gy))[0], None)",
    ): "HingeGrad has no gradient for x",
    (
        "HingeGrad.backward",
        "return (None, None, HingeGrad(self.ignore_label).apply((x.detach(), labels, ggx))[0])",
    ): "HingeGrad has no gradient for x",
    (
        "HingeGrad.forward",
        "return (gy / (1.0 - 2.0 * hot) * xp.astype(inside, gy.dtype),)",
    ): "the divisor is 1 or -1",
    (
        "KLDivergence.forward",
        "return (p * xp.where(p == 0, xp.ones_like(ratio), ratio),)",
    ): "it is multiplied by p = 0",
    (
        "KLDivergence.backward",
        "ratio = log(where(zero, 2, p)) - log_q + 1.0",
    ): "0 replaces it where p = 0",
    (
        "kl_divergence",
        "return narrowed(sum(widened(losses)) / float(losses.shape[0] or 2), losses)",
    ): "the total of no rows is 0",
    (
        "scaled_dot_product_attention",
        "scale = 1.0 / math.sqrt(query.shape[-1] or 2)",
    ): "without features all scores are 0",
    (
        "MaxPool2d.forward",
        "dtype = xp.int8 if self.windows.size[0] * self.windows.size[1] <= 128 else xp.int32",
    ): "128 places have the numbers 0 to 127, which int8 holds",
    (
        "MaxPool2d.forward",
        "dtype = xp.int8 if self.windows.size[0] * self.windows.size[1] < 129 else xp.int32",
    ): "128 places have the numbers 0 to 127, which int8 holds",
    (
        "Windows.padded",
        "return (image[0] + 3 * self.padding[0], image[1] + 2 * self.padding[1])",
    ): "no window reaches the rows added at the end",
    (
        "Windows.padded",
        "return (image[0] + 2 * self.padding[0], image[1] + 3 * self.padding[1])",
    ): "no window reaches the columns added at the end",
    ("pad_image", "if False and windows.padding == (0, 0):"): _SHORTCUT,
    ("pad_image", "height, width = x.shape[2:]"): "images have four axes",
    (
        "pad_image",
        "shape = (*x.shape[:2], *windows.padded((height, width)))",
    ): "images have four axes",
    (
        "AddAll.forward",
        "xp = namespace_of(inputs[1])",
    ): "all inputs have one namespace",
    (
        "Pow.backward",
        "exponent = where(at_zero, where(equal(y, 0), 2, y - 1), y - 1)",
    ): "any power above 0 will do: it is 0 at x = 0, and is multiplied by y = 0",
    (
        "Pow.backward",
        "exponent = where(at_zero, where(equal(y, 0), 1, y.detach() - 1), y - 1)",
    ): "a power of base 0 has gradient 0 by its exponent",
    (
        "PowConstant.backward",
        "if False and c == 1:",
    ): "x^0 is 1 without the branch for c == 1, too",
    ("PowConstant.backward", "return (-(gy * 0.0),)"): "0 and -0 are equal",
    ("PowConstant.backward", "return (gy.detach() * 0.0,)"): "the gradient of 0 * gy is 0",
    (
        "PowConstant.backward",
        "return (gy * derivative if c >= 1 else zero_safe_multiply(gy, derivative),)",
    ): "c == 1 has been dealt with",
    (
        "PowConstant.backward",
        "return (gy * derivative if c > 2 else zero_safe_multiply(gy, derivative),)",
    ): "up to c = 2 the derivative is finite wherever x is, so both products are the same",
    ("unbroadcast", "if True or gx.raw.shape != node.shape:"): _SHORTCUT,
    ("unbroadcast", "if True or gx.raw.dtype != node.dtype:"): _SHORTCUT,
    (
        "SoftmaxCrossEntropyGrad.backward",
        "one = wrap_array(g.xp.ones_like(g.raw), g.device, True)",
    ): _ASKED_FOR_BY_NOBODY,
    (
        "_Extreme.backward",
        "gx = unbroadcast(ExtremeGrad().apply((x.detach(), y, z, gz))[0], self, 0)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "_Extreme.backward",
        "gx = unbroadcast(ExtremeGrad().apply((x, y.detach(), z, gz))[0], self, 0)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "_Extreme.backward",
        "gx = unbroadcast(ExtremeGrad().apply((x, y, z.detach(), gz))[0], self, 0)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "_Extreme.backward",
        "gy = unbroadcast(ExtremeGrad().apply((y.detach(), x, z, gz))[0], self, 1)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "_Extreme.backward",
        "gy = unbroadcast(ExtremeGrad().apply((y, x.detach(), z, gz))[0], self, 1)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "_Extreme.backward",
        "gy = unbroadcast(ExtremeGrad().apply((y, x, z.detach(), gz))[0], self, 1)",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "ExtremeGrad.backward",
        "return (None, None, None, ExtremeGrad().apply((x.detach(), y, z, ggx))[0])",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "ExtremeGrad.backward",
        "return (None, None, None, ExtremeGrad().apply((x, y.detach(), z, ggx))[0])",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "ExtremeGrad.backward",
        "return (None, None, None, ExtremeGrad().apply((x, y, z.detach(), ggx))[0])",
    ): "ExtremeGrad has no gradient for x, y and z",
    (
        "Clip.forward",
        "if low is not None and high is not None and (low >= high):",
    ): "where the bounds are equal, either will do",
    (
        "Clip.backward",
        "return ClipGrad(self.low, self.high).apply((x.detach(), gy))",
    ): "ClipGrad has no gradient for x",
    ("ClipGrad.forward", "inside = x >= self.low"): "inside is True everywhere before",
    (
        "ClipGrad.backward",
        "return (None, ClipGrad(self.low, self.high).apply((x.detach(), ggx))[0])",
    ): "ClipGrad has no gradient for x",
    ("CopySign.backward", "gy = -unbroadcast(gz * 0.0, self, 1)"): "0 and -0 are equal",
    (
        "CopySign.backward",
        "gy = unbroadcast(gz.detach() * 0.0, self, 1)",
    ): "the gradient of 0 times anything is 0",
    (
        "PositionsAlongAxis.forward",
        "return (xp.reshape(selected, (-2,)),)",
    ): "NumPy takes any negative length for -1",
    (
        "Positions.forward",
        "return (xp.reshape(selected, (-2,)),)",
    ): "NumPy takes any negative length for -1",
    (
        "tile",
        "ndim = len(times) if len(times) >= x.ndim else x.ndim",
    ): "where both are equal, either will do",
    ("_before", "return x.detach()"): "there are no elements",
    (
        "CumulativeProd.backward",
        "factors = concat([x[all_but_first], _first(x, self.axis, 1)], axis=self.axis)",
    ): "a scan does not use its first factor",
    ("CumulativeProd.backward", "return (gy.detach(),)"): "there are no elements",
    (
        "LinearScan.backward",
        "factors = concat([a[all_but_first], _first(a, axis, 1)], axis=axis)",
    ): "a scan does not use its first factor",
    (
        "Hypot.backward",
        "length = where(equal(z, 0), 2, z)",
    ): "x and y are 0 there, whatever they are divided by",
    ("SlogDet.backward", "return (-(x * 0.0),)"): "0 and -0 are equal",
    ("SlogDet.backward", "return (x.detach() * 0.0,)"): "the gradient of 0 times anything is 0",
    (
        "Cholesky.backward",
        "inner = matmul(transposed, gl) * wrap_array(mask, lower.device, True)",
    ): _ASKED_FOR_BY_NOBODY,
    (
        "Cholesky.backward",
        "mask = xp.tril(xp.ones_like(array)) - 0.5 * xp.eye(array.shape[-2], dtype=array.dtype, "
        "device=array.device)",
    ): "the matrix is square",
    (
        "Eigh.backward",
        "gaps = (1.0 - eye) / (row(w) - column(w) - eye)",
    ): "the diagonal is multiplied by 0",
    (
        "_turning_terms",
        "if False and u.shape[-1] == u.shape[-2]:",
    ): "for a square matrix, what is left out is 0",
    (
        "_turning_terms",
        "gaps = (1.0 - eye) / ((row(s) - column(s)) * (row(s) + column(s)) - eye)",
    ): "the diagonal is multiplied by 0",
    ("diagonal", "if length < 0:"): "the slice is empty all the same",
    (
        "diagonal",
        "rows, columns = (n, m - offset) if offset > 0 else (n + offset, m)",
    ): "with offset 0, both branches are equal",
    (
        "diagonal",
        "length = rows if rows <= columns else columns",
    ): "where both are equal, either will do",
    (
        "diagonal",
        "start = offset if offset > 0 else -offset * m",
    ): "with offset 0, both branches are equal",
    (
        "diagonal",
        "rows, columns = (n, m - offset) if offset >= 1 else (n + offset, m)",
    ): "with offset 0, both branches are equal",
    (
        "diagonal",
        "rows, columns = (n, m - offset) if offset >= 0 else (n - offset, m)",
    ): "below, the diagonal ends where the flat array does",
    (
        "diagonal",
        "rows, columns = (n, m - offset) if offset >= 0 else (n, m)",
    ): "below, the diagonal ends where the flat array does",
    (
        "diagonal",
        "start = offset if offset >= 1 else -offset * m",
    ): "with offset 0, both branches are equal",
    ("diagonal", "return get_item(flat, (..., slice(1, 0)))"): "the slice is empty all the same",
    (
        "diagonal",
        "return get_item(flat, (..., slice(start, start + (length - 1) * (m + 1) + 2, m + 1)))",
    ): "the next step leads past both ends",
    (
        "diagonal",
        "return get_item(flat, (..., slice(start, start + (length - 1) * (m + 2) + 1, m + 1)))",
    ): "the next step leads past both ends",
    ("vector_norm", "if False and ord == 1:"): _SHORTCUT,
    ("_power_of_abs", "if p <= 0:"): "p = 0 has been dealt with",
    (
        "_power_of_abs",
        "return where(zero, 0, pow(abs(where(zero, 2, x)), p))",
    ): "what stands in for 0 is replaced afterwards",
    (
        "Qr.backward",
        "gr = -zeros_beside(r, r.shape) if gr is None else gr",
    ): "0 and -0 are equal",
    (
        "LogSumExp.forward",
        "shift = xp.where(xp.isfinite(largest), largest, xp.ones_like(largest))",
    ): "what is subtracted is added again, and -inf stays -inf",
    (
        "LogSumExp.backward",
        "shift = where(equal(y, -math.inf), 1, y)",
    ): "e^(-inf) is 0 whatever is subtracted",
    ("matrix_power", "if True or left:"): "one product more than is used",
    ("matrix_power", "left = -n if n <= 0 else n"): "0 and -0 are equal",
    (
        "matrix_power",
        "return broadcast_to(eye_beside(base), base.shape) - nothing",
    ): "nothing is 0",
    ("matrix_power", "left = -n if n < 1 else n"): "0 and -0 are equal",
    ("matrix_power", "return eye_beside(base) + nothing"): "the sum broadcasts",
    (
        "matrix_power",
        "power = square if power is None else matmul(square, power)",
    ): "powers of one matrix commute",
    (
        "Einsum.forward",
        "options = {'optimize': True} if len(inputs) >= 2 and _orders(xp.einsum) else {}",
    ): "only the speed differs",
    (
        "Einsum.forward",
        "options = {'optimize': True} if len(inputs) < 2 and _orders(xp.einsum) else {}",
    ): "only the speed differs",
    (
        "Einsum.forward",
        "options = {'optimize': True} if len(inputs) > 3 and _orders(xp.einsum) else {}",
    ): "only the speed differs",
    (
        "Einsum.forward",
        "options = {'optimize': False} if len(inputs) > 2 and _orders(xp.einsum) else {}",
    ): "only the speed differs",
    (
        "Mean.backward",
        "return (self._spread(narrowed(widened(gy) * (1.0 / n), gy) if n else gy.detach()),)",
    ): "where n is 0 the gradient has no elements",
    (
        "SumTo.forward",
        "y = sum_array(x, self.axes_of(x.shape), keepdims=False, dtype=x.dtype)",
    ): "a reshape follows",
    (
        "zeros_beside",
        "return wrap_array(zeros, example.device, True)",
    ): _ASKED_FOR_BY_NOBODY,
    ("masked", "if False and xp.all(xp.isfinite(g)):"): _SHORTCUT,
    ("ZeroSafeMultiply.forward", "if True or not xp.all(finite):"): _SHORTCUT,
    (
        "ZeroSafeMultiply.forward",
        "d = xp.where(g != 0, d, xp.zeros_like(d))",
    ): "where g is 0 the product is 0 with any finite d",
    (
        "ZeroSafeMultiply.forward",
        "d = xp.where(finite | (g != 0), d, xp.ones_like(d))",
    ): "where g is 0 the product is 0 with any finite d",
}


# --- how to change an expression: each rule yields the replacements of a node --------------------

Rule = Callable[[ast.AST], Iterator[ast.AST]]

OPPOSITES: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}

OTHER_FUNCTION = {
    "abs": "negative",
    "add": "subtract",
    "cos": "sin",
    "divide": "multiply",
    "equal": "not_equal",
    "exp": "log",
    "floor_divide": "divide",
    "greater": "greater_equal",
    "greater_equal": "greater",
    "less": "less_equal",
    "less_equal": "less",
    "log": "exp",
    "max": "min",
    "mean": "sum",
    "min": "max",
    "multiply": "add",
    "negative": "abs",
    "not_equal": "equal",
    "ones_like": "zeros_like",
    "pow": "multiply",
    "sign": "abs",
    "sin": "cos",
    "sqrt": "exp",
    "subtract": "add",
    "sum": "max",
    "tanh": "sin",
    "zeros": "ones",
    "zeros_like": "ones_like",
}
ORDERED = {"divide", "floor_divide", "greater", "greater_equal", "less", "less_equal", "matmul"}
ORDERED |= {"pow", "subtract", "zero_safe_multiply"}
EACH_ARGUMENT = {"matmul", "where", "zero_safe_multiply"}
REPLACED_BY_ARGUMENT = {name for name in functions.__all__ if name.islower()}
REPLACED_BY_ARGUMENT |= {"_spread", "clip", "isfinite", "take_along_axis", "unbroadcast"}


RETAINING = {"retain_inputs", "retain_outputs"}


def name_of_call(node: ast.AST) -> str:
    """``f`` of ``f(...)`` and of ``xp.f(...)``; empty for other nodes."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def flip_operator(node: ast.AST) -> Iterator[ast.AST]:
    """a + b -> a - b, a > b -> a >= b, -a -> a, ..."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield node.operand
    changed = copy.copy(node)
    if isinstance(node, ast.BinOp | ast.BoolOp):
        for kind in OPPOSITES.get(type(node.op), ()):
            changed = copy.copy(node)
            changed.op = kind()  # type: ignore[union-attr]
            yield changed
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for kind in OPPOSITES.get(type(node.ops[0]), ()):
            changed = copy.copy(node)
            changed.ops = [kind()]  # type: ignore[attr-defined]
            yield changed


def drop_operand(node: ast.AST) -> Iterator[ast.AST]:
    """a * b -> a, and b"""
    if isinstance(node, ast.BinOp):
        yield node.left
        if not isinstance(node.op, ast.Div | ast.Pow):
            yield node.right


def change_call(node: ast.AST) -> Iterator[ast.AST]:
    """f(a, b) -> a, b, g(a, b), f(b, a)"""
    name = name_of_call(node)
    if not isinstance(node, ast.Call) or not name:
        return
    if name in REPLACED_BY_ARGUMENT:
        for one in node.args if name in EACH_ARGUMENT else node.args[:1]:
            if not isinstance(one, ast.Constant | ast.Starred):
                yield one
    if name == "zero_safe_multiply":
        yield ast.BinOp(node.args[0], ast.Mult(), node.args[1])
    if name == "where":
        yield ast.Call(node.func, [node.args[0], node.args[2], node.args[1]], node.keywords)
    if name in ORDERED:
        yield ast.Call(node.func, node.args[::-1], node.keywords)
    if name in OTHER_FUNCTION and isinstance(node.func, ast.Attribute):
        other = ast.Attribute(node.func.value, OTHER_FUNCTION[name], ast.Load())
        yield ast.Call(other, node.args, node.keywords)


def change_constant(node: ast.AST) -> Iterator[ast.AST]:
    """1 -> 2, True -> False"""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        yield ast.Constant(not value if isinstance(value, bool) else value + 1)


def change_in_place(node: ast.AST) -> Iterator[ast.AST]:
    """a += b -> a -= b, a = b, and pass"""
    if isinstance(node, ast.AugAssign):
        for kind in OPPOSITES.get(type(node.op), ()):
            yield ast.AugAssign(node.target, kind(), node.value)  # type: ignore[arg-type]
        yield ast.Assign([node.target], node.value)
        yield ast.Pass()


def change_retained(node: ast.AST) -> Iterator[ast.AST]:
    """retain_inputs((0, 1)) -> (), (1,), (0,), (1, 1), (0, 2), (0, 0)"""
    if not isinstance(node, ast.Call) or name_of_call(node) not in RETAINING:
        return
    try:
        indexes = ast.literal_eval(node.args[0])
    except ValueError:  # range(len(inputs)): all inputs
        indexes = ()
    others = [()]
    for i, index in enumerate(indexes):
        others.append((*indexes[:i], *indexes[i + 1 :]))
        for shifted in (index - 1, index + 1):
            if shifted >= 0:
                others.append((*indexes[:i], shifted, *indexes[i + 1 :]))
    for other in dict.fromkeys(others):
        yield ast.Call(node.func, [ast.parse(repr(other), mode="eval").body], [])


def flip_sign(node: ast.AST) -> Iterator[ast.AST]:
    """gx = a -> gx = -a, and return (a,) -> return (-a,)"""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        is_gradient = node.targets[0].id.startswith("g")
        if is_gradient and not isinstance(node.value, ast.Constant | ast.UnaryOp):
            yield ast.Assign(node.targets, minus(node.value))
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        for i, element in enumerate(node.value.elts):
            assigned = isinstance(element, ast.Name) and element.id.startswith("g")
            if not assigned and not isinstance(element, ast.Constant | ast.Starred | ast.UnaryOp):
                others = node.value.elts
                flipped = [*others[:i], minus(element), *others[i + 1 :]]
                yield ast.Return(ast.Tuple(flipped, ast.Load()))


def minus(value: ast.expr) -> ast.expr:
    if isinstance(value, ast.IfExp):
        return ast.IfExp(value.test, minus(value.body), value.orelse)
    return ast.UnaryOp(ast.USub(), value)


def swap_returned(node: ast.AST) -> Iterator[ast.AST]:
    """return gx, gy -> return gy, gx"""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        elements = node.value.elts
        for i in range(len(elements) - 1):
            swapped = [*elements[:i], elements[i + 1], elements[i], *elements[i + 2 :]]
            yield ast.Return(ast.Tuple(swapped, ast.Load()))


def drop_statement(node: ast.AST) -> Iterator[ast.AST]:
    """if a: b -> b, or pass;   a call for the effect -> pass"""
    if isinstance(node, ast.If) and not node.orelse:
        never = ast.BoolOp(ast.And(), [ast.Constant(False), node.test])
        yield ast.If(never, node.body, [])
        if "target_input_indexes" not in ast.unparse(node.test):  # extra gradients do no harm
            always = ast.BoolOp(ast.Or(), [ast.Constant(True), node.test])
            yield ast.If(always, node.body, [])
    if isinstance(node, ast.Expr) and name_of_call(node.value) == "append":
        yield ast.Pass()


RULES: list[Rule] = [
    flip_operator,
    drop_operand,
    change_call,
    change_constant,
    change_in_place,
    change_retained,
    flip_sign,
    swap_returned,
    drop_statement,
]


# --- cutting the graph inside a backward ---------------------------------------------------------

SHAPES = {"dtype", "ndim", "shape", "size", "xp", "_array", "_device"}
DETACH_ALL = "tuple(None if one is None else one.detach() for one in grad_outputs)"


def cuts(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each use of a Variable in a backward, and the same Variable outside the graph."""
    if function.name != "backward" and function.name not in HELPERS:
        return
    variables = variables_of(function) - NO_GRAPH
    skipped = form_only(function)
    for node in ast.walk(function):
        if node in skipped or not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
            continue
        if node.id == "grad_outputs":
            yield node, ast.parse(DETACH_ALL, mode="eval").body
        elif node.id in variables:
            yield node, ast.Call(ast.Attribute(node, "detach", ast.Load()), [], [])


def form_only(function: ast.FunctionDef) -> set[ast.AST]:
    """The nodes for a shape, a dtype, a comparison, or for all gradients at once."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in SHAPES:
            skipped.add(node.value)
        applied = ast.unparse(node.func).partition("(")[0] if isinstance(node, ast.Call) else ""
        is_check = applied.lstrip("_").startswith(("check_", "require_"))
        if isinstance(node, ast.Assert | ast.Compare | ast.GeneratorExp) or is_check:
            skipped.update(ast.walk(node))
        if applied in FORM_ONLY:
            skipped.update(ast.walk(node))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            skipped.update(ast.walk(node.value))  # (gy,) = grad_outputs: gy has its own cuts
    return skipped


def variables_of(function: ast.FunctionDef) -> set[str]:
    """The names of Variables in a backward or in a helper of gradients."""
    names = {
        argument.arg
        for argument in function.args.args
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id == "Variable"
    }
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        source, target = ast.unparse(node.value), node.targets[0]
        if isinstance(target, ast.Tuple) and (
            "get_retained" in source or source == "grad_outputs"
        ):
            names.update(one.id for one in target.elts if isinstance(one, ast.Name))
        if (
            isinstance(target, ast.Name)
            and function.name == "backward"
            and is_variable(node.value)
        ):
            names.add(target.id)
    return names


def is_variable(value: ast.AST) -> bool:
    """True if an expression of a backward is, by its syntax, a Variable."""
    if isinstance(value, ast.IfExp):
        return is_variable(value.body)
    if isinstance(value, ast.Subscript):
        return name_of_call(value.value) == "apply"
    name = name_of_call(value)
    return isinstance(value, ast.BinOp) or (name in functions.__all__ and name[0].islower())


# --- mutants -------------------------------------------------------------------------------------


@dataclass
class Mutant:
    """A planted bug: the changed function, and the changed code."""

    owner: str
    function: FunctionType
    code: CodeType
    path: pathlib.Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.path.relative_to(ROOT)}:{self.line}: {self.owner}"
        return f"{place}\n    - {self.before}\n    + {self.after}"

    @property
    def key(self) -> tuple[str, str]:
        return self.owner, self.after


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """A pair for each mutant: a node and the replacement."""
    ignored: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) or name_of_call(node).startswith("check_"):
            ignored.update(ast.walk(node))
        if isinstance(node, ast.Raise):
            ignored.update(ast.walk(node))
        if isinstance(node, ast.AnnAssign):
            ignored.update(ast.walk(node.annotation))
        if isinstance(node, ast.keyword) and node.arg == "strict":
            ignored.update(ast.walk(node))
        if isinstance(node, ast.Call) and name_of_call(node).startswith("retain_"):
            ignored.update(ast.walk(node.args[0]))
    ignored.update(ast.walk(function.args))
    for node in ast.walk(function):
        if node in ignored:
            continue
        for rule in RULES:
            for new in rule(node):
                yield node, new
    yield from cuts(function)


def mutants_of(function: FunctionType, tree: ast.FunctionDef, path: pathlib.Path) -> list[Mutant]:
    """Every mutant of a function, each with another text."""
    found: dict[str, Mutant] = {}
    original = ast.unparse(tree)
    for old, proposed in changes(tree):
        new = ast.fix_missing_locations(ast.copy_location(copy.deepcopy(proposed), old))
        mutated = _Replace(old, new).visit(copy_around(tree, old))
        text = ast.unparse(mutated)
        if text == original or text in found:
            continue
        namespace: dict[str, Any] = {}
        exec(
            compile(ast.Module([mutated], []), str(path), "exec"), function.__globals__, namespace
        )
        lines = zip(original.splitlines(), text.splitlines(), strict=False)
        before, after = next((a.strip(), b.strip()) for a, b in lines if a != b)
        line = getattr(old, "lineno", tree.lineno)
        code = namespace[tree.name].__code__
        found[text] = Mutant(function.__qualname__, function, code, path, line, before, after)
    return list(found.values())


def copy_around(tree: ast.FunctionDef, kept: ast.AST) -> ast.FunctionDef:
    """A copy of a tree around a given node, kept as the same object."""
    return copy.deepcopy(tree, {id(kept): kept})


def all_mutants() -> list[Mutant]:
    """The mutants of every forward, backward and helper in tinynode/functions."""
    mutants: list[Mutant] = []
    for path in sorted((ROOT / "tinynode" / "functions").glob("*.py")):
        module = sys.modules.get(f"tinynode.functions.{path.stem}")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in HELPERS:
                mutants += mutants_of(getattr(module, node.name), node, path)
            if not isinstance(node, ast.ClassDef):
                continue
            kind = getattr(module, node.name)
            if not issubclass(kind, tn.FunctionNode) and node.name not in HELPER_CLASSES:
                continue
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name not in SKIPPED_METHODS:
                    mutants += mutants_of(vars(kind)[method.name], method, path)
    return mutants


@contextlib.contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The mutant's code in place of the function's code."""
    original = mutant.function.__code__
    mutant.function.__code__ = mutant.code
    try:
        yield
    finally:
        mutant.function.__code__ = original


# --- running the tests ---------------------------------------------------------------------------

Check = Callable[[Case, str], None]


def checks_of(case: Case) -> list[Check]:
    """The drivers of a row."""
    if case.order == 0:
        return [
            op_drivers.check_forward,
            op_drivers.check_no_gradient,
            op_drivers.check_pure_steps,
        ]
    checks = [
        op_drivers.check_forward,
        op_drivers.check_first_gradient,
        op_drivers.check_second_gradient,
        op_drivers.check_types,
        op_drivers.check_pure_steps,
        op_drivers.check_arrays_untouched,
    ]
    return [*checks, op_drivers.check_float32_gradients] if len(case.dtypes) == 2 else checks


def rows_by_code() -> dict[CodeType, list[Case]]:
    """For the code of each function of tinynode/functions, the rows that run the code."""
    rows: dict[CodeType, list[Case]] = {}
    seen: set[CodeType] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    for case in CASES:
        seen.clear()
        for device in (
            "numpy",
            "strict:device1",
        ):  # some code is for libraries with fewer functions
            if not op_drivers.runs_on(case, device):
                continue
            sys.setprofile(note)
            try:
                op_drivers.record(case, device, 0)
            finally:
                sys.setprofile(None)
        for code in seen:
            rows.setdefault(code, []).append(case)
    return rows


def fails(case: Case, check: Check, device: str) -> bool:
    try:
        check(case, device)
    except TimeoutError:
        raise
    except Exception:
        return True
    return False


def caught_by_table(cases: list[Case], device: str) -> bool:
    """All rows by the first check of each, then by the second, ...: most bugs show at once."""
    ordered = sorted(cases, key=lambda case: sum(len(one.shape) for one in case.inputs))
    pairs = []
    for case in ordered:
        if not op_drivers.runs_on(case, device):
            continue
        pairs += [(position, case, check) for position, check in enumerate(checks_of(case))]
    pairs.sort(key=lambda pair: pair[0])
    return any(fails(case, check, device) for _, case, check in pairs)


def caught_by_edges() -> bool:
    """Run the tests of edges in the same process, except tests with random input."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = pytest.main(
            [
                *(str(path) for path in sorted((ROOT / "tests").glob("test_*_edges.py"))),
                *("-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)),
                *("-k", "not random and not infinite_operand"),
            ]
        )
    if status == pytest.ExitCode.INTERNAL_ERROR:  # the alarm rang inside of pytest
        raise TimeoutError
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {status!r}")
    return status == pytest.ExitCode.TESTS_FAILED


def out_of_time(signum: int, frame: Any) -> None:
    raise TimeoutError


_MUTANTS: list[Mutant] = []
_ROWS: dict[CodeType, list[Case]] = {}


def verdict(index: int) -> str:
    """The tests that caught a mutant: "table", "edges", "strict" or "time"; else "survived"."""
    mutant = _MUTANTS[index]
    cases = _ROWS.get(mutant.function.__code__, [])
    warnings.simplefilter("error")
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(SECONDS_PER_MUTANT)
    try:
        with planted(mutant):
            if caught_by_table(cases, "numpy"):
                return "table"
            if caught_by_edges():
                return "edges"
            return "strict" if caught_by_table(cases, "strict:device1") else "survived"
    except TimeoutError:
        return "time"
    finally:
        signal.alarm(0)


def failing_rows() -> list[str]:
    """Rows that fail without a planted bug; a failing row allows no conclusion."""
    warnings.simplefilter("error")
    return [
        case.id for case in CASES if any(fails(case, check, "numpy") for check in checks_of(case))
    ]


# --- the report ----------------------------------------------------------------------------------


def selected(mutants: list[Mutant], names: list[str], modules: list[str]) -> list[Mutant]:
    """The mutants of classes or helpers; ``softmax_cross_entropy`` names the class too."""
    wanted = {name.replace("_", "").lower() for name in names}
    if not names and not modules:
        return mutants
    return [
        m
        for m in mutants
        if m.path.stem in modules or m.owner.partition(".")[0].replace("_", "").lower() in wanted
    ]


KINDS = ("table", "edges", "strict", "time", "survived")


def report(mutants: list[Mutant], verdicts: list[str]) -> int:
    """Print the table, the survivors and the total; give the exit status."""
    by_owner: dict[str, list[str]] = {}
    for mutant, result in zip(mutants, verdicts, strict=True):
        by_owner.setdefault(mutant.owner, []).append(result)
    by_owner["all"] = verdicts
    width = max(len(owner) for owner in by_owner)
    print(f"{'function':<{width}}  mutants  " + "  ".join(f"{kind:>8}" for kind in KINDS))
    for owner, results in by_owner.items():
        counts = "  ".join(f"{results.count(kind):8}" for kind in KINDS)
        print(f"{owner:<{width}}  {len(results):7}  {counts}")
    survivors = [m for m, result in zip(mutants, verdicts, strict=True) if result == "survived"]
    if survivors:
        print(f"\n{len(survivors)} mutants survived:")
        print("\n".join(str(mutant) for mutant in survivors))
    caught = len(mutants) - len(survivors)
    share = caught / len(mutants)
    print(f"\ncaught {caught} of {len(mutants)} mutants ({100 * share:.1f} %)")
    return 0 if share >= GOAL else 1


def report_equivalents(mutants: list[Mutant], verdicts: list[str]) -> int:
    """Print the mutants that a test sees after all; give the exit status."""
    seen = [m for m, result in zip(mutants, verdicts, strict=True) if result != "survived"]
    for mutant in seen:
        print(f"not equivalent, a test sees it: {mutant}")
    print(
        f"{len(mutants) - len(seen)} of {len(mutants)} mutants are equivalent as far as tests see"
    )
    return 1 if seen else 0


def stale_equivalents(mutants: list[Mutant]) -> list[tuple[str, str]]:
    """Entries of ``EQUIVALENT`` without a mutant."""
    known = {mutant.key for mutant in mutants}
    return [entry for entry in EQUIVALENT if entry not in known]


def run(mutants: list[Mutant], jobs: int) -> list[str]:
    """The verdict on each mutant, in separate processes."""
    _MUTANTS[:] = mutants
    _ROWS.update(rows_by_code())
    verdicts = []
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for found in pool.imap(verdict, range(len(mutants)), chunksize=1):
            verdicts.append(found)
            if len(verdicts) % 100 == 0:
                missed = verdicts.count("survived")
                print(f"{len(verdicts)} of {len(mutants)}: {missed} survived", flush=True)
    return verdicts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Plant bugs in the functions, and count.")
    parser.add_argument("--functions", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--modules", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    parser.add_argument("--equivalent", action="store_true", help="plant the equivalent ones")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (default 2)")
    options = parser.parse_args(arguments)
    tn.register_backend(strict_backend)
    mutants = all_mutants()
    for owner, after in stale_equivalents(mutants):
        print(f"EQUIVALENT names a mutant that does not exist any more: {owner}: {after}")
    mutants = [m for m in mutants if (m.key in EQUIVALENT) == options.equivalent]
    mutants = selected(mutants, options.functions, options.modules)
    if not mutants:
        parser.error(
            f"there is nothing to plant in {', '.join(options.functions + options.modules)}"
        )
    if options.list:
        print("\n".join(str(mutant) for mutant in mutants))
        return 0
    broken = failing_rows()
    if broken:
        print(f"without any planted bug these rows fail: {', '.join(broken)}")
        return 2
    if caught_by_edges():
        print("without any planted bug a test of edges fails: run tests/test_*_edges.py")
        return 2
    verdicts = run(mutants, options.jobs)
    return (report_equivalents if options.equivalent else report)(mutants, verdicts)


if __name__ == "__main__":
    raise SystemExit(main())
