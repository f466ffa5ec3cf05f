"""Variable.backward and the joint backward: the order of the sweep, where gradients go."""

from __future__ import annotations

import inspect
from unittest import mock

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import tinynode as tn
from tinynode.core.hooks import thread_state
from tinynode.errors import BackwardSeedError, GradientShapeError, GradientTypeError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Custom(tn.FunctionNode):
    """y = sum of the inputs, with a backward that a test supplies."""

    def __init__(self, backward=None):
        self.backward_of_test = backward

    def forward(self, inputs):
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return (total,)

    def backward(self, target_input_indexes, grad_outputs):
        if self.backward_of_test is None:
            return grad_outputs * len(target_input_indexes)
        return self.backward_of_test(target_input_indexes, grad_outputs)


def custom(backward, *inputs):
    return Custom(backward).apply(inputs)[0]


# --- the start -------------------------------------------------------------------------------


def test_the_signature_is_that_of_the_contract():
    parameters = inspect.signature(tn.Variable.backward).parameters
    names = ["retain_grad", "enable_double_backprop", "loss_scale"]
    assert list(parameters)[1:] == [*names, "unknown"]  # the last takes keywords, to refuse them
    assert [parameters[name].default for name in names] == [False, False, None]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_size_one_variable_starts_from_one_without_a_warning(shape, dtype):
    x = tn.Variable(np.full(shape, 3, dtype))
    (x * x).backward()
    np.testing.assert_array_equal(x.grad, np.full(shape, 6))
    assert x.grad.dtype == dtype and x.grad.shape == shape and type(x.grad) is np.ndarray


@pytest.mark.parametrize("shape", [(2,), (2, 3), (0,)])
def test_another_size_without_a_grad_is_an_error_with_the_shape_and_both_cures(shape):
    x = variable(np.zeros(shape))
    y = x * 2.0
    with pytest.raises(BackwardSeedError) as caught:
        y.backward()
    assert isinstance(caught.value, ValueError)
    message = str(caught.value)
    assert f"y has shape {shape}" in message
    assert "set y.grad" in message and "sum(y).backward()" in message
    assert x.grad is None and y.grad is None


def test_another_size_starts_from_the_grad_that_was_set():
    x = variable([1.0, 2.0])
    y = x * x
    y.grad = np.array([1.0, 10.0])
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 40.0])


def test_the_starting_gradient_is_consumed():
    x = variable(3.0)
    y = x * x
    y.grad = np.asarray(100.0)
    y.backward()
    assert y.grad is None and y.grad_var is None and x.grad == 600.0
    y.backward()  # the graph is kept; it begins with 1 again and adds to the leaf
    assert y.grad is None and x.grad == 606.0


def test_the_automatic_one_does_not_stay_either():
    y = variable(3.0) * 2.0
    y.backward()
    assert y.grad is None


@pytest.mark.parametrize("values", [3.0, [1.0, 2.0]])
def test_backward_on_a_leaf_keeps_its_grad(values):
    x = variable(values, grad=np.full(np.shape(values), 7.0))
    x.backward()
    x.backward()
    np.testing.assert_array_equal(x.grad, np.full(np.shape(values), 7.0))


def test_backward_from_what_no_recorded_function_computed_is_an_error():
    x = variable(3.0)
    with tn.no_backprop_mode():
        y = x * x
    (g,) = tn.grad([x * x], [x])
    for start, told in (
        (x, "it is a leaf"),
        (y, "no_backprop_mode"),
        (g, "enable_double_backprop"),
    ):
        with pytest.raises(BackwardSeedError, match=told):
            start.backward()
        assert start.grad is None


def test_a_gradient_as_an_argument_of_backward_is_an_error():
    x = variable(3.0)
    y = x * x
    with pytest.raises(TypeError, match=r"retain_grad must be a bool, got ndarray.*y\.grad"):
        y.backward(np.array(5.0))
    assert x.grad is None


def test_backward_from_an_integer_says_to_start_from_floats():
    x = tn.asarray([1, 2, 3])
    with pytest.raises(BackwardSeedError, match=r"int64.*only floating.*1\.0 in place of 1"):
        (x * x).backward()


# --- accumulation ----------------------------------------------------------------------------


def test_leaves_accumulate_out_of_place():
    x = variable(3.0)
    x.grad = first = np.asarray(100.0)
    (x * x).backward()
    assert x.grad == 106.0 and first == 100.0 and x.grad is not first


def test_intermediates_start_afresh_and_keep_a_grad_that_was_set():
    x = variable(3.0)
    h = x * 2.0
    h.grad = np.asarray(100.0)
    (h * h).backward()
    assert x.grad == 24.0 and h.grad == 100.0


def test_retain_grad_overwrites_the_grad_of_intermediates_and_keeps_the_start():
    x = variable(3.0)
    h = x * 2.0
    h.grad = np.asarray(100.0)
    y = h * h
    y.backward(retain_grad=True)
    assert x.grad == 24.0 and h.grad == 12.0 and y.grad == 1.0


def test_without_retain_grad_intermediates_get_none():
    x = variable(3.0)
    h = x * 2.0
    (h * h).backward()
    assert h.grad is None


