"""Rows of products of matrices and tensors, and of linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from op_cases.reductions_shapes import AXES
from op_cases.rows import (
    INTEGERS,
    LAYOUTS,
    Input,
    distinct,
    few,
    node,
    nonzero,
    normal,
    nz,
    row,
    x,
)
from tinynode import functions as fn
from tinynode.functions import linalg

# --- products ------------------------------------------------------------------------------------

for what, s, t, axes in (
    ("default", (2, 3, 4), (3, 4, 2), {}),
    ("one", (2, 3), (3, 4), {"axes": 1}),
    ("outer", (2, 3), (2,), {"axes": 0}),
    ("all", (2, 3), (2, 3), {"axes": 2}),
    ("pairs", (2, 3, 4), (4, 5, 2), {"axes": ((2, 0), (0, 2))}),
    ("pair-in-the-middle", (2, 3, 4), (5, 3), {"axes": ([1], [1])}),
    ("pairs-from-the-end", (2, 3, 4), (3, 4, 2), {"axes": ((-1, -2), (-2, 0))}),
    ("no-pairs", (2,), (3,), {"axes": ((), ())}),
    ("pair-in-a-list", (2, 3), (3, 2), {"axes": [[0], [1]]}),
    ("0-d", (), (3,), {"axes": 0}),
    ("zero-size", (0, 3), (3, 2), {"axes": 1}),
    ("nothing-to-sum", (2, 0), (0, 3), {"axes": 1}),
):
    row("tensordot", what, fn.tensordot, np.tensordot, x(*s), x(*t), **axes)
row("tensordot", "array", fn.tensordot, np.tensordot, x(2, 3), x(3, 2, raw=True), axes=1)
row(
    "tensordot", "x-without-grad", fn.tensordot, np.tensordot, x(2, 3, grad=False), x(3, 2), axes=1
)
row(
    "tensordot",
    "same-variable-twice",
    lambda x: fn.tensordot(x, x),
    lambda x: np.tensordot(x, x),
    x(2, 3),
)
for what, s, t, axes in (
    ("vectors", (3,), (3,), {}),
    ("matrices", (2, 3), (2, 3), {}),
    ("broadcast", (2, 3), (3,), {}),
    ("broadcast-both", (2, 1, 3), (4, 3), {}),
    ("axis", (3, 2), (3, 2), {"axis": -2}),
    ("axis-broadcast", (4, 3, 2), (3, 1), {"axis": -2}),
    ("zero-size", (0, 3), (3,), {}),
    ("nothing-to-sum", (2, 0), (2, 0), {}),
):
    row("vecdot", what, fn.vecdot, np.vecdot, x(*s), x(*t), **axes)
row("vecdot", "array", fn.vecdot, np.vecdot, x(2, 3), x(3, raw=True))
row("vecdot", "same-variable-twice", lambda x: fn.vecdot(x, x), lambda x: np.vecdot(x, x), x(2, 3))
for how in LAYOUTS:
    pair = x(3, 4, layout=how), x(3, 4, layout=how)
    row("tensordot", how, fn.tensordot, np.tensordot, *pair, axes=([0], [0]))
    row("vecdot", how, fn.vecdot, np.vecdot, *pair)


@wraps(fn.einsum)
def einsum(*xs: Any, subscripts: str) -> Any:
    return fn.einsum(subscripts, *xs)


def np_einsum(*xs: Any, subscripts: str) -> Any:
    return np.array(np.einsum(subscripts, *xs))


EINSUMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("i->i", [(3,)]),
    ("i->", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("->", [()]),
    ("ijk->ik", [(2, 3, 4)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(2, 2, 3)]),
    ("iji->j", [(2, 3, 2)]),
    ("iii->i", [(2, 2, 2)]),
    ("iijj->ij", [(2, 2, 3, 3)]),
    ("...->...", [(2, 3)]),
    ("i...->...", [(2, 3, 2)]),
    ("...i", [(2, 3)]),
    ("...ii->...", [(2, 3, 3)]),
    ("i,i->", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("i,j", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,kj->i", [(2, 3), (4, 3)]),
    ("ij,k->k", [(2, 3), (4,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    ("ii,i->i", [(3, 3), (3,)]),
    ("ij,ji", [(2, 3), (3, 2)]),
    (",i->i", [(), (3,)]),
    ("...i,i->...", [(2, 3), (3,)]),
    ("...ij,...jk", [(2, 2, 3), (3, 2)]),
    ("...i,...i->...", [(4, 1, 3), (2, 3)]),
    ("...i,j->j...", [(2, 3), (2,)]),
    ("i...,i...->i...", [(2, 3), (2, 3)]),
    (" i j , j -> i ", [(2, 3), (3,)]),
    ("ij,ij->ij", [(1, 3), (2, 3)]),
    ("ij,j", [(2, 1), (3,)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("i,j,k->kji", [(2,), (3,), (2,)]),
    ("ij,jk,kl", [(2, 3), (3, 2), (2, 4)]),
    ("ij,jk,ki->", [(2, 3), (3, 2), (2, 2)]),
    ("...i,ij,...j->...", [(2, 2), (2, 3), (2, 3)]),
    ("i,ij,j,k", [(2,), (2, 3), (3,), (2,)]),
    ("ij,jk", [(0, 3), (3, 2)]),
    ("ij,jk", [(2, 0), (0, 3)]),
    ("ij->i", [(2, 0)]),
]  # fmt: skip
for text, shapes in EINSUMS:
    lengths = " ".join(",".join(str(n) for n in s) for s in shapes)
    row(
        "einsum",
        f"{text} of {lengths}",
        einsum,
        np_einsum,
        *[x(*s) for s in shapes],
        subscripts=text,
    )
matrices = {"subscripts": "ij,jk"}
row("einsum", "array-right", einsum, np_einsum, x(2, 3), x(3, 2, raw=True), **matrices)
row("einsum", "array-left", einsum, np_einsum, x(2, 3, raw=True), x(3, 2), **matrices)
row("einsum", "x-without-grad", einsum, np_einsum, x(2, 3, grad=False), x(3, 2), **matrices)
row("einsum", "y-without-grad", einsum, np_einsum, x(2, 3), x(3, 2, grad=False), **matrices)
row(
    "einsum", "same-variable-twice", lambda x: fn.einsum("ij,kj", x, x), lambda x: x @ x.T, x(2, 3)
)
row(
    "einsum",
    "integers",
    einsum,
    np_einsum,
    few(2, 3),
    few(3, 2),
    order=0,
    dtypes=("int64",),
    **matrices,
)
pair = x(2, 3, dtype="float32"), x(3, 2, dtype="float64")
row("einsum", "float32-and-float64", einsum, np_einsum, *pair, single=True, **matrices)
row(
    "einsum",
    "three-dtypes",
    einsum,
    np_einsum,
    *pair,
    x(2, dtype="float32"),
    single=True,
    subscripts="ij,jk,k",
)
for how in LAYOUTS:
    row("einsum", how, einsum, np_einsum, x(3, 4, layout=how), x(4, 2, layout=how), **matrices)


# --- linear algebra ------------------------------------------------------------------------------


def invertible(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape) + 3 * np.eye(shape[-1])


def separated(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Matrices whose singular values are 1, 2, 3, ..., in turned directions."""
    u, s, vt = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    return (u * np.arange(s.shape[-1], 0, -1.0)) @ vt


