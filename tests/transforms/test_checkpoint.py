"""checkpoint: compute a part again in backward, in place of keeping it."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import DeviceMixError, GraphError, OperandError

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


def body(x, y):
    return F.tanh(x * y) * F.exp(x)


def test_values_and_gradients_are_those_of_the_plain_call():
    a, b = np.array([0.3, 0.7]), np.array([1.0, -0.5])
    x, y, p, q = variable(a), variable(b), variable(a), variable(b)
    plain, forgotten = F.sum(body(x, y)), F.sum(tn.forget(body, p, q))
    np.testing.assert_array_equal(forgotten.array, plain.array)
    plain.backward()
    forgotten.backward()
    np.testing.assert_allclose(p.grad, x.grad, rtol=1e-14)
    np.testing.assert_allclose(q.grad, y.grad, rtol=1e-14)


def test_one_function_stands_in_the_graph():
    x, y = variable([0.3]), variable([0.7])
    z = tn.forget(body, x, y)
    assert type(z.creator).__name__ == "Checkpoint" and z.creator.inputs == (x.node, y.node)
    assert z.creator.get_retained_inputs() == (x, y)


def test_the_arrays_inside_are_dropped_after_forward():
    arrays = []

    def watched(x):
        h = F.exp(x)
        arrays.append(weakref.ref(h.array))
        return F.log(h * h)

    x = variable(np.ones(4))
    y = F.sum(tn.forget(watched, x))
    assert arrays[0]() is None
    y.backward()
    assert len(arrays) == 2 and arrays[1]() is None
    np.testing.assert_allclose(x.grad, 2 * np.ones(4))


def test_one_output_is_unwrapped_and_several_come_as_a_tuple():
    x = variable([1.0])
    assert type(tn.forget(lambda v: v * 2.0, x)) is tn.Variable
    assert type(tn.forget(lambda v: (v * 2.0,), x)) is tn.Variable
    pair = tn.forget(lambda v: (v * 2.0, v * 3.0), x)
    assert type(pair) is tuple and len(pair) == 2


def test_only_outputs_that_have_a_gradient_are_differentiated():
    x = variable([2.0])
    first, second = tn.forget(lambda v: (v * v, F.exp(v)), x)
    first.backward()
    assert x.grad == 4.0
    x.cleargrad()
    F.sum(first + second).backward()
    np.testing.assert_allclose(x.grad, 4.0 + np.exp([2.0]))


def test_func_may_return_its_argument_or_the_same_variable_twice():
    x = variable([2.0])
    tn.forget(lambda v: v, x).backward()
    assert x.grad == 1.0
    x.cleargrad()

    def twice(v):
        h = v * v
        return h, h

    a, b = tn.forget(twice, x)
    (a + b * 10.0).backward()
    assert x.grad == 44.0


def test_outputs_that_require_no_gradient_take_no_part():
    x = variable([2.0])
    constant = variable([5.0], requires_grad=False)
    a, b, c = tn.forget(lambda v: (v * v, constant * 2.0, v > 1.0), x)
    assert c.dtype == np.bool_ and c.requires_grad is False
    (a + b).backward()
    assert x.grad == 4.0


def test_the_same_variable_at_several_positions():
    x = variable([2.0])
    tn.forget(lambda a, b: a * b, x, x).backward()
    assert x.grad == 4.0


def test_func_runs_without_backprop_first_and_with_it_in_backward():
    seen = []

    def watched(x):
        seen.append(
            (
                tn.config.enable_backprop,
                tn.config.recompute_phase,
                x.creator,
            )
        )
        return x * 2.0

    x = variable([1.0])
    y = tn.forget(watched, x)
    y.backward()
    assert seen == [(False, "first", None), (True, "again", None)]
    assert tn.config.enable_backprop and tn.config.recompute_phase is None


def test_under_no_backprop_mode_func_runs_once():
    calls = []

    def watched(x):
        calls.append(x)
        return x * 2.0

    with tn.no_backprop_mode():
        y = tn.forget(watched, variable([1.0]))
    assert y.creator is None and len(calls) == 1


def test_func_gets_fresh_variables_with_the_same_requires_grad_and_dtype():
    seen = []

    def watched(x, i):
        seen.append((x, i))
        return x * 2.0

    x, i = variable([1.0]), variable([3], np.int64)
    tn.forget(watched, x, i).backward()
    for a, b in seen:
        assert a is not x and b is not i
        assert a.requires_grad and not b.requires_grad and b.dtype == np.int64
    assert x.grad == 2.0 and i.grad is None


def test_array_arguments_become_variables_that_require_a_gradient():
    w = variable([3.0])
    y = tn.forget(lambda v: v * w, np.array([2.0]))
    assert y.requires_grad
    y.backward()
    assert w.grad == 2.0


def test_variables_captured_by_closure_receive_their_gradient():
    w, x = variable([3.0]), variable([2.0])
    h = w * 1.0
    y = tn.forget(lambda v: v * w, x)
    y.backward()
    assert w.grad == 2.0 and x.grad == 3.0
    w.cleargrad()
    tn.forget(lambda v: v * h, x).backward()
    assert w.grad == 2.0  # through the graph that h brings along


def test_captured_parameters_get_their_gradient_even_if_the_data_requires_none():
    """Input data enter without a gradient: the parameters inside must not be forgotten."""
    w = variable([3.0])
    data = variable([2.0], requires_grad=False)
    y = tn.forget(lambda v: v * w, data)
    y.backward()
    assert w.grad == 2.0 and data.grad is None


def test_captured_parameters_beside_integer_data_get_their_gradient():
    w = variable([3.0, 4.0])
    index = variable(1, np.int64, requires_grad=False)
    y = tn.forget(lambda i: w[int(i)] * 5.0, index)
    y.backward()
    np.testing.assert_array_equal(w.grad, [0.0, 5.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tn.checkpoint(lambda a: a * 2, x.detach()),
        lambda x: tn.checkpoint(lambda a: a.detach() * 2, x),
        lambda x: tn.checkpoint(lambda a: (a * 2, a.detach()), x)[1],
        lambda x: tn.checkpoint(lambda a: (a.detach(), a * 2), x)[1],
        lambda x: tn.checkpoint(lambda a: a, x),
        lambda x: tn.checkpoint(lambda a: a > 1.5, x),
        lambda x: tn.checkpoint(lambda: x * 3),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_result_requires_a_gradient_where_the_plain_call_does(monkeypatch, f, compiled):
    x = variable([1.0, 2.0])
    y = (tn.compile(f) if compiled else f)(x)
    monkeypatch.setattr(tn, "checkpoint", lambda func, *xs: func(*xs))
    right = f(x)
    assert y.requires_grad is right.requires_grad
    np.testing.assert_array_equal(y.array, right.array)
    if right.requires_grad:
        (gx,), (right_gx,) = tn.grad([y], [x]), tn.grad([right], [x])
        np.testing.assert_array_equal(gx.array, right_gx.array)


def test_a_function_without_arguments():
    w = variable([3.0])
    tn.forget(lambda: w * w).backward()
    assert w.grad == 6.0


def test_gradients_of_captured_parameters_come_from_grad_and_transforms():
    """They go where the gradients of the plain call go, and not to ``grad`` besides."""
    w, x = variable([3.0]), variable([2.0])
    y = tn.forget(lambda v: v * w, x)
    gx, gw = tn.grad([y], [x, w])
    assert gx.array == 3.0 and gw.array == 2.0 and w.grad is None and x.grad is None
    for transform in (tn.gradient, tn.jacrev):
        found = transform(lambda w: F.sum(tn.forget(lambda v: v * w * w, x)))(w)
        np.testing.assert_allclose(found.array, [12.0])
        assert w.grad is None
    h = w * 1.0
    (gh,) = tn.grad([tn.forget(lambda v: v * h, x)], [h])
    assert gh.array == 2.0


def tied(call, w, x):
    h = F.tanh(w * 2.0)
    return call(lambda t: F.tanh(t + h) * w, h * x)


def chain_of_captures(call, w, x):
    b = w * 2.0
    a = F.tanh(b)
    return call(lambda t: t * a * b * w, x)


def argument_and_captured(call, w, x):
    h = w * x
    return call(lambda t: t * t * h * w, h)


def local_of_a_nested_call(call, w, x):
    def outer(t):
        h = t * w
        return call(lambda s: F.tanh(s * h * w), h)

    return call(outer, x * w)


def captured_result(call, w, x):
    h = x * w
    a, b, c = call(lambda t: (t * 2.0, w, h), x)
    return a * b * c


def only_a_captured_result(call, w, x):
    return call(lambda: w) ** 2 * x


def captured_and_used_outside(call, w, x):
    h = F.exp(w)
    return call(lambda t: t * h, x) * h * w


@pytest.mark.parametrize(
    "f",
    [
        tied,
        chain_of_captures,
        argument_and_captured,
        local_of_a_nested_call,
        captured_result,
        only_a_captured_result,
        captured_and_used_outside,
    ],
)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("way", ["grad", "backward", "transform"])
def test_captured_variables_that_others_lead_to(f, order, way):
    """Each path counts once, also where one input of the checkpoint depends on another."""
    results = []
    for call in (tn.checkpoint, lambda func, *xs: func(*xs)):
        w, x = variable([0.3, 0.7]), variable([0.2, -0.4])
        double = order == 2
        if way == "grad":
            gs = tn.grad([F.sum(f(call, w, x))], [w, x], enable_double_backprop=double)
        elif way == "backward":
            F.sum(f(call, w, x)).backward(enable_double_backprop=double)
            gs = [w.grad_var, x.grad_var]
            w.cleargrad(), x.cleargrad()
        else:

            def loss(w, x, call=call):
                return F.sum(f(call, w, x))

            gs = tn.gradient(loss, argnums=(0, 1), enable_double_backprop=double)(w, x)
        if order == 2:
            gs = tn.grad([F.sum(gs[0] ** 2) + F.sum(gs[0] * gs[1])], [w, x])
        results.append(gs)
    for a, b in zip(*results, strict=True):
        assert np.abs(b.array).min() > 0
        np.testing.assert_allclose(a.array, b.array, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_gradients_are_those_of_the_plain_call(compiled):
    w, x = variable([0.5, -1.5]), variable([0.3, 0.7])

    def inner(v, u):
        h = tn.checkpoint(lambda a: F.sin(a) * w, v)
        return F.exp(h) * u * v, F.sum(v)

    def third(call):
        def f():
            y, total = call(inner, x, x * w)
            g = tn.grad([F.sum(y * y) * total], [x, w], enable_double_backprop=True)
            h = tn.grad([F.sum(g[0] * g[0] * g[1])], [x, w], enable_double_backprop=True)
            return [*g, *h, *tn.grad([F.sum(h[0] * h[1])], [x, w])]

        return f

    f = third(tn.checkpoint)
    found = (tn.compile(f) if compiled else f)()
    right = third(lambda func, *xs: func(*xs))()
    for a, b in zip(found, right, strict=True):
        assert np.abs(b.array).max() > 0
        np.testing.assert_allclose(a.array, b.array, rtol=1e-12)
    assert w.grad is None and x.grad is None


def test_backward_after_backward_with_double_backprop():
    w, x = variable([3.0]), variable([2.0])
    F.sum(tn.forget(lambda v: v * v * w * w, x)).backward(enable_double_backprop=True)
    gx, gw = x.grad_var, w.grad_var
    assert gx.array == 36.0 and gw.array == 24.0
    x.cleargrad(), w.cleargrad()
    F.sum(gx + gw).backward()
    assert x.grad == 18.0 + 24.0 and w.grad == 24.0 + 8.0


@pytest.mark.parametrize("double", [False, True])
def test_a_parameter_assigned_later_does_not_change_what_is_recomputed(double):
    """As after an optimizer's update between two losses with common parameters."""
    w, x = variable([2.0]), variable([0.5])
    y = tn.checkpoint(lambda a: a * w * w, x)
    w.array = np.array([10.0])
    y.backward(enable_double_backprop=double)
    assert x.grad == 4.0 and w.grad == 2.0 and w.array == 10.0


