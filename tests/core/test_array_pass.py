"""A backward pass on arrays gives the gradients of a pass on Variables."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case
from op_drivers import call, differentiable, draw_inputs, draw_like, make_inputs

import tinynode as tn
import tinynode.functions as fn
from tinynode.core.gradient_table import ArrayTable
from tinynode.core.hooks import thread_state

OPERATIONS = sorted({case.operation for case in CASES})


def gradients(case: Case, dtype: str) -> list[Any]:
    """The gradients of a row's inputs, and the results of the functions in backward."""
    hosts = draw_inputs(case, dtype)
    xs = make_inputs(case, hosts, tn.get_device("numpy"))
    ys = [y for y in call(case, xs) if y.requires_grad]
    return tn.grad(ys, differentiable(xs), draw_like(ys, 1)) if ys else []


def check_both_ways(case: Any, dtype: str) -> None:
    """A hook that hears nothing makes it a pass on Variables."""
    on_arrays = gradients(case, dtype)
    with tn.FunctionHook():
        on_variables = gradients(case, dtype)
    for one, other in zip(on_arrays, on_variables, strict=True):
        assert (one is None) == (other is None), case.id
        if one is None or other is None:
            continue
        assert (one.dtype, one.shape) == (other.dtype, other.shape), case.id
        assert one.creator_node is other.creator_node is None
        eps = 8 * float(np.finfo(one.dtype).eps)
        np.testing.assert_allclose(one.array, other.array, rtol=eps, atol=eps, err_msg=case.id)


def rows_of(operation: str) -> list[Any]:
    return [case for case in CASES if case.operation == operation]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_row_gives_equal_gradients_both_ways(operation: str) -> None:
    for case in rows_of(operation):
        check_both_ways(case, case.dtypes[0])


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_row_gives_equal_gradients_both_ways_in_other_dtypes(operation: str) -> None:
    for case in rows_of(operation):
        for dtype in case.dtypes[1:]:
            check_both_ways(case, dtype)


def test_the_library_s_functions_take_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    on_variables: set[str] = set()
    run_on_variables = ArrayTable.run_on_variables

    def note(table: ArrayTable, function: Any, *rest: Any) -> Any:
        on_variables.add(f"{type(function).__module__}.{type(function).__name__}")
        return run_on_variables(table, function, *rest)

    monkeypatch.setattr(ArrayTable, "run_on_variables", note)
    for case in CASES:
        if case.operation != "to_device":
            gradients(case, case.dtypes[0])
    assert not {name for name in on_variables if name.startswith("tinynode.functions.")}


class Cube(tn.FunctionNode):
    """x^3, by a user: ``backward`` uses methods of Variables."""

    seen: tuple[Any, ...] = ()

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, indexes: Any, grad_outputs: Any) -> Any:
        (gy,), (x,), (y,) = grad_outputs, self.get_retained_inputs(), self.get_retained_outputs()
        type(self).seen = (type(gy), type(x), type(y), type(fn.exp(x)), type(fn.exp(gy * x)))
        return (
            ((3 * gy * x * x).reshape(x.shape),)
            if isinstance(x, tn.Variable)
            else (3 * gy * x * x,)
        )


class OfArrays(Cube):
    backward_takes_arrays = True


class Inherits(OfArrays):
    """The subclass does not say what it takes."""


class OfLibrary(fn.arithmetic.Multiply):
    """A subclass of a class of the library, with a ``backward`` for Variables."""

    def backward(self, indexes: Any, grad_outputs: Any) -> Any:
        assert isinstance(grad_outputs[0], tn.Variable)
        return super().backward(indexes, grad_outputs)


def leaf() -> tn.Variable:
    return tn.Variable(np.asarray([1.0, -2.0, 3.0]))


@pytest.mark.parametrize(
    ("node", "kind"), [(Cube, tn.Variable), (OfArrays, np.ndarray), (Inherits, tn.Variable)]
)
def test_a_class_says_whether_its_backward_takes_arrays(node: Any, kind: type) -> None:
    x = leaf()
    fn.sum(node().apply((x * 2.0,))[0] * x).backward()
    assert node.seen == (kind,) * 5
    np.testing.assert_allclose(x.grad, 32 * x.array**3)
    assert thread_state.array_device is None