def definite(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Symmetric, with eigenvalues 1, 2, 3, ..."""
    v = np.linalg.svd(rng.normal(size=shape))[0]
    return (v * np.arange(1.0, shape[-1] + 1)) @ np.matrix_transpose(v)


def inv_(*shape: int, **more: Any) -> Input:
    return Input(shape, invertible, **more)


def svd_(*shape: int, **more: Any) -> Input:
    return Input(shape, separated, **more)


def spd(*shape: int, **more: Any) -> Input:
    return Input(shape, definite, **more)


def np_symmetric(x: Any) -> Any:
    return (x + np.matrix_transpose(x)) * 0.5


def symmetric(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the symmetric part, so that steps in any direction keep it symmetric."""

    @wraps(function)
    def call(x: Any, **constants: Any) -> Any:
        return function((x + fn.matrix_transpose(x)) * 0.5, **constants)

    return call


def of_symmetric(reference: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, **constants: Any) -> Any:
        return reference(np_symmetric(x), **constants)

    return call


SQUARES: list[tuple[str, tuple[int, ...]]] = [
    ("single", (3, 3)),
    ("stack", (2, 3, 3)),
    ("two-axes-of-a-stack", (2, 1, 2, 2)),
    ("one", (1, 1)),
    ("no-stack", (0, 2, 2)),
    ("no-rows", (0, 0)),
]


def np_slogdet(x: Any) -> Any:
    return tuple(np.linalg.slogdet(x))


for f, ref in (
    (linalg.inv, np.linalg.inv),
    (linalg.det, np.linalg.det),
    (linalg.slogdet, np_slogdet),
):
    for what, s in SQUARES:
        row(f.__name__, what, f, ref, inv_(*s))
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, inv_(3, 3, layout=how))


