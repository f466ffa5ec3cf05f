"""Saving nets: to readable JSON text, and back.

Requirement: a net can be read, compared and changed with a text editor. A file from a stranger can
be loaded without running code. So the text holds data alone: types by registered name, variables
by name, and constants in the forms of ``_encode``. There is no pickle and no evaluation. Of all
modules, only installed backends are imported, for a device or dtype. A constant cannot replace a
method of the function.

    {"format": "tinynode net 1", "content":
    {"net": "f", "operators": [
      {"type": "multiply", "inputs": ["x", "y"], "outputs": ["t0"], "attrs": {}},
      {"type": "sum", "inputs": ["t0"], "outputs": ["t1"], "attrs": {"axes": [0], ...}}
    ]}
    }

A net inside of an operator is ``{"body": net, "inputs": names, "outputs": names}``; see ``Body``.

A plain JSON list is a tuple, since constants are hashable. A value unknown to JSON is an object
with a telling key: ``{"float": "inf"}``, ``{"dtype": "float32", "backend": "numpy"}``. An array
is ``{"array": [...], "shape": [...], "dtype": ..., "device": ...}``.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy

from tinynode.atomic_file import replace_file
from tinynode.devices import Array, Device, find_device, get_device, to_host
from tinynode.devices.registry import backends
from tinynode.errors import DeviceError, NetError, describe, dtype_name
from tinynode.functions.attribute_types import fits, type_text
from tinynode.functions.attributes import Place, Shape, Slice
from tinynode.functions.image_windows import Windows, windows_of
from tinynode.net.body import Body
from tinynode.net.helpers import OtherGradient
from tinynode.net.net_op import AnyOp, NetOp
from tinynode.net.operator import OF_APPLY, Operator, Slots
from tinynode.net.registry import get_op_info
from tinynode.net.schema import check_attributes
from tinynode.random import get_generator
from tinynode.safe_files import MOST_TEXT, checked_path, parse_json, read_file, reason_of

_FORMAT = "tinynode net 1"
_LONGEST_REASON = 1000  # characters: a file may have long names
_MOST_DEPTH = 200
"""The depth of lists and objects in a text: a net in a net counts twice."""
_TUPLES: dict[str, type[Any]] = {"Slice": Slice, "Place": Place, "Windows": Windows}
"""The named tuples among the constants of the library's functions."""
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
"""The dtypes with elements that are exactly Python bools, ints or floats."""


def dumps(net: NetOp) -> str:
    """A net as JSON text, one line for each operator.

    Raises:
        TypeError: the argument is no NetOp; of a ``Trace``, give its ``net``.
        NetError: a constant of an operator cannot be written.
    """
    if not isinstance(net, NetOp):
        raise TypeError(f"dumps: expected a NetOp, such as trace(f, x).net, got {describe(net)}.")
    return f'{{"format": "{_FORMAT}", "content":\n{_net_text(net, "")}\n}}\n'


