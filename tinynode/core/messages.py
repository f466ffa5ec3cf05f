"""Checks with long error texts, and the texts of the graph's errors.

Requirement: an error names the function, the argument, the expected and the given value, and the
next thing to try. Long texts would hide the way of an array through the graph, so the texts stand
in this module. Each check raises; the other functions give the error to raise.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy

import tinynode
from tinynode.devices import (
    COMPLEX,
    Array,
    Arrays,
    Device,
    complex_dtypes,
    device_of,
    find_device,
    hidden_axes,
    is_differentiable,
    is_over,
    kind_of,
)
from tinynode.errors import (
    BackwardSeedError,
    DeviceMixError,
    GradientError,
    GradientShapeError,
    GradientTypeError,
    GraphError,
    OperandError,
    OutputError,
    RequiresGradError,
    VmapError,
    describe,
    dtype_name,
    printable,
    unknown_keywords,
)

# --- making a Variable ---------------------------------------------------------------------------


def array_of_number(value: Any, unknown: Mapping[str, Any]) -> Any:
    """A 0-d array of the current device for a number; other objects unchanged.

    Python floats become ``config.dtype``; numbers of NumPy keep their dtype.

    Raises:
        OperandError: ``Variable(...)`` got unknown keywords.
    """
    if unknown:
        raise unknown_keywords("Variable", unknown)
    if isinstance(value, bool | int | float | numpy.generic):
        return tinynode.asarray(value).raw
    return value


def require_array(array: Any) -> Device:
    """The device of the array for ``Variable(...)``.

    Raises:
        DeviceMixError: the object is no array of a known backend.
    """
    if isinstance(array, tinynode.Variable):
        raise DeviceMixError(
            f"Variable: array must be an array, got {describe(array)}. A second Variable on the "
            "same array is x.detach(), or functions.identity(x) in the graph."
        )
    return device_of(array, "Variable", "array")


def checked_array(array: Any) -> Any:
    """An array for a Variable, in the byte order of the machine; None stays None.

    Raises:
        OperandError: the elements are not bools or numbers.
    """
    dtype: Any = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "f") in "OSTUMm" or getattr(dtype, "names", None):
        raise OperandError(
            f"Variable: array must hold bools or numbers, got {describe(array)}. Convert the "
            "array: numpy.asarray(array, dtype='float64')."
        )
    return array if getattr(dtype, "isnative", True) else array.astype(dtype.newbyteorder("="))


def decide_requires_grad(array: Array, requires_grad: bool | None) -> bool:
    """True if a Variable on the array requires a gradient; None asks for the default.

    Raises:
        RequiresGradError: True was asked of a dtype that is not floating.
    """
    can = array is None or is_differentiable(array)
    if requires_grad is None:
        return can
    if requires_grad and not can:
        raise RequiresGradError(
            f"Variable: requires_grad=True, but the array is {dtype_name(array.dtype)}: only "
            "floating dtypes can require a gradient. Cast it first, or leave requires_grad out."
        )
    return requires_grad


def check_assigned(x: tinynode.Variable, array: Array | None) -> None:
    """Raises RequiresGradError if x requires a gradient, and the new array cannot have one."""
    if x.requires_grad and array is not None and not is_differentiable(array):
        raise RequiresGradError(
            "x.array: x requires a gradient, so the array must be floating, got "
            f"{describe(array)}. Cast the array, array.astype('float64'), or make a new Variable."
        )


def requires_grad_is_fixed(requires_grad: Any) -> AttributeError:
    """The error for an assignment to ``x.requires_grad``."""
    return AttributeError(
        "requires_grad is decided when a Variable is made: use Variable(x.array, "
        f"requires_grad={requires_grad}), or x.detach() for one without a gradient."
    )


def variable_released() -> GraphError:
    """The error for ``retain_data`` of a node without a Variable."""
    return GraphError(
        "cannot retain variable data: the variable has been already released. "
        "Keep a reference to the Variable until then."
    )


def as_gradient(grad: Any, x: tinynode.Variable) -> tinynode.Variable:
    """An array that is assigned to ``x.grad``, as a Variable.

    Raises:
        GradientTypeError: the object is no array of a known backend, or does not fit x.
        GradientShapeError: the shape differs.
    """
    if isinstance(grad, tinynode.Variable):
        raise GradientTypeError("grad: expected an array, got a Variable. Assign it to grad_var.")
    device = x.device if x.device.holds(grad) else find_device(grad)
    if device is None:
        raise GradientTypeError(f"grad: expected an array, got {describe(grad)}.")
    gradient = tinynode.core.variable.wrap_array(checked_array(grad), device, True)
    if x.raw is not None:
        check_gradient(gradient, x, "x.grad")
    return gradient


# --- gradients -----------------------------------------------------------------------------------


def check_gradient(gx: Any, x: Any, title: str, may_be_batched: bool = False) -> None:
    """Refuse a gradient of x that does not fit x, a VariableNode or a Variable.

    Args:
        gx: the gradient.
        x: the Variable or VariableNode.
        title: the name of the gradient in messages.
        may_be_batched: True allows several gradients of one x, inside of ``vmap``.

    Raises:
        GradientTypeError: the gradient is no Variable, or the device or the dtype differs.
        GradientShapeError: the shape differs.
    """
    if not isinstance(gx, tinynode.Variable):
        raise GradientTypeError(
            f"{title}: expected a Variable, got {describe(gx)}. Compute it from Variables, so "
            "that it can be differentiated again."
        )
    batched = may_be_batched and hidden_axes.stack
    if batched and tinynode.transforms.is_lifted(gx.device, x.device):
        pass  # several gradients of one x, by a backward pass inside of vmap
    elif gx.device is not x.device:
        raise GradientTypeError(
            f"{title}: Device of data and grad mismatch: data is on {x.device}, grad is on "
            f"{gx.device}. Move it with to_device({str(x.device)!r})."
        )
    if gx.shape != x.shape:
        raise GradientShapeError(
            f"{title}: Shape of data and grad mismatch: {x.shape} != {gx.shape}. If the data was "
            "broadcast, bring the gradient back with sum_to(gx, x.shape)."
        )
    if gx.dtype != x.dtype:
        raise GradientTypeError(
            f"{title}: Dtype of data and grad mismatch: {dtype_name(x.dtype)} != "
            f"{dtype_name(gx.dtype)}. Cast it with astype(gx, x.dtype)."
        )


def check_backward_gradient(gx: Any, function: Any, position: int) -> None:
    """``check_gradient`` for the gradient of an input, from a function's backward."""
    title = f"Function `{function.label}` has a bug: the gradient of input {position}"
    try:
        check_gradient(gx, function.inputs[position], title, may_be_batched=True)
    except GradientError as error:
        add_forward_stack(error, function)
        raise


