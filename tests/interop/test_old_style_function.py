"""The old-style Function, and the adapter that stands for it in the graph."""

from __future__ import annotations

import weakref
from unittest import mock

import numpy as np
import pytest

import tinynode as tn
from tinynode import type_check
from tinynode.errors import GradientShapeError, GraphError, InvalidType

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Product(tn.Function):
    """z = x y, in the old style."""

    def __init__(self, retained=None):
        self.retained = retained

    def forward(self, inputs):
        x, y = inputs
        if self.retained is not None:
            self.retain_inputs(self.retained)
        return (x * y,)

    def backward(self, inputs, grad_outputs):
        self.seen = inputs, grad_outputs
        x, y = inputs
        (gz,) = grad_outputs
        return gz * y, gz * x


class Expo(tn.Function):
    """y = e^x, by its retained output."""

    def forward(self, inputs):
        self.retain_inputs(())
        self.retain_outputs((0,))
        return (np.exp(inputs[0]),)

    def backward(self, inputs, grad_outputs):
        assert inputs == (None,)
        return (grad_outputs[0] * self.output_data[0],)


def test_the_backward_of_the_adapter_is_no_reading_of_values_by_the_program():
    class Reads(tn.FunctionHook):
        def value_read(self, what):
            raise AssertionError(what)

    x = variable([2.0, 3.0])
    z = tn.functions.sum(Product()(x, x))
    with Reads():
        z.backward()
    np.testing.assert_array_equal(x.grad, [4.0, 6.0])


def test_a_call_returns_a_variable_and_backward_works_on_arrays():
    x, y, function = variable([2.0, 3.0]), variable([5.0, 7.0]), Product()
    z = function(x, y)
    assert type(z) is tn.Variable
    z.grad = np.array([1.0, 10.0])
    z.backward()
    np.testing.assert_array_equal(x.grad, [5.0, 70.0])
    np.testing.assert_array_equal(y.grad, [2.0, 30.0])
    (in_data, (gz,)) = function.seen
    assert in_data[0] is x.array and in_data[1] is y.array and type(gz) is np.ndarray


def test_several_outputs_come_as_a_tuple():
    class Two(tn.Function):
        def forward(self, inputs):
            return inputs[0] * 2, inputs[0] * 3

        def backward(self, inputs, grad_outputs):
            assert grad_outputs[0] is None
            return (grad_outputs[1] * 3,)

    x = variable([1.0])
    outputs = Two()(x)
    assert type(outputs) is tuple and len(outputs) == 2
    outputs[1].backward()
    assert x.grad == 3.0


def test_0_d_results_of_backward_are_lifted():
    x, y = variable(2.0), variable(3.0)
    Product()(x, y).backward()
    assert x.grad == 3.0 and type(x.grad) is np.ndarray


def test_arrays_may_be_given():
    z = Product()(np.array([2.0]), variable([3.0]))
    z.backward()
    assert Product()(np.array([2.0]), np.array([3.0])).requires_grad is False


def test_all_inputs_are_retained_by_default():
    x, y = variable([2.0]), variable([3.0])
    z = Product()(x, y)
    assert x.node.data is x.array and y.node.data is y.array
    del z


@pytest.mark.parametrize(
    ("indexes", "present"),
    [((), (False, False)), ((1,), (False, True)), ((0, 1), (True, True)), ((-1,), (False, True))],
)
def test_retain_inputs_says_which_inputs_are_kept(indexes, present):
    x, y, function = variable([2.0]), variable([3.0]), Product(indexes)
    z = function(x, y)
    function.backward = mock.Mock(return_value=(np.ones(1), np.ones(1)))
    z.backward()
    ((in_data, _), _) = function.backward.call_args
    assert tuple(a is not None for a in in_data) == present
    assert (x.node.data is not None, y.node.data is not None) == present


