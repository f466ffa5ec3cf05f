"""A stand-in for CuPy made of NumPy, so that ``tinynode_cupy`` can be run without a GPU.

What it shows: that the backend's plumbing fits tinynode and array_api_compat; that a function runs
with its inputs' device as the current one; that host arrays are not mixed in; and, since the
kernels' bodies are compiled by a C++ compiler for the host, that their formulas are right. It says
nothing about CUDA: no launch, no stream, no copy, no speed, and no function of CuPy's own that
differs from NumPy's.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from device_tables import restored_tables

from tinynode.devices import registry

COMPILER = shutil.which("g++") or shutil.which("c++")
NUMBER_OF_DEVICES = 2


class State(threading.local):
    """Of a thread: the current device, the names of open profiler ranges, the error of
    getDeviceCount.
    """

    def __init__(self) -> None:
        self.current = 0
        self.ranges: list[str] = []
        self.errstate: dict[str, str] = {}
        self.failure: Any = None


state = State()


class CUDARuntimeError(RuntimeError):
    """Named as CuPy's."""


# --- devices and arrays --------------------------------------------------------------------------


class Device:
    """A GPU by number; ``with`` makes it the current one."""

    def __init__(self, device: Any = None) -> None:
        given = device.id if isinstance(device, Device) else device
        self.id = state.current if given is None else given
        self.before: list[int] = []

    def __enter__(self) -> Device:
        self.before.append(state.current)
        state.current = self.id
        return self

    def __exit__(self, *_: Any) -> None:
        state.current = self.before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    @property
    def pci_bus_id(self) -> str:
        return f"0000:0{self.id}:00.0"


class ndarray(np.ndarray):  # noqa: N801 - CuPy's name
    """An array on a device: every operation is NumPy's, and its result is such an array again."""

    _index = 0

    def __array_finalize__(self, source: Any) -> None:
        self._index = getattr(source, "_index", state.current)

    @property
    def device(self) -> Device:
        return Device(self._index)

    @property
    def data(self) -> Any:  # type: ignore[override]
        """CuPy's pointer; here to the host's memory."""
        return SimpleNamespace(ptr=self.ctypes.data)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if out is not None:
            options["out"] = tuple(host(one) for one in out)
        result = getattr(ufunc, method)(*(host(one) for one in inputs), **options)
        return wrap(result) if out is None else out[0]

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return wrap(function(*host(inputs), **host(options)))

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.view(np.ndarray)[host(key)], self._index)  # CuPy makes views anywhere

    def __setitem__(self, key: Any, value: Any) -> None:
        host(self)[host(key)] = host(value)


def host(value: Any) -> Any:
    """NumPy's array in place of a fake one, also inside tuples; refuses what CuPy would refuse."""
    if isinstance(value, ndarray):
        if value._index != state.current:
            raise ValueError(f"array of device {value._index}, current is {state.current}")
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(host(one) for one in value)
    if isinstance(value, dict):
        return {key: host(one) for key, one in value.items()}
    return value


def wrap(value: Any, index: int | None = None) -> Any:
    """Arrays and scalars as arrays of a device, also inside tuples."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value).view(ndarray)
        array._index = state.current if index is None else index
        return array
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(wrap(one) for one in value))
    if isinstance(value, tuple | list):
        return type(value)(wrap(one) for one in value)
    return value


def made(function: Any) -> Any:
    """One of NumPy's functions that make arrays, on the current device."""

    def make(*inputs: Any, **options: Any) -> Any:
        return wrap(function(*inputs, **options))

    return make


def array(obj: Any, dtype: Any = None, copy: Any = True, blocking: bool = False) -> Any:
    source = host(obj) if isinstance(obj, ndarray) else obj
    return wrap(np.array(source, dtype=dtype, copy=copy))


def asarray(obj: Any, dtype: Any = None) -> Any:
    same = isinstance(obj, ndarray) and dtype in (None, obj.dtype)
    return obj if same else array(obj, dtype)


def ascontiguousarray(obj: Any) -> Any:
    """CuPy's gives at least one axis."""
    return wrap(np.ascontiguousarray(host(obj)))


def asnumpy(obj: Any) -> Any:
    return obj.view(np.ndarray).copy() if isinstance(obj, ndarray) else np.asarray(obj)


def scatter_add(target: Any, slices: Any, value: Any) -> None:
    if target.dtype.name not in ("int32", "uint32", "uint64", "float16", "float32", "float64"):
        raise TypeError(f"no atomic addition of {target.dtype}")
    np.add.at(host(target), host(slices), host(value))


def solve(a: Any, b: Any) -> Any:
    """CuPy's refuses to broadcast stacks."""
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    return wrap(np.linalg.solve(host(a), host(b)))


# --- kernels, compiled for the host --------------------------------------------------------------

