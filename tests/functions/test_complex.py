"""Complex numbers and Fourier transforms: gradients of first and second order, and refusals.

The gradient of a real L with respect to z is dL/dRe(z) + i dL/dIm(z). Each row of the table is
compared with finite differences of both parts, on each device, and with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import BackwardSeedError, OperandError, RequiresGradError

DEVICES = ("numpy", "fast", "strict")
STEP = 1e-3


class Row(NamedTuple):
    """A function of tinynode, the same in PyTorch, and the shapes of its inputs.

    Attributes:
        name: for the name of the test.
        ours: a function of Variables.
        theirs: a function of the torch module and tensors; None where PyTorch has none.
        inputs: shapes; with "x" before it for a real input, else complex.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any] | None
    inputs: tuple[Any, ...]


def same(name: str, *inputs: Any, other: str = "", **options: Any) -> Row:
    """A row for a function of one name in both libraries."""

    def theirs(torch: Any, *arguments: Any) -> Any:
        return getattr(torch, other or name)(*arguments, **options)

    return Row(name, lambda *xs: getattr(fn, name)(*xs, **options), theirs, inputs)


def transform(name: str, *inputs: Any, **options: Any) -> Row:
    """A row for a Fourier transform; PyTorch calls an axis ``dim``."""
    names = {"axis": "dim", "axes": "dim"}
    renamed = {names.get(key, key): value for key, value in options.items()}
    title = f"{name}-{'-'.join(f'{k}{v}' for k, v in options.items())}"
    return Row(
        title,
        lambda x: getattr(fn.fft, name)(x, **options),
        lambda torch, x: getattr(torch.fft, name)(x, **renamed),
        inputs,
    )


Z, X = (2, 3), ("x", 2, 3)
ARITHMETIC = [
    *(
        same(name, a, b)
        for name in ("add", "subtract", "multiply", "divide", "pow")
        for a, b in ((Z, Z), (Z, X), (X, Z), (Z, (3,)), ((2, 1), Z))
    ),
    *(same(name, Z) for name in ("negative", "positive", "square", "reciprocal", "exp", "expm1")),
    *(same(name, Z) for name in ("log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan")),
    *(same(name, Z) for name in ("sinh", "cosh", "tanh", "abs", "real", "imag", "conj")),
    *(Row(f"pow{c}", lambda z, c=c: z**c, lambda _, z, c=c: z**c, (Z,)) for c in (0, 1, 2, 3, -2)),
    Row("pow-half", lambda z: z**0.5, lambda _, z: z**0.5, (Z,)),
    Row("pow-below-zero", lambda x, z: fn.pow(-fn.abs(x), z), None, (X, Z)),
    Row("times-j", lambda z: z * 1j, lambda _, z: z * 1j, (Z,)),
    Row("real-times-j", lambda x: x * (2 + 1j), lambda _, x: x * (2 + 1j), (X,)),
    Row("real-j-divided", lambda x: 1j / x, lambda _, x: 1j / x, (X,)),
    Row("minus-number", lambda z: 2 - z, lambda _, z: 2 - z, (Z,)),
    Row("identity", fn.identity, None, (Z,)),
    Row("copy", fn.copy, lambda _, z: z.clone(), (Z,)),
    Row("add_all", lambda a, b: fn.add_all(a, b, a), None, (Z, Z)),
    Row("real-of-real", lambda x: fn.real(x) * fn.conj(x), None, (X,)),
    Row("imag-of-real", lambda x: fn.imag(x) + x, None, (X,)),
    Row(
        "abs-of-product", lambda a, b: fn.abs(a * b + a), lambda t, a, b: t.abs(a * b + a), (Z, Z)
    ),
    Row("log-abs", lambda z: fn.log(fn.abs(z)), lambda t, z: t.log(t.abs(z)), (Z,)),
    Row("z-conj-z", lambda z: z * fn.conj(z), lambda t, z: z * t.conj(z), (Z,)),
    Row("angle", lambda z: fn.atan2(fn.imag(z), fn.real(z)), lambda t, z: t.angle(z), (Z,)),
    Row("twice", lambda z: fn.exp(fn.sin(z) * z) / z, lambda t, z: t.exp(t.sin(z) * z) / z, (Z,)),
]
MASK = np.array([[True, False, True], [False, False, True]])