def test_retain_grad_twice_does_not_add_up_in_intermediates():
    x = variable(3.0)
    h = x * 2.0
    y = h * h
    for _ in range(2):
        y.backward(retain_grad=True)
        y.cleargrad()
    assert h.grad == 12.0 and x.grad == 48.0


def test_an_unchained_intermediate_accumulates_as_a_leaf():
    x = variable(3.0)
    h = x * 2.0
    y = h * h
    h.unchain()
    y.backward()
    y.backward()
    assert h.grad == 24.0 and x.grad is None


def test_a_given_gradient_is_copied_and_not_written_to():
    x = variable([1.0, 2.0])
    y = F.identity(x)
    g = np.array([5.0, 6.0])
    y.grad = g
    y.backward()
    assert x.grad is not g and x.grad.tolist() == [5.0, 6.0]
    y.grad = g
    y.backward()
    np.testing.assert_array_equal(x.grad, [10.0, 12.0])
    np.testing.assert_array_equal(g, [5.0, 6.0])


def test_one_gradient_that_reaches_two_variables_is_not_shared_by_mistake():
    """Add hands the same gradient to both sides; adding to one must leave the other alone."""
    a, b = variable([1.0]), variable([1.0])
    c = F.identity(a)
    F.sum((c + b) + (c + c)).backward()
    assert a.grad == 3.0 and b.grad == 1.0


def test_a_dead_leaf_needs_no_gradient():
    x = variable(2.0)
    y = x * variable(3.0)
    y.backward()
    assert x.grad == 3.0


# --- the same variable at several positions, diamonds, order ---------------------------------


def test_the_same_variable_twice():
    x = variable(3.0)
    (x * x).backward()
    assert x.grad == 6.0


def test_the_same_variable_at_several_positions_gives_all_those_indexes():
    seen = []

    def backward(indexes, grad_outputs):
        seen.append(indexes)
        return tuple(grad_outputs[0] * (i + 1.0) for i in indexes)

    x, constant = variable(3.0), np.asarray(1.0)
    custom(backward, x, x, constant, x).backward()
    assert seen == [(0, 1, 3)] and x.grad == 1.0 + 2.0 + 4.0


def test_a_diamond_of_unequal_depth():
    x = variable(1.5)
    short = x * 2.0
    long = F.exp(F.sin(F.exp(short)))
    (short * long).backward()
    t = 2 * 1.5
    s = np.exp(np.sin(np.exp(t)))
    expected = 2 * (s + t * s * np.cos(np.exp(t)) * np.exp(t))
    np.testing.assert_allclose(x.grad, expected, rtol=1e-12)


def test_every_function_runs_once_after_all_that_use_its_outputs():
    order = []

    def traced(name, *inputs):
        def backward(indexes, grad_outputs):
            order.append(name)
            return grad_outputs * len(indexes)

        return custom(backward, *inputs)

    x = variable(1.0)
    a = traced("a", x)
    b = traced("b", a)
    c = traced("c", b, a)
    d = traced("d", c, a, b)
    traced("e", d, a).backward()
    assert order == ["e", "d", "c", "b", "a"]
    assert x.grad == 5.0  # the number of paths from x to the end


def test_functions_of_equal_rank_run_first_in_first_out():
    order = []

    def traced(name, *inputs):
        def backward(indexes, grad_outputs):
            order.append(name)
            return grad_outputs * len(indexes)

        return custom(backward, *inputs)

    x = variable(1.0)
    parts = [traced(name, x) for name in "abcd"]
    custom(None, *parts).backward()
    assert order == ["a", "b", "c", "d"]


def test_a_ladder_of_diamonds_is_visited_in_linear_time():
    x = variable(1.0)
    y = x
    for _ in range(200):  # 2^200 paths
        y = y * 0.5 + y * 0.5
    y.backward()
    np.testing.assert_allclose(x.grad, 1.0)


# --- target_input_indexes and grad_outputs ---------------------------------------------------


def test_target_indexes_are_the_inputs_that_require_a_gradient():
    seen = []

    def backward(indexes, grad_outputs):
        seen.append((indexes, len(grad_outputs), type(grad_outputs), type(grad_outputs[0])))
        return grad_outputs * 2

    x = [variable(1.0, requires_grad=i in (1, 3)) for i in range(4)]
    custom(backward, *x).backward()
    assert seen == [((1, 3), 1, tuple, tn.Variable)]
    assert [v.grad is None for v in x] == [True, False, True, False]


