"""The texts of the graph's errors.

Requirement: an error names the function, the argument, the expected and the given value, and the
next thing to try. Long texts would hide the way of an array through the graph, so the texts stand
in this module. Each function returns an error or a text. The caller decides, and raises.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from typing import Any

from tinynode.devices import Array, Device, is_differentiable
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
    SizeError,
    TinynodeError,
    VmapError,
    describe,
    dtype_name,
    printable,
    short_text,
    snake_case,
)

# --- making a Variable ---------------------------------------------------------------------------


def variable_in_variable(array: Any) -> DeviceMixError:
    """The error for ``Variable(variable)``."""
    return DeviceMixError(
        f"Variable: array must be an array, got {describe(array)}. A second Variable on the "
        "same array is x.detach(), or functions.identity(x) in the graph."
    )


def elements_refused(array: Any) -> OperandError:
    """The error for an array of texts, dates or objects."""
    return OperandError(
        f"Variable: array must hold bools or numbers, got {describe(array)}. Convert the "
        "array: numpy.asarray(array, dtype='float64')."
    )


def cannot_require_grad(array: Array) -> RequiresGradError:
    """The error for ``requires_grad=True`` beside an array that is not floating."""
    return RequiresGradError(
        f"Variable: requires_grad=True, but the array is {dtype_name(array.dtype)}: only "
        "floating dtypes can require a gradient. Cast it first, or leave requires_grad out."
    )


def cannot_assign(array: Array) -> RequiresGradError:
    """The error for an array that is not floating, assigned to an x that requires a gradient."""
    return RequiresGradError(
        "x.array: x requires a gradient, so the array must be floating, got "
        f"{describe(array)}. Cast the array, array.astype('float64'), or make a new Variable."
    )


def requires_grad_of_result(x: Any) -> GraphError:
    """The error for ``x.requires_grad = False`` on the result of a function."""
    return GraphError(
        f"x.requires_grad: expected a leaf, got a result of {x.creator_node.label}, whose inputs "
        "decide. Take y = x.detach() for a Variable without a gradient."
    )


def variable_released() -> GraphError:
    """The error for ``retain_data`` of a node without a Variable."""
    return GraphError(
        "cannot retain variable data: the variable has been already released. "
        "Keep a reference to the Variable until then."
    )


# --- gradients -----------------------------------------------------------------------------------


def variable_as_grad() -> GradientTypeError:
    """The error for a Variable that is assigned to ``x.grad``."""
    return GradientTypeError("grad: expected an array, got a Variable. Assign it to grad_var.")


def grad_no_array(grad: Any) -> GradientTypeError:
    """The error for another object than an array that is assigned to ``x.grad``."""
    return GradientTypeError(f"grad: expected an array, got {describe(grad)}.")


def gradient_no_variable(title: str, gx: Any) -> GradientTypeError:
    """The error for a gradient that is no Variable; ``title`` names the gradient."""
    return GradientTypeError(
        f"{title}: expected a Variable, got {describe(gx)}. Compute it from Variables, so "
        "that it can be differentiated again."
    )


def gradient_on_another_device(title: str, gx: Any, x: Any) -> GradientTypeError:
    """The error for a gradient on another device than x."""
    return GradientTypeError(
        f"{title}: Device of data and grad mismatch: data is on {x.device}, grad is on "
        f"{gx.device}. Move it with to_device({str(x.device)!r})."
    )


def gradient_of_another_shape(title: str, gx: Any, x: Any) -> GradientShapeError:
    """The error for a gradient of another shape than x."""
    return GradientShapeError(
        f"{title}: Shape of data and grad mismatch: {x.shape} != {gx.shape}. If the data was "
        "broadcast, bring the gradient back with sum_to(gx, x.shape)."
    )


def gradient_of_another_dtype(title: str, gx: Any, x: Any) -> GradientTypeError:
    """The error for a gradient of another dtype than x."""
    return GradientTypeError(
        f"{title}: Dtype of data and grad mismatch: {dtype_name(x.dtype)} != "
        f"{dtype_name(gx.dtype)}. Cast it with astype(gx, x.dtype)."
    )


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


def notes_of_backward(error: Exception, function: Any) -> list[str]:
    """Notes for an exception of a backward: a cure that is known, and the line of the call."""
    notes = []
    if isinstance(error, TypeError) and "backward() " in str(error) and "positional" in str(error):
        notes.append(
            f"{function.label}.backward is called with two arguments: define it as "
            "backward(self, target_input_indexes, grad_outputs). grad_outputs has a Variable for "
            "each output."
        )
    if str(error).startswith(("not enough values to unpack", "tuple index out of range")):
        notes += _notes_about_retaining(function)
    if function.stack:
        notes.append(forward_stack(function))
    else:
        notes.append(
            f"It was raised in the backward of {function.label}. Debug mode (tn.set_debug(True) "
            "before forward) shows where the function was called."
        )
    return notes


def _notes_about_retaining(function: Any) -> list[str]:
    """Notes for a backward that asks for retained arrays, if forward retained none."""
    code = getattr(type(function).backward, "__code__", None)
    asked = () if code is None else code.co_names
    return [
        f"retain_{what}(...) was not called in forward of {function.label}: if its "
        f"backward uses get_retained_{what}(), forward has to name them, e.g. "
        f"self.retain_{what}((0,))."
        for what, indexes in (
            ("inputs", function.retained_input_indexes),
            ("outputs", function.retained_output_indexes),
        )
        if not indexes and f"get_retained_{what}" in asked
    ]


def forward_stack(function: Any) -> str:
    """The lines of user code that called a function in forward, in debug mode."""
    lines: list[str] = traceback.format_list(function.stack)
    return (
        f"{function.label} was called in forward here. Stacktrace of the function is below:\n"
        + "".join(lines).rstrip()
    )


def list_of_variables() -> OperandError:
    """The error for a list with Variables, given to ``asarray``."""
    return OperandError(
        "asarray: the list holds Variables. Join them with tinynode.functions.concat, so that "
        "their gradients come back."
    )


def number_too_large(function: str, argument: str, number: Any) -> SizeError:
    """The error for an integer that the array library cannot hold."""
    return SizeError(
        f"{function}: {argument} is larger than the integers of arrays, which have 64 bits at "
        f"most: got {describe(number)}. Use a smaller number, or a float."
    )


def is_too_large(error: Exception) -> bool:
    """True for an array library's error about the size of an array or of a number."""
    if isinstance(error, SizeError):
        return False  # names the function
    is_numpy = isinstance(error, ValueError) and str(error).startswith(
        (
            "array is too big",
            "Maximum allowed dimension",
            "Maximum allowed size",
            "iterator is too large",
        )
    )
    return is_numpy or isinstance(error, MemoryError | OverflowError)


