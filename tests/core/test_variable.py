"""Variable: what a user holds (its array, its gradient, its conversions, writing to it)."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import weakref

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import (
    BackwardSeedError,
    DeviceMixError,
    GradientShapeError,
    GradientTypeError,
    GraphError,
    OperandError,
    RequiresGradError,
)

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


# --- construction ----------------------------------------------------------------------------


def test_a_new_variable_holds_the_very_array_that_it_was_given():
    array = np.arange(3.0)
    x = tn.Variable(array)
    assert x.array is array and x.data is array


def test_everything_but_the_array_is_keyword_only():
    kinds = inspect.signature(tn.Variable.__init__).parameters
    names = [name for name, p in kinds.items() if p.kind is p.KEYWORD_ONLY]
    assert names == ["name", "grad", "requires_grad"]
    with pytest.raises(TypeError):
        tn.Variable(np.zeros(2), "x")


@pytest.mark.parametrize("keyword", ["volatile", "unknown"])
def test_an_unknown_keyword_is_a_type_error(keyword):
    with pytest.raises(TypeError, match=keyword):
        tn.Variable(np.zeros(2), **{keyword: True})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1.0, 2.0], "list"),
        ((1.0,), "tuple"),
        ("text", "str"),
    ],
)
def test_the_constructor_wants_an_array_and_names_the_type_that_came(value, kind):
    with pytest.raises(
        TypeError, match=rf"Variable: array must be an array.* got {kind}.*asarray"
    ):
        tn.Variable(value)


def test_a_variable_is_no_array_for_the_constructor():
    with pytest.raises(TypeError, match="got Variable of shape"):
        tn.Variable(variable([1.0]))


def test_a_type_object_is_no_array_for_the_constructor():
    with pytest.raises(TypeError):
        tn.Variable(np.float64)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_floating_variables_require_a_gradient_by_default(dtype):
    assert tn.Variable(np.zeros(2, dtype)).requires_grad is True
    assert tn.Variable(np.zeros(2, dtype), requires_grad=False).requires_grad is False


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.bool_])
def test_other_dtypes_require_none_and_asking_is_a_type_error(dtype):
    array = np.zeros(2, dtype)
    assert tn.Variable(array).requires_grad is False
    assert tn.Variable(array, requires_grad=False).requires_grad is False
    with pytest.raises(
        TypeError, match=rf"array is {array.dtype}: only floating dtypes"
    ) as caught:
        tn.Variable(array, requires_grad=True)
    assert isinstance(caught.value, RequiresGradError)


def test_requires_grad_of_a_leaf_holds_from_now_on():
    x, y = variable([1.0]), variable([2.0])
    before = x * y
    x.grad = np.ones(1)
    x.requires_grad = False
    after = x * y
    assert not x.requires_grad and not x.is_leaf and x.grad is None
    (before + after).backward()
    assert x.grad is None  # the recorded function has the old node
    np.testing.assert_array_equal(y.grad, [2.0])
    assert not (x * x).requires_grad
    x.requires_grad = True
    x.requires_grad = True
    (x * y).backward()
    np.testing.assert_array_equal(x.grad, [2.0])


def test_requires_grad_is_refused_for_results_integers_and_other_values():
    x = variable([1.0])
    with pytest.raises(GraphError, match=r"x.requires_grad: expected a leaf, .* Multiply"):
        (x * x).requires_grad = False
    with pytest.raises(RequiresGradError, match="only floating dtypes"):
        tn.Variable(np.array([1])).requires_grad = True
    with pytest.raises(TypeError, match="requires_grad must be True or False, got str 'no'"):
        x.requires_grad = "no"
    assert x.requires_grad


def test_a_variable_has_slots_and_weak_references():
    x = variable([1.0])
    assert not hasattr(x, "__dict__")
    with pytest.raises(AttributeError):
        x.gard = None
    assert weakref.ref(x)() is x


def test_an_empty_variable_has_no_array_and_says_so_when_asked_for_a_shape():
    x = tn.Variable(name="w")
    assert x.array is None and x.data is None and x.grad is None
    with pytest.raises(GraphError, match=r"variable w is empty.*\.array"):
        _ = x.shape
    with pytest.raises(GraphError, match="variable w is empty"):
        F.exp(x)


def test_an_empty_variable_accepts_any_gradient_and_later_an_array():
    x = tn.Variable()
    x.grad = np.zeros((3, 1), np.float32)
    x.cleargrad()
    x.array = np.ones((2, 2))
    assert x.shape == (2, 2) and x.node.shape == (2, 2) and x.node.dtype == np.float64
    F.sum(x * x).backward()
    np.testing.assert_array_equal(x.grad, 2 * np.ones((2, 2)))


# --- the array -------------------------------------------------------------------------------


def test_shape_ndim_size_dtype_device_xp_and_rank():
    x = tn.Variable(np.zeros((2, 3), np.float32), name="x")
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float32)
    assert x.device is tn.get_device("numpy") and x.xp is np
    assert x.rank == 0 and x.creator is None and x.creator_node is None
    assert x.label == "(2, 3), float32" and x.name == "x" and x.node.name == "x"


def test_renaming_a_variable_renames_its_node():
    x = variable([1.0])
    node = x.node
    x.name = "weights"
    assert node.name == "weights"


@pytest.mark.parametrize("attribute", ["array", "data"])
def test_a_new_array_of_any_shape_and_dtype_may_be_assigned_and_the_node_follows(attribute):
    x = variable([1.0, 2.0])
    assert x.node.shape == (2,)
    new = np.ones((3, 1), np.float32)
    setattr(x, attribute, new)
    assert x.array is new
    assert x.node.shape == (3, 1) and x.node.dtype == np.float32 and x.label == "(3, 1), float32"


def test_integers_may_be_assigned_to_a_variable_of_integers():
    x, new = variable([1], np.int64), np.array([2, 3])
    x.array = new
    assert x.array is new


def test_the_creator_of_a_variable_may_be_assigned():
    x, function = variable(1.0), (variable(2.0) * 3.0).creator_node
    x.creator_node = function
    assert x.creator_node is x.node.creator_node is function and x.rank == 1


def test_the_gradient_of_an_empty_variable_is_a_variable_of_any_shape():
    x, gx = tn.Variable(), variable([1.0, 2.0])
    x.grad_var = gx
    assert x.grad_var is gx
    with pytest.raises(TypeError, match=r"x.grad_var: expected a Variable, got"):
        x.grad_var = np.ones(2)


@pytest.mark.parametrize("value", [1.0, [1.0], np.str_("1.0")])
def test_assigning_what_is_no_array_is_a_type_error_and_changes_nothing(value):
    x = variable([1.0, 2.0])
    before = x.array
    with pytest.raises(DeviceMixError, match="must be an array"):
        x.array = value
    assert x.array is before


def test_an_integer_array_cannot_be_assigned_to_a_variable_that_requires_a_gradient():
    x = variable([1.0, 2.0])
    with pytest.raises(RequiresGradError, match="int64"):
        x.array = np.array([1, 2])
    assert x.dtype == np.float64


def test_none_may_be_assigned():
    x = variable([1.0])
    assert x.node.shape == (1,)
    x.array = None
    assert x.array is None and x.node.shape is None and x.node.dtype is None
    assert x.label == "empty"


def test_assigning_an_array_leaves_recorded_functions_untouched():
    x = variable(3.0)
    y = x * x
    x.array = np.asarray(5.0)
    y.backward()
    assert x.grad == 6.0


def test_assigning_an_array_of_another_shape_never_falsifies_an_earlier_gradient():
    """The earlier function still sees shape (3,): its gradient may not be summed to fit."""
    x = variable([1.0, 2.0, 3.0])
    y = F.sum(x * x)
    x.array = np.asarray(5.0)
    y.backward()
    assert x.grad is None  # the gradient belongs to the old array, which x no longer is
    F.sum(x * x).backward()
    assert x.grad == 10.0


def test_a_gradient_left_from_an_array_of_another_kind_is_never_added_to():
    for other in (np.zeros(1), np.zeros((2, 3)), np.zeros(2), np.zeros(3, np.float32)):
        x = variable([1.0, 2.0, 3.0], grad=np.ones(3))
        x.array = other
        left = x.grad
        with pytest.raises(
            (GradientShapeError, GradientTypeError), match="of data and grad mismatch"
        ):
            F.sum(x * x).backward()
        assert x.grad is left
        x.cleargrad()
        F.sum(x * x).backward()
        assert x.grad.shape == other.shape


def test_assigning_an_array_of_another_shape_keeps_the_graph_before_it_right():
    w = variable([1.0, 2.0, 3.0])
    x = w * 2.0
    y = F.sum(x * x)
    x.array = np.zeros((2, 2))
    y.backward()
    np.testing.assert_array_equal(w.grad, 8 * w.array)


# --- grad and grad_var -----------------------------------------------------------------------


def test_grad_and_grad_var_are_none_at_first():
    x = variable([1.0])
    assert x.grad is None and x.grad_var is None


def test_the_constructor_takes_an_initial_gradient():
    gradient = np.ones(2)
    assert variable([1.0, 2.0], grad=gradient).grad is gradient
    with pytest.raises(ValueError, match="Shape of data and grad mismatch"):
        variable([1.0], grad=gradient)


def test_grad_set_from_an_array_makes_one_grad_var_that_requires_a_gradient():
    x = variable([1.0, 2.0])
    gradient = np.ones(2)
    x.grad = gradient
    assert x.grad is gradient
    assert x.grad_var is x.grad_var and x.grad_var.array is gradient
    assert x.grad_var.requires_grad is True and x.grad_var.creator is None


def test_grad_var_keeps_the_same_object():
    x, g = variable([1.0, 2.0]), variable([3.0, 4.0])
    x.grad_var = g
    assert x.grad_var is g and x.grad is g.array
    x.grad_var = None
    assert x.grad is None


def test_grad_may_be_set_where_no_gradient_is_required():
    x = variable([1.0], requires_grad=False)
    x.grad = np.ones(1)
    assert x.grad == 1.0


@pytest.mark.parametrize("value", [1.0, [1.0, 1.0], np.str_("1.0")])
def test_a_grad_that_is_no_array_is_a_type_error(value):
    x = variable([1.0, 2.0])
    with pytest.raises(TypeError, match="grad: expected an array"):
        x.grad = value
    assert x.grad is None


def test_a_variable_given_as_grad_is_sent_to_grad_var_and_back():
    x = variable([1.0])
    with pytest.raises(GradientTypeError, match="grad_var"):
        x.grad = variable([1.0])
    with pytest.raises(GradientTypeError, match="grad_var: expected a Variable, got ndarray"):
        x.grad_var = np.ones(1)


def test_a_grad_of_another_dtype_is_a_type_error_that_shows_both():
    x = variable([1.0, 2.0])
    with pytest.raises(
        TypeError, match="Dtype of data and grad mismatch: float64 != float32"
    ) as caught:
        x.grad = np.ones(2, np.float32)
    assert isinstance(caught.value, GradientTypeError)


@pytest.mark.parametrize("set_by", ["grad", "grad_var"])
def test_a_grad_of_another_shape_is_a_value_error_that_shows_both(set_by):
    x = variable([1.0, 2.0])
    gradient = np.ones((2, 1))
    with pytest.raises(
        ValueError, match=r"Shape of data and grad mismatch: \(2,\) != \(2, 1\)"
    ) as caught:
        setattr(x, set_by, gradient if set_by == "grad" else tn.Variable(gradient))
    assert isinstance(caught.value, GradientShapeError)
    assert x.grad is None


def test_cleargrad_clears_both():
    x = variable([1.0], grad=np.ones(1))
    x.cleargrad()
    assert x.grad is None and x.grad_var is None


def test_addgrad_adds_out_of_place_and_does_nothing_without_a_source():
    x, other = variable([1.0]), variable([2.0])
    x.addgrad(other)
    assert x.grad is None
    other.grad = np.array([3.0])
    x.addgrad(other)
    assert x.grad == 3.0 and x.grad is not other.grad
    x.addgrad(other)
    assert x.grad == 6.0 and other.grad == 3.0


def test_addgrad_many_times_builds_no_graph():
    x, other = variable([1.0]), variable([2.0], grad=np.array([3.0]))
    for _ in range(3):
        x.addgrad(other)
    assert x.grad == 9.0 and x.grad_var.creator is None


def test_addgrad_keeps_the_graph_of_a_gradient_that_has_one():
    x, other = variable(1.0), variable(2.0)
    (other**3).backward(enable_double_backprop=True)
    x.grad = np.asarray(1.0)
    x.addgrad(other)
    other.cleargrad()
    x.grad_var.backward()
    assert other.grad == 12.0  # d(1 + 3 t^2)/dt at 2


def test_a_write_to_a_leaf_without_backprop_frees_the_old_array():
    x = variable([1.0, 2.0])
    y = x * x  # the node of x has the array now
    old = weakref.ref(x.array)
    del y
    with tn.no_backprop_mode():
        x -= 0.5
    assert x.node.data is None and x.is_leaf
    assert old() is None
    np.testing.assert_array_equal(x.array, [0.5, 1.5])


def test_copydata_writes_into_the_existing_array():
    x, other = variable([1.0, 2.0]), variable([3.0, 4.0], np.float32)
    array = x.array
    x.copydata(other)
    assert x.array is array and array.dtype == np.float64
    np.testing.assert_array_equal(array, [3.0, 4.0])
    empty = tn.Variable()
    empty.copydata(other)
    np.testing.assert_array_equal(empty.array, [3.0, 4.0])
    assert empty.array is not other.array


# --- the graph as seen from a Variable -------------------------------------------------------


def test_creator_rank_and_node_of_a_result():
    x = variable([1.0])
    y = x * x
    assert y.creator is y.creator_node is y.node.creator_node
    assert y.rank == 1 and y.creator_node.rank == 0
    assert y.creator_node.inputs == (x.node, x.node)
    assert y.name is None


def test_unchain_cuts_this_variable_off_and_keeps_the_rank():
    x = variable([1.0])
    y = x * 2.0
    z = y * 3.0
    y.unchain()
    assert y.creator is None and y.rank == 1
    z.backward()
    assert x.grad is None and y.grad == 3.0
    x.unchain()  # a leaf without a node: nothing to do


def test_set_creator_and_set_creator_node_reconnect():
    x = variable([1.0])
    y = x * 2.0
    function = y.creator_node
    for attach in (y.set_creator, y.set_creator_node):
        y.unchain()
        attach(function)
        assert y.creator is function and y.rank == 1
    y.creator_node = None
    y.creator = function
    assert y.creator_node is function
    y.backward()
    assert x.grad == 2.0


def test_retain_data_lets_the_node_keep_the_array():
    x = variable([1.0])
    assert x.node.data is None
    x.retain_data()
    assert x.node.data is x.array


def test_detach_gives_a_variable_on_the_same_array_outside_the_graph():
    x = variable([1.0, 2.0], name="x")
    y = x * 2.0
    d = y.detach()
    assert d.array is y.array and d.creator is None and d.requires_grad is False
    F.sum(d * x).backward()
    np.testing.assert_array_equal(x.grad, y.array)


def test_hash_is_by_identity_although_equality_is_elementwise():
    x, y = variable([1.0]), variable([1.0])
    assert hash(x) != hash(y) or x is y
    assert len({x, y}) == 2 and {x: "a"}[x] == "a"


# --- copying ---------------------------------------------------------------------------------


def test_copy_copy_has_a_new_node_no_creator_and_no_shared_cell():
    x = variable([1.0, 2.0])
    y = x * 2.0
    y.name = "y"
    y.grad = np.ones(2)
    c = copy.copy(y)
    assert c.array is y.array and c.name == "y" and c.grad is y.grad
    assert c.node is not y.node and c.creator is None and c.requires_grad
    c.array = np.zeros((3, 3))
    assert y.shape == (2,) and y.node.shape == (2,)
    c.grad = np.ones((3, 3))
    np.testing.assert_array_equal(y.grad, np.ones(2))


def test_copy_copy_keeps_requires_grad_false_and_empty():
    assert copy.copy(variable([1.0], requires_grad=False)).requires_grad is False
    assert copy.copy(tn.Variable()).array is None


def test_deepcopy_copies_the_array():
    x = variable([1.0, 2.0], grad=np.ones(2))
    d = copy.deepcopy(x)
    np.testing.assert_array_equal(d.array, x.array)
    assert d.array is not x.array and d.grad is not x.grad


def test_deepcopy_of_a_result_is_refused():
    y = variable([1.0, 2.0]) * 2.0
    for holder in (y, {"state": [y]}):
        with pytest.raises(GraphError, match=r"copy.deepcopy: x .* Multiply.*x.detach\(\)"):
            copy.deepcopy(holder)
    np.testing.assert_array_equal(copy.deepcopy(y.detach()).array, y.array)
    with tn.no_grad():
        assert copy.deepcopy(y * 1.0).requires_grad is False


def test_a_moving_average_outside_of_the_graph_grows_nothing():
    w = variable([1.0, 2.0])
    average = w.detach()
    for _ in range(3):
        with tn.no_grad():
            average = 0.9 * average + 0.1 * w
        assert average.creator is None and not average.requires_grad
    assert not (average * 2.0).requires_grad


def test_pickle_keeps_array_name_grad_requires_grad_device_and_no_graph():
    x = variable([1.0, 2.0])
    y = x * 2.0
    y.name = "y"
    y.grad = np.array([3.0, 4.0])
    z = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(z.array, y.array)
    np.testing.assert_array_equal(z.grad, y.grad)
    assert z.name == "y" and z.requires_grad and z.device is y.device and z.creator is None
    assert z.grad_var.requires_grad is y.grad_var.requires_grad is True
    fixed = pickle.loads(pickle.dumps(variable([1], np.int64)))
    assert fixed.requires_grad is False and fixed.grad is None and fixed.dtype == np.int64
    assert pickle.loads(pickle.dumps(tn.Variable(name="e"))).array is None


# --- Python's conversions --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_size_one_variables_convert_to_python_numbers_silently(shape):
    x = variable(np.full(shape, 2.5))
    assert bool(x) is True and int(x) == 2 and float(x) == 2.5 and complex(x) == 2.5 + 0j
    assert x.item() == 2.5 and type(x.item()) is float
    assert not variable(np.zeros(shape))


@pytest.mark.parametrize("convert", [bool, int, float, complex, tn.Variable.item])
@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_conversion_of_other_sizes_is_a_value_error_with_the_shape(convert, shape):
    with pytest.raises(ValueError, match=rf"size one.*\({shape[0]},\)"):
        convert(variable(np.zeros(shape)))


def test_index_works_for_integer_variables_only():
    assert operator.index(tn.Variable(np.asarray(3))) == 3
    assert [10, 11, 12][tn.Variable(np.asarray(1))] == 11
    with pytest.raises(TypeError):
        operator.index(variable(3.0))


def test_array_of_a_variable_without_gradient_is_a_numpy_array():
    x = variable([1.0, 2.0], requires_grad=False)
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0])
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    copied = np.array(x, copy=True)
    assert copied is not x.array


def test_array_of_a_variable_that_requires_a_gradient_is_a_type_error_with_both_cures():
    with pytest.raises(TypeError, match=r"tn\.to_host\(x\).*x\.detach\(\)"):
        np.asarray(variable([1.0]))


def test_numpy_arrays_leave_operators_to_the_variable():
    x = variable([1.0, 2.0])
    array = np.array([3.0, 4.0])
    for result in (array * x, array + x, array - x, array / x, array**x, array @ x):
        assert type(result) is tn.Variable and result.creator is not None
    assert type(np.float64(2.0) * x) is tn.Variable
    np.testing.assert_array_equal((array - x).array, [2.0, 2.0])


def test_len_and_iteration():
    x = variable([[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]])
    assert len(x) == 2
    rows = list(x)
    np.testing.assert_array_equal(rows[1].array, [3.0, 4.0, 6.0])
    F.sum(rows[1]).backward()
    np.testing.assert_array_equal(x.grad, [[0, 0, 0], [1, 1, 1]])


def test_iteration_and_len_of_a_0_d_variable_raise_type_error_at_once():
    x = variable(1.0)
    with pytest.raises(TypeError, match="0-d"):
        iter(x)
    with pytest.raises(TypeError, match="0-d"):
        len(x)
    assert np.iterable(x) is False


# --- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "as_repr", "as_str"),
    [
        (variable([1.0, 2.0]), "variable([1., 2.])", "variable([1. 2.])"),
        (variable([1.0, 2.0], name="x"), "variable x([1., 2.])", "variable x([1. 2.])"),
        (variable(3.0), "variable(3.)", "variable(3.)"),
        (tn.Variable(), "variable(None)", "variable(None)"),
        (tn.Variable(name="w"), "variable w(None)", "variable w(None)"),
        (tn.Variable(np.array([1, 2])), "variable([1, 2])", "variable([1 2])"),
    ],
)
def test_repr_has_commas_and_str_has_spaces(made, as_repr, as_str):
    assert repr(made) == as_repr and str(made) == as_str


def test_repr_of_an_empty_array_shows_its_shape():
    assert "shape=(0, 3)" in repr(variable(np.zeros((0, 3))))


def test_repr_of_a_matrix_is_aligned():
    first, second = repr(variable([[1.0, 2.0], [3.0, 4.0]])).splitlines()
    assert first.index("[1") == second.index("[3")


def test_summary_and_debug_print_tell_shape_dtype_device_and_gradient():
    x = variable([1.0, 3.0], name="x", grad=np.ones(2))
    assert x.summary() == "x: (2,), float64 on numpy, requires grad, leaf"
    text = x.debug_print()
    assert "mean 2" in text and "std 1" in text and "grad" in text
    assert "from" in (x * 2.0).summary()
    assert "None" in tn.Variable().debug_print()


def test_a_text_stays_short_for_a_large_array():
    assert len(repr(variable(np.zeros((300, 400))))) < 600


# --- operators -------------------------------------------------------------------------------

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.pow,
]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", [*BINARY, *COMPARISONS])
@pytest.mark.parametrize("other", [2.5, 2, np.float64(2.0), np.array([3.0, 1.0]), None])
def test_binary_operators_give_what_numpy_gives_in_both_orders(op, other):
    a = np.array([1.5, 4.0])
    x = variable(a)
    if other is None:
        other, plain = variable([3.0, 4.0]), np.array([3.0, 4.0])
    else:
        plain = other
    left, right = op(x, other), op(other, x)
    np.testing.assert_array_equal(left.array, op(a, plain))
    np.testing.assert_array_equal(right.array, op(plain, a))
    assert type(left) is type(right) is tn.Variable


def test_unary_operators():
    x = variable([-1.5, 2.0])
    np.testing.assert_array_equal((-x).array, [1.5, -2.0])
    np.testing.assert_array_equal(abs(x).array, [1.5, 2.0])
    assert +x is x


def test_matmul_in_both_orders():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal((variable(a) @ b).array, a @ b)
    np.testing.assert_array_equal((a @ variable(b)).array, a @ b)


def test_the_remainder_has_an_operator_on_both_sides_and_in_place():
    x = variable([5.0, -5.0])
    assert (x % 3).array.tolist() == [2.0, 1.0] and (7 % x).array.tolist() == [2.0, -3.0]
    y = x * 1
    y %= 3
    assert y.array.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("op", [*BINARY, operator.matmul])
@pytest.mark.parametrize("foreign", [None, [1.0, 2.0], "text", object()])
def test_foreign_types_beside_a_variable_are_a_type_error(op, foreign):
    x = variable([1.0, 2.0])
    with pytest.raises(TypeError):
        op(x, foreign)
    with pytest.raises(TypeError):
        op(foreign, x)


def test_the_error_for_a_foreign_type_names_function_argument_and_type():
    with pytest.raises(OperandError, match=r"multiply: y must be a Variable.*got list \[1\.0\]"):
        variable([1.0]) * [1.0]


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_are_elementwise_bools_without_gradient(op):
    a, b = np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
    result = op(variable(a), variable(b))
    np.testing.assert_array_equal(result.array, op(a, b))
    assert result.dtype == np.bool_ and result.requires_grad is False


def test_comparison_with_none_is_python_s_own():
    x = variable([1.0])
    assert (x == None) is False and (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        _ = x < None


def test_floor_division_has_no_gradient():
    x = variable([5.0, 7.0])
    y = F.sum(x // 2.0)
    assert tn.grad([y], [x]) == [None]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scalar", [2, 2.5, True, np.float64(2.5), np.int64(2), np.float32(2)])
def test_python_and_numpy_scalars_are_weak(dtype, scalar):
    x = tn.Variable(np.ones(2, dtype))
    for result in (x * scalar, scalar * x, x + scalar, x / scalar, scalar - x, x**2):
        assert result.dtype == dtype


def test_a_raw_array_is_cast_to_the_variable_s_dtype():
    x = tn.Variable(np.ones(2, np.float32))
    assert (x * np.ones(2, np.float64)).dtype == np.float32
    assert (np.ones(2, np.float64) + x).dtype == np.float32


def test_two_variables_promote_and_each_gradient_comes_back_in_its_own_dtype():
    x, y = tn.Variable(np.ones(2, np.float32)), tn.Variable(np.full(2, 3.0, np.float64))
    z = x * y
    assert z.dtype == np.float64
    F.sum(z).backward()
    assert x.grad.dtype == np.float32 and y.grad.dtype == np.float64
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])


def test_raw_arrays_receive_no_gradient():
    x = variable([1.0])
    y = x * np.array([2.0])
    assert [node.requires_grad for node in y.creator_node.inputs] == [True, False]


def test_one_number_is_formatted_like_a_number():
    loss = variable([[1.23456]])
    assert f"{loss:.3f}" == "1.235" and f"{loss:>8.1f}" == "     1.2"
    assert f"{tn.asarray(3):04d}" == "0003"
    assert f"{loss}" == str(loss) and f"{variable([1.0, 2.0])}" == "variable([1. 2.])"
    with pytest.raises(ValueError, match=r"size one, .* shape \(2,\)"):
        _ = f"{variable([1.0, 2.0]):.3f}"


# --- shape methods ---------------------------------------------------------------------------


def test_reshape_transpose_t_sum_mean_and_indexing():
    a = np.arange(6.0).reshape(2, 3)
    x = variable(a)
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == x.reshape([3, 2]).shape == (3, 2)
    assert x.reshape(-1).shape == (6,)
    for transposed in (x.T, x.transpose(), x.transpose(None), x.transpose(1, 0)):
        np.testing.assert_array_equal(transposed.array, a.T)
    np.testing.assert_array_equal(x.transpose((1, 0)).array, a.T)
    np.testing.assert_array_equal(x.reshape(1, 2, 3).mT.array, a.T[None])
    with pytest.raises(ValueError, match="matrix_transpose: x needs two axes"):
        _ = x.reshape(-1).mT
    np.testing.assert_array_equal(x.sum(axis=1, keepdims=True).array, a.sum(1, keepdims=True))
    assert x.sum(axis=1).shape == x.mean(axis=1).shape == (2,)
    np.testing.assert_array_equal(x.mean(axis=0).array, a.mean(0))
    np.testing.assert_array_equal(x[1, ::2].array, a[1, ::2])
    assert x.astype(np.float32).dtype == np.float32


def test_mean_with_weights():
    a, w = np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0])
    x = variable(a)
    y = x.mean(weights=w)
    np.testing.assert_allclose(y.array, np.average(a, weights=w))
    y.backward()
    np.testing.assert_allclose(x.grad, w / w.sum())


# --- writing ---------------------------------------------------------------------------------


def test_setitem_on_an_intermediate_is_functional_and_differentiable():
    x = variable([1.0, 2.0, 3.0])
    v = variable(10.0)
    y = x * 2.0
    seen = y.array
    z = y * y  # used before the write
    y[1] = v
    np.testing.assert_array_equal(seen, [2.0, 4.0, 6.0])  # the old array is as it was
    np.testing.assert_array_equal(y.array, [2.0, 10.0, 6.0])
    F.sum(z + y * 3.0).backward()
    np.testing.assert_allclose(x.grad, 8 * np.array([1.0, 2.0, 3.0]) + [6.0, 0.0, 6.0])
    assert v.grad == 3.0


def test_setitem_points_the_variable_at_a_new_node_and_the_old_node_lets_go():
    x = variable([1.0, 2.0])
    y = x * 2.0
    old = y.node
    y[0] = 5.0
    assert y.node is not old and y.node.get_variable() is y
    assert old.get_variable_or_none() is None
    assert y.creator_node.inputs[0] is old


@pytest.mark.parametrize(
    ("write", "expected", "gradient"),
    [
        (operator.iadd, 2 * 3.0 + 2, 2),
        (operator.isub, 2 * 3.0 - 2, 2),
        (operator.imul, 2 * 3.0 * 2, 4),
        (operator.itruediv, 2 * 3.0 / 2, 1),
        (operator.ipow, (2 * 3.0) ** 2, 2 * 6.0 * 2),
    ],
)
def test_in_place_operators_rebind_the_same_variable(write, expected, gradient):
    x = variable([3.0])
    y = x * 2.0
    before, array = y, y.array
    y = write(y, 2.0)
    assert y is before and y.array == expected and array == 6.0
    y.backward()
    assert x.grad == gradient


def test_in_place_matmul_and_floor_division():
    y = variable([[0.0, 1.0], [2.0, 3.0]], requires_grad=False)
    y @= np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(y.array, [[3.0, 4.0], [11.0, 16.0]])
    y //= 2.0
    np.testing.assert_array_equal(y.array, [[1.0, 2.0], [5.0, 8.0]])


def test_in_place_operators_keep_the_dtype():
    y = tn.Variable(np.ones(2, np.float32), requires_grad=False)
    y += tn.Variable(np.ones(2, np.float64), requires_grad=False)
    assert y.dtype == np.float32


def test_an_in_place_operator_that_changes_the_shape_is_a_value_error():
    y = variable([1.0], requires_grad=False)
    with pytest.raises(ValueError, match=r"result has shape \(2, 1\), x has shape \(1,\)"):
        y += np.ones((2, 1))
    assert y.shape == (1,)


@pytest.mark.parametrize(
    "write", [lambda x: operator.setitem(x, 0, 1.0), lambda x: operator.iadd(x, 1.0)]
)
def test_writing_to_a_leaf_that_requires_a_gradient_is_an_error_with_the_cure(write):
    x = variable([1.0, 2.0])
    with pytest.raises(GraphError, match=r"leaf that requires a gradient.*x = x \+ v.*x\.array"):
        write(x)
    np.testing.assert_array_equal(x.array, [1.0, 2.0])


def test_without_back_propagation_every_variable_may_be_written_to():
    w = variable([1.0, 2.0])
    with tn.no_backprop_mode():
        h = w * 2.0  # no creator, and requires a gradient as its input does
        h += 1.0
        h[0] = 7.0
        np.testing.assert_array_equal(h.array, [7.0, 5.0])
        w -= 0.5
    np.testing.assert_array_equal(w.array, [0.5, 1.5])
    assert w.requires_grad and w.creator is None
    F.sum(w * w).backward()
    np.testing.assert_array_equal(w.grad, [1.0, 3.0])


def test_a_leaf_without_gradient_may_become_part_of_a_graph_by_a_write():
    x = variable([0.0, 0.0], requires_grad=False)
    w = variable(3.0)
    x[1] = w * w
    assert x.requires_grad
    F.sum(x).backward()
    assert w.grad == 6.0


def test_writing_to_a_fresh_variable_on_a_node_leaves_the_user_s_variable_on_it():
    x = variable([1.0, 2.0], requires_grad=False)
    y = x * variable(1.0)
    node = x.node
    x.array = np.array([3.0, 4.0])
    fresh, _ = y.creator_node.get_retained_inputs()
    assert fresh is not x and fresh.node is node
    fresh[0] = 5.0
    assert node.get_variable_or_none() is x and fresh.node is not node


def test_writes_through_a_slice_change_the_variable_not_a_view():
    x = variable([1.0, 2.0, 3.0], requires_grad=False)
    array = x.array
    x[1:] *= 10.0
    np.testing.assert_array_equal(x.array, [1.0, 20.0, 30.0])
    np.testing.assert_array_equal(array, [1.0, 2.0, 3.0])


# --- backward's start (the sweep itself: test_backward.py) -----------------------------------


def test_backward_of_a_variable_that_requires_no_gradient_is_an_error_with_the_cure():
    y = variable([1.0], requires_grad=False) * 2.0
    with pytest.raises(BackwardSeedError, match=r"requires no gradient.*requires_grad=True"):
        y.backward()


def test_backward_from_an_integer_result_is_an_error_even_with_a_grad_set():
    x = variable([1.0])
    y = x.astype(np.int64)
    y.grad = np.array([1])
    with pytest.raises(BackwardSeedError, match="int64, and only floating"):
        y.backward()
    assert x.grad is None


def test_as_array_and_as_variable():
    array = np.ones(2)
    x = tn.Variable(array)
    assert tn.as_array(x) is array and tn.as_array(array) is array
    assert tn.as_variable(x) is x
    wrapped = tn.as_variable(array)
    assert wrapped.array is array and wrapped.requires_grad is False
    for convert in (tn.as_array, tn.as_variable):
        with pytest.raises(TypeError, match="must be an array"):
            convert([1.0])


def test_a_name_cannot_steer_the_terminal():
    x = tn.Variable(np.ones(2), name="\x1b[31mred\n")
    texts = [repr(x), str(x), x.summary(), repr(x.node), str(x.explain_grad())]
    with pytest.raises(GraphError) as caught:
        tn.Variable(None, name=x.name) * 1.0
    for text in (*texts, str(caught.value)):
        assert "\x1b" not in text and "red\n" not in text and "\\x1b[31mred" in text
    assert x.name == "\x1b[31mred\n"


@pytest.mark.parametrize("device", ["numpy", "strict:device1"])
def test_tolist_gives_python_numbers_from_every_device(device):
    x = tn.asarray([[1.0, 2.5]], device=device)
    assert x.tolist() == [[1.0, 2.5]]
    assert x[0, 1].tolist() == 2.5
    assert tn.asarray(np.zeros((0, 2)), device=device).tolist() == []
    assert (x > 2.0).tolist() == [[False, True]]
    with pytest.raises(tn.errors.TraceError, match=r"x\.tolist\(\)"):
        tn.compile(lambda x: x * x.tolist()[0][0])(x)