CTYPES = {
    "float32": ("float", ctypes.c_float),
    "float64": ("double", ctypes.c_double),
    "int64": ("long long", ctypes.c_longlong),
    "int32": ("int", ctypes.c_int),
    "int16": ("short", ctypes.c_short),
    "int8": ("signed char", ctypes.c_byte),
}
BUILT = tempfile.TemporaryDirectory()
functions: dict[str, Any] = {}


def compiled(source: str) -> Any:
    """The function ``run`` of a C++ source."""
    if source not in functions:
        path = Path(BUILT.name) / hashlib.sha256(source.encode()).hexdigest()[:16]
        path.with_suffix(".cpp").write_text(source)
        library = str(path.with_suffix(".so"))
        flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(
            [str(COMPILER), *flags, str(path.with_suffix(".cpp")), "-o", library],
            check=True,
            capture_output=True,
        )
        functions[source] = ctypes.CDLL(library).run
    return functions[source]


def parameters(text: str) -> list[tuple[str, str, bool]]:
    """(type, name, whether it is raw) of each: ``"raw T x, int64 k"``."""
    found = []
    for part in text.split(","):
        *raw, kind, name = part.split()
        if re.fullmatch(r"[in]|_.*", name):
            raise ValueError(f"CuPy reserves the name {name}")
        found.append((kind, name, raw == ["raw"]))
    return found


class ElementwiseKernel:
    """CuPy's, with a loop on the host."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str,
        options: tuple[str, ...] = (),
    ) -> None:
        self.inputs = parameters(in_params)
        self.outputs = parameters(out_params)
        self.operation = operation
        self.name = name
        self.options = options  # NVRTC's

    def __call__(self, *args: Any) -> Any:
        assert len(args) == len(self.inputs)
        args = tuple(host(one) for one in args)
        types: dict[str, str] = {}
        for (kind, *_), value in zip(self.inputs, args, strict=True):
            if len(kind) == 1 and isinstance(value, np.ndarray):
                types.setdefault(kind, value.dtype.name)
                if types[kind] != value.dtype.name:
                    raise TypeError(f"{self.name}: {kind} is {types[kind]} and {value.dtype}")
        shape = np.broadcast_shapes(
            *(
                value.shape
                for (*_, raw), value in zip(self.inputs, args, strict=True)
                if isinstance(value, np.ndarray) and not raw
            )
        )
        outputs = [np.empty(shape, types[kind]) for kind, *_ in self.outputs]
        self.run(types, args, outputs)
        return tuple(wrap(outputs)) if len(outputs) > 1 else wrap(outputs[0])

    def run(self, types: dict[str, str], args: Any, outputs: list[Any]) -> None:
        heads, lines, values, alive = [], [], [], []
        for (kind, name, raw), value in zip(self.inputs, args, strict=True):
            ctype = CTYPES[types.get(kind, kind)]
            if isinstance(value, np.ndarray):
                wide = value if raw else np.broadcast_to(value, outputs[0].shape)
                alive.append(np.ascontiguousarray(wide))
                heads.append(f"const {ctype[0]}* {'' if raw else '_'}{name}")
                lines += [] if raw else [f"const {ctype[0]}& {name} = _{name}[i];"]
                values.append(ctypes.c_void_p(alive[-1].ctypes.data))
            else:
                heads.append(f"{ctype[0]} {name}")
                values.append(ctype[1](value))
        for (kind, name, _), output in zip(self.outputs, outputs, strict=True):
            heads.append(f"{CTYPES[types[kind]][0]}* _{name}")
            lines.append(f"{CTYPES[types[kind]][0]}& {name} = _{name}[i];")
            values.append(ctypes.c_void_p(output.ctypes.data))
        aliases = [f"typedef {CTYPES[dtype][0]} {kind};" for kind, dtype in types.items()]
        source = [
            "#include <cmath>\n#include <cstddef>\nusing namespace std;",
            *aliases,
            f'extern "C" void run(ptrdiff_t size, {", ".join(heads)})',
            "{ for (ptrdiff_t i = 0; i < size; ++i) {",
            *lines,
            self.operation,
            "} }\n",
        ]
        compiled("\n".join(source))(ctypes.c_ssize_t(outputs[0].size), *values)


class ReductionKernel:
    """CuPy's, for sums: the terms, NumPy's sum, and the expression after it."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: str,
        name: str,
    ) -> None:
        assert (reduce_expr, identity) == ("a + b", "0")
        kind, _ = out_params.split()
        terms = f"terms = {map_expr}; {silence(in_params)}"
        self.map = ElementwiseKernel(in_params, f"{kind} terms", terms, name)
        self.in_params, self.out_params = in_params, out_params
        self.kind, self.post, self.name = kind, post_map_expr, name

    def __call__(self, *args: Any, axis: Any, keepdims: bool) -> Any:
        total = self.map(*args).sum(axis=axis, keepdims=keepdims)
        given = zip(self.map.inputs, args, strict=True)
        scalars = {name: (kind, one) for (kind, name, _), one in given if np.isscalar(one)}
        names = [f"{kind} {name}" for name, (kind, _) in scalars.items()]
        in_params = ", ".join([f"{self.kind} a", *names])
        post = ElementwiseKernel(
            in_params, self.out_params, f"{self.post}; {silence(in_params)}", self.name
        )
        return post(total, *(one for _, one in scalars.values()))