def well_conditioned(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of full rank, with leading columns that are far from dependent."""
    return 0.3 * normal(rng, shape) + 2 * np.eye(*shape[-2:])


def np_qr(x: Any) -> Any:
    return tuple(np.linalg.qr(x))


def singular(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Two rows are equal, so elimination finds a determinant of exactly 0."""
    x = invertible(rng, shape)
    x[..., -1, :] = x[..., 0, :]
    return x


for what, s in (("singular", (3, 3)), ("singular-stack", (2, 2, 2)), ("singular-large", (5, 5))):
    row("det", what, linalg.det, np.linalg.det, Input(s, singular))
for what, s, make in (("large", (10, 10), invertible), ("singular-of-ten", (10, 10), singular)):
    row("det", what, linalg.det, np.linalg.det, Input(s, make))


def np_cofactors(x: Any) -> Any:
    n = x.shape[-1]
    y = np.empty_like(x)
    for i, j in np.ndindex(n, n):
        minor = np.delete(np.delete(x, i, axis=-2), j, axis=-1)
        y[..., i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return y


def np_cofactors_along(x: Any, g: Any) -> Any:
    """The cofactors are polynomials of a low degree, so central differences are exact here."""
    steps = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
    return sum(weight * np_cofactors(x + step * g) for step, weight in steps)


for what, s, make in (
    ("regular", (3, 3), invertible),
    ("stack", (2, 2, 2), invertible),
    ("singular", (3, 3), singular),
    ("singular-stack", (2, 2, 2), singular),
    ("rank-one", (4, 4), lambda rng, s: np.ones(s)),
    ("one", (1, 1), lambda rng, s: np.zeros(s)),
    ("no-rows", (2, 0, 0), normal),
):
    row("Cofactors", what, node(fn.Cofactors), np_cofactors, Input(s, make))
    row("CofactorsGrad", what, node(fn.CofactorsGrad), np_cofactors_along, Input(s, make), x(*s))
row("det", "zero", linalg.det, np.linalg.det, Input((1, 1), lambda rng, s: np.zeros(s)))
row("inv", "of-its-own", lambda x: linalg.inv(linalg.inv(x)), np.copy, inv_(2, 2))
row(
    "det",
    "negative",
    linalg.det,
    np.linalg.det,
    Input((2, 2), lambda rng, s: -invertible(rng, s)[..., ::-1, :]),
)
row(
    "slogdet",
    "logabsdet",
    lambda x: linalg.slogdet(x).logabsdet,
    lambda x: np_slogdet(x)[1],
    inv_(2, 3, 3),
)
row("slogdet", "sign", lambda x: linalg.slogdet(x).sign, lambda x: np_slogdet(x)[0], inv_(2, 3, 3))
row(
    "slogdet",
    "negative",
    linalg.slogdet,
    np_slogdet,
    Input((3, 3), lambda rng, s: -invertible(rng, s)),
)


for what, s in (*SQUARES[:4], ("tall", (4, 2)), ("wide", (2, 4)), ("stack-tall", (2, 3, 2))):
    values = Input(s, well_conditioned)
    row("pinv", what, linalg.pinv, np.linalg.pinv, values)
    row("qr", what, linalg.qr, np_qr, values)
for how in LAYOUTS:
    row("pinv", how, linalg.pinv, np.linalg.pinv, Input((4, 2), well_conditioned, layout=how))
    row("qr", how, linalg.qr, np_qr, Input((4, 2), well_conditioned, layout=how))
row("pinv", "no-rows", linalg.pinv, np.linalg.pinv, x(0, 3))
row(
    "pinv",
    "of-rank-one",
    lambda x, y: linalg.pinv(linalg.outer(x, y), rtol=1e-3),
    lambda x, y: np.outer(y, x) / (np.sum(x * x) * np.sum(y * y)),
    nz(3),
    nz(2),
)
row(
    "qr",
    "complete",
    lambda x: linalg.qr(x, mode="complete"),
    np_qr,
    Input((2, 3), well_conditioned),
)
row(
    "qr",
    "q-alone",
    lambda x: linalg.qr(x).Q,
    lambda x: np_qr(x)[0],
    Input((3, 2), well_conditioned),
)
row(
    "qr",
    "r-alone",
    lambda x: linalg.qr(x).R,
    lambda x: np_qr(x)[1],
    Input((3, 2), well_conditioned),
)


def np_solve(a: Any, b: Any) -> Any:
    return (np.linalg.inv(a) @ (b[:, None] if b.ndim == 1 else b)).reshape(
        *np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]
    )


for what, s, t in (
    ("matrix", (3, 3), (3, 2)),
    ("vector", (3, 3), (3,)),
    ("stacks", (2, 3, 3), (2, 3, 2)),
    ("stack-and-matrix", (2, 3, 3), (3, 2)),
    ("stack-and-vector", (2, 3, 3), (3,)),
    ("matrix-and-stack", (3, 3), (2, 3, 2)),
    ("stacks-broadcast", (2, 1, 2, 2), (3, 2, 1)),
    ("one", (1, 1), (1, 1)),
    ("no-columns", (2, 2), (2, 0)),
    ("no-stack", (0, 2, 2), (0, 2, 1)),
    ("no-rows", (0, 0), (0, 2)),
):
    row("solve", what, linalg.solve, np_solve, inv_(*s), x(*t))
row("solve", "array-left", linalg.solve, np_solve, inv_(3, 3, raw=True), x(3, 2))
row("solve", "array-right", linalg.solve, np_solve, inv_(3, 3), x(3, raw=True))
row("solve", "x1-without-grad", linalg.solve, np_solve, inv_(3, 3, grad=False), x(3, 2))
row("solve", "x2-without-grad", linalg.solve, np_solve, inv_(3, 3), x(3, 2, grad=False))
row("solve", "same-variable-twice", lambda x: linalg.solve(x, x @ x), np.copy, inv_(3, 3))
for how in LAYOUTS:
    row("solve", how, linalg.solve, np_solve, inv_(3, 3, layout=how), x(3, 2, layout=how))


def np_solve_triangular(
    a: Any, b: Any, upper: bool = False, transpose: bool = False, unit_diagonal: bool = False
) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    if unit_diagonal:
        eye = np.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - eye) + eye
    return np_solve(np.matrix_transpose(a) if transpose else a, b)