def mask_beside(x: tn.Variable) -> tn.Variable:
    return on(str(x.device), MASK, False)


ARRAYS = [
    same("sum", Z),
    Row("sum-axis", lambda z: fn.sum(z, axis=0), lambda _, z: z.sum(0), (Z,)),
    Row("mean", lambda z: fn.mean(z, axis=1), lambda _, z: z.mean(1), (Z,)),
    Row("cumulative_sum", lambda z: fn.cumulative_sum(z, axis=1), lambda _, z: z.cumsum(1), (Z,)),
    *(same("matmul", a, b) for a, b in ((Z, (3, 2)), (Z, (3,)))),
    Row("matmul-real", fn.matmul, lambda _, a, b: a @ (b + 0j), (Z, ("x", 3, 2))),
    Row("real-matmul", fn.matmul, lambda _, a, b: (a + 0j) @ b, (X, (3, 2))),
    same("matmul", (2, 2, 3), (3, 2)),
    Row(
        "tensordot",
        lambda a, b: fn.tensordot(a, b, axes=1),
        lambda t, a, b: t.tensordot(a, b, dims=1),
        (Z, (3, 2)),
    ),
    *(
        Row("vecdot", fn.vecdot, lambda t, a, b: t.linalg.vecdot(a, b), (a, b))
        for a, b in ((Z, Z), (Z, (3,)))
    ),
    Row(
        "vecdot-mixed",
        lambda a, b: fn.vecdot(a, b),
        lambda _, a, b: (a.conj() * b).sum(-1),
        (Z, X),
    ),
    Row(
        "einsum",
        lambda a, b: fn.einsum("ij,kj->ik", a, b),
        lambda t, a, b: t.einsum("ij,kj->ik", a, b),
        (Z, Z),
    ),
    Row("cross", fn.linalg.cross, lambda t, a, b: t.linalg.cross(a, b), (Z, Z)),
    Row("reshape", lambda z: fn.reshape(z, (3, 2)), lambda _, z: z.reshape(3, 2), (Z,)),
    Row("permute", lambda z: fn.permute_dims(z, (1, 0)), lambda _, z: z.permute(1, 0), (Z,)),
    Row("expand", lambda z: fn.expand_dims(z, 0), lambda _, z: z[None], (Z,)),
    Row("squeeze", lambda z: fn.squeeze(z, 0), lambda _, z: z.squeeze(0), ((1, 3),)),
    Row("broadcast", lambda z: fn.broadcast_to(z, (2, 3)), lambda _, z: z.expand(2, 3), ((3,),)),
    Row("sum_to", lambda z: fn.sum_to(z, (3,)), lambda _, z: z.sum(0), (Z,)),
    Row("concat", lambda a, b: fn.concat([a, b]), lambda t, a, b: t.cat([a, b]), (Z, Z)),
    Row("stack", lambda a, b: fn.stack([a, b]), lambda t, a, b: t.stack([a, b]), (Z, Z)),
    Row("split", lambda z: fn.split(z, [1], 1)[1], lambda _, z: z[:, 1:], (Z,)),
    Row("unstack", lambda z: fn.unstack(z)[1], lambda _, z: z[1], (Z,)),
    Row("flip", lambda z: fn.flip(z, axis=1), lambda _, z: z.flip(1), (Z,)),
    Row("roll", lambda z: fn.roll(z, 1, axis=1), lambda _, z: z.roll(1, 1), (Z,)),
    Row("take", lambda z: fn.take(z, [1, 1, 0], axis=1), lambda _, z: z[:, [1, 1, 0]], (Z,)),
    Row("get_item", lambda z: z[1, ::2], lambda _, z: z[1, ::2], (Z,)),
    Row(
        "get_item-array",
        lambda z: z[[0, 1, 1], [2, 0, 0]],
        lambda _, z: z[[0, 1, 1], [2, 0, 0]],
        (Z,),
    ),
    Row("set_item", lambda a, b: fn.set_item(a, (0, slice(1)), b), None, (Z, (1,))),
    Row("set_item-real", lambda a, b: fn.set_item(a, (0, slice(1)), b), None, (Z, ("x", 1))),
    Row(
        "where",
        lambda a, b: fn.where(mask_beside(a), a, b),
        lambda t, a, b: t.where(t.asarray(MASK), a, b),
        (Z, Z),
    ),
    Row(
        "where-mixed",
        lambda a, b: fn.where(mask_beside(a), a, b),
        lambda t, a, b: t.where(t.asarray(MASK), a + 0j, b),
        (X, Z),
    ),
    Row("astype", lambda x: fn.astype(x, "complex128"), lambda t, x: x.to(t.complex128), (X,)),
    Row("pad", lambda z: fn.pad(z, 1), lambda t, z: t.nn.functional.pad(z, (1, 1, 1, 1)), (Z,)),
]
NORMS = ("backward", "ortho", "forward")
TRANSFORMS = [
    *(
        transform(name, shape, norm=norm)
        for name in ("fft", "ifft")
        for norm in NORMS
        for shape in (Z, X)
    ),
    *(transform(name, (n,), n=m) for name in ("fft", "ifft") for n, m in ((4, 2), (3, 5))),
    *(transform(name, (3, 2), axis=0) for name in ("fft", "ifft", "irfft", "hfft")),
    *(
        transform(name, (2, 2, 3), **options)
        for name in ("fftn", "ifftn")
        for options in (
            {},
            {"norm": "ortho"},
            {"axes": (0, -1)},
            {"s": (3, 2)},
            {"s": (1, 4), "axes": (2, 1)},
        )
    ),
    *(
        transform(name, ("x", n), norm=norm)
        for name in ("rfft", "ihfft")
        for n in (1, 2, 4, 5)
        for norm in NORMS
    ),
    *(transform(name, ("x", 3, 2), axis=0, n=n) for name in ("rfft", "ihfft") for n in (2, 4)),
    *(transform(name, (4,), norm=norm) for name in ("irfft", "hfft") for norm in NORMS),
    *(transform(name, (4,), n=n) for name in ("irfft", "hfft") for n in (1, 2, 5, 6, 7, 10)),
    *(
        transform("rfftn", ("x", 2, 2, 3), **options)
        for options in ({}, {"norm": "ortho"}, {"axes": (0, 1)}, {"s": (3, 2)}, {"axes": (1,)})
    ),
    *(
        transform("irfftn", (2, 2, 3), **options)
        for options in ({}, {"norm": "forward"}, {"axes": (0, 1)}, {"s": (3, 5)}, {"axes": (1,)})
    ),
    *(
        transform(name, shape, **options)
        for name in ("fftshift", "ifftshift")
        for shape in ((3, 4), ("x", 3, 4))
        for options in ({}, {"axes": (0,)})
    ),
]
ROWS = [*ARITHMETIC, *ARRAYS, *TRANSFORMS]
NAMED = [pytest.param(row, id=f"{i}-{row.name}") for i, row in enumerate(ROWS)]
OTHERS = [i for i, row in enumerate(ROWS) if row.name in {one.name for one in ROWS[:i]}]
FIRST_OF_EACH = [
    pytest.param(row, id=f"{i}-{row.name}", marks=[pytest.mark.slow] if i in OTHERS else [])
    for i, row in enumerate(ROWS)
]
"""All rows; those after the first of a function are slow."""