def test_retained_outputs_stand_in_output_data():
    x = variable([0.5])
    y = Expo()(x)
    assert y.creator.output_data == (y.array,)
    y.backward()
    np.testing.assert_allclose(x.grad, np.exp([0.5]))


def test_retained_outputs_survive_their_variable():
    x = variable([0.5])
    y = F.sum(Expo()(x) * 2.0)
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * np.exp([0.5]))


def test_none_is_no_gradient_and_entries_not_asked_for_are_dropped():
    class Half(Product):
        def backward(self, inputs, grad_outputs):
            return grad_outputs[0] * inputs[1], None

    x, y = variable([2.0]), variable([3.0])
    Half()(x, y).backward()
    assert x.grad == 3.0 and y.grad is None
    fixed = variable([3.0], requires_grad=False)
    Product()(fixed, x).backward()
    assert x.grad == 6.0 and fixed.grad is None


@pytest.mark.parametrize("result", [(np.ones(1),), (np.ones(1),) * 3, None, np.ones(2)])
def test_backward_must_return_one_entry_for_each_input(result):
    class Bad(Product):
        def backward(self, inputs, grad_outputs):
            return result

    x = variable([2.0])
    with pytest.raises(
        GradientShapeError, match=r"`Bad` has a bug: number of gradients.*2 inputs"
    ):
        Bad()(x, variable([3.0])).backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("gradient", "error", "message"),
    [
        (np.ones((2, 1)), ValueError, r"`Bad` has a bug: .*Shape .*: \(1,\) != \(2, 1\)"),
        (np.ones(1, np.float32), TypeError, "`Bad` has a bug: .*Dtype .*: float64 != float32"),
        (1.0, TypeError, r"gradient of Bad.*\n.*output 0 is float"),
        (variable([1.0]), TypeError, r"gradient of Bad.*\n.*output 0 is Variable"),
    ],
)
def test_gradients_are_checked_always(gradient, error, message):
    class Bad(Product):
        def backward(self, inputs, grad_outputs):
            return gradient, None

    x, y = variable([2.0]), variable([3.0])
    with pytest.raises(error, match=message):
        Bad()(x, y).backward()
    assert x.grad is None


@pytest.mark.parametrize("function", [Product, Expo])
@pytest.mark.parametrize("by", ["backward", "grad"])
def test_differentiating_again_is_an_error_and_never_silently_zero(function, by):
    x = variable([2.0])
    y = function()(*[x] * (2 if function is Product else 1))
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    message = f'cannot twice-differentiate an old style Function "{function.__name__}"'
    with pytest.raises(RuntimeError, match=message) as caught:
        if by == "backward":
            gx.backward()
        else:
            tn.grad([gx], [x])
    assert isinstance(caught.value, GraphError)


def test_double_backprop_beside_an_old_style_function_works_where_it_is_not_needed():
    x, w = variable([2.0]), variable([3.0])
    y = Product()(x, x) + w**3
    (gw,) = tn.grad([y], [w], enable_double_backprop=True)
    (ggw,) = tn.grad([gw], [w])
    assert ggw.array == 18.0


def test_creator_is_the_function_and_creator_node_its_adapter():
    x, y, function = variable([2.0]), variable([3.0]), Product()
    z = function(x, y)
    adapter = z.creator_node
    assert z.creator is function and z.node.creator is function
    assert type(adapter) is tn.FunctionAdapter and function.node is adapter
    assert adapter.function is function and adapter.node is adapter
    assert function.inputs == adapter.inputs == (x.node, y.node)
    assert function.outputs[0]() is z.node and function.rank == 0


def test_label_and_impl_name_are_the_function_s():
    class Named(Product):
        label = "_ x _"

    z = Named()(variable([2.0]), variable([3.0]))
    assert z.creator_node.label == "_ x _" and z.creator_node._impl_name == "Named"
    assert Product().label == "Product"