def note_constants(error: Exception, function: Any) -> None:
    """Add the function and its constants to an error of an array library, which has no name."""
    names = inspect.signature(type(function).__init__).parameters
    constants = {name: value for name, value in vars(function).items() if name in names}
    if constants and not isinstance(error, TinynodeError):
        texts = [f"{name}={short_text(value)}" for name, value in constants.items()]
        title = type(function).__name__
        error.add_note(f"It was raised by the forward of {title}, {', '.join(texts)}.")


def forward_too_large(function: Any, arrays: Any, error: Exception) -> SizeError:
    """The error for a forward whose result does not fit into the memory."""
    names = inspect.signature(type(function)).parameters
    attributes = [
        f"{name} {short_text(getattr(function, name))}"
        for name in names
        if hasattr(function, name)
    ]
    given = ", ".join([*map(describe, arrays), *attributes])
    return SizeError(
        f"{snake_case(function.label)}: the result is too large for the memory, or a number for "
        f"its dtype: {error}. Got {given or 'no inputs'}. Make the sizes smaller, or compute in "
        "parts."
    )


def call_too_large(function: str, error: Exception, **arguments: Any) -> SizeError:
    """The error for a call whose result does not fit into the memory.

    The error of a function inside names neither the function that was called nor its arguments.
    """
    given = ", ".join(f"{name} {short_text(value)}" for name, value in arguments.items())
    return SizeError(
        f"{function}: the result is too large for the memory: {error.__cause__ or error}. Got "
        f"{given}. Make the sizes smaller, or compute in parts."
    )


# --- the arguments of backward and grad ----------------------------------------------------------


def cannot_start(function: str, argument: str, y: Any) -> BackwardSeedError:
    """The error for a backward pass from a Variable that requires no gradient."""
    if y.raw is not None and not is_differentiable(y.raw):
        return BackwardSeedError(
            f"{function}: {argument} is {dtype_name(y.dtype)}, and only floating dtypes have "
            "derivatives. Start from floats: 1.0 in place of 1, or x.astype('float32')."
        )
    return BackwardSeedError(
        f"{function}: {argument} ({y.label}) requires no gradient: no input of its functions "
        "does; or it was computed under no_backprop_mode(); or it is a gradient, and "
        "enable_double_backprop=True was left out. Make the inputs with requires_grad=True, or "
        "call model.unfreeze() if the parameters are frozen, and record a graph."
    )


def option_no_bool(name: str, value: Any) -> TypeError:
    """The error for an option of ``y.backward()`` that is no bool."""
    return TypeError(
        f"y.backward(): {name} must be a bool, got {describe(value)}. A gradient to start "
        "from goes into y.grad first."
    )


def deep_copy_of_result(x: Any) -> GraphError:
    """The error for ``copy.deepcopy`` of a Variable with a graph."""
    return GraphError(
        f"copy.deepcopy: x ({x.label}) was computed by {x.creator_node.label}. A copy would be a "
        "leaf, and no gradient would reach the inputs. Copy x.detach() for the values, or write "
        "tinynode.functions.identity(x) for a Variable in the same graph."
    )


def start_from_leaf(y: Any) -> BackwardSeedError:
    """The error for ``y.backward()`` of a leaf without a gradient."""
    return BackwardSeedError(
        f"y.backward(): y ({y.label}) was computed by no recorded function: it is a leaf. Call "
        "backward() of a result that was computed from it."
    )


