"""Functions of Variables in PyTorch: values, gradients of every order, memory, errors."""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import DeviceError, OperandError

pytestmark = pytest.mark.slow

torch: Any = None
F = tn.functions


@pytest.fixture(autouse=True, scope="module")
def pytorch() -> None:
    """Import PyTorch when a test of this file runs: the import takes seconds."""
    global torch
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")


class Softplus(tn.FunctionNode):
    """log(1 + e^(b x)) / b, as a student writes the function."""

    def __init__(self, b: float = 1.0) -> None:
        self.b = b

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        self.retain_inputs((0,))
        xp = tn.namespace_of(x)
        return (xp.log1p(xp.exp(self.b * x)) / self.b,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * F.sigmoid(self.b * x),)


def leaf(*shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    array = np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)
    return torch.from_numpy(array).requires_grad_()


def two(x: Any, y: Any) -> Any:
    return F.exp(x) * y, F.tanh(x + y)


def identity(x: Any) -> Any:
    return x


def pieces(x: Any) -> Any:
    return x[0], x[:, 1:], F.matrix_transpose(x)


ROWS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (two, [(3,), (3,)]),
    (two, [(2, 3), (3,)]),
    (identity, [(3,)]),
    (pieces, [(3, 3)]),
    (Softplus, [(2, 3)]),
    (F.matmul, [(2, 3), (3, 2)]),
    (F.logsumexp, [(4,)]),
    (F.Multiply, [(2, 2), (2, 2)]),
]


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize(("f", "shapes"), ROWS)
def test_gradcheck_and_gradgradcheck(f: Any, shapes: Any, device: str) -> None:
    inputs = tuple(leaf(*shape, seed=i) for i, shape in enumerate(shapes))
    with tn.using_device(device):
        function = tn.interop.torch_function(f)
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)


def test_the_third_derivative() -> None:
    x = leaf(3)
    y = tn.interop.torch_function(lambda x: x * x * x * x)(x).sum()
    for factor in (4 * x**3, 12 * x**2, 24 * x):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        torch.testing.assert_close(y, factor)