def test_a_checkpoint_with_captured_variables_runs_in_vmap():
    w, xs = variable([1.0, 2.0]), variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    scale = variable([3.0, 5.0], requires_grad=False)

    def loss(call):
        def one(row):
            return F.sum(call(lambda a: a * a * w * scale + tn.asarray([1.0, 1.0]), row))

        return F.sum(tn.vmap(one)(xs) ** 2)

    for order in (1, 2):
        results = []
        for call in (tn.checkpoint, lambda func, *xs: func(*xs)):
            y = loss(call)
            g = tn.grad([y], [w, xs], enable_double_backprop=order == 2)
            if order == 2:
                g = tn.grad([F.sum(g[0] * g[0]) + F.sum(g[1] ** 3)], [w, xs])
            results.append(g)
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a.array, b.array)


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (lambda a: [a * 2], "func must return a Variable or a tuple of Variables, got list"),
        (lambda a: {"y": a}, "func must return a Variable or a tuple of Variables, got dict"),
        (lambda a: None, "func must return a Variable or a tuple of Variables, got NoneType"),
        (lambda a: (a, 1.0), "the 2nd element of the returned tuple is float"),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_the_results_are_checked_in_a_net_too(func, message, compiled):
    f = lambda x: tn.checkpoint(func, x)  # noqa: E731
    with pytest.raises(GraphError, match=message):
        (tn.compile(f) if compiled else f)(variable([1.0]))
    with pytest.raises(OperandError, match=r"xs\[1\] must be a Variable or an array, got float"):
        f = lambda x: tn.checkpoint(lambda a, s: a * s, x, 2.0)  # noqa: E731
        (tn.compile(f) if compiled else f)(variable([1.0]))