def test_a_subclass_of_a_class_of_the_library_gets_variables() -> None:
    x = leaf()
    fn.sum(OfLibrary().apply((x, x))[0]).backward()
    np.testing.assert_array_equal(x.grad, 2 * x.array)


def test_arrays_from_a_backward_for_variables_are_refused() -> None:
    class Wrong(Cube):
        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            return (grad_outputs[0].array,)

    x = leaf()
    y = fn.sum(Wrong().apply((x * 2.0,))[0])
    with pytest.raises(tn.errors.GradientTypeError, match="expected a Variable"):
        y.backward()
    assert x.grad is None and thread_state.array_device is None


@pytest.mark.parametrize("wrong", ["shape", "dtype", "type"])
def test_wrong_arrays_are_refused(wrong: str) -> None:
    class Wrong(OfArrays):
        backward_takes_arrays = True

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            (gy,) = grad_outputs
            return {"shape": (gy[:2],), "dtype": (gy.astype("f4"),), "type": ([1.0],)}[wrong]

    x = leaf()
    y = fn.sum(Wrong().apply((x,))[0])
    with pytest.raises(tn.errors.GradientError, match="Function `Wrong` has a bug"):
        y.backward()
    assert x.grad is None and thread_state.array_device is None


def test_a_variable_from_a_backward_on_arrays_counts_as_its_array() -> None:
    """The next backward gets an array again."""

    class GivesVariable(OfArrays):
        backward_takes_arrays = True

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            (gx,) = super().backward(indexes, grad_outputs)
            return (tn.Variable(gx),)

    x, first = tn.Variable(np.asarray([0.5, -1.0])), OfArrays()
    fn.sum(GivesVariable().apply(first.apply((x,)))[0]).backward()
    assert OfArrays.seen[0] is np.ndarray
    np.testing.assert_allclose(x.grad, 9 * x.array**8)


def test_a_method_of_an_instance_gets_variables() -> None:
    node, x, given = fn.exponential.Exp(), leaf(), []

    def backward(indexes: Any, grad_outputs: Any) -> Any:
        given.extend(grad_outputs)
        return grad_outputs

    node.backward = backward  # type: ignore[method-assign]
    fn.sum(node.apply((x,))[0]).backward()
    assert [type(gy) for gy in given] == [tn.Variable]


def test_a_method_put_into_a_class_gets_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    x, given = leaf(), []

    def backward(self: Any, indexes: Any, grad_outputs: Any) -> Any:
        given.extend(grad_outputs)
        return grad_outputs

    fn.sum(fn.exp(x)).backward()
    monkeypatch.setattr(fn.exponential.Exp, "backward", backward)
    fn.sum(fn.exp(x)).backward()
    assert [type(gy) for gy in given] == [tn.Variable]


def test_a_backward_pass_inside_of_a_backward_leaves_the_outer_one_alone() -> None:
    class Inner(Cube):
        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            x = tn.Variable(self.get_retained_inputs()[0].array)
            with tn.enable_grad():
                y = fn.sum(x * x * x)
            y.backward()
            assert isinstance(fn.exp(x), tn.Variable)
            return (grad_outputs[0] * x.grad_var,)

    x = leaf()
    fn.sum(fn.exp(Inner().apply((x * 1.0,))[0]) * x).backward()
    expected = np.exp(x.array**3) * (1 + x.array * 3 * x.array**2)
    np.testing.assert_allclose(x.grad, expected)


