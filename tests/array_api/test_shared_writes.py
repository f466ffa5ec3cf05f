"""Writes in the code of other libraries reach what would share the memory in NumPy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import GraphError
from tinynode.functions.shared_memory import shared_memory

F = tn.functions
PROGRAMS = {
    "a slice": "h = y[:2]\nh += 1\nreturn y",
    "a slice of a slice": "h = y[1:]\ng = h[:, :2]\ng *= 3\nreturn y * h[0, 0]",
    "a slice of what is gone": "h = xp.reshape(y, (-1,))[2:5]\nh -= 4\nreturn y",
    "backwards": "h = y[::-1]\nh[0] = 5\nreturn y",
    "turned axes": "h = y.T\nh[0] = 2 * h[1]\nreturn y",
    "axes of a stack": "h = xp.moveaxis(y[None], 0, 2)\nh[1] = 7\nreturn y",
    "rows": "for row in y:\n    row /= row[0]\nreturn y",
    "parts": "a, b, c = xp.unstack(y, axis=1)\nb += a\nc *= b\nreturn y",
    "the other order": "h = y[:2]\ny[0] = 9\nreturn xp.sum(h) * y",
    "brothers": "g = y[0]\nh = y[:2, 1:]\nh *= 10\nreturn g * y",
    "a write in the index": "y[0] += 1\ny[:, 1] *= y[:, 0]\nreturn y",
    "a mask": "h = y[1]\nh[h > 2] = 0\nreturn y",
    "a number is a copy": "n = y[0, 0]\nn *= 5\nreturn y * n",
    "an array of places is a copy": "h = y[xp.asarray([0, 1])]\nh *= 5\nreturn xp.sum(h) * y",
    "a copy": "h = xp.asarray(y, copy=True)[:2]\nh *= 5\nreturn y",
    "a new array": "h = y[:2]\nh = h + 1\nh *= 2\nreturn y",
    "what is written has no source": "y = (2 * y)[1:]\ny[0] = 1\nreturn y",
}
START = np.array([[1.5, -2.0, 3.0], [2.5, 4.0, -0.5], [0.75, 1.0, 2.0]])


def program(code: str, module: str = "scipy.made_up") -> Callable[[Any, Any], Any]:
    """A function of an array y and a namespace xp, in a module of SciPy."""
    names: dict[str, Any] = {"__name__": module}
    exec("def f(y, xp):\n    " + code.replace("\n", "\n    "), names)
    found: Callable[[Any, Any], Any] = names["f"]
    return found


def as_numpy_writes(code: str, start: Any = START) -> Any:
    return program(code)(start * 1.0, np)


def slopes_of_numpy(code: str) -> Any:
    found, step = np.zeros_like(START), 1e-6
    for place in np.ndindex(START.shape):
        ends = []
        for sign in (1, -1):
            moved = START.copy()
            moved[place] += sign * step
            ends.append(weighted(as_numpy_writes(code, moved)))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


def weighted(y: Any) -> Any:
    weights = np.linspace(-1, 2, int(np.prod(y.shape))).reshape(y.shape)
    return (y * (weights if isinstance(y, np.ndarray) else tn.asarray(weights.tolist()))).sum()


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_write_reaches_what_shares_the_memory_in_numpy(name: str, device: str) -> None:
    code = PROGRAMS[name]
    with tn.using_device(device):
        x = tn.asarray(START, requires_grad=True)
        xp = x.__array_namespace__()
        y = program(code)(x * 1.0, xp)
        weights = np.linspace(-1, 2, y.size).reshape(y.shape)
        F.sum(y * tn.asarray(weights)).backward()
        no_graph = program(code)(tn.asarray(START, requires_grad=False) * 1.0, xp)
    for found in (y, no_graph):
        np.testing.assert_allclose(tn.to_host(found.array), as_numpy_writes(code))
    np.testing.assert_allclose(tn.to_host(x.grad), slopes_of_numpy(code), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("transform", [tn.compile, tn.vmap])
@pytest.mark.parametrize("name", ["a slice", "rows", "the other order", "brothers"])
def test_a_write_reaches_further_in_transformed_functions(name: str, transform: Any) -> None:
    code = PROGRAMS[name]

    def whole(x: Any) -> Any:
        return program(code)(x * 1.0, x.__array_namespace__())

    is_vmap = transform is tn.vmap
    given = np.stack([START, START + 1]) if is_vmap else START
    expected = np.stack([as_numpy_writes(code, one) for one in given]) if is_vmap else None
    for _ in range(2):
        found = transform(whole)(given).array
        np.testing.assert_allclose(found, as_numpy_writes(code) if expected is None else expected)


def test_a_write_in_a_program_of_ones_own_changes_one_variable() -> None:
    y = tn.asarray(START) * 1.0
    xp = y.__array_namespace__()
    code = PROGRAMS["a slice"]
    np.testing.assert_array_equal(program(code, "my_program")(y, xp).array, START)
    h = y[:2]
    h += 1
    np.testing.assert_array_equal(y.array, START)
    program("y[:] = 0\nreturn y")(h, xp)  # a write of one's own has parted the two
    np.testing.assert_array_equal(y.array, START)


def test_a_slice_of_a_leaf_is_refused_before_anything_changes() -> None:
    x = tn.asarray(START, requires_grad=True)
    h = x[:2]
    with pytest.raises(GraphError, match=r"x \*= v: this variable is a leaf"):
        program("y *= 2")(h, x.__array_namespace__())
    np.testing.assert_array_equal(h.array, START[:2])
    with tn.no_grad():
        program("h = y[:2]\nh *= 2")(x, x.__array_namespace__())
    assert x.is_leaf
    np.testing.assert_array_equal(x.array[:2], 2 * START[:2])


def test_notes_end_with_the_variables() -> None:
    x = tn.asarray(START)
    x.__array_namespace__()
    gc.collect()
    before = len(shared_memory.parts)
    parts = [x[1:], x.T, x[None][0]]
    assert len(shared_memory.parts) == before + 4
    del parts
    assert len(shared_memory.parts) == before
