"""FunctionNode: apply phase by phase, retaining, unchaining, its own hooks."""

from __future__ import annotations

import inspect
import itertools
import sys
import weakref
from unittest import mock

import numpy as np
import pytest

import tinynode as tn
from tinynode import type_check
from tinynode.core.hooks import retained_arrays, thread_state
from tinynode.errors import (
    DeviceMixError,
    GradientShapeError,
    GraphError,
    HookError,
    InvalidType,
    OutputError,
)

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Scale(tn.FunctionNode):
    """y = c x: the smallest complete function."""

    def __init__(self, c=2.0):
        self.c = c

    def forward(self, inputs):
        return (inputs[0] * self.c,)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * self.c,)


class Returns(tn.FunctionNode):
    """A function whose forward returns what it is told to."""

    def __init__(self, result):
        self.result = result

    def forward(self, inputs):
        return self.result


class TwoOutputs(tn.FunctionNode):
    """(x y, x + y), with both inputs and the first output retained on request."""

    def __init__(self, retained_inputs=None, retained_outputs=None):
        self.retained_inputs, self.retained_outputs = retained_inputs, retained_outputs

    def forward(self, inputs):
        x, y = inputs
        if self.retained_inputs is not None:
            self.retain_inputs(self.retained_inputs)
        if self.retained_outputs is not None:
            self.retain_outputs(self.retained_outputs)
        return x * y, x + y


# --- what a node has -------------------------------------------------------------------------


def test_attributes_before_apply():
    f = Scale()
    assert f.lazy_grad_sum is f.is_elementwise is f.is_broadcasting is False
    assert f.inputs is None and f.outputs is None and f.rank == 0 and f.stack is None
    assert f.lazy_grad_sum is False and f.is_elementwise is False
    assert f.label == "Scale" and f._impl_name == "Scale"
    assert f.local_function_hooks == {}
    assert f.get_retained_inputs() == () and f.get_retained_outputs() == ()


def test_every_name_of_the_reference_documentation_is_there():
    methods = "add_hook apply backward backward_accumulate check_type_forward delete_hook forward"
    methods += " forward_fast forward_cpu forward_gpu get_retained_inputs get_retained_outputs"
    methods += " retain_inputs retain_outputs unchain"
    attributes = "inputs is_elementwise label lazy_grad_sum local_function_hooks output_data"
    attributes += " outputs rank stack output_device"
    names = methods.split() + attributes.split()
    assert [name for name in names if not hasattr(tn.FunctionNode, name)] == []
    assert all(callable(getattr(tn.FunctionNode, name)) for name in methods.split())


def test_arguments_have_the_names_of_the_reference_documentation():
    def arguments(method):
        return list(inspect.signature(method).parameters)[1:]

    node = tn.FunctionNode
    assert arguments(node.apply) == ["inputs"]
    assert arguments(node.backward) == ["target_input_indexes", "grad_outputs"]
    assert arguments(node.backward_accumulate) == [
        "target_input_indexes",
        "grad_outputs",
        "grad_inputs",
    ]
    assert arguments(node.check_type_forward) == ["in_types"]
    assert arguments(node.add_hook) == ["hook", "name"]
    assert arguments(node.delete_hook) == ["name"]
    for method in (node.forward, node.forward_cpu, node.forward_gpu, node.forward_fast):
        assert arguments(method) == ["inputs"]
    for method in (node.retain_inputs, node.retain_outputs):
        assert arguments(method) == ["indexes"]


def test_after_apply_the_edges_stand():
    x, y = variable([1.0]), variable([2.0])
    f = TwoOutputs()
    outputs = f.apply((x, y))
    assert f.inputs == (x.node, y.node)
    assert type(f.outputs) is tuple and [r() for r in f.outputs] == [o.node for o in outputs]
    assert all(type(reference) is weakref.ref for reference in f.outputs)
    assert [o.creator_node for o in outputs] == [f, f] and [o.rank for o in outputs] == [1, 1]