def test_a_function_none_of_whose_inputs_wants_a_gradient_is_not_called():
    class Rejects(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

        def backward(self, target_input_indexes, grad_outputs):
            raise AssertionError

    x = variable(1.0, requires_grad=False)
    w = variable(1.0)
    (Rejects().apply((x,))[0] * w).backward()
    assert w.grad == 2.0


class Split(tn.FunctionNode):
    """(x, 2x, 3x)."""

    def forward(self, inputs):
        return inputs[0] * 1, inputs[0] * 2, inputs[0] * 3

    def backward(self, target_input_indexes, grad_outputs):
        self.seen = grad_outputs
        total = None
        for i, g in enumerate(grad_outputs):
            if g is not None:
                total = g * (i + 1.0) if total is None else total + g * (i + 1.0)
        return (total,)


def test_grad_outputs_has_none_for_outputs_that_were_not_used():
    f, x = Split(), variable(1.0)
    a, b, c = f.apply((x,))
    (a + c * c).backward()
    assert f.seen[1] is None and f.seen[0].array == 1.0 and f.seen[2].array == 6.0
    assert x.grad == 1.0 + 3.0 * 6.0
    assert b.grad is None


def test_grad_outputs_has_none_for_a_dead_output_and_for_an_unchained_one():
    f, x = Split(), variable(1.0)
    a, b, c = f.apply((x,))
    y = a + b
    b.unchain()
    del c
    y.backward()
    assert f.seen[0] is not None and f.seen[1] is None and f.seen[2] is None
    assert x.grad == 1.0 and b.grad == 1.0


# --- what backward may return ----------------------------------------------------------------


@pytest.mark.parametrize("container", [tuple, list])
@pytest.mark.parametrize("full", [False, True])
def test_backward_may_return_one_gradient_per_target_or_one_per_input(container, full):
    x = [variable(1.0, requires_grad=i in (1, 2)) for i in range(4)]

    def backward(indexes, grad_outputs):
        g = [variable(10.0 * i) for i in range(4)]
        return container(g if full else [g[i] for i in indexes])

    custom(backward, *x).backward()
    assert x[1].grad == 10.0 and x[2].grad == 20.0 and x[0].grad is None and x[3].grad is None


def test_none_stops_propagation_there_and_leaves_an_existing_gradient_alone():
    x, y = variable(1.0, grad=np.asarray(5.0)), variable(1.0)
    custom(lambda indexes, grads: (None, grads[0]), x, y).backward()
    assert x.grad == 5.0 and y.grad == 1.0


def test_none_from_one_function_keeps_what_another_one_contributed():
    x = variable(3.0)
    h = x * 2.0
    silent = custom(lambda indexes, grads: (None,), h)
    (silent * (h * 1.0)).backward()
    assert x.grad == 2.0 * 6.0


@pytest.mark.parametrize("number", [0, 3, 5])
@pytest.mark.parametrize("debug", [False, True])
def test_another_number_of_gradients_is_a_value_error_in_every_mode(number, debug):
    x = [variable(1.0, requires_grad=i < 2) for i in range(4)]
    y = custom(lambda indexes, grads: grads * number, *x)
    with (
        tn.using_config(debug=debug),
        pytest.raises(
            ValueError,
            match=rf"`Custom` has a bug: number of gradients.*incorrect: {number} != .* 2 or 4",
        ),
    ):
        y.backward()
    with tn.using_config(debug=debug), pytest.raises(GradientShapeError):
        tn.grad([y], x[:2])


@pytest.mark.parametrize("result", [None, 1.0, variable(1.0)])
def test_a_result_that_is_no_tuple_is_a_type_error(result):
    x = variable(1.0)
    y = custom(lambda indexes, grads: result, x)
    with pytest.raises(TypeError, match="`Custom` has a bug: its backward must return a tuple"):
        y.backward()
    assert x.grad is None


WRONG_GRADIENTS = [
    (
        lambda: np.ones((2, 3)),
        TypeError,
        "input 1: expected a Variable, got ndarray of shape (2, 3), float64",
    ),
    (lambda: 1.0, TypeError, "input 1: expected a Variable, got float 1.0"),
    (
        lambda: variable(np.ones((3, 2))),
        ValueError,
        "input 1: Shape of data and grad mismatch: (2, 3) != (3, 2)",
    ),
    (
        lambda: variable(np.ones(3)),
        ValueError,
        "input 1: Shape of data and grad mismatch: (2, 3) != (3,)",
    ),
    (lambda: variable(1.0), ValueError, "input 1: Shape of data and grad mismatch: (2, 3) != ()"),
    (
        lambda: variable(np.ones((2, 3)), np.float32),
        TypeError,
        "input 1: Dtype of data and grad mismatch: float64 != float32",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), WRONG_GRADIENTS)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("by", ["backward", "grad"])
def test_a_wrong_gradient_is_an_error_in_every_mode(make, error, message, debug, by):
    x, y = variable(np.zeros((2, 3))), variable(np.zeros((2, 3)))
    z = F.sum(custom(lambda indexes, grads: (grads[0], make()), x, y))
    with tn.using_config(debug=debug), pytest.raises(error) as caught:
        if by == "backward":
            z.backward()
        else:
            tn.grad([z], [x, y])
    assert str(caught.value).startswith("Function `Custom` has a bug")
    assert message in str(caught.value)
    assert isinstance(caught.value, tn.TinynodeError)
    assert x.grad is None and y.grad is None


def test_a_gradient_of_a_wrong_device_is_an_error():
    strict = tn.asarray([1.0], device="strict", dtype="float64")
    x = variable([1.0])
    y = custom(lambda indexes, grads: (strict,), x)
    with pytest.raises(
        GradientTypeError,
        match=r"gradient of input 0: Device .*data is on numpy, grad is on strict",
    ):
        y.backward()


# --- backward_accumulate ---------------------------------------------------------------------


class Accumulates(tn.FunctionNode):
    """y = sum of the inputs; each gradient is 1, 10, 100 ... times the output's."""

    def __init__(self, result=None):
        self.result = result
        self.calls = []

    def forward(self, inputs):
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return (total,)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        self.calls.append((target_input_indexes, grad_outputs, grad_inputs))
        if self.result is not None:
            return self.result
        results = []
        for i, g in zip(target_input_indexes, grad_inputs, strict=True):
            own = grad_outputs[0] * 10.0**i
            results.append(own if g is None else own + g)
        return tuple(results)


def test_backward_accumulate_is_called_only_if_it_is_overridden():
    f, x = Accumulates(), variable(1.0)
    f.apply((x,))[0].backward()
    assert len(f.calls) == 1 and x.grad == 1.0
    with mock.patch.object(tn.FunctionNode, "backward_accumulate", side_effect=AssertionError):
        custom(None, x).backward()
    assert x.grad == 2.0


def test_backward_accumulate_gets_what_others_contributed_and_returns_the_sum():
    f = Accumulates()
    x, y = variable(1.0), variable(1.0)
    h = x * 1.0
    (z,) = f.apply((h, y))
    late = F.identity(F.identity(z))
    custom(lambda indexes, grads: (grads[0] * 7.0, grads[0] * 2.0), h, late).backward()
    ((indexes, grad_outputs, grad_inputs),) = f.calls
    assert indexes == (0, 1) and grad_outputs[0].array == 2.0
    assert grad_inputs[0].array == 7.0 and grad_inputs[1] is None
    assert x.grad == 7.0 + 2.0 and y.grad == 20.0


def test_backward_accumulate_never_sees_the_grad_of_a_leaf():
    f, x = Accumulates(), variable(1.0, grad=np.asarray(100.0))
    f.apply((x,))[0].backward()
    ((_, _, grad_inputs),) = f.calls
    assert grad_inputs == (None,) and x.grad == 101.0


def test_a_variable_at_several_positions_gives_its_gradient_to_the_first_only():
    f = Accumulates()
    x = variable(1.0)
    h = x * 1.0
    (z,) = f.apply((h, h, h))
    late = F.identity(F.identity(z))
    (late + custom(None, h, late)).backward()
    ((indexes, _, grad_inputs),) = f.calls
    assert indexes == (0, 1, 2)
    assert grad_inputs[0].array == 1.0 and grad_inputs[1:] == (None, None)
    assert x.grad == 1.0 + 2.0 * 111.0


@pytest.mark.parametrize("number", [0, 1, 3])
def test_backward_accumulate_must_return_one_gradient_per_target(number):
    """Also where that is the number of inputs."""
    f = Accumulates(result=(variable(1.0),) * number)
    x = [variable(1.0), variable(1.0), variable(1.0, requires_grad=False)]
    (z,) = f.apply(x)
    with pytest.raises(
        ValueError, match=rf"number of gradients.*is incorrect: {number} != expected 2"
    ):
        z.backward()
    assert x[0].grad is None


@pytest.mark.parametrize("full", [False, True])
def test_the_default_backward_accumulate_is_backward_plus_what_is_there(full):
    x = [variable(1.0) for _ in range(3)]
    f = Custom(lambda indexes, grads: (grads[0], None, grads[0]) if full else (None, grads[0]))
    f.apply(x)
    g = variable(5.0)
    one = variable(1.0)
    first, second = f.backward_accumulate((1, 2), (one,), (g, one))
    assert first is g and second.array == 2.0
    first, second = f.backward_accumulate((1, 2), (one,), (None, None))
    assert first is None and second is one


# --- lazy_grad_sum ---------------------------------------------------------------------------


class Recorder(tn.FunctionHook):
    name = "Recorder"

    def __init__(self):
        self.labels = []

    def applied(self, function, inputs, outputs):
        self.labels.append(type(function).__name__)


@pytest.mark.parametrize("double", [False, True])
def test_lazy_grad_sum_gives_equal_gradients_with_one_n_ary_addition(double):
    def gradient(lazy):
        x = variable([0.3, 0.7])
        with tn.using_config(lazy_grad_sum=lazy):
            h = F.sin(x)
            y = F.sum(h * 2.0 + F.exp(h) + h * h + F.tanh(h) + h)
        recorder = Recorder()
        with recorder:
            y.backward(enable_double_backprop=double)
        return x, recorder.labels

    eager, eager_labels = gradient(False)
    lazy, lazy_labels = gradient(True)
    np.testing.assert_allclose(lazy.grad, eager.grad, rtol=1e-14)
    assert lazy_labels.count("AddAll") == 1 and "AddAll" not in eager_labels
    if double:
        for x in (eager, lazy):
            gx = x.grad_var
            x.cleargrad()
            F.sum(gx).backward()
        np.testing.assert_allclose(lazy.grad, eager.grad, rtol=1e-12)


def test_lazy_grad_sum_adds_up_in_leaves_and_in_what_grad_returns():
    with tn.using_config(lazy_grad_sum=True):
        x = variable([1.0, 2.0])
        y = F.sum(x * 2.0 + x * 3.0 + x * x)
    assert y.creator.lazy_grad_sum is True
    y.backward()
    np.testing.assert_array_equal(x.grad, [7.0, 9.0])
    (gx,) = tn.grad([y], [x])
    np.testing.assert_array_equal(gx.array, [7.0, 9.0])


def test_lazy_grad_sum_is_copied_from_the_config_when_the_graph_is_recorded():
    x = variable(1.0)
    with tn.using_config(lazy_grad_sum=True):
        y = x * x
    z = x * x
    assert y.creator.lazy_grad_sum is True and z.creator.lazy_grad_sum is False


def test_lazy_grad_sum_meets_backward_accumulate():
    f = Accumulates()
    with tn.using_config(lazy_grad_sum=True):
        x = variable(1.0)
        h = x * 1.0
        (z,) = f.apply((h, h))
        late = F.identity(F.identity(z))
        y = late + custom(None, h, late, h)
    y.backward()
    ((_, _, grad_inputs),) = f.calls
    assert grad_inputs[0].array == 2.0 and grad_inputs[1] is None
    assert x.grad == 2.0 + 2.0 * 11.0


class GivesItsOwn(tn.FunctionNode):
    """y = x; keeps the accumulated gradient that it returns."""

    def forward(self, inputs):
        return inputs

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        self.given = grad_outputs[0] + grad_inputs[0]
        return (self.given,)


def test_a_gradient_of_backward_accumulate_is_not_written_to_by_later_functions():
    x, own = variable(1.0), GivesItsOwn()
    y = x * 2.0 + x * 4.0 + own.apply((x,))[0] + x * 8.0 + x * 16.0
    y.backward()
    assert own.given.array == 1.0 + 8.0 + 16.0 and x.grad == 31.0


def test_lazy_grad_sum_with_retain_grad_keeps_the_complete_gradient():
    with tn.using_config(lazy_grad_sum=True):
        x = variable(3.0)
        h = x * 1.0
        y = h * 2.0 + h * 3.0
    y.backward(retain_grad=True)
    assert h.grad == 5.0 and x.grad == 5.0


# --- double backprop -------------------------------------------------------------------------


def test_gradients_have_no_creator_without_double_backprop():
    x = variable(3.0)
    (x * x * x).backward()
    assert x.grad_var.creator is None and x.grad_var.requires_grad is False
    assert x.grad_var.numpy() == 27.0
    assert tn.config.enable_backprop is True


def test_backward_runs_under_the_enable_backprop_that_was_asked_for():
    seen = []

    def backward(indexes, grads):
        seen.append(tn.config.enable_backprop)
        return grads

    for outer in (True, False):
        for double in (True, False):
            y = custom(backward, variable(1.0))
            with tn.using_config("enable_backprop", outer):
                y.backward(enable_double_backprop=double)
                tn.grad([y], [y.creator.inputs[0].get_variable()], enable_double_backprop=double)
                assert tn.config.enable_backprop is outer
    assert seen == [True, True, False, False] * 2


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (lambda x: x * x * x, [3 * 0.7**2, 6 * 0.7, 6.0, 0.0]),
        (lambda x: x**4, [4 * 0.7**3, 12 * 0.7**2, 24 * 0.7, 24.0]),
        (F.exp, [np.exp(0.7)] * 4),
        (F.sin, [np.cos(0.7), -np.sin(0.7), -np.cos(0.7), np.sin(0.7)]),
        (F.log, [1 / 0.7, -1 / 0.7**2, 2 / 0.7**3, -6 / 0.7**4]),
        (lambda x: 1.0 / x, [-1 / 0.7**2, 2 / 0.7**3, -6 / 0.7**4, 24 / 0.7**5]),
        (F.sqrt, [0.5 * 0.7**-0.5, -0.25 * 0.7**-1.5, 0.375 * 0.7**-2.5, -0.9375 * 0.7**-3.5]),
    ],
    ids=["x*x*x", "x**4", "exp", "sin", "log", "1/x", "sqrt"],
)
def test_derivatives_up_to_the_fourth_order(function, derivatives):
    x = variable(0.7)
    y = function(x)
    for expected in derivatives:
        y.backward(enable_double_backprop=True)
        y = x.grad_var
        x.cleargrad()
        if y is None:  # the gradient before was a constant: None is an exact zero
            assert expected == 0.0
            return
        np.testing.assert_allclose(y.array, expected, rtol=1e-12, atol=1e-12)


