"""Debug mode: where a function was called, NaN, and arrays that were changed in place."""

from __future__ import annotations

import inspect
import re
import traceback
from unittest import mock

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import GraphError, InplaceError, NaNError
from tinynode.hooks import debug

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


@pytest.fixture
def debugging():
    with tn.using_config(debug=True):
        yield


def here():
    """This file and the line of the caller, as messages show it."""
    return f"{__file__}:{inspect.currentframe().f_back.f_lineno}"


class Fails(tn.FunctionNode):
    """Retains its input, and fails in backward with a given error."""

    def __init__(self, error):
        self.error = error

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * 1,)

    def backward(self, target_input_indexes, grad_outputs):
        raise self.error


class Gives(tn.FunctionNode):
    """y = x, with a gradient or outputs that a test supplies."""

    def __init__(self, gradient=None, outputs=None):
        self.gradient = gradient
        self.outputs_of_test = outputs

    def forward(self, inputs):
        return (inputs[0] * 1,) if self.outputs_of_test is None else self.outputs_of_test

    def backward(self, target_input_indexes, grad_outputs):
        return (self.gradient,)


# --- the stack of forward --------------------------------------------------------------------


def test_the_stack_is_recorded_only_in_debug_mode():
    x = variable(1.0)
    assert F.exp(x).creator.stack is None
    with tn.using_config(debug=True):
        y = F.exp(x)
        line = here()
    assert type(y.creator.stack) is traceback.StackSummary
    frame = y.creator.stack[-1]
    assert f"{frame.filename}:{frame.lineno + 1}" == line


def test_the_last_frame_is_the_user_s_not_ours(debugging):
    x = variable(1.0)
    for y in (x * x, F.mean(variable([1.0])), tn.forget(F.exp, x), x.reshape(1)):
        frame = y.creator.stack[-1]
        assert frame.filename == __file__ and frame.name == inspect.currentframe().f_code.co_name
        assert not any("tinynode/tinynode" in f.filename for f in y.creator.stack)


def test_an_error_of_backward_keeps_its_type_and_carries_the_forward_stack(debugging):
    error = KeyError("planted")
    x = variable(1.0)
    y = Fails(error).apply((x,))[0]
    line = here()
    with pytest.raises(KeyError) as caught:
        y.backward()
    assert caught.value is error and error.args == ("planted",)
    (note,) = error.__notes__
    number = int(line.rpartition(":")[2]) - 1
    assert note.startswith("Fails was called in forward here.")
    assert "Stacktrace of the function is below:" in note
    assert f'File "{__file__}", line {number}' in note.splitlines()[-2]


def test_a_recorded_stack_is_shown_even_if_debug_is_off_at_backward_time():
    x = variable(1.0)
    with tn.using_config(debug=True):
        y = Fails(RuntimeError("planted")).apply((x,))[0]
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    assert "Stacktrace of the function is below:" in caught.value.__notes__[0]


def test_without_a_stack_the_note_names_the_function_and_says_how_to_get_one():
    y = Fails(RuntimeError("planted")).apply((variable(1.0),))[0]
    with tn.using_config(debug=True), pytest.raises(RuntimeError) as caught:
        y.backward()
    (note,) = caught.value.__notes__
    assert "backward of Fails" in note and "set_debug(True)" in note
    assert "Stacktrace" not in note


@pytest.mark.parametrize("result", [(), (1.0,), (variable([1.0, 2.0]),), None])
def test_errors_about_what_backward_returned_carry_the_forward_stack_too(debugging, result):
    class Returns(Gives):
        def backward(self, target_input_indexes, grad_outputs):
            return result

    y = Returns().apply((variable(1.0),))[0]
    with pytest.raises(tn.TinynodeError) as caught:
        y.backward()
    assert any(f'File "{__file__}"' in note for note in caught.value.__notes__)


def test_an_interrupt_passes_untouched(debugging):
    y = Fails(KeyboardInterrupt()).apply((variable(1.0),))[0]
    with pytest.raises(KeyboardInterrupt) as caught:
        y.backward()
    assert not hasattr(caught.value, "__notes__")


# --- NaN -------------------------------------------------------------------------------------


