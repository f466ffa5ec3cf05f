"""Type checks: cheap on arrays, and readable when one fails."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest

import tinynode as tn
from tinynode import type_check
from tinynode.errors import InvalidType
from tinynode.type_check import broadcasts, expect, is_floating, is_integer

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


def message_of(check, *inputs, hint=None):
    """Apply a function with that check, and give the message of its InvalidType."""

    class Checked(tn.FunctionNode):
        type_hint = hint

        def check_type_forward(self, in_types):
            check(in_types)

        def forward(self, inputs):
            return (inputs[0],)

    with pytest.raises(InvalidType) as caught:
        Checked().apply(inputs)
    return str(caught.value)


def test_the_message_names_function_direction_expectation_actual_and_every_input():
    def check(in_types):
        expect(
            in_types.size() == 2,
            in_types[0].ndim == 2,
            in_types[0].shape[1] == in_types[1].shape[0],
        )

    text = message_of(
        check, variable(np.zeros((2, 3))), variable(np.zeros(4)), hint="transpose it."
    )
    assert text.splitlines() == [
        "Invalid operation is performed in: Checked (Forward)",
        "",
        "Expect: in_types[0].shape[1] == in_types[1].shape[0]",
        "Actual: 3 != 4",
        "in_types[0]: shape (2, 3), float64",
        "in_types[1]: shape (4,), float64",
        "Try: transpose it.",
    ]


def test_without_a_hint_there_is_no_try_line():
    text = message_of(lambda in_types: expect(in_types[0].ndim == 2), variable(1.0))
    assert text.endswith("in_types[0]: shape (), float64")


@pytest.mark.parametrize(
    ("check", "expected", "actual"),
    [
        (lambda t: t.size() == 1, "in_types.size() == 1", "2 != 1"),
        (lambda t: t[0].ndim == 1, "in_types[0].ndim == 1", "2 != 1"),
        (lambda t: t[0].ndim != 2, "in_types[0].ndim != 2", "2 == 2"),
        (lambda t: t[0].ndim < 2, "in_types[0].ndim < 2", "2 >= 2"),
        (lambda t: t[0].ndim <= 1, "in_types[0].ndim <= 1", "2 > 1"),
        (lambda t: t[0].ndim > 2, "in_types[0].ndim > 2", "2 <= 2"),
        (lambda t: t[0].ndim >= 3, "in_types[0].ndim >= 3", "2 < 3"),
        (lambda t: t[0].shape == (2,), "in_types[0].shape == (2,)", "(2, 3) != (2,)"),
        (lambda t: t[0].shape[-1] == 2, "in_types[0].shape[-1] == 2", "3 != 2"),
        (lambda t: t[0].shape[0] + 1 == 2, "in_types[0].shape[0] + 1 == 2", "3 != 2"),
        (lambda t: t[0].shape[0] - 1 == 2, "in_types[0].shape[0] - 1 == 2", "1 != 2"),
        (lambda t: t[0].shape[0] * 2 == 2, "in_types[0].shape[0] * 2 == 2", "4 != 2"),
        (
            lambda t: t[0].ndim == 1 + t[0].ndim,
            "in_types[0].ndim == 1 + in_types[0].ndim",
            "2 != 3",
        ),
        (
            lambda t: t[0].ndim == 1 - t[0].ndim,
            "in_types[0].ndim == 1 - in_types[0].ndim",
            "2 != -1",
        ),
        (
            lambda t: t[0].ndim == 3 * t[1].ndim,
            "in_types[0].ndim == 3 * in_types[1].ndim",
            "2 != 3",
        ),
        (lambda t: t[0].shape[1] // 2 == 2, "in_types[0].shape[1] // 2 == 2", "1 != 2"),
        (lambda t: t[0].shape[1] % 2 == 0, "in_types[0].shape[1] % 2 == 0", "1 != 0"),
        (lambda t: t[0].dtype == np.float32, "in_types[0].dtype == float32", "float64 != float32"),
        (
            lambda t: t[0].dtype == t[1].dtype,
            "in_types[0].dtype == in_types[1].dtype",
            "float64 != int64",
        ),
        (lambda t: is_floating(t[1]), "in_types[1].dtype is floating", "int64"),
        (lambda t: is_integer(t[0]), "in_types[0].dtype is an integer dtype", "float64"),
        (
            lambda t: broadcasts(t[0], t[1]),
            "in_types[0].shape broadcasts with in_types[1].shape",
            "(2, 3) and (4,)",
        ),
    ],
)
def test_each_kind_of_expression_explains_itself(check, expected, actual):
    inputs = variable(np.zeros((2, 3))), variable(np.zeros(4), np.int64)
    lines = message_of(lambda in_types: expect(check(in_types)), *inputs).splitlines()
    start = lines.index("") + 1
    assert lines[start : start + 2] == [f"Expect: {expected}", f"Actual: {actual}"]


@pytest.mark.parametrize(
    ("shape", "other", "holds"),
    [((2, 3), (3,), True), ((2, 3), (2, 1), True), ((), (4,), True), ((2,), (3,), False)],
)
def test_broadcasts(shape, other, holds):
    assert broadcasts(np.zeros(shape), np.zeros(other)) is holds


def test_is_floating_and_is_integer_on_arrays_are_plain_bools():
    assert is_floating(np.zeros(1, np.float16)) is True
    assert is_floating(np.zeros(1, np.complex64)) is False
    assert is_integer(np.zeros(1, np.uint8)) is True
    assert is_integer(np.zeros(1, np.bool_)) is False


def test_expect_stops_at_the_first_condition_that_does_not_hold():
    def check(in_types):
        expect(in_types[0].ndim == 1, in_types[0].shape[0] == 5, in_types[0].shape[0] == 6)

    text = message_of(check, variable([1.0]))
    assert "Expect: in_types[0].shape[0] == 5" in text and "== 6" not in text


def test_expect_with_plain_values():
    expect()
    expect(True, 1)
    with pytest.raises(InvalidType):
        expect(True, False)


def test_a_condition_computed_in_plain_python_is_refused_too():
    text = message_of(lambda in_types: expect(len(in_types) == 2), variable([1.0]))
    assert "Invalid operation is performed in: Checked (Forward)" in text


def test_a_truth_value_of_an_expression_may_be_a_condition():
    text = message_of(lambda in_types: expect(in_types[0].ndim), variable(1.0))
    assert "Expect: in_types[0].ndim" in text and "Actual: 0" in text


def test_python_s_control_flow_works_on_arrays_and_on_expressions():
    def check(in_types):
        for t in in_types:
            expect(t.ndim > 0)
            for i in range(t.ndim):
                if t.shape[i] == 1:
                    continue
                expect(t.shape[i] == 3)

    text = message_of(check, variable(np.zeros((1, 3))), variable(np.zeros((3, 4))))
    assert "Expect: in_types[1].shape[1] == 3" in text and "Actual: 4 != 3" in text


def test_a_check_that_expressions_cannot_follow_still_gives_the_first_failure():
    def check(in_types):
        if isinstance(in_types[0], type_check.Expression):
            raise AttributeError("only arrays please")
        expect(in_types[0].ndim == 2)

    text = message_of(check, variable(1.0))
    assert "Invalid operation is performed in: Checked (Forward)" in text
    assert "in_types[0]: shape (), float64" in text


def test_an_error_of_the_check_itself_passes_untouched():
    class Checked(tn.FunctionNode):
        def check_type_forward(self, in_types):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Checked().apply((variable(1.0),))


def test_invalid_type_is_what_python_would_raise_and_has_expect_and_actual():
    with pytest.raises(InvalidType) as caught:
        variable([1.0, 2.0]) + variable([1.0, 2.0, 3.0])
    error = caught.value
    assert isinstance(error, TypeError) and isinstance(error, ValueError)
    assert isinstance(error, tn.TinynodeError)
    assert error.expect == "in_types[0].shape broadcasts with in_types[1].shape"
    assert error.actual == "(2,) and (3,)"
    assert error.__cause__ is None and error.__suppress_context__


def test_invalid_type_pickles():
    error = InvalidType("a == b", "1 != 2", "the whole message")
    again = pickle.loads(pickle.dumps(error))
    assert (again.expect, again.actual, str(again)) == ("a == b", "1 != 2", "the whole message")
    assert str(InvalidType("a == b", "1 != 2")) == "Expect: a == b\nActual: 1 != 2"


def test_the_type_info_tuple_is_a_tuple_of_the_arrays_with_a_size():
    seen = []

    class Checked(tn.FunctionNode):
        def check_type_forward(self, in_types):
            seen.append(in_types)

        def forward(self, inputs):
            return (inputs[0],)

    x = variable([1.0])
    Checked().apply((x, np.ones(2)))
    (in_types,) = seen
    assert isinstance(in_types, tuple) and in_types.size() == len(in_types) == 2
    assert in_types[0] is x.array


def test_expressions_convert_to_int_index_len_and_bool():
    e = type_check.Expression("n", 3)
    assert int(e) == 3 and range(5)[e] == 3 and bool(e)
    assert len(type_check.Expression("shape", (1, 2))) == 2


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda: F.matmul(variable(np.zeros((2, 3))), variable(np.zeros((2, 3)))), "MatMul"),
        (lambda: variable([1.0, 2.0]) * variable([1.0, 2.0, 3.0]), "Multiply"),
        (lambda: F.Mean((0,), False).apply((variable([1, 2], np.int64),)), "Mean"),
        (lambda: F.concat([variable(np.zeros((2, 3))), variable(np.zeros((2, 4)))], 0), "Concat"),
    ],
)
def test_built_in_functions_refuse_wrong_inputs_before_the_array_library_does(call, label):
    with pytest.raises(InvalidType, match=rf"in: {label} \(Forward\)\n\nExpect: .*\nActual: "):
        call()


def test_a_bias_without_axes_is_refused_in_words() -> None:
    with pytest.raises(InvalidType, match="ndim"):
        tn.functions.linear(np.ones((2, 3)), np.ones((4, 3)), np.array(1.0))


def test_a_subclass_of_add_is_checked_for_equal_shapes_too():
    class Checked(tn.functions.Add):
        def check_type_forward(self, in_types):
            checked.append(len(in_types))
            super().check_type_forward(in_types)

    checked = []
    x = tn.Variable(np.ones(2))
    Checked().apply((x, x))
    assert checked == [2]
    tn.functions.Add().apply((x, x))  # the base class needs no check here
    assert checked == [2]
    with pytest.raises(ValueError, match="not enough values"):
        tn.functions.Add().apply((x,))


@pytest.mark.parametrize("hooked", [False, True])
def test_shapes_that_do_not_broadcast_give_one_error_with_and_without_hooks(hooked):
    """Without hooks the shapes are checked after forward has failed."""
    seen = []

    class Watch(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            seen.append(function.label)

    x, y = tn.Variable(np.ones((2, 3))), tn.Variable(np.ones(4))
    with Watch() if hooked else contextlib.nullcontext():
        with pytest.raises(tn.errors.InvalidType, match="Multiply") as caught:
            _ = x * y
        with pytest.raises(ValueError, match="not enough values"):
            tn.functions.Multiply().apply((x,))
    assert "in_types[0].shape broadcasts with in_types[1].shape" in str(caught.value)
    assert len(seen) == hooked  # the event of the second call alone: the check comes before
    with tn.using_config("type_check", False), pytest.raises(ValueError) as plain:
        _ = x * y
    assert not isinstance(plain.value, tn.errors.InvalidType)