def test_forgetting_cleargrad_adds_the_second_order_to_the_first():
    x = variable(2.0)
    (x**3).backward(enable_double_backprop=True)
    gx = x.grad_var
    gx.backward()
    assert x.grad == 12.0 + 12.0


def test_half_log_squared_at_one_has_second_derivative_one():
    """Its gradient is zero there: masking wherever a gradient is zero would give 0."""
    x = variable(1.0)
    y = F.log(x) ** 2 / 2
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    assert gx.array == 0.0
    x.cleargrad()
    gx.backward()
    assert x.grad == 1.0


def test_double_backprop_through_a_retained_output_whose_variable_died():
    x = variable(0.5)
    z = F.sum(F.exp(x))  # exp's output lives on as a node only
    z.backward(enable_double_backprop=True)
    gx = x.grad_var
    x.cleargrad()
    gx.backward(enable_double_backprop=True)
    np.testing.assert_allclose(x.grad, np.exp(0.5))
    ggx = x.grad_var
    x.cleargrad()
    ggx.backward()
    np.testing.assert_allclose(x.grad, np.exp(0.5))


def test_double_backprop_through_a_retained_output_whose_node_died():
    class ExpWithLog(tn.FunctionNode):
        """(e^x, 1 + 2 x), where the gradient of the second output goes through the first."""

        def forward(self, inputs):
            (x,) = inputs
            self.retain_outputs((0,))
            return np.exp(x), 1 + 2 * x

        def backward(self, target_input_indexes, grad_outputs):
            g0, g1 = grad_outputs
            (y0,) = self.get_retained_outputs()
            gx = g1 * 2.0 + y0 * 0.0 if g0 is None else g0 * y0
            return (gx + y0,)

    x = variable(0.5)
    y0, y1 = ExpWithLog().apply((x,))
    function = y1.creator
    del y0
    assert function.outputs[0]() is None
    (gx,) = tn.grad([y1], [x], enable_double_backprop=True)
    np.testing.assert_allclose(gx.array, 2.0 + np.exp(0.5))
    (ggx,) = tn.grad([gx], [x])
    # d(e^x)/dx through the revived output; that output's own gradient is g0 y0 + y0
    np.testing.assert_allclose(ggx.array, np.exp(0.5) + np.exp(0.5))