def test_nan_in_forward_names_label_output_shape_dtype_and_the_user_s_line(debugging):
    x = variable([[1.0, -1.0]])
    with np.errstate(invalid="ignore"), pytest.raises(RuntimeError) as caught:
        F.log(x)
    line = int(here().rpartition(":")[2]) - 1
    assert isinstance(caught.value, NaNError)
    message = str(caught.value)
    assert message.startswith("NaN is detected on forward computation of Log: output 0")
    assert "shape (1, 2), float64" in message and f"{__file__}:{line}" in message


def test_nan_is_looked_for_in_every_output_and_integers_are_skipped(debugging):
    outputs = (np.ones(1), np.array([1, 2]), None, np.array([1.0, np.nan], np.float32))
    with pytest.raises(NaNError, match=r"of Gives: output 3, shape \(2,\), float32"):
        Gives(outputs=outputs).apply((variable([1.0]),))
    Gives(outputs=outputs[:3]).apply((variable([1.0]),))


def test_nan_in_a_complex_output_is_found(debugging):
    with pytest.raises(NaNError, match="complex128"):
        Gives(outputs=(np.array([1 + 1j * np.nan]),)).apply((variable([1.0]).detach(),))


def test_infinity_is_no_nan(debugging):
    Gives(outputs=(np.array([np.inf]),)).apply((variable([1.0]),))


def test_nan_is_found_after_the_postprocess_hooks(debugging):
    events = []

    class Hook(tn.FunctionHook):
        def forward_postprocess(self, function, in_data):
            events.append(function.label)

    with Hook(), pytest.raises(NaNError):
        Gives(outputs=(np.array([np.nan]),)).apply((variable([1.0]),))
    assert events == ["Gives"]


@pytest.mark.parametrize("by", ["backward", "grad"])
def test_nan_in_backward_names_label_and_the_line_of_forward(debugging, by):
    x = variable(1.0)
    y = Gives(gradient=variable(np.nan)).apply((x,))[0]
    line = int(here().rpartition(":")[2]) - 1
    with pytest.raises(RuntimeError) as caught:
        if by == "backward":
            y.backward()
        else:
            tn.grad([y], [x])
    message = str(caught.value)
    assert message.startswith(
        "NaN is detected on backward computation of Gives: the gradient of input 0"
    )
    assert f"{__file__}:{line}" in message and x.grad is None


def test_nan_passes_without_debug_mode():
    x = variable(1.0)
    Gives(gradient=variable(np.nan)).apply((x,))[0].backward()
    assert np.isnan(x.grad)


# --- arrays that were changed in place -------------------------------------------------------


@pytest.mark.parametrize("by", ["backward", "grad"])
def test_a_retained_input_that_was_changed_in_place_is_named_with_the_user_s_line(debugging, by):
    x = variable([1.0, 2.0, 3.0])
    y = F.sum(F.sin(x))
    line = int(here().rpartition(":")[2]) - 1
    x.array[1] += 1.0
    with pytest.raises(InplaceError) as caught:
        if by == "backward":
            y.backward()
        else:
            tn.grad([y], [x])
    message = str(caught.value)
    assert message.startswith("input 0 of Sin (shape (3,), float64) was changed in place")
    assert f"after forward at {__file__}:{line}" in message and "Copy the array" in message
    assert isinstance(caught.value, GraphError) and x.grad is None


def test_a_retained_output_that_was_changed_in_place_is_named(debugging):
    x = variable([1.0, 2.0])
    y = F.exp(x)
    y.array[0] = 0.0
    with pytest.raises(InplaceError, match=r"output 0 of Exp \(shape \(2,\), float64\)"):
        F.sum(y).backward()


def test_each_of_several_retained_arrays_is_watched(debugging):
    for i in (0, 1):
        x, w = variable([1.0]), variable([2.0])
        y = x * w
        (x, w)[i].array[0] = 7.0
        with pytest.raises(InplaceError, match=rf"input {i} of Multiply"):
            y.backward()