def loads(text: str | bytes) -> NetOp:
    """The net written by ``dumps``. No part of the text is run.

    A program's own operators must be registered before.

    Raises:
        NetError: the text is no net, has an unknown operator or device, or writes a name twice. Or
            an attribute is not declared by its function, is missing, or has another type or a
            number out of range; or an operator has another number of inputs or outputs.
        TypeError: ``text`` is neither text nor bytes in UTF-8.
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"loads: text must be the text of dumps, got {describe(text)}.")
    try:
        data = parse_json(text, _MOST_DEPTH)
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise NetError(
                f'loads: the text must be an object with "format": "{_FORMAT}", got '
                f"{describe(data)}."
            )
        return _net_of(data.get("content"))
    except RecursionError:
        raise NetError("loads: the text has lists in lists too deep to be a net.") from None
    except NetError as error:
        raise NetError(reason_of(error, _LONGEST_REASON)) from error.__cause__
    except ValueError as error:
        raise NetError(f"loads: this is not the JSON text of a net: {reason_of(error)}.") from None


def save_net(path: str | os.PathLike[str], net: NetOp) -> None:
    """Write the text of ``dumps`` to a file. Arrays of parameters are not part of a net.

    Raises:
        NetError: a constant of an operator cannot be written; the file is unchanged.
        OSError: the file cannot be written; an old file is still whole.
    """
    content = dumps(net).encode("utf-8", "surrogatepass")
    replace_file(checked_path("save_net", path), content)


def load_net(path: str | os.PathLike[str]) -> NetOp:
    """Read the net written by ``save_net``.

    Raises:
        NetError: the file is no net (see ``loads``); the message has the file's name.
        OSError: the file cannot be read.
    """
    path = checked_path("load_net", path)
    content = read_file(path, MOST_TEXT)
    try:
        return loads(content)
    except NetError as error:
        raise NetError(f"load_net: {os.fspath(path)!r}: {error}") from None


# --- writing -------------------------------------------------------------------------------------


def _net_text(net: NetOp, indent: str) -> str:
    """A net as text; inner nets are indented."""
    lines = []
    for operator in net.operators:
        if isinstance(operator, NetOp):
            lines.append(_net_text(operator, indent + "  "))
        else:
            data = json.dumps(_operator_data(operator), allow_nan=False, ensure_ascii=False)
            lines.append(f"{indent}  {data}")
    body = "".join(f"\n{line}," for line in lines)[:-1]
    writes = f', "writes": {json.dumps(net.writes, ensure_ascii=False)}' if net.writes else ""
    return f'{indent}{{"net": {json.dumps(net.type)}, "operators": [{body}\n{indent}]{writes}}}'


def _operator_data(operator: Operator) -> dict[str, Any]:
    info = get_op_info(operator.type)
    attrs = {}
    for name, value in operator.attrs.items():
        attrs[name] = _encode(value, f"{operator.type}: attribute {name}")
    return {
        "type": operator.type,
        "inputs": _names(operator.inputs, info.inputs, "x"),
        "outputs": _names(operator.outputs, info.outputs, "y"),
        "attrs": attrs,
    }


def _names(slots: Slots, titles: tuple[str, ...], prefix: str) -> list[str] | Slots:
    """The names as a plain list for the usual slots; else by slot."""
    names = [name for found in slots.values() for name in found]
    usual = titles or tuple(f"{prefix}{i}" for i in range(len(names)))
    is_usual = list(slots.items()) == [(t, [n]) for t, n in zip(usual, names, strict=False)]
    return names if is_usual else slots


def _encode(value: Any, where: str) -> Any:
    """A constant as JSON data."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind is tuple:
        return [_encode(item, where) for item in value]
    if kind in (list, slice) or _TUPLES.get(kind.__name__) is kind:
        items = [value.start, value.stop, value.step] if kind is slice else value
        return {kind.__name__: [_encode(item, where) for item in items]}
    if value is Ellipsis:
        return {"constant": "..."}
    if kind is Device:
        return {"device": str(value)}
    if kind is Body:
        content = json.loads(_net_text(value.net, ""))
        return {"body": content, "inputs": value.inputs, "outputs": value.outputs}
    if value is get_generator():
        return {"constant": "the process-wide generator"}
    return _encode_of_library(value, where)


def _encode_of_library(value: Any, where: str) -> Any:
    """An array, a scalar of NumPy or a dtype as JSON data."""
    if isinstance(value, numpy.generic) and dtype_name(value.dtype) in _DTYPES:
        return {"scalar": _element(value.item()), "dtype": dtype_name(value.dtype)}
    if isinstance(value, numpy.dtype) and value.name in _DTYPES:
        return {"dtype": value.name}
    backend = _backend_of_dtype(value)
    if backend is not None:
        return {"dtype": _dtype_name(value), "backend": backend}
    device = find_device(value)
    if device is not None and dtype_name(value.dtype) in _DTYPES:
        return _encode_array(to_host(value), device)
    reason = getattr(value, "why_not_saved", "")
    raise NetError(
        f"{where} is {describe(value)}, which has no form in the text of a net. Constants may be "
        f"numbers, texts, tuples, lists, slices, None, ..., dtypes, devices, and arrays.{reason}"
    )