def test_the_rank_is_the_largest_rank_of_the_inputs():
    x = variable([1.0])
    deep = F.exp(F.exp(x))
    f = F.Add()
    (z,) = f.apply((x, deep))
    assert f.rank == 2 and z.rank == 3


def test_a_subclass_needs_no_super_init_and_keeps_its_dict():
    f = Scale()
    f.anything = 1
    assert vars(f) == {"c": 2.0, "anything": 1}


def test_functions_recorded_after_an_evaluation_are_as_small_as_others():
    class FirstEvaluated(Scale):
        pass

    class FirstRecorded(Scale):
        pass

    x = variable([1.0])
    with tn.no_backprop_mode():
        for _ in range(100):
            FirstEvaluated().apply((x,))
    sizes = []
    for kind in (FirstEvaluated, FirstRecorded):
        for _ in range(100):
            f = kind()
            f.apply((x,))
        sizes.append(sys.getsizeof(vars(f)))
    assert sizes[0] == sizes[1]


def test_a_class_is_made_without_calls_of_its_own_methods(capsys):
    """The example that reserves places for attributes never went through __init__."""

    class Closing(Scale):
        def __init__(self):
            super().__init__()
            self.name = "closed"

        def __del__(self):
            print(self.name)

    class Careful(Scale):
        def __init__(self):
            object.__setattr__(self, "names", set())
            super().__init__()

        def __setattr__(self, name, value):
            self.names.add(name)
            object.__setattr__(self, name, value)

    class ScaleError(Scale, Exception):
        pass

    assert capsys.readouterr() == ("", "")
    for kind in (Closing, Careful, ScaleError):
        x = variable([1.0])
        y = kind().apply((x,))[0]
        y.backward()
        assert x.grad == y.array / x.array


def test_a_node_hashes_by_identity():
    f, g = Scale(), Scale()
    assert f != g and len({f, g, f}) == 2


def test_a_node_is_not_callable_and_says_to_use_apply():
    with pytest.raises(RuntimeError, match=r"Scale.*not callable.*apply"):
        Scale()(variable([1.0]))


def test_label_and_impl_name_may_be_overridden():
    class Named(Scale):
        label = "_ * c"

    y = Named().apply((variable([1.0]),))[0]
    assert y.creator.label == "_ * c" and y.creator._impl_name == "Named"


# --- apply: inputs ---------------------------------------------------------------------------


def test_apply_returns_a_tuple_also_for_one_output():
    result = Scale().apply((variable([1.0]),))
    assert type(result) is tuple and len(result) == 1 and type(result[0]) is tn.Variable


def test_apply_takes_a_list_too():
    assert Scale().apply([variable([1.0])])[0].array == 2.0


def test_forward_gets_the_raw_arrays_in_a_tuple():
    seen = []

    class Look(tn.FunctionNode):
        def forward(self, inputs):
            seen.append(inputs)
            return (inputs[0],)

    x, array = variable([1.0]), np.array([2.0])
    Look().apply((x, array))
    assert type(seen[0]) is tuple and seen[0][0] is x.array and seen[0][1] is array


def test_arrays_are_wrapped_without_a_gradient():
    x, array = variable([1.0]), np.array([2.0])
    f = F.Multiply()
    (z,) = f.apply((array, x))
    assert [node.requires_grad for node in f.inputs] == [False, True]
    z.backward()
    assert x.grad == 2.0


def test_a_function_of_arrays_alone_records_nothing():
    f = Scale()
    (y,) = f.apply((np.array([1.0]),))
    assert y.array == 2.0 and y.creator is None and y.requires_grad is False
    assert f.inputs is None and f.outputs is None


def test_nothing_is_recorded_where_no_input_requires_a_gradient():
    f = Scale()
    (y,) = f.apply((variable([1.0], requires_grad=False),))
    assert y.creator is None and y.rank == 0 and f.inputs is None and f.outputs is None