def test_double_backprop_reaches_the_seed():
    x, w = variable(3.0), variable(2.0)
    y = x * x
    y.grad_var = w
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    gx.backward()
    assert w.grad == 6.0  # d(2 x w)/dw


# --- the two styles of a new function --------------------------------------------------------


class Cube(tn.FunctionNode):
    """y = x^3, with its gradient written by differentiable functions."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * x * x * 3.0,)


class FusedCube(Cube):
    """y = x^3, with a node of its own for the gradient."""

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return CubeGrad().apply((x, grad_outputs[0]))


class CubeGrad(tn.FunctionNode):
    """gx = 3 x^2 gy: what the gradient needs are inputs, so it has a gradient for each."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        x, gy = inputs
        return (3 * x**2 * gy,)

    def backward(self, target_input_indexes, grad_outputs):
        x, gy = self.get_retained_inputs()
        (ggx,) = grad_outputs
        gx = ggx * gy * x * 6.0 if 0 in target_input_indexes else None
        ggy = ggx * x * x * 3.0 if 1 in target_input_indexes else None
        return gx, ggy


@pytest.mark.parametrize("function", [Cube, FusedCube])
def test_both_styles_of_a_function_have_all_derivatives(function):
    x, g = variable(2.0), variable(5.0)
    (y,) = function().apply((x,))
    (gx,) = tn.grad([y], [x], [g], enable_double_backprop=True)
    assert gx.array == 3 * 4.0 * 5.0
    ggx, ggy = tn.grad([gx], [x, g], enable_double_backprop=True)
    assert ggx.array == 6 * 2.0 * 5.0 and ggy.array == 3 * 4.0
    third, mixed = tn.grad([ggx], [x, g])
    assert third.array == 6 * 5.0 and mixed.array == 6 * 2.0


