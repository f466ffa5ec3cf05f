"""grad(): gradients of some variables with respect to others, without side effects."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import GraphError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Traced(tn.FunctionNode):
    """Sum of the inputs; remembers the target indexes of its backward."""

    def __init__(self):
        self.targets = []

    def forward(self, inputs):
        total = inputs[0]
        for x in inputs[1:]:
            total = total + x
        return (total,)

    def backward(self, target_input_indexes, grad_outputs):
        self.targets.append(target_input_indexes)
        return grad_outputs * len(target_input_indexes)


def test_the_signature_is_that_of_the_contract():
    parameters = inspect.signature(tn.grad).parameters
    assert list(parameters) == [
        "outputs",
        "inputs",
        "grad_outputs",
        "grad_inputs",
        "set_grad",
        "retain_grad",
        "enable_double_backprop",
        "loss_scale",
    ]
    assert [p.default for p in list(parameters.values())[2:]] == [None, None, *[False] * 3, None]


def test_it_returns_a_list_of_variables_and_none_for_what_is_not_reached():
    x, y, z = variable(3.0), variable(2.0), variable(1.0)
    result = tn.grad([x * y], (x, z, y))
    assert type(result) is list
    assert result[0].array == 2.0 and result[1] is None and result[2].array == 3.0


@pytest.mark.parametrize("argument", ["outputs", "inputs", "grad_outputs", "grad_inputs"])
def test_the_sequences_must_be_tuples_or_lists(argument):
    x = variable(3.0)
    arguments = {"outputs": [x * x], "inputs": [x], "grad_outputs": [None], "grad_inputs": [None]}
    tn.grad(**arguments)
    arguments[argument] = x
    with pytest.raises(TypeError, match=rf"grad: {argument} must be a tuple or a list"):
        tn.grad(**arguments)


@pytest.mark.parametrize("argument", ["grad_outputs", "grad_inputs"])
def test_lengths_must_agree(argument):
    x = variable(3.0)
    with pytest.raises(ValueError, match=rf"grad: {argument} has 2 entries, expected 1"):
        tn.grad([x * x], [x], **{argument: [None, None]})


@pytest.mark.parametrize("argument", ["outputs", "inputs"])
@pytest.mark.parametrize("value", [None, 1.0, np.ones(1)])
def test_what_is_no_variable_is_named(argument, value):
    x = variable(3.0)
    arguments = {"outputs": [x * x], "inputs": [x]}
    arguments[argument] = [*arguments[argument], value]
    with pytest.raises(TypeError, match=rf"grad: {argument}\[1\] must be a Variable, got"):
        tn.grad(**arguments)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (np.asarray(1.0), TypeError),
        (variable([1.0]), ValueError),
        (variable(1.0, np.float32), TypeError),
    ],
)
def test_grad_inputs_are_checked_against_the_inputs(value, error):
    x, z = variable(3.0), variable(1.0)
    for i in range(2):
        given = [None, None]
        given[i] = value
        with pytest.raises(error, match=rf"grad: grad_inputs\[{i}\]"):
            tn.grad([x * x], [x, z], grad_inputs=given)


def test_a_refused_grad_input_is_named_beside_its_input():
    x, extra = variable([1.0, 2.0]), variable([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"data and grad mismatch: \(2,\) != \(3,\)"):
        tn.grad([x * x], [x], grad_inputs=[extra])


def test_an_integer_output_has_no_gradient_even_of_itself():
    y = tn.Variable(np.asarray(3), requires_grad=False)
    assert tn.grad([y], [y]) == [None]


def test_each_node_of_many_paths_is_visited_once():
    x = y = variable(1.0)
    for _ in range(60):
        y = y + y
    (gx,) = tn.grad([y], [x])
    assert gx.array == 2.0**60


class Results(tn.FunctionHook):
    """Keeps the results that a sweep ends with."""

    name = "results"

    def sweep_ended(self, sweep, error):
        self.results = dict(sweep.results)


def test_the_results_of_the_sweep_belong_to_the_nodes_of_the_inputs():
    x, z, unused = variable(3.0), variable(5.0), variable(1.0)
    with Results() as hook:
        gx, gz, _ = tn.grad([x * z], [x, z, unused])
    assert hook.results == {x.node: gx, z.node: gz}


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_missing_grad_outputs_are_ones_of_any_shape(shape):
    x = variable(np.full(shape, 3.0))
    (gx,) = tn.grad([x * x], [x])
    np.testing.assert_array_equal(gx.array, np.full(shape, 6.0))


def test_single_nones_among_grad_outputs_are_ones_too():
    x = variable([1.0, 2.0])
    (gx,) = tn.grad([x * 2.0, x * 3.0], [x], [None, variable([10.0, 100.0])])
    np.testing.assert_array_equal(gx.array, [32.0, 302.0])


def test_loss_scale_multiplies_only_the_ones():
    x = variable([1.0, 2.0])
    (gx,) = tn.grad([x * 2.0, x * 3.0], [x], [None, variable([1.0, 1.0])], loss_scale=10.0)
    np.testing.assert_array_equal(gx.array, [23.0, 23.0])


def test_an_output_that_is_also_an_input_gives_its_own_grad_output():
    x = variable([1.0, 2.0])
    y = x * 2.0
    g = variable([5.0, 6.0])
    gy, gx = tn.grad([y], [y, x], [g])
    assert gy is g
    np.testing.assert_array_equal(gx.array, [10.0, 12.0])
    assert tn.grad([x], [x], [g])[0] is g


def test_the_same_output_twice_counts_twice_and_the_same_input_twice_gives_both():
    x = variable(3.0)
    y = x * 2.0
    a, b = tn.grad([y, y], [x, x])
    assert a.array == b.array == 4.0


def test_no_grad_is_read_or_written():
    x = variable(3.0, grad=np.asarray(100.0))
    h = x * 2.0
    h.grad = np.asarray(7.0)
    y = h * h
    y.grad = np.asarray(1000.0)
    (gx,) = tn.grad([y], [x])
    assert gx.array == 24.0
    assert (x.grad, h.grad, y.grad) == (100.0, 7.0, 1000.0)


def test_grad_inputs_are_added_to_the_results_out_of_place():
    x, z = variable(3.0), variable(1.0)
    extra, other = variable(10.0), variable(5.0)
    gx, gz = tn.grad([x * x], [x, z], grad_inputs=[extra, other])
    assert gx.array == 16.0 and extra.array == 10.0 and gz is other
    (gx,) = tn.grad([x * x], [x], grad_inputs=[None])
    assert gx.array == 6.0


def test_set_grad_writes_the_results_to_the_inputs_only():
    x, z = variable(3.0, grad=np.asarray(100.0)), variable(1.0, grad=np.asarray(1.0))
    h = x * 2.0
    y = h * h
    gx, gz, gh = tn.grad([y], [x, z, h], set_grad=True)
    assert x.grad_var is gx and x.grad == 24.0
    assert gz is None and z.grad is None
    assert h.grad_var is gh and y.grad is None


def test_retain_grad_writes_function_outputs_on_the_way_and_no_leaf():
    x = variable(3.0)
    h = x * 2.0
    aside = h * 5.0
    y = h * h
    tn.grad([y], [x], retain_grad=True)
    assert h.grad == 12.0 and y.grad == 1.0 and x.grad is None and aside.grad is None


def test_retain_grad_stops_where_the_way_does():
    x = variable(3.0)
    h = x * 2.0
    k = h * h
    y = k * 1.0
    tn.grad([y], [k], retain_grad=True)
    assert y.grad == 1.0 and h.grad is None


def test_set_grad_and_retain_grad_do_both():
    x = variable(3.0)
    h = x * 2.0
    tn.grad([h * h], [x], set_grad=True, retain_grad=True)
    assert x.grad == 24.0 and h.grad == 12.0


def test_inputs_may_be_intermediates_together_with_leaves():
    x = variable(3.0)
    h = x * 2.0
    k = F.sin(h)
    gk, gx, gh = tn.grad([k * h], [k, x, h])
    assert gk.array == 6.0
    np.testing.assert_allclose(gh.array, np.sin(6.0) + 6.0 * np.cos(6.0))
    np.testing.assert_allclose(gx.array, 2 * gh.array)


def test_only_functions_between_inputs_and_outputs_are_called():
    x, w = variable(1.0), variable(1.0)
    before, aside, way = Traced(), Traced(), Traced()
    (h,) = before.apply((x,))
    (s,) = aside.apply((w,))
    (y,) = way.apply((s, h))
    after = Traced()
    after.apply((y,))
    (gh,) = tn.grad([y], [h])
    assert gh.array == 1.0
    assert way.targets == [(1,)]  # cut down: the other input needs no gradient here
    assert before.targets == [] and aside.targets == [] and after.targets == []
    y.backward()
    assert way.targets == [(1,), (0, 1)] and before.targets == [(0,)]


def test_the_way_goes_only_through_nodes_that_require_a_gradient():
    x = variable([1.5, 2.5])
    steps = F.floor_divide(x, 1.0)  # floating, and has no gradient rule
    integers = x.astype(np.int64)
    y = F.sum(x * integers.astype(np.float64)) + F.sum(steps)
    (gx,) = tn.grad([y], [x])
    np.testing.assert_array_equal(gx.array, [1.0, 2.0])
    assert tn.grad([integers], [x]) == [None]


def test_an_unchained_intermediate_ends_the_way():
    x = variable(3.0)
    h = x * 2.0
    y = h * h
    h.unchain()
    gx, gh = tn.grad([y], [x, h])
    assert gx is None and gh.array == 12.0


def test_an_unchained_output_of_a_function_on_the_way_gets_no_gradient():
    class Pair(tn.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2, inputs[0] * 3

        def backward(self, target_input_indexes, grad_outputs):
            assert grad_outputs[1] is None
            return (grad_outputs[0] * 2.0,)

    x = variable(1.0)
    a, b = Pair().apply((x,))
    last = Traced()
    (y,) = last.apply((a, b))
    b.unchain()
    (gx,) = tn.grad([y], [x])
    assert gx.array == 2.0 and last.targets == [(0,)]


def test_an_output_recorded_without_backprop_gives_none_without_an_error():
    x = variable(3.0)
    with tn.no_backprop_mode():
        y = x * x
    assert tn.grad([y], [x]) == [None]


def test_an_output_that_does_not_require_a_gradient_gives_none():
    x = variable(3.0, requires_grad=False)
    assert tn.grad([x * x], [x]) == [None]


def test_inputs_of_a_diamond_of_unequal_depth():
    x = variable(0.4)
    h = F.exp(x)
    y = h * F.sin(F.exp(h))
    gx, gh = tn.grad([y], [x, h])
    t = np.exp(0.4)
    expected = np.sin(np.exp(t)) + t * np.cos(np.exp(t)) * np.exp(t)
    np.testing.assert_allclose(gh.array, expected, rtol=1e-12)
    np.testing.assert_allclose(gx.array, expected * t, rtol=1e-12)


def test_several_outputs():
    x = variable([1.0, 2.0])
    (gx,) = tn.grad([x * x, F.sum(x)], [x])
    np.testing.assert_array_equal(gx.array, [3.0, 5.0])


def test_without_double_backprop_results_have_no_creator():
    x = variable(3.0)
    (gx,) = tn.grad([x * x * x], [x])
    assert gx.creator is None


@pytest.mark.parametrize("order", [2, 3, 4])
def test_repeated_grad_gives_higher_orders(order):
    x = variable(0.6)
    y = F.sin(x) * F.exp(x)
    for _ in range(order):
        (y,) = tn.grad([y], [x], enable_double_backprop=True)
    # the n-th derivative of Im e^((1+i) x)
    expected = ((1 + 1j) ** order * np.exp((1 + 1j) * 0.6)).imag
    np.testing.assert_allclose(y.array, expected, rtol=1e-12)


def test_mixed_second_derivatives_are_symmetric():
    x, y = variable(0.6), variable(1.3)
    z = F.exp(x * y) * F.sin(x)
    gx, gy = tn.grad([z], [x, y], enable_double_backprop=True)
    (gxy,) = tn.grad([gx], [y])
    (gyx,) = tn.grad([gy], [x])
    np.testing.assert_allclose(gxy.array, gyx.array, rtol=1e-12)


def test_double_backprop_reaches_grad_outputs_and_grad_inputs():
    x, g, extra = variable(3.0), variable(2.0), variable(5.0)
    (gx,) = tn.grad([x * x], [x], [g], [extra], enable_double_backprop=True)
    assert gx.array == 17.0
    a, b, c = tn.grad([gx], [x, g, extra])
    assert (a.array, b.array, c.array) == (4.0, 6.0, 1.0)


def test_a_gradient_penalty_trains_the_parameters():
    w, x = variable(2.0), variable(3.0)
    (gx,) = tn.grad([w * x * x], [x], enable_double_backprop=True)
    (gx * gx).backward()  # (2 w x)^2
    assert w.grad == 8.0 * 2.0 * 9.0


def test_a_dead_retained_output_still_connects_the_second_derivative():
    x = variable(0.5)
    (gx,) = tn.grad([F.tanh(x) * 1.0], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([gx], [x])
    t = np.tanh(0.5)
    np.testing.assert_allclose(ggx.array, -2 * t * (1 - t * t), rtol=1e-12)


def test_integer_outputs_take_no_part():
    x = variable([1.0, 2.0])
    (gx,) = tn.grad([x * x, x.astype(np.int64), x > 1.0], [x])
    np.testing.assert_array_equal(gx.array, [2.0, 4.0])


def test_an_empty_output_is_named():
    with pytest.raises(GraphError, match="variable y is empty"):
        tn.grad([tn.Variable(name="y")], [variable(1.0)])


def test_nothing_at_all():
    x = variable(1.0)
    assert tn.grad([], [x]) == [None]
    assert tn.grad([x * x], []) == []


def test_observers_and_hooks_see_grad_as_they_see_backward():
    labels = []

    class Hook(tn.FunctionHook):
        def backward_preprocess(self, function, in_data, out_grad):
            labels.append(("hook", function.label))

    class Watcher(tn.FunctionHook):
        name = "Watcher"

        def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
            labels.append(("observer", function.label))

    x = variable(1.0)
    y = F.exp(x)
    with Hook(), Watcher():
        tn.grad([y], [x])
    assert labels == [("hook", "Exp"), ("observer", "Exp")]


def test_gradients_come_back_in_each_input_s_own_dtype():
    x, w = variable([1.0], np.float32), variable([2.0], np.float64)
    gx, gw = tn.grad([x * w], [x, w])
    assert gx.dtype == np.float32 and gw.dtype == np.float64