def np_cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    factor = np.triu(factor) if upper else np.tril(factor)
    transposed = np.matrix_transpose(factor)
    return np_solve(transposed @ factor if upper else factor @ transposed, b)


f, ref = linalg.solve_triangular, np_solve_triangular
for what, s, t in (
    ("stacks-broadcast", (2, 1, 2, 2), (3, 2, 1)),
    ("no-stack", (0, 2, 2), (0, 2, 1)),
    ("no-rows", (0, 0), (0, 2)),
):
    row("solve_triangular", what, f, ref, inv_(*s), x(*t))
for what, options in (
    ("upper-unit", {"upper": True, "unit_diagonal": True}),
    ("unit-transposed", {"unit_diagonal": True, "transpose": True}),
):
    row("solve_triangular", what, f, ref, inv_(2, 3, 3), x(3, 2), **options)
f, ref = linalg.cholesky_solve, np_cholesky_solve
row("cholesky_solve", "stack-and-vector", f, ref, x(3), inv_(2, 3, 3), upper=True)
row("cholesky_solve", "no-stack", f, ref, x(0, 2, 1), inv_(0, 2, 2))
row("cholesky_solve", "no-rows", f, ref, x(0, 2), inv_(0, 0))


def np_cholesky(x: Any, upper: bool = False) -> Any:
    lower = np.linalg.cholesky(x)
    return np.matrix_transpose(lower) if upper else lower


def signed(v: Any) -> Any:
    """Columns with the sign that makes their first element positive: it is free otherwise."""
    return v * fn.sign(v.detach()[..., :1, :])


def np_signed(v: Any) -> Any:
    return v * np.sign(v[..., :1, :])


@wraps(linalg.eigh)
def eigh_both(x: Any) -> Any:
    w, v = linalg.eigh(x)
    return w, signed(v)


def np_eigh_both(x: Any) -> Any:
    w, v = np.linalg.eigh(x)
    return w, np_signed(v)


