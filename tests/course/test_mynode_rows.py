"""The learner's package after part C: it passes the rows of the package's own operation table.

Each row of an operation that ``mynode`` has is run: values at each dtype, and first gradients by
central differences. A row beyond ``mynode`` has a reason; reasons are data, and are counted.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import op_cases
import pytest
from op_cases import CASES, Case
from op_cases.rows import FLOATS
from op_drivers import (
    call_reference,
    central_difference,
    draw_directions,
    draw_inputs,
    inner,
    is_differentiable,
    move,
    place,
)

import tinynode as tn
from tinynode import functions as fn
from tinynode_course import mynode, use_mynode

LAST = "21"
"""The last step before gradients of gradients."""

OPERATIONS = (
    *("add", "broadcast_to", "conv2d", "divide", "embedding", "exp", "layer_norm", "linear"),
    *("matmul", "matrix_transpose", "max_pool2d", "mean", "mean_squared_error", "multiply"),
    *("negative", "permute_dims", "relu", "reshape", "scaled_dot_product_attention", "sigmoid"),
    *("sin", "softmax", "softmax_cross_entropy", "sqrt", "square", "subtract", "sum", "sum_to"),
    *("tanh", "var"),
)

SCALARS = "NumPy's scalars, with the weight of Python's numbers"

OWN_LAYERS = {
    "Block": "the package's TransformerBlock has more options",
    "GPT": "the package has the blocks, and a model of language is a program of its user",
    "GRUCell": "the course writes the paper's formula, the package PyTorch's",
    "MultiHeadAttention": "the course names four Linear layers, the package has PyTorch's names",
    "Residual": "in the package a model's own forward adds x",
}
"""Layers that differ from the package's, each with the reason."""

SINGLE = {
    "add-numpy-scalar-right": SCALARS,
    "add-numpy-scalar-left": SCALARS,
    "multiply-numpy-scalar-left": SCALARS,
    "multiply-numpy-int-right": SCALARS,
    "divide-numpy-scalar-left": SCALARS,
    "exp-of-an-array": "arrays without a Variable",
    "matmul-array-left": "arrays in products of matrices",
    "matmul-array-right": "arrays in products of matrices",
    "linear-bias-array": "a bias that is an array",
    "conv2d-bias-array": "a bias that is an array",
    "sum-method": "methods of Variable",
    "mean-method": "methods of Variable",
    "reshape-method": "methods of Variable",
    "matmul-with-own-transpose": "methods of Variable",
    "sum_to-integers": "sums of integers",
    "permute_dims-T": "methods of Variable",
    "permute_dims-method": "methods of Variable",
    "softmax-times-log_softmax": "log_softmax",
    "conv2d-same": "padding by name",
    "max_pool2d-dilation": "further options",
    "max_pool2d-indices": "further options",
    "conv2d-squared": "powers",
    "max_pool2d-squared": "powers",
    "max_pool2d-many-rows": "pairs of sizes",
    "linear-no-features": "empty axes",
    "softmax-empty-axis": "empty axes",
    "scaled_dot_product_attention-no-keys": "empty axes",
    "scaled_dot_product_attention-no-features": "empty axes",
}
"""Rows by name, each with the reason why the row is beyond ``mynode``."""


def beyond(case: Case, package: Any) -> str:
    """Why a row asks for more than ``mynode`` can do; "" if it does not."""
    options = set(inspect.signature(getattr(package, case.operation)).parameters)
    floats = {one.dtype for one in case.inputs if one.dtype in FLOATS}
    is_image = case.operation in ("conv2d", "max_pool2d")
    is_empty = any(0 in one.shape for one in case.inputs)
    if case.id in SINGLE:
        return SINGLE[case.id]
    if set(case.constants) - options:
        return "further options"
    if "-weights" in case.id:
        return "weights"
    further = ("embedding-padding", "conv2d-same-dilation", "conv2d-valid", "max_pool2d-ceil-")
    if case.id.startswith(further):
        return "further options"
    if "-soft-" in case.id:
        return "targets that are probabilities"
    if is_image and any(isinstance(value, tuple) for value in case.constants.values()):
        return "pairs of sizes"
    if len(floats) > 1:
        return "mixed dtypes"
    if any(one.dtype == "bool" for one in case.inputs):
        return "a query that sees no key"
    if case.operation == "matmul" and any(len(one.shape) < 2 for one in case.inputs):
        return "products of vectors"
    return "empty axes" if is_empty and case.operation == "conv2d" else ""