def gradients_bug(function: Any, results: Any, expected: Sequence[int]) -> GradientError:
    """The error for a backward that gave no tuple, or a tuple of another length."""
    if not isinstance(results, tuple | list):
        return GradientTypeError(
            f"Function `{function.label}` has a bug: its backward must return a tuple, got "
            f"{describe(results)}. Return (gx,) with a comma, for one gradient too."
        )
    allowed = " or ".join(str(number) for number in dict.fromkeys(expected))
    return GradientShapeError(
        f"Function `{function.label}` has a bug: number of gradients returned from backward "
        f"is incorrect: {len(results)} != expected {allowed}."
    )


def gradients_of_targets(function: Any, targets: tuple[int, ...], results: Any) -> tuple[Any, ...]:
    """The gradients of the target inputs, out of a backward's results for all inputs.

    Raises:
        GradientError: a backward gave no tuple, or a tuple of another length.
    """
    number = len(function.inputs or ())
    if not isinstance(results, tuple | list) or len(results) not in (len(targets), number):
        raise gradients_bug(function, results, (len(targets), number))
    return tuple(results if len(results) == len(targets) else [results[i] for i in targets])


def explain_backward_error(error: Exception, function: Any) -> None:
    """Add notes to an exception of a backward: a cure that is known, and the line of the call."""
    if isinstance(error, TypeError) and "backward() " in str(error) and "positional" in str(error):
        error.add_note(
            f"{function.label}.backward is called with two arguments: define it as "
            "backward(self, target_input_indexes, grad_outputs). grad_outputs has a Variable for "
            "each output."
        )
    if str(error).startswith(("not enough values to unpack", "tuple index out of range")):
        for what, indexes in (
            ("inputs", function._retained_input_indexes),
            ("outputs", function._retained_output_indexes),
        ):
            names = getattr(type(function).backward, "__code__", explain_backward_error.__code__)
            if not indexes and f"get_retained_{what}" in names.co_names:
                error.add_note(
                    f"retain_{what}(...) was not called in forward of {function.label}: if its "
                    f"backward uses get_retained_{what}(), forward has to name them, e.g. "
                    f"self.retain_{what}((0,))."
                )
    if not function.stack:
        error.add_note(
            f"It was raised in the backward of {function.label}. Debug mode (tn.set_debug(True) "
            "before forward) shows where the function was called."
        )
    add_forward_stack(error, function)