def test_nothing_is_recorded_without_backprop_mode_and_the_result_requires_no_gradient():
    f = F.Multiply()
    x = variable([1.0])
    with tn.no_backprop_mode():
        (y,) = f.apply((x, x))
    assert y.creator is None and y.rank == 0 and f.inputs is None and f.outputs is None
    assert y.requires_grad is False and y.numpy() == [1.0]
    assert f.get_retained_inputs() == ()


@pytest.mark.parametrize("value", [1.0, [1.0], np.str_("1.0"), None, "text"])
def test_an_input_that_is_neither_variable_nor_array_is_named_with_its_position(value):
    with pytest.raises(DeviceMixError, match=r"Scale: input 1 must be an array.*asarray"):
        Scale().apply((variable([1.0]), value))


def test_a_function_without_inputs_works_and_records_nothing():
    class Constant(tn.FunctionNode):
        def forward(self, inputs):
            assert inputs == ()
            return (np.ones(3),)

    f = Constant()
    (y,) = f.apply(())
    np.testing.assert_array_equal(y.array, np.ones(3))
    assert y.requires_grad is False and y.creator is None and y.device is tn.get_device("numpy")


def test_a_second_apply_on_one_instance_is_an_error_and_the_first_graph_stays_right():
    f, x = Scale(3.0), variable([1.0])
    (y,) = f.apply((x,))
    with pytest.raises(
        RuntimeError, match=r"Scale: this instance was applied before.*new instance"
    ):
        f.apply((variable([5.0]),))
    y.backward()
    assert x.grad == 3.0


def test_a_second_apply_is_an_error_without_a_graph_too():
    f = Scale()
    f.apply((np.ones(1),))
    with pytest.raises(GraphError, match="applied before"):
        f.apply((np.ones(1),))


# --- apply: outputs --------------------------------------------------------------------------


def test_forward_may_return_its_input_array():
    x = variable([1.0])
    (y,) = F.Identity().apply((x,))
    assert y is not x and y.array is x.array and y.node is not x.node
    y.backward()
    assert x.grad == 1.0


@pytest.mark.parametrize("result", [np.ones(2), [np.ones(2)], 1.0, None])
def test_a_result_that_is_no_tuple_is_a_type_error_that_shows_what_came(result):
    kind = type(result).__name__
    with pytest.raises(
        TypeError, match=rf"forward output must be a tuple \(Returns\)\nActual: {kind}"
    ) as caught:
        Returns(result).apply((variable([1.0]),))
    assert isinstance(caught.value, OutputError)
    assert "comma" in str(caught.value)


@pytest.mark.parametrize("element", [1.0, 2, True, [1.0], "text"])
def test_an_element_that_is_no_array_is_a_type_error_that_names_its_position(element):
    with pytest.raises(TypeError, match=r"tuple of arrays.*\(Returns\)\nActual: output 1 is"):
        Returns((np.ones(1), element)).apply((variable([1.0]),))


def test_a_variable_among_the_results_is_a_type_error():
    with pytest.raises(OutputError, match="output 0 is Variable"):
        Returns((variable([1.0]),)).apply((variable([1.0]),))


@pytest.mark.parametrize("scalar", [np.float64(3.0), np.float32(3.0), np.int64(3), np.bool_(True)])
def test_a_numpy_scalar_is_lifted_to_a_0_d_array(scalar):
    (y,) = Returns((scalar,)).apply((variable([1.0]),))
    assert type(y.array) is np.ndarray and y.shape == () and y.dtype == scalar.dtype


def test_0_d_results_of_numpy_ufuncs_stay_differentiable_arrays():
    x = variable(2.0)
    for y in (x * x, F.exp(x), x + 1.0, F.sum(variable([1.0, 2.0]))):
        assert type(y.array) is np.ndarray and y.shape == ()