ROWS = [case for case in CASES if case.operation in OPERATIONS]


@contextlib.contextmanager
def imported() -> Iterator[Any]:
    """The package that ``import mynode`` finds, for a while."""
    try:
        yield importlib.import_module(mynode.NAME)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == mynode.NAME]:
            del sys.modules[name]


@pytest.fixture(scope="module")
def package() -> Iterator[Any]:
    """The reference of the last step, as a learner has it."""
    path = list(sys.path)
    use_mynode(LAST)
    with imported() as found:
        yield found
    sys.path[:] = path


def outputs(package: Any, case: Case, hosts: list[Any]) -> tuple[list[Any], Any]:
    """The inputs, and the output of the row's function on them."""
    device = tn.get_device("numpy")
    xs = []
    for one, host in zip(case.inputs, hosts, strict=True):
        array = place(one, host, device)
        grad = is_differentiable(one, host)
        xs.append(array if one.raw else package.Variable(array, requires_grad=grad))
    function = case.function
    if function is getattr(fn, case.operation):
        function = getattr(package, case.operation)
    return xs, function(*xs, **case.constants)


def check_forward(package: Any, case: Case) -> None:
    for dtype in case.dtypes:
        hosts = draw_inputs(case, dtype)
        _, y = outputs(package, case, hosts)
        (expected,) = call_reference(case, hosts)
        assert isinstance(y, package.Variable)
        assert (y.array.shape, y.array.dtype) == (expected.shape, expected.dtype)
        tolerance = 1e-5 if "float32" in (dtype, expected.dtype.name) else 1e-12
        np.testing.assert_allclose(y.array, expected, rtol=tolerance, atol=tolerance)


def check_first_gradient(package: Any, case: Case) -> None:
    hosts = draw_inputs(case, case.dtypes[0])
    xs, y = outputs(package, case, hosts)
    y.grad = gy = np.random.default_rng(1).normal(size=y.array.shape).astype(y.array.dtype)
    y.backward()
    directions = draw_directions(case, hosts)

    def projected(step: float) -> float:
        moved = move(hosts, directions, step, np.float64)
        return inner(call_reference(case, moved, smooth=True), [gy])

    for i in directions:
        assert xs[i].grad is not None
        assert (xs[i].grad.shape, xs[i].grad.dtype) == (xs[i].array.shape, xs[i].array.dtype)
    analytic = inner([xs[i].grad for i in directions], list(directions.values()))
    rtol, atol = (1e-5, 1e-5) if case.single else (1e-6, 1e-8)
    np.testing.assert_allclose(analytic, central_difference(projected, 1e-5), rtol, atol)


def check_row(package: Any, case: Case) -> None:
    check_forward(package, case)
    if case.order:
        check_first_gradient(package, case)


def in_place_of_functions(package: Any, patch: pytest.MonkeyPatch) -> None:
    """Rows that are lambdas look the package's functions up in ``fn``."""
    for module in op_cases.MODULES:
        patch.setattr(module, "fn", package)


def test_every_function_of_the_package_has_rows(package: Any) -> None:
    functions = {name for name, value in vars(package).items() if inspect.isfunction(value)}
    without = {"no_backprop_mode", "using_config", "seed", "backward", "grad", "dropout"}
    assert functions - without == set(OPERATIONS), "dropout is random: step 10 checks it"