def test_gradients_of_equal_shapes_are_not_summed_and_broadcast_ones_are():
    labels = []

    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            labels.append(function.label)

    x, y, b = variable(np.ones((2, 3))), variable(np.ones((2, 3))), variable(np.ones(3))
    z = x + y
    z.grad = g = np.ones((2, 3))
    with Hook():
        z.backward()
    assert labels == [] and (x.grad == g).all() and (y.grad == g).all()
    F.sum(x * b).backward()
    np.testing.assert_array_equal(b.grad, [2.0, 2.0, 2.0])


# --- loss_scale ------------------------------------------------------------------------------


def test_loss_scale_multiplies_the_automatic_one():
    x = variable(3.0, np.float32)
    (x * x).backward(loss_scale=8.0)
    assert x.grad == 48.0 and x.grad.dtype == np.float32


def test_loss_scale_leaves_a_grad_that_was_set_alone():
    x = variable(3.0)
    y = x * x
    y.grad = np.asarray(10.0)
    y.backward(loss_scale=8.0)
    assert x.grad == 60.0


# --- unchain_backward ------------------------------------------------------------------------


def test_unchain_backward_unchains_every_function_before_and_keeps_the_ranks():
    x = variable(1.0)
    a = x * 2.0
    b = F.exp(a)
    c = a + b
    d = c * 3.0
    functions = [v.creator for v in (a, b, c)]
    c.unchain_backward()
    assert [v.creator for v in (a, b, c)] == [None] * 3 and d.creator is not None
    assert [v.rank for v in (a, b, c)] == [1, 2, 3]
    assert all(f.inputs is None and f.outputs is None for f in functions)
    d.backward()
    assert c.grad == 3.0 and x.grad is None


def test_unchain_backward_goes_on_beside_a_leaf():
    x, z = variable(2.0), variable(3.0)
    h, k = x * 2.0, x * 4.0
    (h * z + z * k).unchain_backward()
    assert h.creator is None and k.creator is None


def test_unchain_backward_of_a_leaf_does_nothing():
    x = variable(1.0)
    x.unchain_backward()
    assert x.creator is None


def test_unchain_backward_of_a_ladder_is_linear():
    x = variable(1.0)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.unchain_backward()
    assert y.creator is None


# --- observers and hooks during the sweep ----------------------------------------------------


def test_an_observer_sees_each_step_with_the_gradients_of_the_targets():
    steps = []

    class Watcher(tn.FunctionHook):
        name = "Watcher"

        def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
            steps.append((function, target_input_indexes, grad_outputs, grad_inputs))

    x = variable(3.0)
    y = np.asarray(2.0) * x
    z = F.exp(y)
    with Watcher():
        z.backward()
    assert [s[0] for s in steps] == [z.creator, y.creator]
    _, indexes, grad_outputs, grad_inputs = steps[1]
    assert indexes == (1,) and len(grad_outputs) == 1 and len(grad_inputs) == 1
    assert grad_inputs[0].array == x.grad
    assert thread_state.hooks == {}