def test_none_outputs_become_empty_variables_without_gradient():
    class Half(tn.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2.0, None

        def backward(self, target_input_indexes, grad_outputs):
            gy, gn = grad_outputs
            assert gn is None
            return (gy * 2.0,)

    x = variable([1.0])
    y, empty = Half().apply((x,))
    assert empty.array is None and empty.requires_grad is False
    y.backward()
    assert x.grad == 2.0


def test_requires_grad_is_per_output_only_floating_ones_do():
    class Mixed(tn.FunctionNode):
        complex_rule = "own"

        def forward(self, inputs):
            (x,) = inputs
            return x * 2, x > 0, np.arange(2), x * 1j

    outputs = Mixed().apply((variable([1.0, 2.0]),))
    assert [y.requires_grad for y in outputs] == [True, False, False, True]


def test_an_elementwise_function_must_give_outputs_of_one_shape():
    class Bad(tn.FunctionNode):
        is_elementwise = True

        def forward(self, inputs):
            return inputs[0], inputs[0][:1]

    class Good(Bad):
        def forward(self, inputs):
            return inputs[0], inputs[0] * 2

    with pytest.raises(RuntimeError, match=r"Bad.*is_elementwise.*\(2,\).*\(1,\)"):
        Bad().apply((variable([1.0, 2.0]),))
    assert len(Good().apply((variable([1.0, 2.0]),))) == 2


# --- apply: the order of its phases ----------------------------------------------------------


def test_the_phases_come_in_the_order_of_the_contract():
    events = []

    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            events.append("preprocess")

        def forward_postprocess(self, function, in_data):
            events.append("postprocess")
            assert function.inputs is None  # connected afterwards

    class Watcher(tn.FunctionHook):
        name = "Watcher"

        def applied(self, function, inputs, outputs):
            events.append("applied")
            assert function.inputs == tuple(x.node for x in inputs)
            assert [y.creator_node for y in outputs] == [function]

    class Traced(Scale):
        def check_type_forward(self, in_types):
            events.append("check")

        def forward(self, inputs):
            events.append("forward")
            return super().forward(inputs)

    with Hook(), Watcher():
        Traced().apply((variable([1.0]),))
    assert events == ["check", "preprocess", "forward", "postprocess", "applied"]


def test_an_observer_sees_functions_that_record_nothing_too():
    seen = []

    class Watcher(tn.FunctionHook):
        name = "Watcher"

        def applied(self, function, inputs, outputs):
            seen.append((function.label, inputs, outputs))

    x = variable([1.0])
    watcher = Watcher()
    with watcher, tn.no_backprop_mode():
        y = x * np.array([2.0])
    y * 2.0
    ((label, inputs, outputs),) = seen
    assert label == "Multiply" and inputs[0] is x and outputs[0] is y
    assert type(inputs[1]) is tn.Variable
    assert thread_state.hooks == {}


def test_check_type_forward_is_skipped_if_the_config_says_so():
    class Refuses(Scale):
        def check_type_forward(self, in_types):
            type_check.expect(in_types[0].ndim == 3)

    with tn.using_config(type_check=False):
        Refuses().apply((variable([1.0]),))
    with pytest.raises(InvalidType):
        Refuses().apply((variable([1.0]),))


@pytest.mark.parametrize(("ndim", "calls"), [(1, 1), (2, 2)])
def test_check_type_forward_is_called_once_on_success_and_twice_on_failure(ndim, calls):
    count = []

    class Counted(Scale):
        def check_type_forward(self, in_types):
            count.append(type(in_types))
            type_check.expect(in_types.size() == 1, in_types[0].ndim == 1)

    x = variable(np.zeros((1,) * ndim))
    if calls == 2:
        with pytest.raises(InvalidType):
            Counted().apply((x,))
    else:
        Counted().apply((x,))
    assert len(count) == calls


def test_after_a_failed_type_check_neither_hooks_nor_forward_run():
    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            raise AssertionError

    class Refuses(Scale):
        def check_type_forward(self, in_types):
            type_check.expect(in_types[0].ndim == 2)

        def forward(self, inputs):
            raise AssertionError

    with Hook(), pytest.raises(InvalidType):
        Refuses().apply((variable([1.0]),))


# --- methods are found on the instance -------------------------------------------------------


def test_forward_mocked_on_the_instance_is_called():
    f, x = Scale(), variable([1.0])
    f.forward = mock.Mock(return_value=(np.array([7.0]),))
    (y,) = f.apply((x,))
    assert y.array == 7.0
    f.forward.assert_called_once()
    ((arrays,), _) = f.forward.call_args
    assert arrays[0] is x.array


def test_forward_cpu_mocked_on_the_instance_is_called():
    f = tn.FunctionNode()
    f.forward_cpu = mock.Mock(return_value=(np.array([7.0]),))
    assert f.apply((variable([1.0]),))[0].array == 7.0
    f.forward_cpu.assert_called_once()


def test_check_type_forward_mocked_on_the_instance_is_called():
    f = Scale()
    f.check_type_forward = mock.Mock()
    f.apply((variable([1.0]),))
    f.check_type_forward.assert_called_once()


def test_backward_mocked_on_the_instance_is_called():
    f, x = Scale(), variable([1.0])
    (y,) = f.apply((x,))
    f.backward = mock.Mock(return_value=(variable([9.0]),))
    y.backward()
    assert x.grad == 9.0
    ((indexes, grad_outputs), _) = f.backward.call_args
    assert indexes == (0,) and grad_outputs[0].array == 1.0


# --- defaults --------------------------------------------------------------------------------


def test_forward_by_default_calls_forward_cpu_and_that_is_not_implemented():
    class Cpu(tn.FunctionNode):
        def forward_cpu(self, inputs):
            return (inputs[0] + 1.0,)

    assert Cpu().apply((variable([1.0]),))[0].array == 2.0
    with pytest.raises(NotImplementedError, match="FunctionNode has neither"):
        tn.FunctionNode().apply((variable([1.0]),))
    with pytest.raises(NotImplementedError, match="forward_gpu"):
        tn.FunctionNode().forward_gpu((np.ones(1),))


def test_forward_by_default_wants_an_input():
    with pytest.raises(GraphError, match=r"override forward\(\)"):
        tn.FunctionNode().apply(())


def test_forward_fast_by_default_asks_for_the_portable_forward():
    assert Scale().forward_fast((np.ones(1),)) is tn.Fallback


def test_backward_by_default_means_not_differentiable_without_an_error():
    class Opaque(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * inputs[1],)

    assert tn.FunctionNode().backward((0, 2), (None,)) == (None, None)
    x, y = variable([1.0]), variable([2.0])
    (z,) = Opaque().apply((x, y))
    z.backward()
    assert x.grad is None and y.grad is None


# --- retaining -------------------------------------------------------------------------------


def test_nothing_is_retained_by_default():
    f = TwoOutputs()
    x, y = variable([2.0]), variable([3.0])
    kept = f.apply((x, y))
    assert f.get_retained_inputs() == () and f.get_retained_outputs() == ()
    assert [v.node.data for v in (x, y, *kept)] == [None] * 4
    with pytest.raises(RuntimeError, match="retain_outputs"):
        _ = f.output_data


@pytest.mark.parametrize("indexes", [(0, 1), (1, 0), (1,), [0], range(2), iter([1])])
def test_retained_inputs_come_in_the_order_of_the_indexes_as_the_user_s_variables(indexes):
    indexes = list(indexes)
    f, inputs = TwoOutputs(retained_inputs=iter(indexes)), (variable([2.0]), variable([3.0]))
    kept = f.apply(inputs)
    retained = f.get_retained_inputs()
    assert type(retained) is tuple and len(retained) == len(indexes)
    assert all(v is inputs[i] for v, i in zip(retained, indexes, strict=True))
    assert [v.node.data is not None for v in inputs] == [i in indexes for i in (0, 1)]
    del kept


@pytest.mark.parametrize("indexes", [(0, 1), (1, 0), (1,), [0], range(2), iter([1])])
def test_retained_outputs_come_in_the_order_of_the_indexes_as_the_user_s_variables(indexes):
    indexes = list(indexes)
    f = TwoOutputs(retained_outputs=iter(indexes))
    outputs = f.apply((variable([2.0]), variable([3.0])))
    retained = f.get_retained_outputs()
    assert type(retained) is tuple and len(retained) == len(indexes)
    assert all(v is outputs[i] for v, i in zip(retained, indexes, strict=True))


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("what", ["inputs", "outputs"])
def test_the_arrays_at_the_positions_are_retained(number, what):
    class Several(tn.FunctionNode):
        def __init__(self, indexes):
            self.indexes = indexes

        def forward(self, inputs):
            getattr(self, f"retain_{what}")(self.indexes)
            return tuple(x + 1.0 for x in inputs)

    for length in range(number + 1):
        for indexes in itertools.product(range(number + 1), repeat=length):
            f, xs = Several(indexes), tuple(variable([float(i)]) for i in range(number))
            if number in indexes:
                with pytest.raises(IndexError, match="there is no position"):
                    f.apply(xs)
                continue
            ys = f.apply(xs)
            of = xs if what == "inputs" else ys
            found = getattr(f, f"get_retained_{what}")()
            assert len(found) == length
            assert all(v is of[i] for v, i in zip(found, indexes, strict=True))
            kept = retained_arrays(f)[what == "outputs"]
            wanted = [x.array if i in indexes else None for i, x in enumerate(of)]
            assert all(one is other for one, other in zip(kept, wanted, strict=True))
            assert [x.node.data for x in of] == wanted


@pytest.mark.parametrize("method", ["retain_inputs", "retain_outputs"])
def test_a_single_position_is_refused_with_the_name_of_the_function(method):
    f = TwoOutputs(**{method.replace("retain", "retained"): 0})
    with pytest.raises(TypeError, match=f"TwoOutputs: {method} takes the positions as a tuple"):
        f.apply((variable([2.0]), variable([3.0])))


def test_the_last_call_of_retain_wins():
    class Twice(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0, 1))
            self.retain_inputs((1,))
            self.retain_outputs((0,))
            self.retain_outputs(())
            return (inputs[0] * inputs[1],)

    f, x, y = Twice(), variable([2.0]), variable([3.0])
    kept = f.apply((x, y))
    assert f.get_retained_inputs() == (y,) and f.get_retained_outputs() == ()
    assert x.node.data is None and y.node.data is y.array
    del kept