f, ref = symmetric(linalg.cholesky), of_symmetric(np_cholesky)
for what, s in SQUARES:
    row("cholesky", what, f, ref, spd(*s))
    row("eigvalsh", what, symmetric(linalg.eigvalsh), of_symmetric(np.linalg.eigvalsh), spd(*s))
    row("eigh", what, symmetric(eigh_both), of_symmetric(np_eigh_both), spd(*s))
    row(
        "eigh",
        f"vectors-{what}",
        symmetric(lambda x: eigh_both(x)[1]),
        of_symmetric(lambda x: np_eigh_both(x)[1]),
        spd(*s),
    )
row("cholesky", "upper", f, ref, spd(2, 3, 3), upper=True)
row(
    "eigh",
    "values-by-name",
    symmetric(lambda x: linalg.eigh(x).eigenvalues),
    of_symmetric(np.linalg.eigvalsh),
    spd(3, 3),
)
f, ref = symmetric(linalg.eigh), of_symmetric(lambda x: tuple(np.linalg.eigh(x)))
row("eigh", "as-it-is", f, ref, spd(2, 2), dtypes=("float64",))
f, ref = symmetric(linalg.cholesky), of_symmetric(np_cholesky)
for how in LAYOUTS:
    row("cholesky", how, f, ref, spd(3, 3, layout=how))
    row("eigh", how, symmetric(eigh_both), of_symmetric(np_eigh_both), spd(3, 3, layout=how))


@wraps(linalg.svd)
def svd_parts(x: Any, parts: str = "USV") -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    sign = fn.sign(u.detach()[..., :1, :])
    whole = {"U": u * sign, "S": s, "V": vh * fn.matrix_transpose(sign)}
    return tuple(whole[part] for part in parts)


def np_svd_parts(x: Any, parts: str = "USV") -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    sign = np.sign(u[..., :1, :])
    whole = {"U": u * sign, "S": s, "V": vh * np.matrix_transpose(sign)}
    return tuple(whole[part] for part in parts)


def svd_and_back(x: Any) -> Any:
    u, s, vh = linalg.svd(x, full_matrices=False)
    return fn.matmul(u * s[..., None, :], vh)


OBLONGS: list[tuple[str, tuple[int, ...]]] = [
    ("square", (3, 3)),
    ("tall", (4, 2)),
    ("wide", (2, 4)),
    ("stack", (2, 3, 2)),
    ("stack-wide", (2, 2, 3)),
    ("one-column", (3, 1)),
    ("no-stack", (0, 3, 2)),
]
for what, s in OBLONGS:
    row("svdvals", what, linalg.svdvals, np.linalg.svdvals, svd_(*s))
    for parts in ("USV", "U", "V") if what in ("square", "tall", "wide") else ("USV",):
        row("svd", f"{parts}-{what}", svd_parts, np_svd_parts, svd_(*s), parts=parts)
row("svd", "put-together", svd_and_back, np.copy, svd_(3, 2))
row("svd", "full-square", lambda x: linalg.svd(x).S, np.linalg.svdvals, svd_(3, 3))
for how in LAYOUTS:
    row("svd", how, svd_parts, np_svd_parts, svd_(3, 4, layout=how))
    row("svdvals", how, linalg.svdvals, np.linalg.svdvals, svd_(3, 4, layout=how))

for what, s, constants in (
    ("square", (3, 3), {}),
    ("tall", (4, 2), {}),
    ("wide", (2, 4), {}),
    ("stack", (2, 3, 4), {}),
    ("above", (3, 4), {"offset": 1}),
    ("below", (3, 4), {"offset": -1}),
    ("corner-above", (3, 4), {"offset": 3}),
    ("corner-below", (3, 4), {"offset": -2}),
    ("tall-below", (4, 2), {"offset": -2}),
    ("outside-above", (3, 4), {"offset": 4}),
    ("outside-below", (2, 3, 4), {"offset": -3}),
    ("far-outside-above", (3, 4), {"offset": 5}),
    ("far-outside-below", (3, 4), {"offset": -5}),
    ("one", (1, 1), {}),
    ("no-columns", (2, 0), {}),
    ("no-stack", (0, 2, 2), {}),
):
    row("diagonal", what, linalg.diagonal, np.linalg.diagonal, x(*s), **constants)
    row("trace", what, linalg.trace, np.linalg.trace, x(*s), **constants)
