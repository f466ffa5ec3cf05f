"""The backend of arrays without data: the shapes and dtypes of NumPy, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import op_drivers
import pytest
from op_cases import CASES, Case

import tinynode as tn
import tinynode_shapes
from tinynode.devices import all_true, any_true
from tinynode.errors import NoValuesError, dtype_name
from tinynode_shapes import ShapeArray
from tinynode_shapes.namespace import FAMILIES, FFT, LINALG, NeedsValues

F = tn.functions
XP = tinynode_shapes.namespace()

MASK = "the number of selected elements depends on the values of the mask"
MOVED = "a copy to another device is a copy of values"
NEED_VALUES = {
    **dict.fromkeys(
        (
            *(f"get_item-{name}-and-mask" for name in ("ellipsis", "integer", "slice")),
            *(f"get_item-mask-of-{name}" for name in ("a-vector", "the-first-axis")),
            *(f"get_item-mask-of-{name}" for name in ("the-first-axes", "nothing", "everything")),
            *(f"get_item-mask-{name}" for name in ("in-tuple", "zero-size", "and-slice")),
            *(f"get_item-mask-{name}" for name in ("and-array", "of-integers", "strided")),
            *(f"get_item-mask-{name}" for name in ("transposed", "reversed")),
            *(f"get_item-{name}" for name in ("mask", "raw-mask", "bool-list", "own-mask")),
            *(f"set_item-mask-of-{name}" for name in ("the-first-axis", "nothing", "everything")),
            *(f"set_item-mask-value-{name}" for name in ("0-d", "one")),
            "set_item-mask-of-the-first-axis-value-broadcasts",
            *(f"set_item-mask-{name}" for name in ("v-without-grad", "x-without-grad", "strided")),
            *(f"set_item-{name}" for name in ("mask", "slice-and-mask", "mask-transposed")),
            *("set_item-mask-reversed", "Positions-mask", "Positions-mask-of-the-first-axis"),
        ),
        MASK,
    ),
    **{
        f"to_device-{name}": MOVED
        for name in ("there", "there-and-back", "0-d", "zero-size", "integers")
    },
}
"""The rows that need values, with the reason."""


def form(variable: tn.Variable | None) -> tuple[Any, ...] | None:
    """Shape and dtype of a Variable; None for None."""
    return None if variable is None else (tuple(variable.shape), dtype_name(variable.dtype))


def forms(case: Case, device: str, dtype: str) -> list[Any]:
    """Shape and dtype of outputs, of first gradients and of second gradients."""
    hosts = op_drivers.draw_inputs(case, dtype)
    there = tn.get_device(device)
    ys = op_drivers.call(case, op_drivers.make_inputs(case, hosts, there))
    found = op_drivers.Derivatives(case, hosts, there)
    if case.order >= 2:
        found.differentiate_again()
    return [form(y) for y in (*ys, *found.gxs, *found.ggs)]


OPERATIONS = op_drivers.by_operation([case for case in CASES if case.id not in NEED_VALUES])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_first_rows(operation: str) -> None:
    for case in OPERATIONS[operation][:3]:
        with op_drivers.naming(case.id):
            dtype = case.dtypes[0]
            assert forms(case, "shapes", dtype) == forms(case, "numpy", dtype)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation(operation: str) -> None:
    for case in OPERATIONS[operation]:
        for dtype in case.dtypes:
            with op_drivers.naming(case.id):
                assert forms(case, "shapes", dtype) == forms(case, "numpy", dtype)


def test_listed_rows_need_values_and_are_few() -> None:
    rows = {case.id: case for case in CASES}
    assert NEED_VALUES.keys() <= rows.keys()
    assert len(NEED_VALUES) < 0.02 * len(CASES)
    for name in NEED_VALUES:
        with pytest.raises(NoValuesError):
            forms(rows[name], "shapes", rows[name].dtypes[0])


# --- what the module says ------------------------------------------------------------------------


def test_fulfils_the_protocol() -> None:
    names = {name for name in vars(tn.Backend) if not name.startswith("_")}
    assert all(hasattr(tinynode_shapes, name) for name in names)
    assert str(tn.get_device("shapes")) == "shapes"
    tn.synchronize("shapes")


def variable(*shape: int, dtype: str = "float32") -> tn.Variable:
    return tn.asarray(np.zeros(shape, dtype), device="shapes")


READS: dict[str, Callable[[tn.Variable], object]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": lambda x: complex(x.raw),
    "index": lambda x: [0][x.raw],
    "item": lambda x: x.raw.item(),
    "tolist": lambda x: x.raw.tolist(),
    "numpy": lambda x: x.detach().numpy(),
    "to_host": tn.to_host,
    "asarray": lambda x: np.asarray(x.raw),
    "to_device": lambda x: x.to_device("numpy"),
    "state_dict": lambda x: tn.nn.Parameter(x.raw, device="shapes").__reduce__(),
}


@pytest.mark.parametrize("read", READS)
def test_values_are_refused(read: str) -> None:
    with pytest.raises(NoValuesError, match=r"needs values\. .* Run the function on numpy"):
        READS[read](variable())


def test_the_error_names_the_function() -> None:
    x, mask = variable(3), tn.asarray(np.ones(3, bool), device="shapes")
    with pytest.raises(NoValuesError, match=r"GetItem: x\[mask\].*depends on the mask"):
        x[mask]


def test_printing_shows_shape_and_dtype() -> None:
    x = variable(2, 3)
    assert repr(x) == "variable(ShapeArray((2, 3), float32))"
    assert repr(x.raw) == "ShapeArray((2, 3), float32)"
    assert "ShapeArray" in x.debug_print()
    assert "(2, 3), float32 on shapes" in x._repr_html_()


def test_questions_about_rare_values_have_the_usual_answer() -> None:
    mask = variable(3, dtype="bool").raw
    assert not any_true(mask) and all_true(mask)


def test_no_numbers_are_drawn() -> None:
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    assert F.dropout(variable(5), generator=generator).shape == (5,)
    assert generator.bit_generator.state == before


def test_no_memory_is_taken() -> None:
    x = tn.asarray(ShapeArray((1_000_000, 1_000_000), np.dtype("float32")))
    y = F.sum(F.relu(x @ x.T) * x[None, ..., ::-1])
    y.backward()
    assert x.grad is not None and x.grad.nbytes == 4 * 10**12


# --- the namespace against NumPy -----------------------------------------------------------------


def shaped(*arguments: Any) -> list[Any]:
    return [ShapeArray(x.shape, x.dtype) if isinstance(x, np.ndarray) else x for x in arguments]


def check(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """The function of the namespace says what NumPy's result is."""
    ours: Any = XP
    for part in name.split("."):
        ours = getattr(ours, part)
    found = ours(*shaped(*arguments), **options)
    expected = function(*arguments, **options)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple | list) else None
    for y, wanted in pairs or [(found, expected)]:
        assert (y.shape, y.dtype) == (np.shape(wanted), np.asarray(wanted).dtype), name


