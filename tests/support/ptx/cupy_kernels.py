"""CuPy's kernel classes without a GPU: CuPy's own source, compiled by NVRTC, run on the machine.

The classes stand in the place of those of ``fake_cupy.py``. The real CuPy checks the parameters,
decides the dtypes, and writes the CUDA source around the body. CuPy's own options go to NVRTC. The
rest of a call is compiled in CuPy and needs a driver, so it is written here once more:
broadcasting, the merging of axes, the packing of the arguments, the numbers of threads.

Kernels are compiled for compute capability 9.0, as PTX. On a GPU, CuPy asks NVRTC for the GPU's
machine code.
"""

from __future__ import annotations

import contextlib
import functools
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import cupy
import fake_cupy
import numpy as np
from cupy._core import _carray, _kernel, _reduction, _scalar, core
from cupy.cuda import compiler
from cupy_backends.cuda.libs import nvrtc

from ptx.machine import launch
from ptx.memory import READ, WRITE, Memory
from ptx.reader import Module, read_module

NVRTC_VERSION: tuple[int, int] = nvrtc.getVersion()
"""CuPy loads NVRTC at the first question, so before a stand-in takes the place of CuPy."""
ARRAY, INDEXER, SCALAR = 1, 2, 3
"""CuPy's kinds of arguments."""
OPTIONS = ("-ftz=true", "--device-as-default-execution-space", "-arch=compute_90")
"""The options that ``cupy.cuda.compiler`` adds to those of ``cupy._core.core``."""
THREADS = 128
"""CuPy's threads of a block, in an elementwise kernel."""


class Changes:
    """What tests plant: functions that change the CUDA source, or the PTX, of each kernel.

    Attributes:
        index_32_bits: whether arrays are indexed as CuPy indexes arrays of less than 2 GiB.
        launches: the names of the kernels that ran.
    """

    def __init__(self) -> None:
        self.source: Callable[[str], str] = str
        self.ptx: Callable[[str], str] = str
        self.index_32_bits = True
        self.launches: list[str] = []


changes = Changes()


@contextlib.contextmanager
def changed(**values: Any) -> Iterator[None]:
    with mock.patch.multiple(changes, **values):
        yield


# --- from a source to PTX ------------------------------------------------------------------------


class FullSource(Exception):  # noqa: N818 - not an error
    """Raised where CuPy would compile, with the source with headers, and the options."""