def arrays_of(row: Row) -> list[Any]:
    """NumPy arrays for a row: away from 0, and from the negative real axis."""
    rng = np.random.default_rng(len(row.name))
    made = []
    for spec in row.inputs:
        is_real = spec[0] == "x"
        shape = spec[1:] if is_real else spec
        size, angle = rng.uniform(0.5, 1.5, shape), rng.uniform(-2.0, 2.0, shape)
        made.append(size if is_real else size * np.exp(1j * angle))
    return made


def weights_for(shape: Sequence[int]) -> Any:
    n = int(np.prod(shape))
    numbers = np.cos(1.0 + np.arange(n)) + 1j * np.sin(2.0 + 3.0 * np.arange(n))
    return np.asarray(numbers.reshape(shape))


def on(device: str, array: Any, requires_grad: bool = True) -> tn.Variable:
    return tn.asarray(np.asarray(array), device=device, requires_grad=requires_grad)


def loss_of(y: tn.Variable) -> tn.Variable:
    """A real number that depends on the real and the imaginary part of y, not linearly."""
    c = on(str(y.device), weights_for(y.shape), False)
    if np.iscomplexobj(tn.to_host(y)):
        return fn.sum(fn.real(y * c)) + fn.sum(fn.real(y) * fn.imag(y))
    return fn.sum(y * fn.real(c)) + fn.sum(y * y)


