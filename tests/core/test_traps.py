"""The traps that learners step into: each has its message, with label, shapes, dtypes and cure."""

from __future__ import annotations

import contextlib
import gc
import inspect
import weakref

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.errors import (
    BackwardSeedError,
    DeviceMixError,
    GradientShapeError,
    GradientTypeError,
    GraphError,
    InplaceError,
    InvalidType,
    NaNError,
    OperandError,
    OutputError,
    RequiresGradError,
    StateError,
)

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


def error_of(call):
    """The error that a call raises, and all of its text with the notes."""
    with pytest.raises(Exception) as caught:
        call()
    error = caught.value
    return error, "\n".join([str(error), *getattr(error, "__notes__", [])])


def contains(text, *parts):
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in: {text}"


# --- reuse of a non-leaf ---------------------------------------------------------------------


def test_reuse_of_a_non_leaf_adds_the_gradients_of_all_its_uses():
    """A depth-first walk without order gives 4 here: the classic wrong number."""
    x = variable(3.0)
    h = x * 2.0
    y = fn.exp(h * 0.0) * h + h
    y.backward()
    assert x.grad == 4.0
    a = variable(1.0)
    b = a * 2.0
    c = b * b
    (c * b + c).backward()  # b^3 + b^2
    assert a.grad == 2 * (3 * 4.0 + 2 * 2.0)


# --- the second backward ---------------------------------------------------------------------


def test_a_second_backward_accumulates_in_leaves_only_and_cleargrad_is_the_cure():
    x = variable(3.0)
    h = x * x
    y = h * h
    y.backward(retain_grad=True)
    first = x.grad, h.grad
    y.cleargrad()
    y.backward(retain_grad=True)
    assert x.grad == 2 * first[0] and h.grad == first[1]
    x.cleargrad()
    y.cleargrad()
    y.backward()
    assert x.grad == first[0]


def test_the_docstring_of_backward_says_so():
    text = " ".join(inspect.getdoc(tn.Variable.backward).split())
    contains(text, "*added*", "cleargrad()", "graph stays")


# --- grad is None ----------------------------------------------------------------------------


def test_grad_is_none_before_backward_for_intermediates_and_for_what_is_not_reached():
    x, unreached, fixed = variable(1.0), variable(1.0), variable(1.0, requires_grad=False)
    h = x * fixed
    assert x.grad is None
    (h * 2.0).backward()
    assert h.grad is None and unreached.grad is None and fixed.grad is None and x.grad == 2.0


# --- backward of a non-scalar ----------------------------------------------------------------


def test_backward_of_a_non_scalar_names_the_shape_and_two_cures_at_once():
    called = []

    class Sees(tn.FunctionNode):
        def forward(self, inputs):
            return inputs

        def backward(self, target_input_indexes, grad_outputs):
            called.append(grad_outputs)

    (y,) = Sees().apply((variable(np.zeros((2, 3))),))
    error, text = error_of(y.backward)
    assert type(error) is BackwardSeedError and isinstance(error, ValueError) and called == []
    contains(text, "y has shape (2, 3)", "set y.grad", "sum(y).backward()")


# --- writing in place ------------------------------------------------------------------------


def test_a_retained_array_changed_in_place_is_named_in_debug_mode():
    with tn.using_config(debug=True):
        x = variable([1.0, 2.0])
        y = fn.sum(fn.log(x))
        line = inspect.currentframe().f_lineno - 1
        x.data[...] += 1
        error, text = error_of(y.backward)
    assert type(error) is InplaceError
    contains(text, "input 0 of Log", "(2,), float64", f"{__file__}:{line}", "Copy the array")


def test_writing_through_the_variable_is_safe_or_an_error_never_wrong():
    x = variable([1.0, 2.0])
    h = x * 1.0
    y = fn.sum(h * h)
    h += 1.0
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])

    def write():
        x[0] = 1.0

    error, text = error_of(write)
    assert type(error) is GraphError
    contains(text, "leaf that requires a gradient", "x = x + v", "x.array")


def test_assigning_an_array_after_use_keeps_the_old_gradient():
    x = variable(3.0)
    y = x * x
    x.array = np.asarray(5.0)
    y.backward()
    assert x.grad == 6.0


# --- gradients that broadcast ----------------------------------------------------------------