def test_forget_nests():
    x = variable([0.3, 0.7])
    y = F.sum(tn.forget(lambda v: F.exp(tn.forget(F.sin, v)) * v, x))
    y.backward()
    t = x.array
    np.testing.assert_allclose(x.grad, np.exp(np.sin(t)) * (1 + t * np.cos(t)), rtol=1e-14)


def test_an_array_assigned_later_does_not_change_what_is_recomputed():
    x = variable([3.0])
    y = tn.forget(lambda v: v * v, x)
    x.array = np.array([100.0])
    y.backward()
    assert x.grad == 6.0


# --- errors ----------------------------------------------------------------------------------


def masked(generator, seen):
    """y = dropout(x)^2: its gradient shows which mask was drawn in backward."""

    def body(x):
        dropped = tn.nn.Dropout(0.5, generator)(x)
        seen.append(dropped.array != 0)
        return dropped * dropped

    return body


@pytest.mark.parametrize("own", [False, True], ids=["process-wide", "explicit"])
@pytest.mark.parametrize("inner", [False, True], ids=["once", "nested"])
def test_dropout_draws_the_same_mask_again(own, inner):
    tn.seed(3)
    generator = np.random.default_rng(3) if own else tn.random.get_generator()
    seen = []
    body = masked(generator if own else None, seen)
    x = variable(np.arange(1.0, 41))
    y = tn.forget(lambda x: tn.forget(body, x) if inner else body(x), x)
    generator.random(7)  # other draws lie between forward and backward
    state = generator.bit_generator.state
    F.sum(y).backward()
    assert len(seen) == (3 if inner else 2)
    assert all((mask == seen[0]).all() for mask in seen) and 5 < seen[0].sum() < 35
    np.testing.assert_allclose(x.grad, np.where(seen[0], 8 * x.array, 0))
    assert generator.bit_generator.state == state