def value(row: Row, device: str, arrays: list[Any]) -> float:
    return float(loss_of(row.ours(*[on(device, x) for x in arrays])))


def gradients(row: Row, device: str, arrays: list[Any], order: int = 1) -> list[tn.Variable]:
    xs = [on(device, x) for x in arrays]
    found = tn.grad([loss_of(row.ours(*xs))], xs, enable_double_backprop=order > 1)
    if order == 1:
        return found
    total = sum(loss_of(gx) for gx in found if gx is not None)
    return tn.grad([total], xs)


def slope(row: Row, device: str, arrays: list[Any]) -> float:
    """A number that the gradients of first order give."""
    return sum(float(loss_of(gx)) for gx in gradients(row, device, arrays) if gx is not None)


def differences(f: Callable[..., float], arrays: list[Any]) -> list[Any]:
    """Central differences of fourth order, of the real and of the imaginary part."""
    found = []
    for i, array in enumerate(arrays):
        result = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            for unit in (1.0, 1j) if np.iscomplexobj(array) else (1.0,):
                values = []
                for steps in (1, -1, 2, -2):
                    moved = array.copy()
                    moved[place] += steps * STEP * unit
                    values.append(f([*arrays[:i], moved, *arrays[i + 1 :]]))
                a, b, c, d = values
                result[place] += (8 * (a - b) - (c - d)) / (12 * STEP) * unit
        found.append(result)
    return found


def close(found: Any, expected: Any, tolerance: float, place: str = "") -> None:
    host = np.zeros_like(expected) if found is None else tn.to_host(found)
    assert host.dtype == expected.dtype
    np.testing.assert_allclose(host, expected, rtol=tolerance, atol=tolerance, err_msg=place)


@pytest.mark.parametrize("row", NAMED)
def test_gradients_agree_with_differences(row: Row) -> None:
    arrays = arrays_of(row)
    expected = differences(lambda xs: value(row, "numpy", xs), arrays)
    for device in DEVICES:
        found = gradients(row, device, arrays)
        for gx, wanted in zip(found, expected, strict=True):
            close(gx, wanted, 1e-7, device)


@pytest.mark.slow
@pytest.mark.parametrize("row", FIRST_OF_EACH)
def test_second_gradients_agree_with_differences(row: Row) -> None:
    arrays = arrays_of(row)
    expected = differences(lambda xs: slope(row, "numpy", xs), arrays)
    for device in ("numpy", "strict"):
        found = gradients(row, device, arrays, order=2)
        for gx, wanted in zip(found, expected, strict=True):
            close(gx, wanted, 1e-6, device)


@pytest.mark.parametrize("row", NAMED)
def test_values_and_gradients_agree_with_pytorch(row: Row) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if row.theirs is None:
        pytest.skip("PyTorch has no such function")
    arrays = arrays_of(row)
    xs = [on("numpy", x) for x in arrays]
    ts = [torch.tensor(x, requires_grad=True) for x in arrays]
    y, t = row.ours(*xs), row.theirs(torch, *ts)
    np.testing.assert_allclose(
        tn.to_host(y), t.detach().resolve_conj().numpy(), rtol=1e-12, atol=1e-12
    )
    c = weights_for(y.shape)
    y.grad = c if np.iscomplexobj(tn.to_host(y)) else c.real.copy()
    y.backward()
    t.backward(torch.tensor(y_grad(y, c)))
    for x, other in zip(xs, ts, strict=True):
        np.testing.assert_allclose(
            x.grad, other.grad.resolve_conj().numpy(), rtol=1e-10, atol=1e-10
        )


def y_grad(y: tn.Variable, c: Any) -> Any:
    return c if np.iscomplexobj(tn.to_host(y)) else c.real.copy()