# --- the joint backward ----------------------------------------------------------------------


def test_joint_backward_visits_a_shared_function_once():
    calls = []

    def backward(indexes, grads):
        calls.append(grads[0].array)
        return grads

    x = variable(3.0)
    h = custom(backward, x)
    y, z = h * 2.0, h * h
    tn.backward([y, z], [variable(1.0), variable(10.0)])
    assert calls == [2.0 + 60.0] and x.grad == 62.0


def test_joint_backward_without_grad_outputs_takes_and_clears_each_output_s_grad():
    x = variable(3.0)
    y, z = x * 2.0, x * x
    y.grad, z.grad = np.asarray(1.0), np.asarray(10.0)
    tn.backward((y, z))
    assert x.grad == 62.0 and y.grad is None and z.grad is None


def test_joint_backward_has_no_default_ones():
    x = variable(3.0)
    y, z = x * 2.0, x * x
    y.grad = np.asarray(1.0)
    with pytest.raises(BackwardSeedError, match=r"output 1 .*has no gradient: set its grad"):
        tn.backward([y, z])
    assert x.grad is None and y.grad == 1.0
    with pytest.raises(BackwardSeedError, match="output 0"):
        tn.backward([y], [None])


def test_explicit_grad_outputs_leave_grad_alone_and_add_up_over_duplicates():
    x = variable(3.0)
    y = x * 2.0
    y.grad = np.asarray(100.0)
    tn.backward([y, y], [variable(1.0), variable(10.0)])
    assert x.grad == 22.0 and y.grad == 100.0


def test_explicit_gradients_that_add_up_record_no_graph():
    x = variable(3.0)
    y = F.identity(x)
    tn.backward([y, y], [variable(1.0), variable(10.0)])
    assert x.grad == 11.0 and x.grad_var.creator is None


def test_a_duplicate_output_s_own_grad_counts_once():
    x = variable(3.0)
    y = x * 2.0
    y.grad = np.asarray(1.0)
    tn.backward([y, y])
    assert x.grad == 2.0


def test_joint_backward_accumulates_in_leaves_and_leaves_intermediates_alone():
    x = variable(3.0, grad=np.asarray(100.0))
    h = x * 2.0
    h.grad = np.asarray(5.0)
    tn.backward([h * h], [variable(1.0)])
    assert x.grad == 124.0 and h.grad == 5.0


def test_an_explicit_gradient_of_a_leaf_among_the_outputs_is_added_to_it():
    x = variable(3.0)
    y = x * x
    tn.backward([x, y], [variable(1.0), variable(1.0)])
    assert x.grad == 7.0


def test_a_leaf_among_the_outputs_keeps_its_own_grad_and_gets_the_rest_added():
    x = variable(3.0, grad=np.asarray(1.0))
    y = x * x
    y.grad = np.asarray(1.0)
    tn.backward([x, y])
    assert x.grad == 7.0


def test_an_output_that_is_an_input_of_another_output():
    x = variable(3.0)
    h = x * 2.0
    y = h * h
    tn.backward([h, y], [variable(1.0), variable(1.0)])
    assert x.grad == 2.0 * (1.0 + 12.0)


def test_joint_double_backprop():
    x = variable(3.0)
    tn.backward([x**3, x * x], [variable(1.0), variable(1.0)], enable_double_backprop=True)
    gx = x.grad_var
    x.cleargrad()
    gx.backward()
    assert x.grad == 18.0 + 2.0


def test_joint_backward_refuses_other_keywords_and_other_sequences():
    y = variable(3.0) * 2.0
    for keyword in ("retain_grad", "loss_scale"):
        with pytest.raises(TypeError):
            tn.backward([y], [variable(1.0)], **{keyword: True})
    with pytest.raises(TypeError, match="backward: outputs must be a tuple or a list"):
        tn.backward(y)
    with pytest.raises(TypeError, match="grad_outputs must be a tuple or a list"):
        tn.backward([y], variable(1.0))
    with pytest.raises(ValueError, match="grad_outputs has 2 entries, expected 1"):
        tn.backward([y], [None, None])
    with pytest.raises(TypeError, match=r"outputs\[0\] must be a Variable, got float"):
        tn.backward([1.0], [variable(1.0)])


@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (np.asarray(1.0), TypeError, "expected a Variable, got ndarray"),
        (variable([1.0]), ValueError, r"Shape of data and grad mismatch: \(\) != \(1,\)"),
        (
            variable(1.0, np.float32),
            TypeError,
            "Dtype of data and grad mismatch: float64 != float32",
        ),
    ],
)
def test_wrong_grad_outputs_are_named(gradient, error, message):
    x = variable(3.0)
    y = x * 2.0
    for call in (lambda: tn.backward([y], [gradient]), lambda: tn.grad([y], [x], [gradient])):
        with pytest.raises(error, match=r"grad_outputs\[0\]: " + message):
            call()
    assert x.grad is None