def full_source(code: str, options: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """What CuPy gives to its compiler for a kernel's code."""

    def stop(source: str, options: tuple[str, ...], **_: Any) -> None:
        raise FullSource(source, options)

    with mock.patch.object(compiler, "_compile_module_with_cache", stop):
        try:
            core.compile_with_cache(code, options)
        except FullSource as found:
            source, all_options = found.args
    return source, all_options


@functools.cache
def compile_ptx(code: str, options: tuple[str, ...]) -> str:
    """The PTX of CuPy's code of a kernel."""
    source, all_options = full_source(code, options)
    program = compiler._NVRTCProgram(source, "kernel.cu", (), (), method="ptx")
    text, _ = program.compile(all_options + OPTIONS)
    return text.decode()


@functools.cache
def module_of(ptx: str) -> Module:
    return read_module(ptx)


# --- arguments -----------------------------------------------------------------------------------


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def info_of(value: Any, dtype: Any) -> Any:
    """How CuPy describes an argument of a kernel."""
    if is_array(value):
        contiguous = value.flags.c_contiguous
        kind = (ARRAY, cupy.ndarray, value.dtype.type, value.ndim, contiguous)
    elif isinstance(value, tuple):
        kind = (INDEXER, _carray.Indexer, None, len(value), True)
    else:
        kind = (SCALAR, _scalar.CScalar, dtype, 0, True)
    return _kernel._ArgInfo(*kind, changes.index_32_bits)


def bytes_of(value: Any, dtype: Any, memory: Memory, mark: int) -> bytes:
    """An argument as CUDA gets it: ``CArray``, ``CIndexer``, or a number."""
    if is_array(value):
        numbers = [memory.add_array(value, mark), value.size, *value.shape, *value.strides]
    elif isinstance(value, tuple):
        numbers = [math.prod(value), *value, *(0 for _ in value)]
    else:
        return np.asarray(value, dtype).tobytes()
    return struct.pack(f"{len(numbers)}q", *numbers)


def run(
    name: str,
    code: str,
    options: tuple[str, ...],
    arguments: list[tuple[Any, Any]],
    outputs: list[Any],
    grid: tuple[int, int],
) -> None:
    """Compile and launch; each argument is a value and its dtype."""
    memory = Memory()
    starts, packed = {}, []
    for value, dtype in arguments:
        is_output = any(value is one for one in outputs)
        packed.append(bytes_of(value, dtype, memory, WRITE if is_output else READ))
        if is_output:
            (starts[id(value)],) = struct.unpack_from("q", packed[-1])
    ptx = changes.ptx(compile_ptx(changes.source(code), options))
    changes.launches.append(name)
    launch(module_of(ptx), name, *grid, packed, memory)
    for output in outputs:
        memory.fetch_array(output, starts[id(output)])


def merge_axes(arrays: list[Any], shape: tuple[int, ...]) -> tuple[list[Any], tuple[int, ...]]:
    """Neighbouring axes that are one axis in all arrays become one; axes of length 1 go."""
    lengths: list[int] = []
    strides: list[list[int]] = []
    for axis, length in enumerate(shape):
        steps = [one.strides[axis] for one in arrays]
        if length == 1:
            continue
        if strides and strides[-1] == [length * step for step in steps]:
            lengths[-1] *= length
            strides[-1] = steps
        else:
            lengths.append(length)
            strides.append(steps)
    views = []
    for i, one in enumerate(arrays):
        of_one = [steps[i] for steps in strides]
        views.append(np.lib.stride_tricks.as_strided(one, lengths, of_one))
    return views, tuple(lengths)


def with_merged_axes(
    values: list[Any], parameters: Any, shape: tuple[int, ...]
) -> tuple[list[Any], tuple[int, ...]]:
    """Values with merged axes in all arrays but raw ones, and the shape of these."""
    places = [i for i, one in enumerate(values) if is_array(one) and not parameters[i].raw]
    views, merged = merge_axes([values[i] for i in places], shape)
    values = list(values)
    for i, view in zip(places, views, strict=True):
        values[i] = view
    return values, merged


def broadcast(values: list[Any], parameters: Any) -> tuple[list[Any], tuple[int, ...]]:
    """All arrays but raw ones at one shape."""
    places = [i for i, one in enumerate(values) if is_array(one) and not parameters[i].raw]
    views = np.broadcast_arrays(*(values[i] for i in places))
    values = list(values)
    for i, view in zip(places, views, strict=True):
        values[i] = view
    return values, views[0].shape if views else ()


def dtypes_of(kernel: Any, values: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """CuPy's decision on the dtypes of inputs and outputs."""
    given = tuple(one.dtype.type if is_array(one) else None for one in values)
    return _kernel._decide_params_type(kernel.in_params, kernel.out_params, given, ())


# --- the classes ---------------------------------------------------------------------------------


class ElementwiseKernel:
    """``cupy.ElementwiseKernel``"""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.kernel = cupy.ElementwiseKernel(*args, **options)
        self.options = tuple(self.kernel.kwargs.get("options", ()))

    def __call__(self, *args: Any) -> Any:
        kernel = self.kernel
        inputs, shape = broadcast([fake_cupy.host(one) for one in args], kernel.in_params)
        in_types, out_types, type_map = dtypes_of(kernel, inputs)
        outputs = [np.empty(shape, dtype) for dtype in out_types]
        if 0 not in shape:
            self.launch([*inputs, *outputs], shape, [*in_types, *out_types, None], type_map)
        return tuple(fake_cupy.wrap(outputs)) if len(outputs) > 1 else fake_cupy.wrap(outputs[0])

    def launch(self, values: list[Any], shape: Any, dtypes: list[Any], type_map: Any) -> None:
        kernel = self.kernel
        values, merged = with_merged_axes(values, kernel.params, shape)
        arguments = list(zip([*values, merged], dtypes, strict=True))
        code = _kernel._get_elementwise_kernel_code(
            tuple(info_of(*one) for one in arguments),
            type_map,
            kernel.params,
            kernel.operation,
            kernel.name,
            kernel.preamble,
            **kernel.kwargs,
        )
        size = math.prod(merged)
        grid = -(-size // THREADS), min(size, THREADS)
        run(kernel.name, code, self.options, arguments, values[kernel.nin :], grid)


class ReductionKernel:
    """``cupy.ReductionKernel``; CuPy has another way for kernels of one input only."""

    def __init__(self, *args: Any) -> None:
        self.kernel = cupy.ReductionKernel(*args)

    def __call__(self, *args: Any, axis: Any, keepdims: bool) -> Any:
        kernel = self.kernel
        inputs, shape = broadcast([fake_cupy.host(one) for one in args], kernel.in_params)
        in_types, out_types, type_map = dtypes_of(kernel, inputs)
        axes, others = _reduction._get_axis(axis, len(shape))
        order = (*axes, *others)
        inputs = [one.transpose(order) if is_array(one) else one for one in inputs]
        turned = tuple(shape[i] for i in order)
        inputs, in_shape = with_merged_axes(inputs, kernel.in_params, turned)
        output = np.empty([shape[i] for i in others], out_types[0])
        (out,), out_shape = merge_axes([output], output.shape)
        dtypes = [*in_types, *out_types, None, None, np.int32]
        self.launch([*inputs, out, in_shape, out_shape], dtypes, type_map)
        kept = [1 if i in axes else size for i, size in enumerate(shape)]
        return fake_cupy.wrap(output.reshape(kept) if keepdims else output)

    def launch(self, values: list[Any], dtypes: list[Any], type_map: Any) -> None:
        """The inputs, the output, the shapes of both; the last argument is the step of blocks."""
        kernel = self.kernel
        *_, output, in_shape, out_shape = values
        sizes = math.prod(in_shape), math.prod(out_shape), [1, *out_shape][-1]
        threads, step, blocks = _reduction._get_block_specs(*sizes, -1)
        arguments = list(zip([*values, step], dtypes, strict=True))
        index = np.int32 if changes.index_32_bits else np.int64
        code = _reduction._ReductionKernel_get_cached_function_code(
            kernel.nin,
            kernel.nout,
            kernel._params,
            tuple(info_of(*one) for one in arguments),
            _kernel._TypeMap((*type_map._pairs, ("IndexT", index))),
            kernel.name,
            threads,
            kernel.reduce_type,
            kernel.identity,
            kernel.map_expr,
            kernel.reduce_expr,
            kernel.post_map_expr,
            kernel.preamble,
            kernel.options,
        )
        run(kernel.name, code, kernel.options, arguments, [output], (blocks, threads))