def add_forward_stack(error: BaseException, function: Any) -> None:
    """Add to an exception of a backward where the function was called in forward."""
    if function.stack and isinstance(error, Exception):
        lines: list[Any] = traceback.format_list(function.stack)
        error.add_note(
            f"{function.label} was called in forward here. Stacktrace of the function is below:\n"
            + "".join(lines).rstrip()
        )


# --- the arguments of backward and grad ----------------------------------------------------------


def check_can_start(function: str, argument: str, y: Any) -> None:
    """Refuse to start a backward pass from a Variable that requires no gradient.

    Raises:
        BackwardSeedError: says why it requires none.
    """
    if y.requires_grad:
        return
    if y.raw is not None and not is_differentiable(y.raw):
        raise BackwardSeedError(
            f"{function}: {argument} is {dtype_name(y.dtype)}, and only floating dtypes have "
            "derivatives. Start from floats: 1.0 in place of 1, or x.astype('float32')."
        )
    raise BackwardSeedError(
        f"{function}: {argument} ({y.label}) requires no gradient: no input of its functions "
        "does. Make the inputs with requires_grad=True."
    )


def refused_backward(y: Any, retain_grad: Any, enable_double_backprop: Any) -> TypeError:
    """The error for ``y.backward()`` if y requires no gradient, or an option is not a bool.

    Raises:
        BackwardSeedError: y requires no gradient.
    """
    check_can_start("y.backward()", "y", y)
    is_first = not isinstance(retain_grad, bool)
    name = "retain_grad" if is_first else "enable_double_backprop"
    value = retain_grad if is_first else enable_double_backprop
    return TypeError(
        f"y.backward(): {name} must be a bool, got {describe(value)}. A gradient to start "
        "from goes into y.grad first."
    )


def check_seedless(y: Any) -> None:
    """Refuse ``y.backward()`` without a gradient, unless a function computed y, of size one.

    Raises:
        BackwardSeedError: y is a leaf, has several elements, or is complex.
    """
    if y.creator_node is None:
        raise BackwardSeedError(
            f"y.backward(): y ({y.label}) was computed by no recorded function: it is a leaf; "
            "or it was computed under no_backprop_mode(); or it is a gradient, and "
            "enable_double_backprop=True was left out."
        )
    check_real_start("y.backward()", "y", y)
    if y.size != 1:
        raise BackwardSeedError(
            f"y.backward(): y has shape {y.shape}, so there is no single gradient to start from; "
            "set y.grad to an array of that shape first, or call sum(y).backward()."
        )


def checked_seed(y: Any, gy: Any, position: int) -> Any:
    """The gradient of an output of ``tinynode.backward``, if it is there and fits.

    Raises:
        BackwardSeedError: the output requires no gradient, or has none to start from.
        GradientError: the gradient does not fit the output.
    """
    check_can_start("backward", f"outputs[{position}]", y)
    if gy is None:
        raise BackwardSeedError(
            f"backward: output {position} (shape {y.shape}) has no gradient: set its grad, or "
            "give grad_outputs."
        )
    check_gradient(gy, y, f"backward: grad_outputs[{position}]")
    return gy