def test_output_data_is_as_long_as_the_outputs_with_none_for_what_is_not_retained():
    f = TwoOutputs(retained_outputs=(1,))
    _, s = f.apply((variable([2.0]), variable([3.0])))
    assert len(f.output_data) == 2 and f.output_data[0] is None and f.output_data[1] is s.array


def test_output_data_without_a_graph_is_a_runtime_error():
    f = TwoOutputs(retained_outputs=(1,))
    with tn.no_backprop_mode():
        f.apply((variable([2.0]), variable([3.0])))
    with pytest.raises(RuntimeError, match="TwoOutputs"):
        _ = f.output_data


def test_a_dead_input_variable_comes_back_fresh_on_the_same_node():
    f, x, y = TwoOutputs(retained_inputs=(0,)), variable([2.0], name="x"), variable([3.0])
    outputs = f.apply((x, y))
    node, array = x.node, x.array
    del x
    (first,) = f.get_retained_inputs()
    (second,) = f.get_retained_inputs()
    assert first is not second  # a new object for each call while nobody holds one
    assert first.node is second.node is node and first.array is array
    assert first.requires_grad and first.name == "x"
    del outputs


def test_an_input_whose_array_was_reassigned_comes_back_fresh_with_the_old_array():
    f, x = TwoOutputs(retained_inputs=(0,)), variable([2.0])
    outputs = f.apply((x, variable([3.0])))
    old = x.array
    x.array = np.array([9.0])
    (retained,) = f.get_retained_inputs()
    assert retained is not x and retained.array is old and retained.node is x.node
    x.array = old
    assert f.get_retained_inputs() == (x,)
    del outputs