def test_one_graph_gives_first_gradients_then_second_ones() -> None:
    x = leaf(3)
    y = tn.interop.torch_function(F.exp)(x).sum()
    (first,) = torch.autograd.grad(y, x, retain_graph=True)
    assert not first.requires_grad
    (again,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(again.sum(), x)
    torch.testing.assert_close(first, second)


def test_constants_by_keyword() -> None:
    x = leaf(3, dtype="float32")
    y = tn.interop.torch_function(Softplus, b=2.0)(x)
    torch.testing.assert_close(y, torch.nn.functional.softplus(x, beta=2.0))
    total = tn.interop.torch_function(F.sum, axis=0)
    assert total(leaf(2, 3)).shape == (3,) and repr(total) == "torch_function(sum)"


def test_a_module_with_a_students_function_trains() -> None:
    losses = {}
    for name, act in (
        ("ours", tn.interop.torch_function(Softplus)),
        ("theirs", torch.nn.functional.softplus),
    ):
        torch.manual_seed(0)
        first, last = torch.nn.Linear(2, 8), torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
        x = torch.randn(16, 2)
        target = (x[:, :1] * x[:, 1:]).detach()
        history = []
        for _ in range(30):
            loss = ((last(act(first(x))) - target) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        losses[name] = history
    assert losses["ours"][-1] < 0.8 * losses["ours"][0]
    np.testing.assert_allclose(losses["ours"], losses["theirs"], rtol=1e-4)


def test_dropout_has_one_mask_in_both_directions() -> None:
    x = torch.ones(100, requires_grad=True)
    y = tn.interop.torch_function(F.dropout, ratio=0.5)(x)
    y.sum().backward()
    assert 0 < int((y == 0).sum()) < 100
    torch.testing.assert_close(x.grad, y.detach())


@pytest.mark.parametrize("mode", ["torch.no_grad", "inference", "no input"])
def test_without_a_gradient(mode: str) -> None:
    x, block = leaf(3), contextlib.nullcontext()
    if mode == "torch.no_grad":
        block = torch.no_grad()
    elif mode == "inference":
        block = torch.inference_mode()
    else:
        x = x.detach()
    with block:
        assert not tn.interop.torch_function(F.exp)(x).requires_grad


def test_the_mode_of_pytorch_counts() -> None:
    x = leaf(3)
    with tn.no_grad():
        tn.interop.torch_function(F.exp)(x).sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_an_input_without_a_gradient_and_a_none_gradient() -> None:
    x, y = leaf(3), leaf(3, seed=1)
    first = tn.interop.torch_function(lambda x, y: x * 2.0)
    torch.testing.assert_close(torch.autograd.grad(first(x, y).sum(), [x, y])[1], 0 * y)
    first(x, y.detach()).sum().backward()
    assert y.grad is None and x.grad.tolist() == [2, 2, 2]
    floor = tn.interop.torch_function(F.floor)
    torch.testing.assert_close(torch.autograd.grad(floor(x).sum(), x)[0], torch.zeros_like(x))


def test_integers() -> None:
    x, places = leaf(3), torch.tensor([0, 0, 2])
    taken = tn.interop.torch_function(F.take, axis=0)(x, places)
    assert torch.autograd.grad(taken.sum(), x)[0].tolist() == [2, 0, 1]
    value, index = tn.interop.torch_function(lambda x: (F.max(x), F.argmax(x)))(x)
    assert not index.requires_grad and index.dtype == torch.int64
    assert torch.autograd.grad(value, x)[0].sum() == 1


def test_an_output_that_is_not_used() -> None:
    x = torch.zeros(2, requires_grad=True)
    one, _ = tn.interop.torch_function(lambda x: (x + 1.0, F.sqrt(x)))(x)
    one.sum().backward()
    assert x.grad.tolist() == [1, 1]  # 0 * inf of the square root would be NaN


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_and_memory(dtype: str) -> None:
    x = leaf(4, dtype=dtype)
    seen = []
    f = tn.interop.torch_function(lambda x: (seen.append(x.array), F.exp(x))[1])
    assert f(x).dtype == x.dtype
    assert np.shares_memory(seen[0], x.detach().numpy())


def test_layouts() -> None:
    x = leaf(3, 4)
    f = tn.interop.torch_function(lambda x: x * 3.0)
    torch.testing.assert_close(f(x.T[1:]), x.T[1:] * 3)
    wide = tn.interop.torch_function(F.broadcast_to, shape=(2, 3))(leaf(3))
    wide.detach().add_(1.0)
    assert len(set(wide[:, 0].tolist())) == 1
    backwards = tn.interop.torch_function(lambda x: x[::-1])(x)
    torch.testing.assert_close(backwards, x.flip(0))
    f(x).sum().expand(5).sum().backward()  # a gradient with strides of 0
    assert x.grad.unique().tolist() == [15]


def test_writing_to_an_output_leaves_the_input() -> None:
    x = torch.ones(2, 3)
    for f in (identity, lambda x: F.reshape(x, (3, 2)), lambda x: x[0]):
        tn.interop.torch_function(f)(x).zero_()
    a, b = tn.interop.torch_function(lambda x: (y := x * 1.0, y))(x)
    a.zero_()
    assert x.min() == 1 and b.min() == 1


def test_gradients_have_memory_of_their_own() -> None:
    x, y = leaf(3), leaf(3, seed=1)
    tn.interop.torch_function(F.add)(x, y).sum().backward()
    x.grad.zero_()
    assert y.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("which", ["input", "output"])
def test_a_write_before_backward_is_an_error(which: str) -> None:
    x = leaf(3) * 1.0
    y = tn.interop.torch_function(F.exp)(x)
    (x if which == "input" else y).add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_twice_needs_retain_graph() -> None:
    y = tn.interop.torch_function(F.exp)(leaf(3)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_errors_name_the_cure() -> None:
    f = tn.interop.torch_function(F.exp)
    for wrong, cure in (
        (2.0, r"Write torch.as_tensor\(...\)"),
        (tn.asarray([1.0]), r"argument 0 is Variable of shape \(1,\), float32; expected a tensor"),
        (torch.ones(2, dtype=torch.bfloat16), r"x.to\(torch.float32\)"),
        (torch.ones(2, dtype=torch.complex64), r"expected float32 or float64"),
        (torch.eye(2).to_sparse(), r"x.to_dense\(\)"),
    ):
        with pytest.raises(OperandError, match=cure):
            f(wrong)
    with pytest.raises(DeviceError, match=r"x.cpu\(\)"):
        f(torch.ones(2, device="meta"))


class OnAGpu:
    """What as_variable asks of a tensor on a GPU that no machine has."""

    requires_grad = False
    device = types.SimpleNamespace(type="cuda", index=99)

    def detach(self) -> OnAGpu:
        return self

    def __str__(self) -> str:
        return "a tensor"


@pytest.mark.parametrize("device", ["fast", "strict:device1", "torch", "sycl"])
def test_the_function_runs_on_the_current_device(device: str) -> None:
    if device == "sycl":
        pytest.importorskip("dpnp", reason="dpnp is not installed: pip install tinynode[sycl]")
    seen = set()

    def scaled(x: Any) -> Any:
        y = x * x * x * 2.0
        seen.add(str(y.device))
        return y

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    with tn.using_device(device):
        y = tn.interop.torch_function(scaled)(x)
        y.sum().backward()
    assert seen == {device}
    assert y.tolist() == [2.0, 16.0] and x.grad.tolist() == [6.0, 24.0]


def test_a_gpu_without_cupy_is_an_error_with_the_cure() -> None:
    from tinynode.interop.torch_tensors import as_variable

    with pytest.raises(DeviceError, match=r"cupy:99 cannot be used. Install CuPy, or try: x.cpu"):
        as_variable(OnAGpu())


@pytest.mark.gpu
def test_tensors_on_a_gpu() -> None:
    pytest.importorskip("cupy", reason="CuPy is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    inputs = tuple(leaf(3, seed=i).detach().cuda().requires_grad_() for i in range(2))
    function = tn.interop.torch_function(two)
    assert all(y.is_cuda for y in function(*inputs))
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_backward_in_another_thread() -> None:
    x = leaf(3)
    with tn.no_grad():
        y = tn.interop.torch_function(F.exp)(x).sum()
    found: list[Any] = []

    def second() -> None:
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(torch.autograd.grad(first.sum(), x)[0])

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    torch.testing.assert_close(found[0], x.detach().exp())