def silence(in_params: str) -> str:
    """Not every part of a reduction uses every parameter."""
    return " ".join(f"(void){name};" for _, name, _ in parameters(in_params))


# --- the modules ---------------------------------------------------------------------------------

PROPERTIES = {"name": b"no GPU", "totalGlobalMem": 0, "major": 0, "minor": 0}
CREATION = "arange empty empty_like eye full full_like linspace ones ones_like zeros zeros_like"


def get_device_count() -> int:
    if state.failure is not None:
        raise state.failure
    return NUMBER_OF_DEVICES


@contextlib.contextmanager
def errstate(**options: str) -> Iterator[None]:
    state.errstate = options
    yield
    state.errstate = {}


def make_modules(kernels: Any) -> dict[str, ModuleType]:
    """``cupy`` and ``cupyx``, with what tinynode_cupy and array_api_compat ask of them."""
    names = ("cupy", "cupy.linalg", "cupy.fft", "cupy.cuda", "cupy.cuda.device", "cupyx")
    modules = {name: ModuleType(name) for name in names}
    cupy, cuda = modules["cupy"], modules["cupy.cuda"]
    for name in dir(np):
        if not name.startswith("_"):
            setattr(cupy, name, getattr(np, name))
    for name in CREATION.split():
        setattr(cupy, name, made(getattr(np, name)))
    for part in ("linalg", "fft"):
        vars(modules[f"cupy.{part}"]).update(vars(getattr(np, part)))
        setattr(cupy, part, modules[f"cupy.{part}"])
    modules["cupy.linalg"].solve = solve  # type: ignore[attr-defined]
    vars(cupy).update(
        ElementwiseKernel=kernels.ElementwiseKernel,
        ReductionKernel=kernels.ReductionKernel,
        __version__="0 (tests/support/fake_cupy.py)",
        array=array,
        asarray=asarray,
        ascontiguousarray=ascontiguousarray,
        asnumpy=asnumpy,
        cuda=cuda,
        get_default_memory_pool=lambda: SimpleNamespace(
            used_bytes=lambda: 1000 + state.current, total_bytes=lambda: 4000 + state.current
        ),
        ndarray=ndarray,
    )
    vars(cuda).update(
        Device=Device,
        device=modules["cupy.cuda.device"],
        nvtx=SimpleNamespace(RangePush=state.ranges.append, RangePop=state.ranges.pop),
        pinned_memory=SimpleNamespace(is_memory_pinned=lambda pointer: False),
        runtime=SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            driverGetVersion=lambda: 0,
            getDeviceProperties=lambda index: PROPERTIES,
            runtimeGetVersion=lambda: 0,
            getDevice=lambda: state.current,
            getDeviceCount=get_device_count,
        ),
    )
    modules["cupy.cuda.device"].Device = Device  # type: ignore[attr-defined]
    vars(modules["cupyx"]).update(scatter_add=scatter_add, errstate=errstate)
    return modules


OF_CUPY = ("cupy", "array_api_compat.cupy", "tinynode_cupy")


@contextlib.contextmanager
def added_modules(modules: dict[str, ModuleType]) -> Iterator[None]:
    """The modules stand in ``sys.modules`` in a block.

    Other modules that are first imported in the block stay: PyTorch cannot be imported twice.
    """
    before = {name: one for name, one in sys.modules.items() if name.startswith(OF_CUPY)}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith(OF_CUPY)]:
            del sys.modules[name]
        sys.modules.update(before)


@contextlib.contextmanager
def installed(kernels: Any = None) -> Iterator[ModuleType]:
    """The backend ``tinynode_cupy`` on top of the fake CuPy; afterwards nothing is left of both.

    Gives the backend's module, registered. ``kernels`` is a module with other kernel classes.
    """
    kernels = kernels or sys.modules[__name__]
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored_tables())
        stack.enter_context(added_modules(make_modules(kernels)))
        for name in list(sys.modules):
            if name.startswith(("tinynode_cupy", "array_api_compat.cupy")):
                del sys.modules[name]
        import tinynode_cupy

        registry.backends.pop("cupy", None)
        for name in list(registry.devices):
            if name.startswith("cupy"):
                del registry.devices[name]
        registry.register_backend(tinynode_cupy)
        yield tinynode_cupy