def test_retained_raw_arrays_come_back_as_variables_without_gradient():
    f = TwoOutputs(retained_inputs=(1,))
    outputs = f.apply((variable([2.0]), np.array([3.0])))
    (retained,) = f.get_retained_inputs()
    assert type(retained) is tn.Variable and retained.array == 3.0
    assert retained.requires_grad is False
    del outputs


def test_a_dead_output_comes_back_on_a_fresh_node_that_is_the_function_s_output():
    f, x = TwoOutputs(retained_outputs=(0,)), variable([2.0])
    product, s = f.apply((x, variable([3.0])))
    array = product.array
    del product
    assert f.outputs[0]() is None
    (revived,) = f.get_retained_outputs()
    assert revived.array is array and revived.creator_node is f and revived.rank == 1
    assert f.outputs[0]() is revived.node and f.outputs[1]() is s.node
    assert f.get_retained_outputs()[0] is revived
    del revived
    assert f.outputs[0]() is None


@pytest.mark.parametrize("keep", [False, True])
def test_a_retained_output_that_is_none_comes_back_as_none(keep):
    class Half(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_outputs((0, 1))
            return None, inputs[0] * 2

    empty, y = Half().apply((variable([1.0]),))
    if not keep:
        del empty
    assert y.creator.get_retained_outputs() == (None, y)
    assert y.creator.output_data == (None, y.array)


def test_an_output_whose_node_lives_on_comes_back_on_that_node():
    x = variable([2.0])
    y = F.exp(x)
    f, node = y.creator_node, y.node
    z = y + 1.0  # the consumer holds the node
    del y
    (retained,) = f.get_retained_outputs()
    assert retained.node is node
    del z


def test_retained_arrays_belong_to_the_function_and_survive_reassignment_of_an_output():
    x = variable(1.0)
    y = F.exp(x)
    e = float(y.array)
    y.array = np.asarray(100.0)
    y.backward()
    assert x.grad == e


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
@pytest.mark.parametrize("index", [2, -3])
def test_retaining_an_index_that_does_not_exist_is_an_error_that_names_it(kind, index):
    f = TwoOutputs(**{f"retained_{kind}": (index,)})
    with pytest.raises(
        IndexError, match=rf"TwoOutputs: .*retain_{kind}\(\({index},\)\).*no position \({index},\)"
    ):
        f.apply((variable([2.0]), variable([3.0])))


@pytest.mark.parametrize("index", [-1, -2])
def test_negative_indexes_count_from_the_end(index):
    f = TwoOutputs(retained_inputs=(index,), retained_outputs=(index,))
    inputs = (variable([2.0]), variable([3.0]))
    outputs = f.apply(inputs)
    assert f.get_retained_inputs()[0] is inputs[index]
    assert f.get_retained_outputs()[0] is outputs[index]


# --- unchain ---------------------------------------------------------------------------------


def test_unchain_clears_the_creator_of_living_outputs_and_keeps_the_input_side():
    x = variable([1.0])
    h = x * 2.0
    f = TwoOutputs(retained_inputs=(0, 1), retained_outputs=(0,))
    product, total = f.apply((h, h))
    del total
    f.unchain()
    assert f.inputs is None and f.outputs is None
    assert product.creator is None and product.rank == 2
    assert f.get_retained_inputs() == () and f.get_retained_outputs() == ()
    with pytest.raises(RuntimeError):
        _ = f.output_data
    assert h.creator is not None  # not the business of f
    with pytest.raises(ValueError, match="no recorded function"):
        product.backward()
    assert x.grad is None
    f.unchain()  # a second time: nothing to do


def test_unchain_before_apply_does_nothing():
    f = Scale()
    f.unchain()
    assert f.inputs is None
    assert f.apply((variable([1.0]),))[0].creator is f


def test_unchain_frees_what_the_function_retained():
    x = variable([1.0])
    y = F.exp(x + 1.0)
    function = y.creator_node
    array = weakref.ref(y.array)
    function.unchain()
    del y
    assert array() is None


# --- hooks of one function -------------------------------------------------------------------


def test_add_hook_registers_under_the_hook_s_name_or_another_and_calls_added():
    hook = mock.Mock(spec=tn.FunctionHook)
    hook.name = "mine"
    f = Scale()
    f.add_hook(hook)
    f.add_hook(hook, name="other")
    assert list(f.local_function_hooks) == ["mine", "other"]
    assert hook.added.call_args_list == [mock.call(f), mock.call(f)]
    f.delete_hook("mine")
    hook.deleted.assert_called_once_with(f)
    assert list(f.local_function_hooks) == ["other"]


def test_add_hook_wants_a_function_hook():
    with pytest.raises(TypeError, match="expected a FunctionHook, got str"):
        Scale().add_hook("hook")


def test_a_name_that_is_taken_in_this_function_is_a_key_error():
    f = Scale()
    f.add_hook(tn.FunctionHook())
    with pytest.raises(KeyError, match="Hook FunctionHook already exists") as caught:
        f.add_hook(tn.FunctionHook())
    assert isinstance(caught.value, HookError) and not str(caught.value).startswith("'")
    Scale().add_hook(tn.FunctionHook())  # another function has names of its own


def test_deleting_a_name_that_is_not_there_is_a_key_error_that_lists_the_names():
    f = Scale()
    f.add_hook(tn.FunctionHook(), "a")
    with pytest.raises(KeyError, match=r"Hook b does not exist in Scale.*\['a'\]"):
        f.delete_hook("b")


def test_deleted_is_called_before_the_hook_is_removed():
    class Hook(tn.FunctionHook):
        def deleted(self, function):
            assert function.local_function_hooks[self.name] is self

    f = Scale()
    f.add_hook(Hook())
    f.delete_hook("FunctionHook")
    assert f.local_function_hooks == {}


def test_a_hook_of_one_function_is_called_for_that_function_only():
    hook = mock.Mock(spec=tn.FunctionHook)
    hook.name = "mine"
    f, x = Scale(), variable([1.0])
    f.add_hook(hook)
    (y,) = f.apply((x,))
    z = Scale().apply((y,))[0]
    hook.forward_preprocess.assert_called_once_with(f, (x.array,))
    hook.forward_postprocess.assert_called_once_with(f, (x.array,))
    z.backward()
    hook.backward_preprocess.assert_called_once()
    hook.backward_postprocess.assert_called_once()
    assert hook.backward_preprocess.call_args[0][0] is f


# --- type checks of the built-in functions ---------------------------------------------------


def test_a_wrong_call_of_a_function_node_is_refused_with_its_label():
    with pytest.raises(
        InvalidType, match=r"Invalid operation is performed in: Multiply \(Forward\)"
    ):
        F.Multiply().apply((variable([1.0, 2.0]), variable([1.0, 2.0, 3.0])))


def test_backward_must_return_as_many_gradients_as_inputs_or_targets():
    class Wrong(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0],)

        def backward(self, target_input_indexes, grad_outputs):
            return (None, None, None)

    x = variable([1.0])
    with pytest.raises(
        ValueError,
        match="number of gradients returned from backward is incorrect: 3 != expected 1 or 2",
    ) as caught:
        Wrong().apply((x, np.ones(1)))[0].backward()
    assert isinstance(caught.value, GradientShapeError)