row(
    "diagonal",
    "integers",
    linalg.diagonal,
    np.linalg.diagonal,
    few(2, 3),
    order=0,
    dtypes=INTEGERS,
)
for how in LAYOUTS:
    row("diagonal", how, linalg.diagonal, np.linalg.diagonal, x(3, 4, layout=how), offset=1)
    row("trace", how, linalg.trace, np.linalg.trace, x(3, 4, layout=how))
    row("outer", how, linalg.outer, np.linalg.outer, x(3, layout=how), x(4, layout=how))
    row("cross", how, linalg.cross, np.linalg.cross, x(4, 3, layout=how), x(4, 3, layout=how))
row("outer", "vectors", linalg.outer, np.linalg.outer, x(3), x(4))
row("outer", "zero-size", linalg.outer, np.linalg.outer, x(0), x(4))
row("outer", "array", linalg.outer, np.linalg.outer, x(3), x(4, raw=True))
row("outer", "same-variable-twice", lambda x: linalg.outer(x, x), lambda x: np.outer(x, x), x(3))
for what, s, t, axes in (
    ("vectors", (3,), (3,), {}),
    ("matrices", (2, 3), (2, 3), {}),
    ("axis", (3, 2), (3, 2), {"axis": -2}),
    ("zero-size", (0, 3), (0, 3), {}),
    ("broadcast", (2, 3), (3,), {}),
    ("broadcast-both", (2, 1, 3), (4, 3), {}),
):
    row("cross", what, linalg.cross, np.linalg.cross, x(*s), x(*t), **axes)
row("cross", "array", linalg.cross, np.linalg.cross, x(2, 3), x(2, 3, raw=True))
row(
    "cross",
    "with-itself",
    lambda x: linalg.cross(x, x * x),
    lambda x: np.linalg.cross(x, x * x),
    x(3),
)


def first_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return nonzero(rng, shape) * (np.arange(math.prod(shape)) > 0)


for p in (2, 1, 3, 2.5, 0.5, -1, math.inf, -math.inf, 0):
    norms = partial(row, "vector_norm", order=0 if p == 0 else 2)
    for what, s, axes in (
        ("all", (2, 3), {}),
        ("axis", (2, 3), {"axis": -1}),
        ("axes-keepdims", (2, 3, 2), {"axis": (0, 2), "keepdims": True}),
    ):
        values = Input(s, lambda rng, s: distinct(rng, s) * 1.1 + 0.01)
        norms(f"{p}-{what}", linalg.vector_norm, np.linalg.vector_norm, values, ord=p, **axes)
for what, s, axes in AXES:
    row("vector_norm", what, linalg.vector_norm, np.linalg.vector_norm, nz(*s), **axes)
row(
    "vector_norm",
    "4-some-zeros",
    linalg.vector_norm,
    np.linalg.vector_norm,
    Input((4,), first_zero),
    ord=4,
)
for p in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
    for what, s, keepdims in (
        ("tall", (3, 2), {}),
        ("stack-keepdims", (2, 2, 3), {"keepdims": True}),
        ("no-stack", (0, 2, 2), {}),
    ):
        norm = linalg.matrix_norm, np.linalg.matrix_norm
        row("matrix_norm", f"{p}-{what}", *norm, svd_(*s), ord=p, **keepdims)
row("matrix_norm", "default", linalg.matrix_norm, np.linalg.matrix_norm, x(2, 3))
for n in (0, 1, 2, 3, 5, 6, -1, -2, -3):
    for what, s in (("single", (2, 2)), ("stack", (2, 3, 3))):
        row(
            "matrix_power",
            f"{n}-{what}",
            linalg.matrix_power,
            np.linalg.matrix_power,
            inv_(*s),
            n=n,
        )
row("matrix_power", "no-stack", linalg.matrix_power, np.linalg.matrix_power, inv_(0, 2, 2), n=2)
for how in LAYOUTS:
    one = svd_(3, 4, layout=how)
    row("vector_norm", how, linalg.vector_norm, np.linalg.vector_norm, one, axis=0)
    row("matrix_norm", how, linalg.matrix_norm, np.linalg.matrix_norm, one, ord=1)
    row(
        "matrix_power",
        how,
        linalg.matrix_power,
        np.linalg.matrix_power,
        inv_(3, 3, layout=how),
        n=3,
    )