class Forgets(tn.FunctionNode):
    """z = x + y, whose backward forgets to sum over broadcast axes."""

    def forward(self, inputs):
        return (inputs[0] + inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0], grad_outputs[0]


def test_a_gradient_of_the_broadcast_shape_is_refused_with_both_shapes():
    x, b = variable(np.zeros((4, 3))), variable(np.zeros(3))
    y = fn.sum(Forgets().apply((x, b))[0])
    for call in (y.backward, lambda: tn.grad([y], [b])):
        error, text = error_of(call)
        assert type(error) is GradientShapeError
        contains(text, "`Forgets`", "input 1", "(4, 3)", "(3,)", "sum_to(gx, x.shape)")
    assert x.grad is None and b.grad is None


def test_a_gradient_of_another_dtype_is_refused_with_both_dtypes():
    x, b = variable([1.0]), variable([1.0], np.float32)
    error, text = error_of(Forgets().apply((x, b))[0].backward)
    assert type(error) is GradientTypeError
    contains(text, "`Forgets`", "input 1", "float64", "float32", "astype(gx, x.dtype)")


def test_shapes_that_do_not_broadcast_are_refused_in_forward_with_label_shapes_and_hint():
    error, text = error_of(lambda: variable(np.zeros((2, 3))) * variable(np.zeros(2)))
    assert type(error) is InvalidType and isinstance(error, ValueError)
    contains(text, "Multiply", "in_types[0] (x): shape (2, 3), float64", "shape (2,)", "Try: ")


# --- devices ---------------------------------------------------------------------------------


def test_variables_of_two_devices_are_named_with_the_cure():
    x = tn.asarray([1.0], device="strict:device1")
    w = tn.asarray([1.0], device="numpy")
    error, text = error_of(lambda: x * w)
    assert type(error) is DeviceMixError and isinstance(error, TypeError)
    contains(text, "Multiply", "input 0 on strict:device1", "input 1 on numpy", "to_device")


def test_a_raw_array_on_another_device_is_named_with_the_cure():
    x = tn.asarray([1.0], device="numpy")
    y = tn.get_device("strict:device1").from_host(np.ones(1))
    error, text = error_of(lambda: x * y)
    assert type(error) is DeviceMixError
    contains(text, "multiply: y", "numpy", "strict:device1", "asarray(y, device=")


# --- float64 creep ---------------------------------------------------------------------------


def test_float32_stays_float32_through_scalars_arrays_and_gradients():
    x = variable([1.0, 2.0], np.float32)
    y = 2.0 * x**2 / 3 - np.float64(1.5) + np.ones(2, np.float64) * x
    y = fn.mean(fn.exp(-y) * 0.5 + 1)
    assert y.dtype == np.float32
    y.backward()
    assert x.grad.dtype == np.float32


def test_each_variable_keeps_its_own_dtype_for_its_gradient():
    x, w = variable([1.0], np.float32), variable([1.0])
    fn.sum(x * w).backward()
    assert x.grad.dtype == np.float32 and w.grad.dtype == np.float64


# --- integers --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_asking_for_a_gradient_of_what_cannot_have_one(dtype):
    error, text = error_of(lambda: tn.Variable(np.zeros(2, dtype), requires_grad=True))
    assert type(error) is RequiresGradError and isinstance(error, TypeError)
    contains(text, np.dtype(dtype).name, "only floating dtypes can require a gradient", "Cast it")


def test_backward_from_what_requires_no_gradient():
    error, text = error_of((tn.asarray([1]) * 2).backward)
    assert type(error) is BackwardSeedError
    contains(text, "int64", "only floating dtypes have derivatives", "1.0 in place of 1")
    error, text = error_of((variable([1.0]).detach() * 2).backward)
    assert type(error) is BackwardSeedError
    contains(text, "(1,), float64", "requires no gradient", "requires_grad=True")


def test_a_list_or_a_number_in_place_of_an_array():
    error, text = error_of(lambda: tn.Variable([1.0, 2.0]))
    assert isinstance(error, TypeError)
    contains(text, "list [1.0, 2.0]", "asarray")
    error, text = error_of(lambda: fn.exp(1.0))
    assert type(error) is OperandError
    contains(text, "exp: x", "float 1.0", "asarray")


# --- the second derivative -------------------------------------------------------------------


