"""summary: a table of the layers of a model, found without computing anything.

Requirement: a user sees shapes, parameters, memory and work of a model before a run, also of a
model that no memory holds. So the model runs once on the device ``shapes``, whose arrays have a
shape and a dtype, and no data. FunctionNodes run as they are, so no layer describes itself twice.

The run changes nothing: parameters, buffers, attributes of modules, random generators and hooks
are restored, also after an error.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy

from tinynode.configuration import config, using_config
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook, retained_arrays
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Device, get_device, is_array, using_device
from tinynode.errors import NoValuesError, dtype_name
from tinynode.functions.draws import restored_generators
from tinynode.hooks.memory import number_of_bytes
from tinynode.net.recorder import without_hooks
from tinynode.nn.layer_notes import LayerNote
from tinynode.nn.module import Module, Wrapper
from tinynode.nn.multiply_adds import multiply_adds
from tinynode.nn.parameter import Parameter
from tinynode.nn.summary_table import LayerSummary, Summary
from tinynode.random import get_generator
from tinynode.transforms.captures import standing_in


def summary(model: Callable[..., Any], x: Any, *, dtype: Any = None) -> Summary:
    """A table of the layers of a model: shapes, parameters, memory and work, before any run.

    The model runs once on arrays without data. Nothing is computed, and nothing changes: not the
    parameters, not running statistics, not random generators. The model runs in its present mode,
    training or evaluation, and may stand on any device.

        model = nn.Sequential(nn.Linear(64, 128), relu, nn.Linear(128, 10))
        print(tn.summary(model, (32, 64)))

    ``kept`` counts the arrays that functions retain for backward: each array once, for the first
    layer; arrays of parameters and buffers are left out. ``multiply-adds`` counts products that
    are added up, exactly for matrix products, ``linear``, convolutions, ``einsum`` and attention;
    all other functions count 0.

    Args:
        model: a Module, or a function that calls Modules or reads Variables.
        x: the shape of the input, such as ``(32, 64)``, or an example: an array or a Variable. A
            tuple or a list of these gives several arguments, a dict arguments by name.
        dtype: the dtype of inputs that are given as shapes; by default the dtype of the first
            parameter, else ``config.dtype``. An embedding needs ``dtype="int64"``.

    Raises:
        NoValuesError: a function needs values, such as ``x[mask]`` or ``float(x)``. The message
            names the layer.
    """
    while isinstance(model, Wrapper):  # a compiled function runs eagerly here
        model = model.function
    device = get_device("shapes")
    parts = _parts_of(model)
    rows = _rows_of(parts, model)
    variables = [
        p.value for p in parts if isinstance(p.value, Variable) and p.value.raw is not None
    ]
    abstract = [_abstract(v.shape, v.dtype, v.requires_grad) for v in variables]
    args, keywords = _arguments(x, _dtype_of_shapes(variables, dtype))
    texts = [f"{v.shape} {dtype_name(v.dtype)}" for v in _arrays_in([args, keywords])]
    with (
        without_hooks(),
        restored_generators(get_generator()),
        _attributes_restored(parts),
        standing_in(variables, abstract),
        using_device(device),
        _taking_arrays_of_numpy(device),
        using_config(enable_backprop=True, debug=False),
        _Watch(rows[id(model)]) as watch,
    ):
        _prepare(parts, rows, watch)
        is_module = isinstance(model, Module)
        call = model if is_module else watch.watched(model, rows[id(model)])
        outputs = call(*args, **keywords)
        watch.count_kept({id(v.raw) for v in abstract})
        del outputs  # until here, they keep the graph alive
    return Summary(list(rows.values()), texts)


class _Watch(FunctionHook):
    """Notes the functions of each layer.

    Attributes:
        running: the rows of the layers that run now, the innermost last.
        has_failed: True after a layer raised.
    """

    name = "summary"

    def __init__(self, model: LayerSummary) -> None:
        self.running = [model]
        self.has_failed = False
        self._functions: list[tuple[weakref.ref[FunctionNode], LayerSummary]] = []

    def watched(self, forward: Callable[..., Any], row: LayerSummary) -> Callable[..., Any]:
        """The forward of a layer, which notes its calls."""
        return functools.partial(self._call, forward, row)

    def _call(
        self, forward: Callable[..., Any], row: LayerSummary, *args: Any, **keywords: Any
    ) -> Any:
        self.running.append(row)
        try:
            outputs = forward(*args, **keywords)
        except Exception as error:
            self._explain(error, row)
            raise
        finally:
            self.running.pop()
        row.calls += 1
        row.outputs = tuple([tuple(y.shape) for y in _arrays_in(outputs)])
        return outputs

    def _explain(self, error: Exception, row: LayerSummary) -> None:
        """Name the innermost layer in an error."""
        if self.has_failed:
            return
        self.has_failed = True
        where = f"summary: in the layer {row.title} ({row.kind})"
        if isinstance(error, NoValuesError):
            raise NoValuesError(f"{where}: {error} Or summarise the parts around it.") from error
        error.add_note(LayerNote(f"{where}, on arrays without data"))

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        row = self.running[-1]
        self._functions.append((weakref.ref(function), row))
        if outputs and outputs[0].raw is not None:
            shapes = [x.shape for x in inputs]
            row.multiply_adds += multiply_adds(function, shapes, outputs[0].shape)

    def count_kept(self, own: set[int]) -> None:
        """Count the arrays of living functions, each once; ``own`` has the ids of parameters."""
        seen = set(own)
        for reference, row in self._functions:
            function = reference()
            if function is None:
                continue
            inputs, outputs = retained_arrays(function)
            for array in (*inputs, *outputs):
                if array is not None and id(array) not in seen:
                    seen.add(id(array))
                    row.kept_bytes += number_of_bytes(array)


def _arrays_in(value: Any) -> Iterator[Any]:
    """The Variables and arrays in nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for part in value:
            yield from _arrays_in(part)
    elif getattr(value, "shape", None) is not None:
        yield value