def test_rows_of_the_operation_table(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_place_of_functions(package, monkeypatch)
    own = [case for case in ROWS if not beyond(case, package)]
    for case in own:
        try:
            check_row(package, case)
        except Exception as error:
            error.add_note(f"in the row {case.id}")
            raise
    counts = Counter(case.operation for case in own)
    assert len(own) >= 385
    assert sum(case.order > 0 for case in own) >= 360
    assert all(counts[operation] >= 3 for operation in OPERATIONS), counts


def test_rows_beyond_the_package_cannot_be_run(
    package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason that holds no longer would hide a row."""
    in_place_of_functions(package, monkeypatch)
    passed = []
    for case in ROWS:
        if beyond(case, package):
            with contextlib.suppress(Exception), np.errstate(all="raise"):
                check_row(package, case)
                passed.append(case.id)
    assert passed == []


PLANTED = (
    ("functions/activation.py", "gy * (y > 0)", "gy * (y >= 0)", "relu"),
    ("functions/activation.py", "(gy * y).sum(axis=-1", "(gy * y).mean(axis=-1", "softmax"),
    ("functions/network.py", "rows.sum(axis=0)", "rows.mean(axis=0)", "linear"),
    ("functions/network.py", "math.sqrt(query", "math.sqrt(1 + query", "attention"),
    ("functions/normalization.py", " + eps)", ")", "layer_norm"),
    ("functions/exponential.py", "gy * 0.5 / y", "gy * 0.5 * y", "sqrt"),
    ("functions/statistical.py", "x - mean(x, axis, keepdims=True)", "x - mean(x)", "var"),
    ("functions/products.py", "unbroadcast(x.mT @ gz, y.shape)", "x.mT @ gz", "matmul"),
    ("functions/shapes.py", "gy.transpose(back)", "gy.transpose(self.axes)", "permute_dims"),
    ("functions/cross_entropy.py", "(gloss / max(len(labels), 1))", "gloss", "cross_entropy"),
    ("functions/convolution.py", "padded[place] += windows", "padded[place] = windows", "conv2d"),
    ("functions/pooling.py", "windows.argmax(axis=2)", "windows.argmin(axis=2)", "max_pool2d"),
    ("functions/indexing.py", "np.add.at(gx, indices, gy)", "gx[indices] += gy", "embedding"),
    ("functions/exponential.py", "gy * y * (1.0 - y)", "gy * y", "sigmoid"),
)


@pytest.mark.parametrize(
    ("path", "right", "wrong", "operation"), PLANTED, ids=[bug[-1] for bug in PLANTED]
)
def test_a_planted_bug_is_found(
    path: str,
    right: str,
    wrong: str,
    operation: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = mynode.reference(LAST)
    assert right in files[path]
    mynode.write_files(files | {path: files[path].replace(right, wrong)}, tmp_path / mynode.NAME)
    monkeypatch.syspath_prepend(tmp_path)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if is_own(name)}
    try:
        with imported() as planted:
            in_place_of_functions(planted, monkeypatch)
            own = [c for c in ROWS if operation in c.operation and not beyond(c, planted)]
            with pytest.raises((AssertionError, ValueError)):
                for case in own:
                    check_row(planted, case)
    finally:
        sys.modules.update(kept)


def is_own(name: str) -> bool:
    return name.split(".")[0] == mynode.NAME


def positional(function: Any) -> list[inspect.Parameter]:
    return [
        one
        for one in inspect.signature(function).parameters.values()
        if one.kind is one.POSITIONAL_OR_KEYWORD
    ]


def assert_prefix(ours: Any, theirs: Any) -> None:
    """The package takes a call that ``mynode`` takes, with the same meaning."""
    package = positional(theirs)
    for one, other in zip(positional(ours), package, strict=False):
        assert (one.name, one.default) == (other.name, other.default)
    assert len(positional(ours)) <= len(package)


def test_names_and_parameters_are_those_of_the_package(package: Any) -> None:
    for name in OPERATIONS:
        if name not in ("broadcast_to", "mean", "reshape", "sum", "sum_to"):  # options by keyword
            assert_prefix(getattr(package, name), getattr(fn, name))
    own = importlib.import_module("mynode.nn")
    layers = {name: value for name, value in vars(own).items() if inspect.isclass(value)}
    for name in OWN_LAYERS:
        del layers[name]
    assert set(layers) <= set(tn.nn.__all__)
    for name, ours in layers.items():
        theirs = getattr(tn.nn, name, None)
        for method in ("__init__", "step", "update", "parameters", "cleargrads"):
            if theirs is not None and method in vars(ours) and name != "Parameter":
                assert_prefix(getattr(ours, method), getattr(theirs, method))


def test_the_package_stays_small() -> None:
    files = mynode.reference(LAST)
    lines = sum(len(text.splitlines()) for text in files.values())
    assert lines < 2200, f"{lines} lines in {len(files)} files"
    assert max(len(text.splitlines()) for text in files.values()) < 200