def check_inputs_of_grad(outputs: Any, inputs: Any, grad_inputs: Any) -> None:
    """Refuse inputs of ``tinynode.grad`` that are no Variables, or from outside of a vmap.

    Raises:
        TypeError: an argument is not a tuple or a list.
        ValueError: the lengths differ.
        VmapError: an output is of an example, and an input is of all.
    """
    check_sequences("grad", "inputs", inputs, "grad_inputs", grad_inputs)
    for position, x in enumerate(inputs if hidden_axes.stack else ()):
        inside = [y for y in outputs if y.device is not x.device and is_over(y.device, x.device)]
        if inside:
            raise VmapError(
                f"grad: inputs[{position}] is from outside of the vmapped function, so the "
                "gradient would be the sum over all examples. Pass the Variable as an argument "
                "with in_axes=None, or use tinynode.gradient(f)(x) for the gradient of each "
                "example."
            )


def check_start_of_grad(y: Any, gy: Any, position: int) -> None:
    """Refuse a gradient that ``tinynode.grad`` starts from, if it does not fit the output."""
    if gy is None:
        check_real_start("grad", f"outputs[{position}]", y)
        return
    is_filled = isinstance(gy, tinynode.Variable) and gy.raw is not None
    if not (is_filled and y.is_like(gy.raw, gy.device)):
        check_gradient(gy, y, f"grad: grad_outputs[{position}]", may_be_batched=True)


def check_real_start(function: str, argument: str, y: Any) -> None:
    """Refuse to start a backward pass from a complex y without a gradient.

    Raises:
        BackwardSeedError: y is complex.
    """
    if complex_dtypes and y.raw is not None and kind_of(y.raw) == COMPLEX:
        raise BackwardSeedError(
            f"{function}: {argument} is {dtype_name(y.dtype)}, and a gradient is that of a real "
            "number. Start from a real one: real(y), imag(y) or abs(y); or give a complex "
            "gradient to start from."
        )


def check_sequences(
    function: str, name: str, variables: Any, gradients_name: str, gradients: Any
) -> None:
    """Refuse arguments that are no sequences of Variables, or gradients of another number.

    Raises:
        TypeError: an argument is not a tuple or a list, or has something else than Variables.
        ValueError: the lengths differ.
    """
    for title, sequence in ((name, variables), (gradients_name, gradients)):
        if sequence is gradients and gradients is None:
            continue  # pragma: no mutate (ReplaceContinueWithBreak): the gradients come last
        if not isinstance(sequence, tuple | list):
            raise TypeError(
                f"{function}: {title} must be a tuple or a list, got {describe(sequence)}. "
                "Write (x,) for one."
            )
    for position, x in enumerate(variables):
        if not isinstance(x, tinynode.Variable):
            raise OperandError(
                f"{function}: {name}[{position}] must be a Variable, got {describe(x)}."
            )
    if gradients is not None and len(gradients) != len(variables):
        raise ValueError(
            f"{function}: {gradients_name} has {len(gradients)} entries, expected "
            f"{len(variables)}."
        )


# --- complex numbers -----------------------------------------------------------------------------