# --- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_beside_a_variable_keep_the_precision(device: str) -> None:
    z, x = on(device, np.ones(2, np.complex64)), on(device, np.ones(2, np.float32))
    for y in (z * 2.0, z * 2, 1j * z, z + True, x * 1j, 2j / x, z * x, z**2, z - 1):
        assert tn.to_host(y).dtype == np.complex64 and y.requires_grad
    for y in (fn.abs(z), fn.real(z), fn.imag(z), fn.fft.irfft(z), fn.fft.hfft(z)):
        assert tn.to_host(y).dtype == np.float32
    for y in (fn.fft.fft(x), fn.fft.rfft(x), fn.fft.ifftn(z), fn.fft.ihfft(x), fn.mean(z)):
        assert tn.to_host(y).dtype == np.complex64
    fn.sum(fn.abs(fn.fft.fft(z * x))).backward()
    assert tn.to_host(z.grad).dtype == np.complex64 and tn.to_host(x.grad).dtype == np.float32


def test_the_gradient_of_abs_at_zero_is_zero() -> None:
    z = tn.Variable(np.array([0j, 3 + 4j]))
    fn.sum(fn.abs(z)).backward()
    np.testing.assert_allclose(z.grad, [0, 0.6 + 0.8j])


def test_real_numbers_pass_the_functions_of_parts() -> None:
    x = tn.Variable(np.array([1.0, np.inf]))
    assert fn.real(x) is x and fn.conj(x) is x
    np.testing.assert_array_equal(fn.imag(x).array, [0.0, 0.0])


def test_gradients_of_several_uses_add_up() -> None:
    for lazy in (False, True):
        with tn.using_config("lazy_grad_sum", lazy):
            z = tn.Variable(np.array([1 + 2j]))
            fn.sum(fn.real(z * z + z + fn.conj(z))).backward()
        np.testing.assert_allclose(z.grad, [4 - 4j])


def test_a_gradient_to_start_from_may_be_complex() -> None:
    z = tn.Variable(np.array([1 + 2j, 1j]))
    y = z * z
    y.grad = np.array([1j, 2 + 0j])
    y.backward()
    np.testing.assert_allclose(z.grad, np.array([1j, 2]) * np.conj(2 * z.array))
    y = z * z
    (gz,) = tn.grad([y], [z], [tn.Variable(np.array([1j, 2 + 0j]))])
    np.testing.assert_allclose(gz.array, z.grad)


# --- refusals ------------------------------------------------------------------------------------


class Unsafe(tn.FunctionNode):
    """y = |x|^2, without a rule for complex numbers."""

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        return ((x * x.conj()).real if np.iscomplexobj(x) else x * x,)


@pytest.mark.parametrize("function", [fn.asin, fn.relu, fn.sign, fn.max, fn.prod, fn.linear])
def test_functions_without_a_rule_refuse_complex_numbers(function: Any) -> None:
    z = tn.Variable(np.array([[1 + 2j]]))
    arguments = (z, z) if function is fn.linear else (z,)
    with pytest.raises(OperandError, match=r"has no gradient for complex.*complex\.md.*detach"):
        function(*arguments)
    with tn.no_backprop_mode():
        assert function(*arguments).shape is not None
    assert not function(*[x.detach() for x in arguments]).requires_grad


def test_a_real_output_of_a_complex_input_is_refused_too() -> None:
    z, x = tn.Variable(np.array([1 + 2j])), tn.Variable(np.array([2.0]))
    with pytest.raises(OperandError, match="Unsafe: the function has no gradient for complex"):
        Unsafe().apply((z,))
    assert Unsafe().apply((x,))[0].requires_grad
    assert not Unsafe().apply((z.detach(),))[0].requires_grad
    assert not fn.equal(z, 1).requires_grad  # bool: no gradient is cut


@pytest.mark.parametrize("function", [fn.sigmoid, fn.erf, fn.var, fn.softmax, fn.fft.rfft])
def test_functions_of_real_numbers_name_the_ways_out(function: Any) -> None:
    with pytest.raises(OperandError, match=r"x must be real, got .*real\(x\)"):
        function(tn.Variable(np.array([1 + 2j])))


def test_backward_from_a_complex_number_is_refused() -> None:
    z = tn.Variable(np.array([1 + 2j]))
    for start in (fn.sum(z).backward, lambda: tn.grad([z * 2], [z])):
        with pytest.raises(BackwardSeedError, match=r"is complex128.*real\(y\), imag"):
            start()


def test_a_cast_to_a_real_dtype_is_refused() -> None:
    z = tn.Variable(np.array([1 + 2j]))
    for dtype in ("float64", np.int64):
        with pytest.raises(OperandError, match=r"astype: x is complex128.*real\(x\) or imag\(x\)"):
            z.astype(dtype)
    assert z.astype("bool").array.all() and z.astype("complex64").requires_grad