def test_a_change_through_a_view_is_found(debugging):
    base = np.arange(6.0).reshape(2, 3)
    x = tn.Variable(base.T)
    y = F.sum(x * x)
    base[0, 0] = 9.0
    with pytest.raises(InplaceError):
        y.backward()


def test_changing_what_is_not_retained_is_fine(debugging):
    x = variable([1.0])
    y = x + 1.0
    x.array[0] = 100.0
    y.backward()
    assert x.grad == 1.0


def test_assigning_another_array_is_fine(debugging):
    x = variable([3.0])
    y = x * x
    x.array = np.array([100.0])
    y.backward()
    assert x.grad == 6.0


def test_writing_by_index_is_fine(debugging):
    x = variable([3.0, 4.0])
    h = x * 1.0
    y = F.sum(h * h)
    h[0] = 100.0
    y.backward()
    np.testing.assert_array_equal(x.grad, [6.0, 8.0])


def test_after_the_array_was_put_back_backward_works(debugging):
    x = variable([1.0])
    y = x * x
    x.array[0] = 5.0
    with pytest.raises(InplaceError):
        y.backward()
    x.array[0] = 1.0
    y.backward()
    assert x.grad == 2.0


def test_a_retained_output_that_is_none_needs_no_checksum(debugging):
    class Half(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_outputs((0, 1))
            return None, inputs[0] * 1

        def backward(self, target_input_indexes, grad_outputs):
            return (grad_outputs[1],)

    x = variable([1.0])
    _, y = Half().apply((x,))
    y.backward()
    assert x.grad == 1.0


def test_zero_size_and_0_d_arrays_are_watched_without_trouble(debugging):
    for shape in ((0, 3), ()):
        x = variable(np.zeros(shape))
        F.sum(x * x).backward()
        assert x.grad.shape == shape


def test_in_place_changes_pass_without_debug_mode():
    x = variable([3.0])
    y = x * x
    x.array[0] = 5.0
    y.backward()
    assert x.grad == 10.0


def test_a_graph_recorded_without_debug_mode_is_not_checked():
    x = variable([3.0])
    y = x * x
    x.array[0] = 5.0
    with tn.using_config(debug=True):
        y.backward()
    assert x.grad == 10.0


def test_only_a_floating_or_complex_array_has_a_nan():
    assert debug.has_nan(np.asarray([1.0, np.nan])) and debug.has_nan(
        np.asarray([complex(0.0, np.nan)])
    )
    for array in (None, np.asarray([1]), np.asarray([True]), np.asarray([1.0, np.inf])):
        assert debug.has_nan(array) is False


# --- off costs nothing -----------------------------------------------------------------------


def test_none_of_it_is_called_while_debug_mode_is_off():
    names = ["capture_stack", "check_nan", "has_nan", "checksum", "check_unchanged"]
    with mock.patch.multiple(
        debug, **{name: mock.Mock(side_effect=AssertionError) for name in names}
    ):
        x = variable([1.0, 2.0])
        y = F.sum(F.exp(x) * x)
        y.backward()
        tn.grad([y], [x])
    assert y.creator.stack is None and y.creator.retained_checksums == ()


def test_gradients_are_the_same_with_and_without_debug_mode():
    def gradient():
        x = variable([0.3, 0.7])
        F.sum(F.exp(x) * F.tanh(x) / x).backward()
        return x.grad

    plain = gradient()
    with tn.using_config(debug=True):
        np.testing.assert_array_equal(gradient(), plain)


def test_nested_functions_of_a_backward_are_checked_too(debugging):
    class Outer(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes, grad_outputs):
            (x,) = self.get_retained_inputs()
            return (grad_outputs[0] * F.log(x),)

    x = variable([-1.0])
    y = Outer().apply((x,))[0]
    with np.errstate(invalid="ignore"), pytest.raises(NaNError) as caught:
        y.backward()
    assert "backward computation of Outer" in str(caught.value)
    assert "Inside of the backward, Log made nan of -1." in str(caught.value)
    assert any("Outer was called in forward here" in note for note in caught.value.__notes__)


def test_user_line_says_how_to_find_out_when_it_is_unknown():
    y = F.exp(variable(1.0))
    assert re.search("unknown line.*debug mode was off", debug.user_line(y.creator))