def test_scalars_of_numpy_are_arrays() -> None:
    """Products of 0-d arrays are scalars in NumPy; a float64 stays one beside a number."""
    x = tn.Variable(np.asarray(3.0))
    condition = np.asarray(True)
    y = fn.where(condition, x * x, 0.0) ** 3 / x
    y.backward()
    assert isinstance(x.grad, np.ndarray) and x.grad.dtype == np.float64
    np.testing.assert_allclose(x.grad, 5 * 3.0**4)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_backward_and_the_program_get_arrays_for_scalars_of_numpy(lazy: bool) -> None:
    with tn.using_config("lazy_grad_sum", lazy):
        x = tn.Variable(np.asarray(2.0))
        y = OfArrays().apply((x,))[0]
        (y * y + y * x).backward(retain_grad=True)
    assert OfArrays.seen[0] is np.ndarray
    assert type(x.grad) is type(y.grad) is np.ndarray
    np.testing.assert_allclose([x.grad, y.grad], [18.0 * 12.0 + 8.0, 18.0])


@pytest.mark.parametrize("lazy", [False, True])
def test_contributions_of_both_kinds_add_up(lazy: bool) -> None:
    with tn.using_config("lazy_grad_sum", lazy):
        x = leaf()
        y = x * 2.0
        fn.sum(Cube().apply((y,))[0] + y * y + OfArrays().apply((y,))[0] + y).backward()
    np.testing.assert_allclose(x.grad, 48 * x.array**2 + 8 * x.array + 2)


def test_gradients_that_stay_are_variables() -> None:
    x = leaf()
    y = x * x
    fn.sum(fn.exp(y)).backward(retain_grad=True)
    assert isinstance(y.grad_var, tn.Variable) and isinstance(x.grad_var, tn.Variable)
    assert not x.grad_var.requires_grad and not y.grad_var.requires_grad
    (gx,) = tn.grad([y], [y], [start := leaf()])
    assert gx is start


def test_a_hook_of_a_function_sees_what_it_always_sees() -> None:
    x, seen = leaf(), []

    class Watch(tn.FunctionHook):
        def after_backward(self, *event: Any) -> None:
            seen.append([type(gx) for gx in event[-1]])

    y = x * x
    y.creator_node.add_hook(Watch())
    fn.sum(fn.exp(y) * x).backward()
    assert seen == [[tn.Variable, tn.Variable]]


class Both(OfArrays):
    """Two outputs and two inputs: x y and x + y."""

    backward_takes_arrays = True

    def forward(self, inputs: Any) -> Any:
        x, y = inputs
        self.retain_inputs((0, 1))
        return x * y, x + y

    def backward(self, indexes: Any, grad_outputs: Any) -> Any:
        (gp, gs), (x, y) = grad_outputs, self.get_retained_inputs()
        gx = [gz for gz in (None if gp is None else gp * y, gs) if gz is not None]
        gy = [gz for gz in (None if gp is None else gp * x, gs) if gz is not None]
        return sum(gx[1:], gx[0]), sum(gy[1:], gy[0])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("used", ["both", "product", "sum"])