def test_none_from_grad_is_an_exact_zero_and_the_docstring_says_so():
    x, w = variable(1.0), variable(1.0)
    (gx,) = tn.grad([x * 3.0], [x], enable_double_backprop=True)
    assert tn.grad([gx], [x]) == [None] and tn.grad([x * x], [w]) == [None]
    text = " ".join(inspect.getdoc(tn.grad).split())
    contains(text, "None", "exactly zero")


class ArrayBackward(tn.FunctionNode):
    """y = x^2, whose backward leaves the graph."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (2 * x.array * grad_outputs[0].array,)


@pytest.mark.parametrize("debug", [False, True])
def test_a_backward_that_returns_arrays_is_refused_by_name(debug):
    x = variable([1.0])
    with tn.using_config(debug=debug):
        (y,) = ArrayBackward().apply((x,))
        error, text = error_of(y.backward)
    assert type(error) is GradientTypeError
    contains(text, "`ArrayBackward`", "input 0", "ndarray of shape (1,), float64", "Variable")


# --- retaining -------------------------------------------------------------------------------


class ForgetsToRetain(tn.FunctionNode):
    """y = x w, without retain_inputs."""

    def __init__(self, use):
        self.use = use

    def forward(self, inputs):
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        if self.use == "unpack":
            x, w = self.get_retained_inputs()
        elif self.use == "index":
            x, w = self.get_retained_inputs()[0], self.get_retained_inputs()[1]
        else:
            (y,) = self.get_retained_outputs()
            x = w = y
        return grad_outputs[0] * w, grad_outputs[0] * x


@pytest.mark.parametrize(
    ("use", "name"), [("unpack", "inputs"), ("index", "inputs"), ("output", "outputs")]
)
def test_a_forgotten_retain_is_named_with_the_line_to_write(use, name):
    x = variable([1.0])
    error, text = error_of(ForgetsToRetain(use).apply((x, x))[0].backward)
    assert isinstance(error, ValueError | IndexError)
    contains(
        text,
        f"retain_{name}(...) was not called in forward of ForgetsToRetain",
        f"get_retained_{name}()",
        f"self.retain_{name}((0,))",
    )


def test_a_backward_with_other_arguments_is_shown_the_right_ones():
    class OneArgument(ForgetsToRetain):
        def backward(self, grad_outputs):
            return grad_outputs

    x = variable([1.0])
    error, text = error_of(OneArgument("").apply((x, x))[0].backward)
    assert isinstance(error, TypeError)
    contains(
        text,
        "OneArgument.backward is called with two arguments",
        "backward(self, target_input_indexes, grad_outputs)",
    )


def test_rows_of_several_lengths_are_named():
    with pytest.raises(ValueError, match=r"asarray: obj must have rows of one length, got list"):
        tn.asarray([[1, 2], [3]])


def test_other_errors_of_a_backward_get_no_such_note():
    class Fails(ForgetsToRetain):
        def backward(self, target_input_indexes, grad_outputs):
            raise ValueError("something else")

    x = variable([1.0])
    _, text = error_of(Fails("").apply((x, x))[0].backward)
    assert text.startswith("something else") and "retain_" not in text


# --- what forward returns --------------------------------------------------------------------


class ReturnsArray(tn.FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2


def test_forward_that_returns_an_array_is_told_about_the_comma():
    error, text = error_of(lambda: ReturnsArray().apply((variable(np.zeros((2, 3))),)))
    assert type(error) is OutputError and isinstance(error, TypeError)
    contains(text, "forward output must be a tuple (ReturnsArray)")
    contains(text, "Actual: ndarray of shape (2, 3), float64", "comma")


def test_forward_that_returns_a_python_number_is_an_error():
    class ReturnsNumber(tn.FunctionNode):
        def forward(self, inputs):
            return (float(inputs[0].sum()),)

    error, text = error_of(lambda: ReturnsNumber().apply((variable([1.0, 2.0]),)))
    assert type(error) is OutputError
    contains(text, "ReturnsNumber", "output 0 is float 3.0", "numpy")


def test_calling_a_function_node_is_told_about_apply():
    error, text = error_of(lambda: fn.Exp()(variable([1.0])))
    assert isinstance(error, RuntimeError)
    contains(text, "Exp", "not callable", "Exp().apply((x,))")


def test_applying_an_instance_twice():
    f = fn.Exp()
    f.apply((variable([1.0]),))
    error, text = error_of(lambda: f.apply((variable([1.0]),)))
    assert type(error) is GraphError
    contains(text, "Exp", "applied before", "new instance")


# --- NaN -------------------------------------------------------------------------------------


def test_nan_is_found_where_it_is_made_in_debug_mode():
    with tn.using_config(debug=True), np.errstate(invalid="ignore"):
        x = variable([4.0, -4.0])
        error, text = error_of(lambda: fn.sum(fn.sqrt(x) * 2.0))
        line = inspect.currentframe().f_lineno - 1
    assert type(error) is NaNError
    contains(text, "forward computation of Sqrt", "(2,), float64", f"{__file__}:{line}")


class SlopeOfNothing(tn.FunctionNode):
    """y = x, whose gradient is 0 / 0."""

    def forward(self, inputs):
        return (inputs[0] * 1,)

    def backward(self, target_input_indexes, grad_outputs):
        return (tn.Variable(np.array([np.nan])),)


def test_nan_of_a_backward_names_the_function_and_the_line_of_its_forward():
    with tn.using_config(debug=True):
        (y,) = SlopeOfNothing().apply((variable([0.0]),))
        line = inspect.currentframe().f_lineno - 1
        error, text = error_of(y.backward)
    assert type(error) is NaNError
    contains(text, "backward computation of SlopeOfNothing: the gradient of input 0")
    contains(text, "(1,), float64", f"{__file__}:{line}")


# --- depth -----------------------------------------------------------------------------------


def test_a_deep_graph_needs_no_recursion():
    x = variable(1.0)
    y = x
    for _ in range(5_000):
        y = fn.identity(y)
    y.backward()
    assert x.grad == 1.0


# --- Python ----------------------------------------------------------------------------------


def test_a_variable_does_not_turn_into_a_numpy_array_silently():
    error, text = error_of(lambda: np.asarray(variable([1.0])))
    assert isinstance(error, TypeError)
    contains(text, "tn.to_host(x)", "x.detach()")


def test_numpy_functions_of_variables_are_those_of_tinynode():
    """An object array of 0-d Variables would be the silent alternative."""
    x = variable([1.0, 2.0])
    assert type(np.exp(x)) is tn.Variable and np.exp(x).creator is not None
    with pytest.raises(TypeError):
        np.frexp(x)
    assert type(np.ones(2) * x) is tn.Variable


def test_truth_of_several_elements():
    error, text = error_of(lambda: bool(variable([1.0, 2.0]) > 1.0))
    assert isinstance(error, ValueError)
    contains(text, "(2,)", "size one")


def test_a_wrong_setting_is_told_the_right_name():
    error, text = error_of(lambda: tn.using_config("enable_backporp", False).__enter__())
    assert isinstance(error, AttributeError)
    contains(text, "enable_backporp", "did you mean 'enable_backprop'")


def test_every_error_that_is_raised_on_purpose_is_a_tinynode_error_and_what_python_would_raise():
    pairs = {
        BackwardSeedError: ValueError,
        DeviceMixError: TypeError,
        GradientShapeError: ValueError,
        GradientTypeError: TypeError,
        GraphError: RuntimeError,
        InplaceError: RuntimeError,
        InvalidType: TypeError,
        NaNError: RuntimeError,
        OperandError: TypeError,
        OutputError: TypeError,
        RequiresGradError: TypeError,
        tn.errors.HookError: KeyError,
        tn.errors.DeviceError: ValueError,
    }
    for error, builtin in pairs.items():
        assert issubclass(error, tn.TinynodeError) and issubclass(error, builtin)


def test_the_tree_in_the_docstring_names_every_error_class():
    classes = [
        name
        for name, value in vars(tn.errors).items()
        if inspect.isclass(value) and issubclass(value, tn.TinynodeError)
    ]
    words = set(tn.errors.__doc__.split())
    assert set(classes) <= words


def test_an_empty_variable_beside_a_number_says_that_it_is_empty() -> None:
    with pytest.raises(GraphError, match="empty"):
        tn.Variable() + 1.0


# --- found by reading the code ---------------------------------------------------------------


def test_apply_takes_a_list_or_a_generator_and_refuses_a_variable() -> None:
    x = variable([2.0])
    (y,) = fn.Multiply().apply(v for v in (x, x))
    y.backward()
    assert x.grad == 4.0
    assert fn.Add().apply([x, x])[0].array == 4.0
    error, text = error_of(lambda: fn.Exp().apply(x))
    assert type(error) is OperandError
    contains(text, "Exp.apply", "must be a tuple", "apply((x,))")


def test_a_derivative_of_zero_beats_an_infinite_gradient() -> None:
    x = variable([-1.0, 4.0])
    with np.errstate(divide="ignore"):
        fn.sum(fn.sqrt(fn.relu(x))).backward()
    np.testing.assert_array_equal(x.grad, [0.0, 0.25])
    x = variable([-1.0, 0.0])
    with np.errstate(divide="ignore"):
        fn.log(fn.max(x)).backward()
    np.testing.assert_array_equal(x.grad, [0.0, np.inf])


def test_labels_of_a_small_dtype_name_one_class_of_many() -> None:
    x = variable(np.zeros((1, 300)))
    fn.softmax_cross_entropy(x, np.array([1], np.uint8)).backward()
    assert abs(x.grad.sum()) < 1e-12
    assert (x.grad < 0).sum() == 1


def test_writing_what_x_cannot_hold_is_an_error() -> None:
    x = tn.asarray([1, 3])
    for operation in ("x /= 2", "x += 0.5", "x[0] = tn.asarray(2.5)"):
        with pytest.raises(OperandError, match="cannot hold it"):
            exec(operation, {"x": x, "tn": tn})
    np.testing.assert_array_equal(x.array, [1, 3])
    y = variable([1.0]).detach()
    with pytest.raises(OperandError, match="complex128"):
        y += 1j


def test_a_complex_array_beside_a_variable_promotes() -> None:
    z = variable([1.0, 2.0]) * np.array([1 + 2j, 3j])
    np.testing.assert_array_equal(z.array, [1 + 2j, 6j])


def test_a_leaf_written_without_back_propagation_stays_the_leaf_of_earlier_graphs() -> None:
    w = variable([3.0])
    y = fn.sum(w * w)
    with tn.no_backprop_mode():
        w -= 1.0
    y.backward()
    assert w.array == 2.0 and w.grad == 6.0


def test_an_old_parameter_array_is_freed() -> None:
    w = variable([3.0])
    y = w * w
    old = weakref.ref(w.array)
    w.array = np.array([4.0])
    y.backward()
    del y
    assert old() is None


def test_errors_leave_no_reference_cycle() -> None:
    gc.disable()
    try:
        x = np.zeros((2, 3))
        probe = weakref.ref(x)
        with contextlib.suppress(InvalidType):
            fn.matmul(x, np.zeros((2, 3)))
        del x
        assert probe() is None
    finally:
        gc.enable()


def test_matmul_of_empty_stacks() -> None:
    z = fn.matmul(variable(np.zeros((2, 0, 3))), variable(np.zeros((2, 3, 4))))
    assert z.shape == (2, 0, 4)


def test_a_matrix_or_a_masked_array_is_refused() -> None:
    for array in (np.ma.array([1.0], mask=[True]), np.zeros((2, 2)).view(np.matrix)):
        with pytest.raises(TypeError, match="array of a known backend"):
            tn.Variable(array)


class ReturnsNothing(tn.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * 1,)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        return (None,)


def test_backward_accumulate_that_gives_none_keeps_what_was_there() -> None:
    x = variable([1.0])
    fn.sum(ReturnsNothing().apply((x,))[0] + x * 3.0).backward()
    assert x.grad == 3.0


def test_derivatives_refuse_arguments_in_the_place_of_argnums() -> None:
    x = variable([1.0])
    for make in (tn.jacobian, tn.value_and_grad):
        with pytest.raises(TypeError, match=rf"{make.__name__}\(f\)\(x\)"):
            make(fn.sum, x)
        with pytest.raises(TypeError, match="f must be a function"):
            make(x)


def test_load_and_save_say_which_argument_is_which(tmp_path) -> None:
    path = tmp_path / "m.npz"
    model = tn.nn.Linear(2, 1)
    tn.nn.save(path, model)
    with pytest.raises(TypeError, match="load_state_dict"):
        tn.nn.load(path, model)
    with pytest.raises(StateError, match="no part 'modle'"):
        tn.nn.load(path, "modle")
    with pytest.raises(TypeError, match="path comes first"):
        tn.nn.save(model, path)