X = np.ones((2, 3, 4), "float32")
N = np.ones((3, 4), "int64")
S = np.eye(3, dtype="float32") + np.ones((2, 3, 3), "float32")
CALLS: list[tuple[Any, ...]] = [
    *(("sum", np.sum, a, {"axis": i}) for a in (X, N) for i in (None, 0, -1, (0, -1), ())),
    ("sum", np.sum, X, {"axis": 1, "keepdims": True, "dtype": np.float64}),
    ("sum", np.sum, X > 0, {}),
    ("mean", np.mean, X, {"axis": (1, 2)}),
    ("var", np.var, X, {"axis": 0, "correction": 1}),
    ("all", np.all, X, {"axis": -1}),
    ("argmax", np.argmax, X, {}),
    ("argmax", np.argmax, X, {"keepdims": True}),
    ("argmin", np.argmin, X, {"axis": 1}),
    ("roll", np.roll, X, 1, {}),
    ("roll", np.roll, X, (1, 2), {"axis": (0, 1)}),
    ("flip", np.flip, X, {"axis": 1}),
    ("sort", np.sort, X, {"axis": 0}),
    ("diff", np.diff, X, {}),
    ("cumulative_sum", np.cumulative_sum, N, {"axis": 0, "include_initial": True}),
    ("count_nonzero", np.count_nonzero, X, {"axis": 1}),
    ("add", np.add, X, N, {}),
    ("add", np.add, X, 2.5, {}),
    ("divide", np.divide, N, N, {}),
    ("equal", np.equal, X, X[0], {}),
    ("where", np.where, X > 0, X, 0.0, {}),
    ("clip", np.clip, X, 0.0, None, {}),
    ("matmul", np.matmul, X, N.T, {}),
    ("matmul", np.matmul, N, X[0, 0], {}),
    ("matmul", np.matmul, X[0, 0], N.T, {}),
    ("matmul", np.matmul, X[0, 0], X[0, 0], {}),
    ("vecdot", np.vecdot, X, N, {}),
    ("tensordot", np.tensordot, X, N, {}),
    ("tensordot", np.tensordot, X, N, {"axes": ((1, 2), (0, 1))}),
    ("reshape", np.reshape, X, (4, -1), {}),
    ("reshape", np.reshape, X, -1, {}),
    ("permute_dims", np.permute_dims, X, (2, 0, -2), {}),
    ("moveaxis", np.moveaxis, X, 0, -1, {}),
    ("expand_dims", np.expand_dims, X, {"axis": (0, -1)}),
    ("squeeze", np.squeeze, X[:, :1], {"axis": 1}),
    ("broadcast_to", np.broadcast_to, N, (5, 3, 4), {}),
    ("broadcast_arrays", np.broadcast_arrays, X, N, {}),
    ("meshgrid", np.meshgrid, X[0, 0], N[:, 0], {}),
    ("meshgrid", np.meshgrid, X[0, 0], N[:, 0], {"indexing": "ij"}),
    ("concat", lambda a, b, **o: np.concat([a, b], **o), N, X[0], {"axis": -1}),
    ("concat", lambda a, b, **o: np.concat([a, b], **o), N, X, {"axis": None}),
    ("stack", lambda a, b, **o: np.stack([a, b], **o), N, X[0], {"axis": 1}),
    ("unstack", np.unstack, X, {"axis": 1}),
    ("tile", np.tile, N, (2, 1, 3), {}),
    ("repeat", np.repeat, X, 3, {"axis": 1}),
    ("repeat", np.repeat, X, 2, {}),
    ("take", np.take, X, np.asarray([0, 1, 1]), {"axis": 1}),
    ("take_along_axis", np.take_along_axis, X, np.zeros((2, 5, 1), int), {"axis": 1}),
    ("searchsorted", np.searchsorted, X[0, 0], N, {}),
    ("isin", np.isin, X, N, {}),
    ("eye", np.eye, 3, 4, {"dtype": np.int8}),
    ("zeros", np.zeros, 3, {}),
    ("full", np.full, (2, 3), 7, {}),
    ("full", np.full, (2, 3), np.ones((), "int8"), {}),
    ("full_like", np.full_like, X, 1, {"dtype": np.int16}),
    ("arange", np.arange, 1, 9, 3, {}),
    ("linspace", np.linspace, 0.0, 1.0, 5, {}),
    ("tril", np.tril, X, {"k": 1}),
    ("linalg.solve", np.linalg.solve, S, np.ones(3), {}),
    ("linalg.solve", np.linalg.solve, S, X, {}),
    ("linalg.svd", np.linalg.svd, X, {"full_matrices": False}),
    ("linalg.slogdet", np.linalg.slogdet, S, {}),
    ("linalg.outer", np.linalg.outer, X[0, 0], N[0], {}),
    ("linalg.matrix_power", np.linalg.matrix_power, S, 3, {}),
    ("linalg.vector_norm", np.linalg.vector_norm, X, {"axis": (0, 1), "keepdims": True}),
    ("fft.rfftn", np.fft.rfftn, X, {"axes": (0, 1)}),
    ("fft.irfft", np.fft.irfft, X + 0j, {"n": 9}),
    ("fft.rfftfreq", np.fft.rfftfreq, 9, {}),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_the_namespace_says_what_numpy_gives(number: int) -> None:
    name, function, *arguments, options = CALLS[number]
    if name in ("concat", "stack"):
        joined = getattr(XP, name)(shaped(*arguments), **options)
        wanted = function(*arguments, **options)
        assert (joined.shape, joined.dtype) == (wanted.shape, wanted.dtype)
    else:
        check(name, function, *arguments, **options)


I2 = np.asarray([[0, 1], [1, 1]])
KEYS: list[Any] = [
    *(0, -1, slice(1, None), slice(None, None, -2), ..., None, (..., 0), (0, ..., None, 1)),
    *(I2, (I2, 0), (slice(None), I2), (0, slice(None), I2), (I2, slice(None), I2), (I2, None, I2)),
    *((..., I2), (None, I2, ...), (slice(0, 0), I2), ()),
]


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_indexes(number: int) -> None:
    key = KEYS[number]
    keys = key if isinstance(key, tuple) else (key,)
    x = ShapeArray(X.shape, X.dtype)
    wanted = X[key]
    assert x[tuple(shaped(*keys))].shape == x[key].shape == wanted.shape
    x[tuple(shaped(*keys))] = ShapeArray(wanted.shape, X.dtype)
    with pytest.raises(ValueError, match="broadcast"):
        x[key] = ShapeArray((7, *wanted.shape), X.dtype)


def test_wrong_shapes_are_refused_as_by_numpy() -> None:
    x, y = ShapeArray((2, 3), np.dtype("float32")), ShapeArray((3, 2), np.dtype("float32"))
    refused: list[Callable[[], object]] = [
        lambda: x + y,
        lambda: x @ x,
        lambda: x @ ShapeArray((), x.dtype),
        lambda: x[0, 0, 0],
        lambda: x[5],
        lambda: XP.reshape(x, (4, -1)),
        lambda: XP.reshape(x, (-1, -1)),
        lambda: XP.broadcast_to(x, (3, 3)),
        lambda: XP.tensordot(x, x, axes=1),
        lambda: XP.concat([x, y]),
        lambda: XP.permute_dims(x, (0, 0)),
        lambda: XP.squeeze(x, axis=0),
        lambda: x.__iadd__(ShapeArray((5, 2, 3), x.dtype)),
    ]
    for one in refused:
        with pytest.raises((ValueError, IndexError)):
            one()


def test_functions_with_an_unknown_shape_need_values() -> None:
    x = ShapeArray((2, 3), np.dtype("int64"))
    for name in FAMILIES[NeedsValues].split():
        with pytest.raises(NoValuesError, match=name):
            getattr(XP, name)(x)
    with pytest.raises(NoValuesError, match="repeat"):
        XP.repeat(x, x)


def test_operators_and_attributes_are_those_of_numpy_arrays() -> None:
    x = ShapeArray((2, 3), np.dtype("int8"))
    assert (x + 1).dtype == np.int8 and (x / 2).dtype == np.float64
    assert (np.ones((4, 1, 1)) * x).shape == (4, 2, 3)
    assert [y.shape for y in divmod(x, 2)] == [(2, 3)] * 2
    assert (x @ x.T).shape == (2, 2) and x.mT.shape == (3, 2)
    assert (x.ndim, x.size, x.nbytes, len(x), x.device) == (2, 6, 6, 2, "shapes")
    assert x.__array_namespace__() is XP
    y = x
    y += 1
    assert y is x
    with pytest.raises(TypeError):
        np.add.reduce(x)


def test_every_name_of_the_standard_is_there() -> None:
    public = {name for name in dir(tn.array_api.namespace) if not name.startswith("_")}
    assert public  # the standard's functions on Variables
    standard = {name for family in FAMILIES.values() for name in family.split()}
    assert all(hasattr(XP, name) for name in standard)
    assert all(hasattr(XP.linalg, name) for f in LINALG.values() for name in f.split())
    assert all(hasattr(XP.fft, name) for f in FFT.values() for name in f.split())
    assert "by the rule" in repr(XP.sin)
    assert XP.can_cast(XP.int8, XP.int16) and XP.result_type(ShapeArray((), XP.int8), 1) == XP.int8