def test_joint_backward_of_an_output_that_requires_no_gradient_is_an_error():
    x = variable(3.0)
    y = variable(1.0, requires_grad=False) * 2.0
    with pytest.raises(BackwardSeedError, match=r"outputs\[1\].*requires no gradient"):
        tn.backward([x * x, y], [variable(1.0), variable(1.0)])
    assert x.grad is None


def test_joint_backward_of_nothing_does_nothing():
    tn.backward([])


# --- random graphs ---------------------------------------------------------------------------

UNARY = [
    (F.sin, np.sin, np.cos),
    (F.tanh, np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    (lambda x: x * 0.5, lambda x: x * 0.5, lambda x: 0.5 * np.ones_like(x)),
    (F.identity, lambda x: x, np.ones_like),
]
BINARY = [
    (lambda x, y: x + y, np.add, lambda x, y: (np.ones_like(x), np.ones_like(y))),
    (lambda x, y: x * y, np.multiply, lambda x, y: (y, x)),
    (lambda x, y: x - y, np.subtract, lambda x, y: (np.ones_like(x), -np.ones_like(y))),
]


@st.composite
def programs(draw):
    """A list of steps (operation, operands): operands are indexes of earlier values."""
    leaves = draw(st.integers(1, 3))
    steps = []
    for position in range(leaves, leaves + draw(st.integers(1, 12))):
        earlier = st.integers(0, position - 1)
        if draw(st.booleans()):
            steps.append((draw(st.integers(0, len(UNARY) - 1)), (draw(earlier),)))
        else:
            operation = draw(st.integers(0, len(BINARY) - 1))
            steps.append((operation, (draw(earlier), draw(earlier))))
    return leaves, steps


def naive_gradients(leaves, steps):
    """Values and gradients by the plainest tape: each step in turn, backwards, with arrays."""
    values = list(leaves)
    for operation, operands in steps:
        table = UNARY if len(operands) == 1 else BINARY
        values.append(table[operation][1](*(values[i] for i in operands)))
    gradients = [np.zeros_like(v) for v in values]
    gradients[-1] = np.ones_like(values[-1])
    for position in reversed(range(len(leaves), len(values))):
        operation, operands = steps[position - len(leaves)]
        arguments = [values[i] for i in operands]
        table = UNARY if len(operands) == 1 else BINARY
        slopes = table[operation][2](*arguments)
        slopes = slopes if len(operands) == 2 else (slopes,)
        for i, slope in zip(operands, slopes, strict=True):
            gradients[i] = gradients[i] + gradients[position] * slope
    return values, gradients


def run(leaves, steps):
    values = list(leaves)
    for operation, operands in steps:
        table = UNARY if len(operands) == 1 else BINARY
        values.append(table[operation][0](*(values[i] for i in operands)))
    return values


@hypothesis.given(programs(), st.booleans(), st.integers(0, 2**32 - 1))
def test_random_graphs_agree_with_a_naive_tape(program, lazy, seed):
    number, steps = program
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, 3) for _ in range(number)]
    expected_values, expected = naive_gradients(arrays, steps)
    with tn.using_config(lazy_grad_sum=lazy):
        values = run([tn.Variable(a) for a in arrays], steps)
    np.testing.assert_allclose(values[-1].array, expected_values[-1], rtol=1e-12)
    values[-1].grad = np.ones(3)
    values[-1].backward(retain_grad=True)
    for value, gradient in zip(values, expected, strict=True):
        if value.grad is None:
            np.testing.assert_array_equal(gradient, np.zeros(3))
        else:
            np.testing.assert_allclose(value.grad, gradient, rtol=1e-10, atol=1e-12)


@hypothesis.given(programs(), st.integers(0, 2**32 - 1))
def test_grad_of_random_graphs_agrees_with_backward_and_touches_no_grad(program, seed):
    number, steps = program
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, 3) for _ in range(number)]
    values = run([tn.Variable(a) for a in arrays], steps)
    gradients = tn.grad([values[-1]], values)  # of leaves and intermediates in one call
    assert all(v.grad is None for v in values)
    _, expected = naive_gradients(arrays, steps)
    for gradient, wanted in zip(gradients, expected, strict=True):
        found = np.zeros(3) if gradient is None else gradient.array
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@hypothesis.given(programs(), st.integers(0, 2**32 - 1))
def test_second_order_of_random_graphs_agrees_with_differences_of_the_naive_tape(program, seed):
    number, steps = program
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, 3) for _ in range(number)]
    directions = [rng.uniform(-1, 1, 3) for _ in range(number)]
    leaves = [tn.Variable(a) for a in arrays]
    first = tn.grad([run(leaves, steps)[-1]], leaves, enable_double_backprop=True)
    reached = [g for g in first if g is not None]
    total = F.sum(sum(reached[1:], reached[0])) if reached else None
    second = [None] * number if total is None else tn.grad([total], leaves)
    found = sum(
        float(np.sum(g.array * d))
        for g, d in zip(second, directions, strict=True)
        if g is not None
    )
    eps = 1e-5

    def slope(sign):
        moved = [a + sign * eps * d for a, d in zip(arrays, directions, strict=True)]
        gradients = naive_gradients(moved, steps)[1][:number]
        return sum(float(np.sum(g)) for g in gradients)

    expected = (slope(1) - slope(-1)) / (2 * eps)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