def check_complex(function: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Prepare a function with complex inputs or outputs for backward, by its ``complex_rule``.

    Raises:
        OperandError: the function has no rule, and an output requires a gradient.
    """
    for x in (*inputs, *outputs):
        array = x.raw
        if array is None or array.dtype in x._device.floating_dtypes:
            continue
        if kind_of(array) == COMPLEX:
            break
    else:
        return
    if not function.complex_rule and any(y._requires_grad for y in outputs):
        raise OperandError(
            f"{function.label}: the function has no gradient for complex numbers, and an array "
            f"is {dtype_name(x.dtype)}. docs/complex.md lists the functions that have one. "
            "Write the function with these; or use x.detach(), if no gradient is needed."
        )
    function.is_complex = True
    if function.complex_rule == "conjugate":
        function._retained_as = conjugated


def conjugated(variables: Iterable[Any]) -> tuple[Any, ...]:
    """Retained Variables for backward: complex ones are conjugated, by a function."""
    conj = tinynode.functions.conj
    return tuple([x if x is None or kind_of(x.raw) < COMPLEX else conj(x) for x in variables])


# --- apply and forward ---------------------------------------------------------------------------


def inputs_as_tuple(function: Any, inputs: Any) -> tuple[Any, ...]:
    """The inputs of ``apply`` as a tuple.

    Raises:
        GraphError: the FunctionNode was applied before.
        OperandError: a single Variable or array stands in the place of the tuple.
    """
    if function._applied:
        raise GraphError(
            f"{function.label}: this instance was applied before. A FunctionNode is one "
            "application: make a new instance for each call."
        )
    if isinstance(inputs, tinynode.Variable) or hasattr(inputs, "dtype"):
        raise OperandError(
            f"{function.label}.apply: inputs must be a tuple, got {describe(inputs)}. Write "
            "apply((x,)) for one."
        )
    return tuple(inputs)


def check_inputs(function: Any, inputs: Sequence[Any]) -> None:
    """Refuse input Variables that are empty or on several devices.

    Raises:
        GraphError: a Variable is empty.
        DeviceMixError: the devices differ.
    """
    for x in inputs:
        if x.raw is None:
            raise GraphError(
                f"{function.label}: variable {printable(x.name or '')} is empty (no array)."
            )
    if len({x.device for x in inputs}) > 1:
        parts = [f"input {i} on {x.device}" for i, x in enumerate(inputs)]
        raise DeviceMixError(
            f"{function.label}: incompatible array types are mixed in the forward input: "
            f"{', '.join(parts)}. Move them to one device with x.to_device(...)."
        )


def call_of_function_node(function: Any) -> GraphError:
    """The error for ``function_node(x)``, which is ``function_node.apply((x,))``."""
    return GraphError(
        f"{function.label} is a FunctionNode, which is not callable: "
        f"use {function.label}().apply((x,))."
    )


def outputs_not_retained(function: Any) -> GraphError:
    """The error for ``output_data`` of a function that retained no output."""
    return GraphError(f"{function.label}: retain_outputs() was not called, or no graph recorded.")


def output_not_tuple(label: str, result: Any) -> OutputError:
    """The error for a forward that returned no tuple."""
    return OutputError(
        f"forward output must be a tuple ({label})\nActual: {describe(result)}\n"
        "Try: return (y,) with a comma, for one output too."
    )


def output_not_array(label: str, position: int, output: Any, device: Device) -> OutputError:
    """The error for a forward with an output that is no array."""
    return OutputError(
        f"forward output must be a tuple of arrays of device {device} "
        f"({label})\nActual: output {position} is {describe(output)}"
    )


def check_one_shape(function: Any, outputs: Arrays) -> None:
    """Refuse outputs of several shapes of a function with ``is_elementwise = True``.

    Raises:
        GraphError: the shapes differ.
    """
    shapes = [tuple(y.shape) for y in outputs if y is not None]
    if len(set(shapes)) > 1:
        raise GraphError(
            f"{function.label} has is_elementwise = True, which promises outputs of one shape; "
            f"its forward returned the shapes {', '.join(map(str, shapes))}."
        )


def positions_to_retain(function: Any, method: str, indexes: Any) -> tuple[int, ...]:
    """The positions that forward wants to retain, as a tuple.

    Raises:
        TypeError: they are no sequence.
    """
    if not isinstance(indexes, Iterable):
        raise TypeError(
            f"{function.label}: {method} takes the positions as a tuple, such as (0,), got "
            f"{describe(indexes)}."
        )
    return tuple(indexes)


def arrays_to_retain(
    function: Any, indexes: tuple[int, ...], arrays: Arrays
) -> tuple[Array | None, ...]:
    """The arrays at the positions that forward retains, None at the others.

    Raises:
        IndexError: a position does not exist.
    """
    if indexes == EVERY.get(len(arrays)):
        return arrays
    if not indexes:
        return _NOTHING.setdefault(len(arrays), (None,) * len(arrays))
    kept: list[Array | None] = [None] * len(arrays)
    try:
        for i in indexes:
            kept[i] = arrays[i]
    except (IndexError, TypeError):
        raise IndexError(
            f"{function.label}: forward called retain_inputs({function._retained_input_indexes}) "
            f"and retain_outputs({function._retained_output_indexes}), but there is no position "
            f"{indexes} among {len(arrays)} arrays."
        ) from None
    return tuple(kept)


EVERY = {1: (0,), 2: (0, 1), 3: (0, 1, 2)}
"""All positions of a few arrays."""
_NOTHING: dict[int, tuple[None, ...]] = {}
"""By n: n times None, for functions of n arrays that retain no array."""