def test_before_the_call_the_function_owns_its_adapter_and_afterwards_the_graph_does():
    function = Product()
    adapter = weakref.ref(function.node)
    assert adapter() is function.node
    z = function(variable([2.0]), variable([3.0]))
    assert function.node is adapter() is z.creator_node
    probe = weakref.ref(function)
    del function
    assert probe() is not None  # the graph needs its backward
    z.backward()
    del z
    assert probe() is None and adapter() is None


def test_hooks_get_the_adapter():
    seen = []

    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            seen.append(("forward", function))

        def backward_preprocess(self, function, in_data, out_grad):
            seen.append(("backward", function))

    function = Product()
    with Hook():
        z = function(variable([2.0]), variable([3.0]))
        z.backward()
    assert seen[0] == ("forward", z.creator_node) and ("backward", z.creator_node) in seen


def test_hooks_may_be_added_to_the_function_before_the_call():
    hook = mock.Mock(spec=tn.FunctionHook)
    hook.name = "mine"
    function = Product()
    function.add_hook(hook)
    assert function.local_function_hooks == {"mine": hook}
    function(variable([2.0]), variable([3.0]))
    hook.forward_preprocess.assert_called_once()
    hook.deleted.assert_not_called()


def test_delete_hook():
    function = Product()
    function.add_hook(tn.FunctionHook(), "mine")
    function.delete_hook("mine")
    assert function.local_function_hooks == {}


def test_a_failed_call_keeps_the_hooks_and_a_second_try_works():
    hook = mock.Mock(spec=tn.FunctionHook)
    hook.name = "mine"
    function = Product()
    function.add_hook(hook)
    with pytest.raises(ValueError):
        function(variable([2.0, 3.0]), variable([1.0, 2.0, 3.0]))
    z = function(variable([2.0]), variable([3.0]))
    assert z.array == 6.0 and hook.forward_postprocess.call_count == 1


def test_a_second_call_in_the_same_graph_is_an_error():
    function = Product()
    z = function(variable([2.0]), variable([3.0]))
    with pytest.raises(GraphError, match="Product: this instance was applied before"):
        function(variable([2.0]), variable([3.0]))
    assert z.array == 6.0


def test_check_type_forward_runs_and_its_message_names_the_function():
    class Checked(Product):
        def check_type_forward(self, in_types):
            type_check.expect(in_types.size() == 2, in_types[0].ndim == 1)

    assert Checked()(variable([2.0]), variable([3.0])).array == 6.0
    with pytest.raises(InvalidType, match=r"Checked \(Forward\)\n\nExpect: in_types\[0\]\.ndim"):
        Checked()(variable(2.0), variable(3.0))


def test_forward_cpu_is_the_default_of_forward():
    class Cpu(tn.Function):
        def forward_cpu(self, inputs):
            return (inputs[0] + 1,)

    assert Cpu()(variable([1.0])).array == 2.0
    with pytest.raises(NotImplementedError, match="Function has neither"):
        tn.Function()(variable([1.0]))
    with pytest.raises(NotImplementedError, match="forward_gpu"):
        tn.Function().forward_gpu((np.ones(1),))


def test_backward_by_default_gives_no_gradients():
    class Opaque(tn.Function):
        def forward(self, inputs):
            return (inputs[0] + 1,)

    x = variable([1.0])
    Opaque()(x).backward()
    assert x.grad is None


def test_unchain_takes_it_out_of_the_graph():
    x, function = variable([2.0]), Product()
    z = function(x, variable([3.0]))
    function.unchain()
    assert z.creator is None
    with pytest.raises(ValueError, match="no recorded function"):
        z.backward()
    assert x.grad is None


def test_the_stack_is_recorded_in_debug_mode():
    function = Product()
    with tn.using_config(debug=True):
        z = function(variable([2.0]), variable([3.0]))
    assert function.stack[-1].filename == __file__
    del z


def test_without_backprop_mode_nothing_is_recorded():
    function = Product()
    with tn.no_backprop_mode():
        z = function(variable([2.0]), variable([3.0]))
    assert z.creator is None and function.inputs is None