def _encode_array(host: Any, device: Device) -> dict[str, Any]:
    elements = [_element(number) for number in host.ravel().tolist()]
    return {
        "array": elements,
        "shape": host.shape,
        "dtype": dtype_name(host.dtype),
        "device": str(device),
    }


def _element(number: Any) -> Any:
    """A number as JSON data; JSON has no infinity and no NaN."""
    return number if math.isfinite(number) else str(number)


def _dtype_name(dtype: Any) -> str:
    """``float64``, of NumPy's type or of another namespace's dtype."""
    return dtype.__name__ if isinstance(dtype, type) else dtype_name(dtype)


def _backend_of_dtype(value: Any) -> str | None:
    """The backend of a dtype, by the namespace; None for other values."""
    name = _dtype_name(value)
    if name not in _DTYPES:
        return None
    if isinstance(value, type) and issubclass(value, numpy.generic):
        return "numpy"
    for backend in backends.values():
        known = getattr(backend.namespace(), name, None)
        if type(known) is type(value) and known == value:
            return backend.name
    return None


# --- reading -------------------------------------------------------------------------------------


def _net_of(data: Any) -> NetOp:
    """The net described by an object of the text."""
    if not isinstance(data, dict) or not isinstance(data.get("net"), str):
        raise _unreadable("a net", data, '{"net": name, "operators": [...]}')
    operators = data.get("operators")
    if not isinstance(operators, list):
        raise _unreadable(f"net {data['net']!r}: operators", operators, "a list")
    writes = data.get("writes", {})
    if not isinstance(writes, dict) or not all(isinstance(n, str) for n in writes.values()):
        raise _unreadable(f"net {data['net']!r}: writes", writes, "names by name")
    found = []
    for number, item in enumerate(operators):
        try:
            found.append(_any_op_of(item))
        except NetError as error:
            text = str(error).removeprefix("loads: ")
            raise NetError(f"loads: operator {number}: {text}") from error.__cause__
    return NetOp(found, data["net"], writes)


def _any_op_of(data: Any) -> AnyOp:
    if isinstance(data, dict) and "net" in data:
        return _net_of(data)
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        raise _unreadable(
            "an operator", data, '{"type": ..., "inputs": ..., "outputs": ..., "attrs": {}}'
        )
    name = data["type"]
    attrs = data.get("attrs")
    if not isinstance(attrs, dict):
        raise _unreadable(f"{name}: attrs", attrs, "an object")
    node_class = get_op_info(name).node_class
    constants = {}
    for key, value in attrs.items():
        _check_is_constant(name, node_class, key)
        constants[key] = _decode(value, f"{name}: attribute {key}")
    inputs, outputs = (_checked_names(name, slot, data.get(slot)) for slot in _SIDES)
    operator = Operator.with_constants(name, inputs, outputs, constants)
    operator.check(of_text=True)
    if issubclass(node_class, OtherGradient):
        _check_other_gradient(name, operator.attrs)
    return operator


_SIDES = ("inputs", "outputs")


def _checked_names(type: str, side: str, names: Any) -> Any:
    """Names in a list, or in a list for each slot."""
    for found in names.values() if isinstance(names, dict) else [names]:
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise _unreadable(f"{type}: {side}", names, "a list of names")
    return names


def _check_is_constant(type: str, node_class: Any, name: str) -> None:
    """Refuse an attribute that would replace a method, or an attribute of the graph."""
    reserved = getattr(node_class, name, None)
    hidden = callable(reserved) or isinstance(reserved, property)
    if not name.isidentifier() or name.startswith("_") or name in OF_APPLY or hidden:
        raise NetError(f"loads: {type}: {name!r} cannot be the name of a constant.")