def test_the_second_call_has_the_settings_of_the_first():
    seen = []

    def watched(x):
        seen.append((tn.config.train, tn.config.dtype, str(tn.config.device)))
        return tn.nn.Dropout(0.5)(x)

    x = variable(np.ones(20))
    with tn.using_config(train=False, dtype="float64"), tn.using_device("numpy"):
        y = F.sum(tn.checkpoint(watched, x))
    with tn.using_config(dtype="float16"):
        y.backward()
    assert seen == [(False, "float64", "numpy")] * 2
    np.testing.assert_array_equal(x.grad, np.ones(20))


def test_draws_of_several_masks_and_of_random_numbers_repeat_themselves():
    generator = np.random.default_rng(5)
    drawn = []

    def body(x):
        y = F.dropout(F.dropout(x, 0.3, generator), 0.3, generator)
        drawn.append((y.array, tn.random.normal((3,))))
        return y * drawn[-1][1][0]

    x = variable(np.ones(50))
    F.sum(tn.forget(body, x)).backward()
    for first, second in zip(*drawn, strict=True):
        np.testing.assert_array_equal(first, second)


def test_an_error_in_the_second_call_leaves_the_generator_where_it_was():
    generator = np.random.default_rng(5)

    def body(x):
        if tn.config.recompute_phase == "again":
            F.dropout(x, 0.5, generator)
            raise RuntimeError("again")
        return F.dropout(x, 0.5, generator)

    y = F.sum(tn.forget(body, variable(np.ones(50))))
    state = generator.bit_generator.state
    with pytest.raises(RuntimeError, match="again"):
        y.backward()
    assert generator.bit_generator.state == state


@pytest.mark.parametrize("value", [None, 1.0, variable([1.0])])
def test_func_must_be_callable(value):
    with pytest.raises(TypeError, match="checkpoint: func must be callable, got"):
        tn.forget(value, variable([1.0]))