# --- the inputs ----------------------------------------------------------------------------------


def _arguments(x: Any, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the model, by position and by name."""
    if isinstance(x, dict):
        return [], {name: _argument(value, dtype) for name, value in x.items()}
    if isinstance(x, tuple | list) and not _is_shape(x):
        return [_argument(value, dtype) for value in x], {}
    return [_argument(x, dtype)], {}


def _argument(value: Any, dtype: str) -> Any:
    """A Variable without data, for a shape, an array or a Variable; other values unchanged."""
    if _is_shape(value):
        return _abstract(tuple(value), dtype, False)
    if isinstance(value, Variable) or is_array(value):
        return _abstract(value.shape, value.dtype, getattr(value, "requires_grad", False))
    if isinstance(value, tuple | list):
        parts = [_argument(part, dtype) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _is_shape(value: Any) -> bool:
    is_filled = isinstance(value, tuple | list) and len(value) > 0
    return is_filled and all(type(n) is int for n in value)


def _abstract(shape: tuple[int, ...], dtype: Any, requires_grad: bool) -> Variable:
    """A Variable on the device ``shapes``."""
    device = get_device("shapes")
    form = numpy.broadcast_to(numpy.zeros((), dtype_name(dtype)), tuple(shape))
    return wrap_array(device.from_host(form), device, requires_grad)


def _dtype_of_shapes(variables: Sequence[Variable], dtype: Any) -> str:
    """The name of the dtype of inputs that are given as shapes."""
    if dtype is not None:
        return dtype if isinstance(dtype, str) else numpy.dtype(dtype).name
    floating = [v for v in variables if v.requires_grad]
    return dtype_name(floating[0].dtype) if floating else str(config.dtype)


# --- the parts of a model ------------------------------------------------------------------------


class _Part(NamedTuple):
    """A module, a Variable or a container of a model.

    Attributes:
        name: the dotted name.
        value: the part.
        owner: the innermost module around, or the model.
    """

    name: str
    value: Any
    owner: Any


def _parts_of(model: Any) -> list[_Part]:
    """The parts of a model, each once: in attributes, containers, and closures of functions."""
    found: list[_Part] = []
    seen: set[int] = set()
    waiting = [_Part("", model, model)]
    while waiting:
        part = waiting.pop()
        if id(part.value) in seen:
            continue
        seen.add(id(part.value))
        found.append(part)
        name, value, owner = part
        owner = value if isinstance(value, Module) else owner
        if isinstance(value, Wrapper):  # a compiled layer has the name of the layer
            waiting.append(_Part(name, value.function, owner))
            continue
        start = f"{name}." if name else ""
        children = [(key, child) for key, child in _members(value) if _is_part(child)]
        waiting += [_Part(f"{start}{key}", child, owner) for key, child in reversed(children)]
    return found


def _is_part(value: Any) -> bool:
    """True for modules, Variables, containers, and functions of any kind."""
    if isinstance(value, Module | Variable | dict | list | tuple):
        return True
    return callable(value) and hasattr(value, "__dict__") and not isinstance(value, type)


def _members(value: Any) -> list[tuple[Any, Any]]:
    """The members of a module, a container or a function, with names."""
    if isinstance(value, Module):
        return [*vars(value).items(), ("forward", type(value).forward)]
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, functools.partial):
        return [("function", value.func), *enumerate(value.args), *value.keywords.items()]
    if isinstance(value, types.MethodType):
        owner = value.__self__
        members = [("self", owner)] if _is_part(owner) else _members(owner)
        return [*members, ("function", value.__func__)]
    if isinstance(value, types.FunctionType):
        return _captured(value)
    attributes = list(getattr(value, "__dict__", {}).items())  # a model without a base class
    return [*attributes, ("call", vars(type(value)).get("__call__"))]


def _captured(function: types.FunctionType) -> list[tuple[str, Any]]:
    """What a function reads from outside: the closure, and the globals of the user's code."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = [(name, cell.cell_contents) for name, cell in cells if _is_filled(cell)]
    codes = [function.__code__] if _is_users(function) else []
    for code in codes:  # the list grows: a function inside of a function has a code of its own
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        found += [(n, function.__globals__[n]) for n in code.co_names if n in function.__globals__]
    return found


def _is_users(function: types.FunctionType) -> bool:
    """False for functions of tinynode, of Python, and of installed packages."""
    package = str(function.__module__).partition(".")[0]
    is_of_python = package == "tinynode" or package in sys.stdlib_module_names
    return not is_of_python and "site-packages" not in function.__code__.co_filename


def _is_filled(cell: types.CellType) -> bool:
    """False for a variable that the outer function sets later."""
    try:
        cell.cell_contents  # noqa: B018 - the reading raises
    except ValueError:
        return False
    return True


def _rows_of(parts: Sequence[_Part], model: Any) -> dict[int, LayerSummary]:
    """A row for the model and for each module, by id, with the counts of parameters."""
    rows = {}
    for name, value, _ in parts:
        if value is model or isinstance(value, Module):
            kind = type(value).__name__ if isinstance(value, Module) else "function"
            rows[id(value)] = LayerSummary(name, kind)
    for _, value, owner in parts:
        is_trained = (
            not isinstance(owner, Module) and isinstance(value, Variable) and value.is_leaf
        )
        if isinstance(value, Parameter) or is_trained:
            row = rows[id(owner)]
            row.parameters += value.size
            row.trainable += value.size if value.requires_grad else 0
            row.parameter_bytes += number_of_bytes(value.raw)
    return rows


def _prepare(parts: Sequence[_Part], rows: dict[int, LayerSummary], watch: _Watch) -> None:
    """Let each module note its calls, and each compiled function run eagerly."""
    for _, value, _ in parts:
        if isinstance(value, Wrapper):
            vars(value)["inside_hooks"] = True
        if isinstance(value, Module):
            attributes = vars(value)
            for name, member in list(attributes.items()):
                if is_array(member) and not isinstance(member, numpy.ndarray):
                    attributes[name] = _abstract(member.shape, member.dtype, False).raw
            attributes["forward"] = watch.watched(value.forward, rows[id(value)])


@contextmanager
def _attributes_restored(parts: Sequence[_Part]) -> Iterator[None]:
    """Restore the attributes of modules, and the entries of lists and dicts."""
    owners = [vars(p.value) for p in parts if isinstance(p.value, Module | Wrapper)]
    owners += [p.value for p in parts if isinstance(p.value, dict)]
    dicts = [(one, dict(one)) for one in owners]
    lists = [(p.value, list(p.value)) for p in parts if isinstance(p.value, list)]
    try:
        yield
    finally:
        for one, before in dicts:
            one.clear()
            one.update(before)
        for entries, kept in lists:
            entries[:] = kept


@contextmanager
def _taking_arrays_of_numpy(device: Device) -> Iterator[None]:
    """Let NumPy's arrays, which a model's code may make, stand beside arrays without data."""
    device.array_types.add(numpy.ndarray)
    try:
        yield
    finally:
        device.array_types.discard(numpy.ndarray)
