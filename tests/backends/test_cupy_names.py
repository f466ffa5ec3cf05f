"""The names, signatures and constants of CuPy that the package uses, compared with the real CuPy.

CuPy can be imported without a driver. Arrays cannot be made, so no function of CuPy is called.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import array_api_strict
import fake_cupy
import numpy as np
import pytest

try:
    import cupy

    MISSING = ""
except ImportError as error:
    MISSING = f"CuPy is missing, which needs no GPU here: pip install -e '.[ptx]' ({error})"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *sorted((ROOT / "backends" / "tinynode_cupy").glob("*.py")),
    ROOT / "tinynode" / "distributed" / "nccl.py",
    ROOT / "tools" / "benchmarks" / "gpu_report.py",
]
PORTABLE = sorted((ROOT / "tinynode").rglob("*.py"))
ROOTS = ("cupy", "cupyx", "self._cupy")
RESULTS = {
    "cupy.cuda.Device": "cupy.cuda.Device",
    "cupy.get_default_memory_pool": "cupy.cuda.MemoryPool",
    "cupy.cuda.get_current_stream": "cupy.cuda.Stream",
}
"""Classes of results, as in ``cupy.cuda.Device(0).synchronize``; other results are arrays."""


class Use(NamedTuple):
    """A name in a file, and the call of it, if it is called."""

    place: str
    name: str
    call: ast.Call | None


def name_of(node: ast.AST) -> str:
    """``cupy.cuda.Device().synchronize`` for an expression of this form, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = name_of(node.value)
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Call):
        called = name_of(node.func)
        return f"{called}()" if called else ""
    return ""


def uses_in(path: Path, roots: tuple[str, ...]) -> Iterator[Use]:
    """The longest names that begin with one of the roots."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        name = name_of(node) if isinstance(node, ast.Attribute) else ""
        root = next((one for one in roots if name.startswith(f"{one}.")), None)
        if root is not None:
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            yield Use(place, name.replace("self._cupy.", "cupy."), calls.get(id(node)))


def found(name: str) -> Any:
    """What the real CuPy has under a name; a call stands for its result's class."""
    *calls, last = name.split("().")
    if calls:
        name = f"{RESULTS.get('().'.join(calls), 'cupy.ndarray')}.{last}"
    root, *parts = name.split(".")
    value = importlib.import_module(root)
    for part in parts:
        value = getattr(value, part)
    return value


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature; for compiled functions it is the first line of the docstring."""
    try:
        return inspect.signature(function)
    except ValueError:
        first = (function.__doc__ or "").split("\n")[0].replace("\\", "")
    inside = re.match(r"[\w.]+\((.*)\)", first)
    if inside is None:
        return None
    texts = [part.strip() for part in re.split(r",(?![^\[]*\])", inside[1]) if part.strip()]
    bare = [re.sub(r"^[\w ]* (?=\w)", "", text) for text in texts if text != "self"]
    namespace: dict[str, Any] = {}
    exec(f"def f({', '.join(bare)}): ...", namespace)
    return inspect.signature(namespace["f"])


def check_call(use: Use, function: Any) -> None:
    """The arguments of a call fit the signature."""
    assert use.call is not None
    signature = signature_of(function)
    assert signature is not None, f"{use}: no signature"
    if any(isinstance(one, ast.Starred) for one in use.call.args):
        return
    named = {one.arg: None for one in use.call.keywords if one.arg is not None}
    is_whole = len(named) == len(use.call.keywords)
    bind = signature.bind if is_whole else signature.bind_partial
    try:
        bind(*use.call.args, **named)
    except TypeError as error:
        raise AssertionError(f"{use.place}: {ast.unparse(use.call)}: {error}") from error


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_names_and_calls_are_those_of_cupy(path: Path) -> None:
    for use in uses_in(path, ROOTS):
        value = found(use.name)
        if use.call is not None:
            check_call(use, value)


def test_the_walk_sees_names_calls_and_results(tmp_path: Path) -> None:
    names = {use.name for path in FILES for use in uses_in(path, ROOTS)}
    assert {
        "cupy.ElementwiseKernel",
        "cupy.cuda.Device().synchronize",
        "cupy.cuda.runtime.getDevice",
        "cupy.get_default_memory_pool().used_bytes",
        "cupyx.scatter_add",
    } <= names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cupy.cuda.Device(0).wait()", "no attribute 'wait'"),
        ("cupy.asarray(x, dtype=d, device=e)", "unexpected keyword argument 'device'"),
        ("cupy.cuda.runtime.getDevice(0)", "too many positional arguments"),
        ("cupy.ElementwiseKernel(a, b)", "missing a required argument: 'operation'"),
    ],
)
def test_a_wrong_name_or_call_is_seen(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    with pytest.raises((AssertionError, AttributeError), match=message):
        test_names_and_calls_are_those_of_cupy(tmp_path / "module.py")


# --- the namespace -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def namespace() -> Any:
    return importlib.import_module("tinynode_cupy.arrays")


def test_the_namespace_has_the_names_of_the_standard(namespace: Any) -> None:
    for part in ("", "linalg", "fft"):
        standard = getattr(array_api_strict, part) if part else array_api_strict
        there = getattr(namespace, part) if part else namespace
        names = {name for name in standard.__all__ if name[0].islower() and "strict" not in name}
        assert sorted(name for name in names if not hasattr(there, name)) == []


def test_portable_calls_fit_the_namespace(namespace: Any) -> None:
    """Each ``xp.name(...)`` of the package; ufuncs have the arguments of NumPy's."""
    checked = 0
    for path in PORTABLE:
        for use in uses_in(path, ("xp",)):
            if use.call is None or "()" in use.name:
                continue
            value = namespace
            for part in use.name.split(".")[1:]:
                assert hasattr(value, part), use
                value = getattr(value, part)
            if not isinstance(value, cupy.ufunc):
                check_call(use, value)
                checked += 1
    assert checked > 300


def test_the_stand_in_has_no_names_of_its_own() -> None:
    """What ``fake_cupy.py`` gives under CuPy's names is in CuPy."""
    modules = fake_cupy.make_modules(fake_cupy)
    of_numpy = {*vars(np), *vars(np.linalg), *vars(np.fft)}
    for name, module in modules.items():
        real = importlib.import_module(name)
        own = {one for one in vars(module) if not one.startswith("__")} - of_numpy
        assert sorted(one for one in own if not hasattr(real, one)) == [], name