@pytest.mark.parametrize("argument", [1.0, [1.0], None])
def test_an_argument_that_is_neither_variable_nor_array_is_a_type_error(argument):
    with pytest.raises(TypeError, match=r"checkpoint: xs\[1\] must be a Variable or an array"):
        tn.forget(body, variable([1.0]), argument)


@pytest.mark.parametrize("result", [None, 1.0, np.ones(1), [variable([1.0])]])
def test_func_must_return_a_variable_or_a_tuple(result):
    with pytest.raises(
        RuntimeError, match=r"func must return a Variable or a tuple.*got"
    ) as caught:
        tn.forget(lambda v: result, variable([1.0]))
    assert isinstance(caught.value, GraphError)


@pytest.mark.parametrize(
    ("position", "word"),
    [(0, "1st"), (1, "2nd"), (2, "3rd"), (3, "4th"), (10, "11th"), (20, "21st")],
)
def test_a_wrong_element_is_named_with_an_ordinal(position, word):
    def wrong(v):
        results = [v] * 22
        results[position] = 1.5
        return tuple(results)

    with pytest.raises(
        RuntimeError, match=rf"the {word} element of the returned tuple is float 1\.5"
    ):
        tn.forget(wrong, variable([1.0]))


def test_func_that_gives_something_else_the_second_time_is_an_error():
    results = [lambda v: v * 2.0, lambda v: (v * 2.0, v)]

    def fickle(v):
        return results.pop(0)(v)

    x = variable([1.0])
    y = tn.forget(fickle, x)
    with pytest.raises(GraphError, match="returned 1 outputs in forward and 2 in backward"):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("call", [1, 2])
def test_an_error_in_func_restores_the_config_and_leaves_no_gradient(call):
    calls = []

    def fails(v):
        calls.append(v)
        if len(calls) == call:
            raise ZeroDivisionError
        return v * 2.0

    x = variable([1.0])
    with pytest.raises(ZeroDivisionError):
        tn.forget(fails, x).backward()
    assert tn.config.enable_backprop and tn.config.recompute_phase is None
    assert x.grad is None
    tn.forget(lambda v: v * 3.0, x).backward()
    assert x.grad == 3.0


def test_results_lie_on_another_device():
    x = variable([1.0, 2.0])
    y = tn.checkpoint(lambda x: F.exp(F.to_device(x, "strict")), x)
    assert y.device is tn.get_device("strict")
    F.sum(y).backward()
    np.testing.assert_allclose(x.grad, np.exp([1.0, 2.0]))
    with pytest.raises(DeviceMixError, match=r"checkpoint: .* move them after checkpoint"):
        tn.checkpoint(lambda x: (x * 2, F.to_device(x, "strict")), x)


def test_results_that_all_examples_of_vmap_share():
    x, w = variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), variable([0.5, -1.0])

    def pair(x):
        return x * w, w * 2

    found = []
    for f in (
        pair,
        lambda x: tn.checkpoint(pair, x),
        lambda x: (x * w, tn.checkpoint(pair, x)[1]),
    ):
        a, b = tn.vmap(f)(x)
        found.append([gx.array for gx in tn.grad([F.sum(a * b)], [x, w])])
    for gx, gw in found[1:]:
        np.testing.assert_allclose(gx, found[0][0])
        np.testing.assert_allclose(gw, found[0][1])
    y = tn.vmap(lambda x: tn.checkpoint(lambda _: w * 2, x))(x)
    np.testing.assert_allclose(y.array, [w.array * 2] * 3)


def test_both_names_are_one_function():
    assert tn.forget is tn.checkpoint


def test_the_settings_of_version_0_1_warn_and_give_the_phase():
    def phases(x):
        with pytest.warns(DeprecationWarning, match="recompute_phase == 'first'"):
            first = tn.config.will_recompute
        with pytest.warns(DeprecationWarning, match="recompute_phase == 'again'"):
            seen.append((first, tn.config.in_recomputing))
        return x * 2.0

    seen = []
    tn.checkpoint(phases, variable([1.0])).backward()
    assert seen == [(True, False), (False, True)]


def test_a_second_call_with_another_parameter_is_refused():
    weights = [tn.Variable(np.ones(2), name=name) for name in ("first", "second")]
    left = list(weights)
    x = tn.Variable(np.ones(2))
    y = tn.checkpoint(lambda z: left.pop(0) * z, x)
    with pytest.raises(GraphError, match=r"func used second of shape \(2,\) in backward"):
        tn.functions.sum(y).backward()
    assert weights[0].grad is None and x.grad is None