def test_a_step_on_arrays_gives_what_a_watched_step_gives(lazy: bool, used: str) -> None:
    """Several outputs, a dropped output, one input twice, an input without a gradient."""

    def gradients_of_all() -> list[Any]:
        with tn.using_config("lazy_grad_sum", lazy):
            x, y, c = leaf(), leaf() * 0.5, tn.asarray(np.arange(3.0), requires_grad=False)
            product, total = Both().apply((x, y))
            again, _ = Both().apply((c, x))
            parts = {"both": product * total, "product": product, "sum": total}
            fn.sum(parts[used] + x * x + again).backward(retain_grad=True)
        return [x.grad, y.grad, product.grad, total.grad, again.grad]

    on_arrays = gradients_of_all()
    with tn.FunctionHook():
        watched = gradients_of_all()
    for one, other in zip(on_arrays, watched, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
    assert on_arrays[0] is not None


class Noted(OfArrays):
    """Half of the sum and of the difference. It notes the order of the steps."""

    def __init__(self, number: int, steps: list[int]) -> None:
        self.number, self.steps = number, steps

    def forward(self, inputs: Any) -> Any:
        x, y = inputs
        return (x + y) / 2, (x - y) / 2

    def backward(self, indexes: Any, grad_outputs: Any) -> Any:
        self.steps.append(self.number)
        halves = [None if gy is None else gy * 0.5 for gy in grad_outputs]
        plus, minus = halves
        gradients = [
            plus if minus is None else minus if plus is None else plus + minus,
            plus if minus is None else -minus if plus is None else plus - minus,
        ]
        return tuple([gradients[i] for i in indexes])


class NotedOnArrays(Noted):
    backward_takes_arrays = True


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_steps_is_that_of_a_watched_pass(seed: int) -> None:
    """Functions of one rank run first in, first out, in chains and in wide graphs."""
    random = np.random.default_rng(seed)
    steps: list[int] = []
    leaves = [leaf(), leaf() * 0.5]
    xs = leaves.copy()
    for number in range(30):
        reach = int(random.integers(1, 6))  # 1: a chain
        x, y = (xs[-int(random.integers(1, min(reach, len(xs)) + 1))] for _ in range(2))
        kind = Noted if random.random() < 0.2 else NotedOnArrays
        xs.extend(kind(number, steps).apply((x, y))[: int(random.integers(1, 3))])
    y = fn.sum(xs[-1] + xs[-2] + xs[-3])
    on_arrays = tn.grad([y], leaves)
    order = steps.copy()
    steps.clear()
    with tn.FunctionHook():
        watched = tn.grad([y], leaves)
    assert order == steps and len(set(steps)) == len(steps) > 5
    for one, other in zip(on_arrays, watched, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_array_equal(one.array, other.array)


@pytest.mark.parametrize("hooked", [False, True])
def test_errors_of_backward_are_the_same_in_both_steps(hooked: bool) -> None:
    class Fails(OfArrays):
        backward_takes_arrays = True

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            raise ValueError("planted")

    class TooMany(OfArrays):
        backward_takes_arrays = True

        def backward(self, indexes: Any, grad_outputs: Any) -> Any:
            return grad_outputs * 3

    for node, message in ((Fails, "planted"), (TooMany, "3 != expected 1")):
        x = leaf()
        y = fn.sum(node().apply((x,))[0])
        with contextlib.ExitStack() as stack:
            if hooked:
                stack.enter_context(tn.FunctionHook())
            with pytest.raises(ValueError, match=message) as caught:
                y.backward()
        assert any(node.__name__ in note for note in getattr(caught.value, "__notes__", []))
        assert x.grad is None and thread_state.array_device is None


def test_a_class_with_its_own_backward_accumulate_gets_variables() -> None:
    class Accumulates(OfArrays):
        backward_takes_arrays = True

        def backward_accumulate(self, indexes: Any, grad_outputs: Any, so_far: Any) -> Any:
            given.extend(type(one) for one in (*grad_outputs, *so_far))
            return super().backward_accumulate(indexes, grad_outputs, so_far)

    x, given = leaf(), []
    y = x * 2.0
    fn.sum(y + Accumulates().apply((y,))[0]).backward()
    assert given == [tn.Variable, tn.Variable]
    np.testing.assert_allclose(x.grad, 2 + 24 * x.array**2)


class Doubles(OfArrays):
    """2 x; backward unchains a variable first, if there is one."""

    backward_takes_arrays = True
    unchained: tn.Variable | None = None

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2.0,)

    def backward(self, indexes: Any, grad_outputs: Any) -> Any:
        if self.unchained is not None:
            self.unchained.unchain()
        (gy,) = grad_outputs
        return (None if gy is None else gy * 2.0,)


@pytest.mark.parametrize("double", [False, True])
def test_a_variable_unchained_during_the_pass_keeps_the_gradient(double: bool) -> None:
    """The variable is a leaf by then, and the function before gets no gradient."""
    x, node = leaf(), Doubles()
    y = Doubles().apply((x,))[0]
    node.unchained = y
    z = node.apply((fn.exp(x),))[0]
    fn.sum(z * y).backward(enable_double_backprop=double)
    np.testing.assert_allclose(y.grad, z.array)
    np.testing.assert_allclose(x.grad, 2.0 * y.array * np.exp(x.array))