def test_a_complex_number_is_not_written_into_real_ones() -> None:
    x, z = tn.Variable(np.ones(3)), tn.Variable(np.array(1j))
    with pytest.raises(OperandError, match=r"x\[i\] = v: the value is complex128, x is float64"):
        fn.set_item(x, 0, z)


def test_transforms_refuse_wrong_arguments() -> None:
    x = tn.Variable(np.ones((2, 3)))
    for call, text in (
        (lambda: fn.fft.fft(x, norm="no"), "fft: norm is 'no'"),
        (lambda: fn.fft.fft(x, n=0), "the length is 0"),
        (lambda: fn.fft.irfft(x[:, :1]), "irfft: .* the length is 0"),
        (lambda: fn.fft.ifft(x, axis=2), "ifft: axis 2 does not exist"),
        (lambda: fn.fft.fftn(x, s=(1, 2, 3)), "fftn: s has 3 lengths"),
        (lambda: fn.fft.fftn(x, s=(1,), axes=(0, 1)), "1 lengths in s do not go with"),
        (lambda: fn.fft.rfftn(x, axes=()), "rfftn: at least one axis"),
        (lambda: fn.fft.fftfreq(0), "fftfreq: .* the length is 0"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    for call in (lambda: fn.fft.fft([1.0]), lambda: fn.fft.fft(tn.asarray([1]))):
        with pytest.raises(OperandError):
            call()


# --- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n: int) -> None:
    for ours, theirs in ((fn.fft.fftfreq, np.fft.fftfreq), (fn.fft.rfftfreq, np.fft.rfftfreq)):
        y = ours(n, d=0.5, dtype="float64")
        np.testing.assert_allclose(y.array, theirs(n, d=0.5))
        assert not y.requires_grad and ours(n).dtype == np.float32
        assert str(ours(n, device="strict").device) == "strict:CPU_DEVICE"


def spectrum(z: tn.Variable, x: tn.Variable) -> tn.Variable:
    return fn.fft.ifft(fn.exp(z * x) / (z + 2)) * fn.conj(z)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_compiled_function_may_be_complex(device: str) -> None:
    z, x = on(device, np.array([1 + 2j, 0.5 - 1j])), on(device, np.array([1.0, 2.0]))
    expected = tn.grad([loss_of(spectrum(z, x))], [z, x])
    compiled = tn.compile(spectrum)
    for _ in range(4):
        for gx, wanted in zip(tn.grad([loss_of(compiled(z, x))], [z, x]), expected, strict=True):
            np.testing.assert_allclose(gx.array, wanted.array, rtol=1e-12)


def detached(z: tn.Variable) -> tn.Variable:
    with tn.no_backprop_mode():
        factor = z * 2
    return z * fn.conj(z.detach()) * factor


@pytest.mark.parametrize("f", [detached, lambda z: tn.checkpoint(fn.exp, z) * z])
def test_detach_and_checkpoint_take_complex_numbers_in_every_mode(f: Any) -> None:
    z = on("numpy", np.array([1 + 2j, 0.5 - 1j]))
    (expected,) = tn.grad([loss_of(f(z))], [z])
    for way in (tn.compile(f), tn.vmap(f), tn.compile(tn.vmap(f)), partial(tn.checkpoint, f)):
        (gz,) = tn.grad([loss_of(way(z))], [z])
        np.testing.assert_allclose(gz.array, expected.array, rtol=1e-12)
    (gz,) = tn.grad([loss_of(tn.checkpoint(fn.exp, z))], [z])
    np.testing.assert_allclose(gz.array, tn.grad([loss_of(fn.exp(z))], [z])[0].array, rtol=1e-12)


def test_watching_the_memory_applies_no_function() -> None:
    z = tn.Variable(np.ones(2, complex))
    with tn.hooks.MemoryHook() as hook:
        _ = z * z
    assert [call.label for call in hook.calls] == ["Multiply"]


def test_integers_still_require_no_gradient() -> None:
    with pytest.raises(RequiresGradError, match="only floating dtypes"):
        tn.Variable(np.ones(2, np.int64), requires_grad=True)