def start_from_several(y: Any) -> BackwardSeedError:
    """The error for ``y.backward()`` of several elements without a gradient."""
    return BackwardSeedError(
        f"y.backward(): y has shape {y.shape}, so there is no single gradient to start from; "
        "set y.grad to an array of that shape first, or call sum(y).backward()."
    )


def start_from_complex(function: str, argument: str, y: Any) -> BackwardSeedError:
    """The error for a backward pass from a complex Variable without a gradient."""
    return BackwardSeedError(
        f"{function}: {argument} is {dtype_name(y.dtype)}, and a gradient is that of a real "
        "number. Start from a real one: real(y), imag(y) or abs(y); or give a complex "
        "gradient to start from."
    )


def start_without_gradient(position: int, y: Any) -> BackwardSeedError:
    """The error for ``tinynode.backward`` of an output without a gradient."""
    return BackwardSeedError(
        f"backward: output {position} (shape {y.shape}) has no gradient: set its grad, or "
        "give grad_outputs."
    )


def input_outside_of_vmap(position: int) -> VmapError:
    """The error for ``tinynode.grad`` with an output of an example, and an input of all."""
    return VmapError(
        f"grad: inputs[{position}] is from outside of the vmapped function, so the "
        "gradient would be the sum over all examples. Pass the Variable as an argument "
        "with in_axes=None, or use tinynode.gradient(f)(x) for the gradient of each "
        "example."
    )


def no_sequence(function: str, title: str, sequence: Any) -> TypeError:
    """The error for an argument that is neither a tuple nor a list."""
    return TypeError(
        f"{function}: {title} must be a tuple or a list, got {describe(sequence)}. "
        "Write (x,) for one."
    )


def grad_of_function(f: Any) -> TypeError:
    """The error for a function in place of outputs, as JAX's ``grad`` takes."""
    return TypeError(
        f"grad: outputs must be a tuple or a list, got {describe(f)}. The gradient of a function "
        "is tinynode.gradient(f), and its value too tinynode.value_and_grad(f)."
    )


def no_variable(function: str, title: str, x: Any) -> OperandError:
    """The error for an element of a sequence that is no Variable."""
    return OperandError(f"{function}: {title} must be a Variable, got {describe(x)}.")


def lengths_differ(function: str, title: str, number: int, expected: int) -> ValueError:
    """The error for a sequence of gradients of another length."""
    return ValueError(f"{function}: {title} has {number} entries, expected {expected}.")


# --- apply and forward ---------------------------------------------------------------------------


def applied_before(function: Any) -> GraphError:
    """The error for a second ``apply`` of a FunctionNode."""
    return GraphError(
        f"{function.label}: this instance was applied before. A FunctionNode is one "
        "application: make a new instance for each call."
    )


def inputs_no_tuple(function: Any, inputs: Any) -> OperandError:
    """The error for ``apply(x)`` in place of ``apply((x,))``."""
    return OperandError(
        f"{function.label}.apply: inputs must be a tuple, got {describe(inputs)}. Write "
        "apply((x,)) for one."
    )


def empty_input(function: Any, x: Any) -> GraphError:
    """The error for an input Variable without an array."""
    return GraphError(f"{function.label}: variable {printable(x.name or '')} is empty (no array).")


def devices_mixed(function: Any, inputs: Sequence[Any]) -> DeviceMixError:
    """The error for input Variables on several devices."""
    parts = [f"input {i} on {x.device}" for i, x in enumerate(inputs)]
    return DeviceMixError(
        f"{function.label}: incompatible array types are mixed in the forward input: "
        f"{', '.join(parts)}. Move them to one device with x.to_device(...)."
    )


def complex_without_rule(function: Any, dtype: Any) -> OperandError:
    """The error for complex numbers in a function without ``complex_rule``."""
    return OperandError(
        f"{function.label}: the function has no gradient for complex numbers, and an array "
        f"is {dtype_name(dtype)}. docs/complex.md lists the functions that have one. "
        "Write the function with these; or use x.detach(), if no gradient is needed."
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


def positions_no_sequence(function: Any, method: str, indexes: Any) -> TypeError:
    """The error for ``retain_inputs(0)`` in place of ``retain_inputs((0,))``."""
    return TypeError(
        f"{function.label}: {method} takes the positions as a tuple, such as (0,), got "
        f"{describe(indexes)}."
    )


def no_such_position(function: Any, indexes: Any, number: int) -> IndexError:
    """The error for a position to retain that does not exist."""
    return IndexError(
        f"{function.label}: forward called retain_inputs({function.retained_input_indexes}) "
        f"and retain_outputs({function.retained_output_indexes}), but there is no position "
        f"{indexes} among {number} arrays."
    )


def several_shapes(function: Any, outputs: Sequence[Any]) -> GraphError:
    """The error for outputs of several shapes of a function with ``is_elementwise = True``."""
    shapes = [str(tuple(y.shape)) for y in outputs if y is not None]
    return GraphError(
        f"{function.label} has is_elementwise = True, which promises outputs of one shape; "
        f"its forward returned the shapes {', '.join(shapes)}."
    )