def _check_other_gradient(type: str, constants: dict[str, Any]) -> None:
    """Refuse a gradient that is not of a registered type, or with attributes that are none."""
    kind = constants.get("kind")
    pairs = constants.get("constants")
    is_pairs = isinstance(pairs, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    )
    if not (isinstance(kind, str) and is_pairs and isinstance(constants.get("count"), int)):
        raise _unreadable(
            f"{type}: attrs", constants, '{"kind": type, "constants": [[name, value]], "count": n}'
        )
    given = dict(pairs or ())
    node_class = get_op_info(str(kind)).node_class
    for name in given:
        _check_is_constant(str(kind), node_class, name)
    check_attributes(str(kind), node_class, given, of_text=True)


def _unreadable(what: str, data: Any, expected: str) -> NetError:
    return NetError(f"loads: {what} must be {expected}, got {describe(data)}.")


def _decode(data: Any, where: str) -> Any:
    """The constant written by ``_encode``."""
    if isinstance(data, list):
        return tuple([_decode(item, where) for item in data])
    if not isinstance(data, dict):
        return data
    try:
        return _decode_object(data, where)
    except DeviceError as error:
        raise NetError(f"loads: {where}: {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, NetError):
            raise
        raise NetError(f"loads: {where} cannot be read: {describe(data)}: {error}.") from None


def _decode_object(data: dict[str, Any], where: str) -> Any:
    """The value of an object with a telling key."""
    if "array" in data:
        return _decode_array(data)
    if "scalar" in data:
        return numpy.dtype(_known_dtype(data)).type(_number(data["scalar"]))
    if "body" in data:
        names = [_checked_names("body", side, data[side]) for side in _SIDES]
        if any(isinstance(side, dict) for side in names):
            raise ValueError("inputs and outputs must be lists of names")
        return Body(_net_of(data["body"]), *map(tuple, names))
    if "dtype" in data:
        name = _known_dtype(data)
        known = "backend" in data
        return getattr(get_device(data["backend"]).xp, name) if known else numpy.dtype(name)
    if len(data) == 1:
        ((key, value),) = data.items()
        if key == "float":
            return float(value)
        if key == "device":
            return get_device(str(value))
        if key == "constant":
            return {"...": Ellipsis, "the process-wide generator": get_generator()}[value]
        items = [_decode(item, where) for item in value]
        if key == "list":
            return items
        if key == "slice":
            return slice(*items)
        return windows_of("Windows", *items) if key == "Windows" else _TUPLES[key](*items)
    raise ValueError("it is of no known kind")


def _decode_array(data: dict[str, Any]) -> Array:
    elements = data["array"]
    if type(elements) is not list:
        raise ValueError("array must be a list of numbers")
    if not _PLAIN.issuperset(map(type, elements)):  # infinity and NaN are texts
        elements = [_number(item) for item in elements]
    shape = data["shape"]
    if type(shape) is not list or not fits(tuple(shape), Shape):
        raise ValueError(f"shape must be {type_text(Shape)}")
    host = numpy.asarray(elements, dtype=_known_dtype(data)).reshape(shape)
    return get_device(str(data["device"])).from_host(host)


_PLAIN = frozenset((bool, int, float))
"""The types of most elements in a text."""


def _known_dtype(data: dict[str, Any]) -> str:
    name = data["dtype"]
    if name not in _DTYPES:
        raise ValueError(f"there is no dtype {name!r}")
    return str(name)


def _number(item: Any) -> Any:
    """A number of the text; infinity and NaN are written as texts."""
    if type(item) is str:
        return float(item)
    if type(item) not in _PLAIN:
        raise ValueError(f"expected a number, got {describe(item)}")
    return item
