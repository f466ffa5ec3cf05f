"""VariableNode: what the graph holds of a variable."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import GraphError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


# --- what it remembers -----------------------------------------------------------------------


def test_shape_dtype_device_name_are_remembered_without_the_array():
    x = tn.Variable(np.zeros((2, 3), np.float32), name="x")
    node = x.node
    del x
    assert node.shape == (2, 3) and node.dtype == np.float32 and node.name == "x"
    assert node.device is tn.get_device("numpy") and node.requires_grad is True
    assert node.rank == 0 and node.data is None


def test_shape_and_dtype_of_an_empty_variable_are_none():
    node = tn.Variable().node
    assert node.shape is None and node.dtype is None and node.label == "empty"


@pytest.mark.parametrize(
    ("shape", "dtype", "label"),
    [
        ((2, 3), np.float32, "(2, 3), float32"),
        ((4,), np.int64, "(4,), int64"),
        ((), float, "float64"),
    ],
)
def test_the_label_is_shape_and_dtype_and_just_the_dtype_for_0_d(shape, dtype, label):
    x = tn.Variable(np.zeros(shape, dtype))
    assert x.node.label == label
    assert label in repr(x.node) and "rank 0" in repr(x.node)


def test_requires_grad_is_that_of_the_variable():
    assert variable([1.0], requires_grad=False).node.requires_grad is False
    assert variable([1], np.int64).node.requires_grad is False


def test_a_variable_has_one_node():
    x = variable([1.0])
    assert x.node is x.node


def test_a_node_has_slots_weak_references_and_hashes_by_identity():
    node = variable([1.0]).node
    assert not hasattr(node, "__dict__")
    assert weakref.ref(node)() is node
    assert {node: 1}[node] == 1


# --- data ------------------------------------------------------------------------------------


def test_data_is_none_even_while_the_variable_is_alive_if_nothing_retained_it():
    x = variable([1.0])
    y = x + 1.0
    assert x.node.data is None and y.node.data is None


def test_data_is_the_array_that_a_function_retained():
    x = variable([1.0])
    y = F.exp(F.log(x))
    (middle,) = y.creator_node.inputs
    assert x.node.data is x.array  # log retains its input
    assert middle.data is None  # neither log nor exp retains it
    assert y.node.data is y.array  # exp retains its output


def test_retained_data_outlives_the_variable():
    x = variable([3.0])
    y = x * x
    array = x.array
    node = x.node
    del x
    assert node.data is array
    assert y.creator_node.inputs == (node, node)


def test_data_answers_the_last_array_that_was_retained():
    x = variable([1.0])
    first = x * x
    x.array = np.array([2.0])
    second = x * x
    assert x.node.data is x.array
    F.sum(first + second).backward()
    assert x.grad == 2.0 + 4.0


def test_retain_data_takes_the_array_of_the_live_variable():
    x = variable([1.0])
    x.node.retain_data()
    assert x.node.data is x.array


def test_retain_data_after_the_variable_was_released_is_a_runtime_error():
    node = variable([1.0]).node
    with pytest.raises(RuntimeError, match="the variable has been already released") as caught:
        node.retain_data()
    assert isinstance(caught.value, GraphError)


# --- the way back to the Variable ------------------------------------------------------------


def test_get_variable_gives_the_live_variable():
    x = variable([1.0])
    assert x.node.get_variable() is x and x.node.get_variable_or_none() is x


def test_get_variable_makes_one_on_the_same_node_if_the_variable_is_gone():
    x = variable([1.0], name="x")
    y = x * x
    node, array = x.node, x.array
    del x
    assert node.get_variable_or_none() is None
    fresh = node.get_variable()
    assert fresh.node is node and fresh.array is array
    assert fresh.name == "x" and fresh.requires_grad is True
    assert node.get_variable() is fresh
    y.backward()
    assert fresh.grad == 2.0


def test_get_variable_without_retained_data_has_no_array():
    node = variable([1.0], requires_grad=False).node
    fresh = node.get_variable()
    assert fresh.array is None and fresh.requires_grad is False


def test_grad_and_grad_var_are_the_variable_s_and_none_when_it_is_dead():
    x = variable([1.0])
    node = x.node
    assert node.grad is None and node.grad_var is None
    x.grad = np.ones(1)
    assert node.grad is x.grad and node.grad_var is x.grad_var
    del x
    assert node.grad is None and node.grad_var is None


@pytest.mark.parametrize("attribute", ["grad", "grad_var"])
def test_grad_is_read_only_on_a_node(attribute):
    node = variable([1.0]).node
    with pytest.raises(AttributeError):
        setattr(node, attribute, None)


# --- creator and rank ------------------------------------------------------------------------


def test_creator_node_and_creator_are_the_function_node():
    x = variable([1.0])
    y = x * x
    assert x.node.creator is None and x.node.creator_node is None
    assert type(y.node.creator_node) is F.Multiply
    assert y.node.creator is y.node.creator_node


def test_the_rank_is_the_creator_s_plus_one_and_survives_unchain():
    x = variable([1.0])
    y = F.exp(F.exp(x))
    node = y.node
    assert node.rank == 2 and node.creator_node.rank == 1
    node.unchain()
    assert node.creator_node is None and node.rank == 2


def test_setting_a_creator_sets_the_rank_again():
    x = variable([1.0])
    deep = F.exp(F.exp(x)).creator_node
    node = variable([1.0]).node
    node.creator_node = deep
    assert node.rank == 2
    node.creator_node = None
    assert node.creator_node is None and node.rank == 2


def test_creator_set_creator_and_set_creator_node_take_both_kinds_of_function():
    class Old(tn.Function):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

    x = variable([1.0])
    old = Old()
    for function, shown in ((F.Identity(), None), (old, old)):
        y = function(x) if function is old else function.apply((x,))[0]
        adapter = y.node.creator_node
        assert isinstance(adapter, tn.FunctionNode)
        assert y.node.creator is (shown or adapter)
        node = variable([1.0]).node
        node.set_creator(function)
        assert node.creator_node is adapter and node.rank == 1
        node.unchain()
        node.set_creator_node(function)
        assert node.creator_node is adapter
        node.set_creator_node(None)
        assert node.creator_node is None
        node.creator = function
        assert node.creator_node is adapter
        node.set_creator(None)
        assert node.creator is None


def test_saving_creator_node_and_setting_it_again_keeps_an_old_style_graph():
    class Double(tn.Function):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

        def backward(self, inputs, grad_outputs):
            return (grad_outputs[0] * 2.0,)

    x = variable([1.0])
    v = Double()(x)
    creator_node = v.creator_node
    v.creator_node = None
    gc.collect()
    v.creator_node = creator_node
    v.backward()
    assert x.grad == 2.0
