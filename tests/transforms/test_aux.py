"""has_aux: a function returns a value to differentiate, and anything beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import OperandError

F = tn.functions
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "jax")]
DEVICES = ["numpy", "fast", "strict", *OTHERS]


class Facts(NamedTuple):
    """An aux of a user: Variables and other values."""

    doubled: Any
    title: str
    parts: dict[str, Any]


def variable(*shape: int, device: str = "numpy") -> Any:
    if device in ("torch", "jax"):
        pytest.importorskip(device)
    host = np.random.default_rng([7, *shape]).standard_normal(shape)
    return tn.asarray(host, device=device)


def loss(x: Any) -> Any:
    y = x * x * x
    return F.sum(y), Facts(2 * x, "facts", {"y": [y, None], "count": 3})


def values(x: Any) -> Any:
    return {"sin": F.sin(x), "square": x * x}, Facts(2 * x, "facts", {"y": [x * x * x, None]})


def check_aux(aux: Any, x: Any) -> None:
    host = tn.to_host(x.array)
    assert type(aux) is Facts and aux.title == "facts" and aux.parts["y"][1] is None
    np.testing.assert_allclose(tn.to_host(aux.doubled.array), 2 * host, rtol=1e-6)
    np.testing.assert_allclose(tn.to_host(aux.parts["y"][0].array), host**3, rtol=1e-6)


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tn.to_host(tree.array)]


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "value_and_grad": (loss, lambda f, x, **k: tn.value_and_grad(f, **k)(x)),
    "gradient": (loss, lambda f, x, **k: tn.gradient(f, **k)(x)),
    "hessian": (loss, lambda f, x, **k: tn.hessian(f, **k)(x)),
    "hvp": (loss, lambda f, x, **k: tn.hvp(f, x, x, **k)),
    "jacrev": (values, lambda f, x, **k: tn.jacrev(f, **k)(x)),
    "jacfwd": (values, lambda f, x, **k: tn.jacfwd(f, **k)(x)),
    "jvp": (values, lambda f, x, **k: tn.jvp(f, (x,), (x,), **k)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_the_aux_stands_beside_the_same_result(name: str, compiled: bool, device: str) -> None:
    f, run = CALLS[name]
    x = variable(3, device=device)
    expected = run(lambda x: f(x)[0], x)
    both = tn.compile(lambda x: run(f, x, has_aux=True)) if compiled else None
    for _ in range(2):
        found = both(x) if both else run(f, x, has_aux=True)
        if name == "value_and_grad":
            (value, aux), gx = found
            found = value, gx
        else:
            *found, aux = found
            found = found[0] if len(found) == 1 else tuple(found)
        for one, other in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-12)
        check_aux(aux, x)


def test_vjp_and_linearize_give_the_aux_last() -> None:
    x = variable(3)
    value, pullback, aux = tn.vjp(values, x, has_aux=True)
    check_aux(aux, x)
    (gx,) = pullback(value)
    host = x.array
    expected = np.sin(host) * np.cos(host) + 2 * host**3
    np.testing.assert_allclose(gx.array, expected)
    value, linear, aux = tn.linearize(values, x, has_aux=True)
    check_aux(aux, x)
    np.testing.assert_allclose(linear(x)["square"].array, 2 * host * host)


def test_the_aux_has_a_graph_as_the_value() -> None:
    x = variable(3)
    _, aux = tn.gradient(loss, has_aux=True)(x)
    F.sum(aux.doubled * aux.doubled).backward()
    np.testing.assert_allclose(x.grad, 8 * x.array)


def test_transforms_with_aux_nest() -> None:
    x = variable(3)

    def slope(x: Any) -> Any:
        gx, aux = tn.gradient(loss, has_aux=True)(x)
        return F.sum(gx), aux

    second, aux = tn.gradient(slope, has_aux=True)(x)
    np.testing.assert_allclose(second.array, 6 * x.array)
    check_aux(aux, x)


def test_several_arguments() -> None:
    x, y = variable(3), variable(2)
    f = tn.value_and_grad(lambda x, y: (F.sum(x) * F.sum(y), (x, y)), (0, 1), has_aux=True)
    (_, aux), (gx, gy) = f(x, y)
    np.testing.assert_allclose(gx.array, np.full(3, y.array.sum()))
    np.testing.assert_allclose(gy.array, np.full(2, x.array.sum()))
    np.testing.assert_array_equal(aux[1].array, y.array)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiled", [False, True])
def test_vmap_gives_variables_of_the_aux_with_examples(compiled: bool, device: str) -> None:
    x = variable(4, 3, device=device)

    def each(x: Any) -> Any:
        gx, aux = tn.gradient(loss, has_aux=True)(x)
        return gx, aux

    f = tn.vmap(each, has_aux=True)
    gx, aux = (tn.compile(f) if compiled else f)(x)
    np.testing.assert_allclose(tn.to_host(gx.array), 3 * tn.to_host(x.array) ** 2, rtol=1e-6)
    check_aux(aux, x)
    assert aux.parts["count"] == 3


def test_the_aux_of_vmap_stands_at_axis_0_whatever_out_axes_says() -> None:
    x = variable(4, 3)
    y, aux = tn.vmap(lambda x: (x, {"x": x, "one": 1}), out_axes=1, has_aux=True)(x)
    assert y.shape == (3, 4) and aux["x"].shape == (4, 3) and aux["one"] == 1
    (gx, norm) = tn.vmap(tn.gradient(lambda x: (F.sum(x * x), F.sum(x)), has_aux=True))(x)
    assert gx.shape == (4, 3) and norm.shape == (4,)


@pytest.mark.parametrize("name", [*CALLS, "vjp", "linearize", "vmap"])
@pytest.mark.parametrize(
    ("f", "kind"),
    [
        (lambda x: F.sum(x), "got Variable"),
        (lambda x: (F.sum(x), x, 3), "got a tuple of 3"),
        (lambda x: [F.sum(x), x], "got list"),
        (lambda x: None, "got None"),
    ],
)
def test_a_function_without_a_pair_is_refused(name: str, f: Any, kind: str) -> None:
    calls = {
        "vjp": lambda f, x, **k: tn.vjp(f, x, **k),
        "linearize": lambda f, x, **k: tn.linearize(f, x, **k),
        "vmap": lambda f, x, **k: tn.vmap(f, **k)(x),
    }
    run = calls[name] if name in calls else CALLS[name][1]
    with pytest.raises(TypeError, match=rf"^{name if name != 'jacrev' else 'jacobian'}: ") as e:
        run(f, variable(3), has_aux=True)
    assert "f must return a pair (value, aux)" in str(e.value) and kind in str(e.value)


def test_other_values_of_has_aux_are_refused() -> None:
    for call in (
        lambda: tn.gradient(loss, has_aux="yes"),
        lambda: tn.vmap(loss, has_aux="yes"),
        lambda: tn.vjp(loss, variable(3), has_aux="yes"),
    ):
        with pytest.raises(OperandError, match="has_aux must be True or False, got str 'yes'"):
            call()


def test_a_pair_without_has_aux_names_the_option() -> None:
    with pytest.raises(TypeError, match=r"gradient: f must give a Variable.*has_aux=True"):
        tn.gradient(lambda x: (F.sum(x), x))(variable(3))
    with pytest.raises(TypeError, match=r"gradient: f must give a Variable, got .*has_aux=True"):
        tn.gradient(lambda x: (F.sum(x), {"loss": 0.5}))(variable(3))
