"""After any error that user code raises, the same Variables, hooks and settings still work."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tinynode as tn
from tinynode.core.hooks import thread_state

F = tn.functions


class PlantedError(Exception):
    """What the user code of these tests raises; no class of tinynode's."""


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Square(tn.FunctionNode):
    """y = x^2, which raises in the phase that ``fail_in`` names."""

    def __init__(self, fail_in=()):
        self.fail_in = fail_in

    def check_type_forward(self, in_types):
        if "check_type_forward" in self.fail_in:
            raise PlantedError

    def forward(self, inputs):
        self.retain_inputs((0,))
        if "forward" in self.fail_in:
            raise PlantedError
        return (inputs[0] ** 2,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        if "backward" in self.fail_in:
            raise PlantedError
        return (grad_outputs[0] * x * 2.0,)


class Accumulating(Square):
    """The same, by backward_accumulate."""

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        if "backward_accumulate" in self.fail_in:
            raise PlantedError
        (gx,) = self.backward(target_input_indexes, grad_outputs)
        return (gx if grad_inputs[0] is None else gx + grad_inputs[0],)


class OldSquare(tn.Function):
    """The same, in the old style."""

    def __init__(self, fail_in=()):
        self.fail_in = fail_in

    def forward(self, inputs):
        if "old forward" in self.fail_in:
            raise PlantedError
        return (inputs[0] ** 2,)

    def backward(self, inputs, grad_outputs):
        if "old backward" in self.fail_in:
            raise PlantedError
        return (grad_outputs[0] * 2 * inputs[0],)


class Hook(tn.FunctionHook):
    """Raises in the callback that ``fail_in`` names, for functions of the tests."""

    def __init__(self, fail_in=()):
        self.fail_in = fail_in

    def fail(self, callback):
        if callback in self.fail_in:
            raise PlantedError

    def added(self, function):
        self.fail("added")

    def deleted(self, function):
        self.fail("deleted")

    def forward_preprocess(self, function, in_data):
        self.fail("forward_preprocess")

    def forward_postprocess(self, function, in_data):
        self.fail("forward_postprocess")

    def backward_preprocess(self, function, in_data, out_grad):
        self.fail("backward_preprocess")

    def backward_postprocess(self, function, in_data, out_grad):
        self.fail("backward_postprocess")


class Watcher(tn.FunctionHook):
    name = "Watcher"

    def __init__(self, fail_in=()):
        self.fail_in = fail_in

    def applied(self, function, inputs, outputs):
        if "applied" in self.fail_in:
            raise PlantedError

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        if "after_backward" in self.fail_in:
            raise PlantedError


def program(x, fail_in, hook, how):
    """x^2 by three kinds of functions, forward and backward, watched by a hook and an observer."""
    with hook, Watcher(fail_in):
        h = x * 1.0
        parts = [
            Square(fail_in).apply((h,))[0],
            Accumulating(fail_in).apply((h,))[0],
            OldSquare(fail_in)(h),
            tn.forget(lambda v: Square(fail_in).apply((v,))[0], h),
        ]
        y = F.sum(parts[0] + parts[1] + parts[2] + parts[3])
        if how == "backward":
            y.backward()
        elif how == "retain_grad":
            y.backward(retain_grad=True)
        elif how == "joint":
            tn.backward([y], [variable(1.0)])
        else:
            return tn.grad([y], [x], set_grad=True, retain_grad=True)
    return None


PHASES = [
    "check_type_forward",
    "forward",
    "backward",
    "backward_accumulate",
    "old forward",
    "old backward",
    "added",
    "deleted",
    "forward_preprocess",
    "forward_postprocess",
    "backward_preprocess",
    "backward_postprocess",
    "applied",
    "after_backward",
]


def snapshot():
    return dict(vars(tn.config)), dict(thread_state.hooks)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", ["backward", "retain_grad", "joint", "grad"])
@pytest.mark.parametrize("phase", PHASES)
def test_after_an_error_in_any_phase_everything_works_as_before(phase, how, lazy, debug):
    x = variable([1.0, 2.0], grad=np.array([100.0, 200.0]))
    before, grad, array = snapshot(), x.grad, x.array
    with tn.using_config(lazy_grad_sum=lazy, debug=debug):
        hook = Hook((phase,))
        inside = snapshot()
        with pytest.raises(PlantedError):
            program(x, (phase,), hook, how)
        assert snapshot() == inside
        if phase != "deleted":  # which comes last, after a sweep that came to its end
            assert x.grad is grad
        assert x.array is array and x.creator is None and x.rank == 0
        np.testing.assert_array_equal(array, [1.0, 2.0])
        hook.fail_in = ()
        x.cleargrad()
        program(x, (), hook, how)  # the same Variable, the same hook
        np.testing.assert_array_equal(x.grad, 4 * 2 * array)
    assert snapshot() == before


@pytest.mark.parametrize("double", [False, True])
def test_an_error_in_the_middle_of_a_sweep_changes_no_grad_anywhere(double):
    """Functions of higher rank have run already: their leaves must not have been written."""
    early, late = variable(2.0), variable(3.0)
    h = Square(["backward"]).apply((early,))[0]
    k = h * late
    y = k * k
    y.grad = seed = np.asarray(1.0)
    k.grad = kept = np.asarray(7.0)
    with pytest.raises(PlantedError):
        y.backward(retain_grad=True, enable_double_backprop=double)
    assert early.grad is None and late.grad is None
    assert y.grad is seed and k.grad is kept and h.grad is None
    assert tn.config.enable_backprop is True
    h.creator.fail_in = ()
    y.backward(enable_double_backprop=double)  # the same graph
    assert late.grad == 2 * 12.0 * 4.0 and early.grad == 2 * 12.0 * 3.0 * 4.0


def test_the_same_graph_can_be_differentiated_after_an_error():
    x = variable([1.0, 2.0])
    f = Square(["backward"])
    (h,) = f.apply((x,))
    y = F.sum(F.exp(h))
    for _ in range(2):
        with pytest.raises(PlantedError):
            y.backward()
        with pytest.raises(PlantedError):
            tn.grad([y], [x], set_grad=True)
    assert x.grad is None
    f.fail_in = ()
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * x.array * np.exp(x.array**2))


def test_a_function_whose_forward_raised_may_be_applied_again():
    x = variable([3.0])
    f = Square(["forward"])
    with pytest.raises(PlantedError):
        f.apply((x,))
    assert f.inputs is None and f.outputs is None and x.node.data is None
    f.fail_in = ()
    (y,) = f.apply((x,))
    y.backward()
    assert x.grad == 6.0


def test_a_local_hook_that_raises_does_not_stay_in_the_way():
    x, hook = variable([3.0]), Hook(["backward_postprocess"])
    (y,) = Square().apply((x,))
    y.creator.add_hook(hook)
    with pytest.raises(PlantedError):
        y.backward()
    assert x.grad is None and list(y.creator.local_function_hooks.values()) == [hook]
    hook.fail_in = ()
    y.backward()
    assert x.grad == 6.0
    hook.fail_in = ["deleted"]
    with pytest.raises(PlantedError):
        y.creator.delete_hook(hook.name)
    assert y.creator.local_function_hooks == {}
    hook.fail_in = ["added"]
    with pytest.raises(PlantedError):
        y.creator.add_hook(hook)
    assert y.creator.local_function_hooks == {}


def test_one_of_two_hooks_raises_and_both_are_gone_after_their_blocks():
    x = variable([3.0])
    good = Hook()
    good.name = "good"
    with pytest.raises(PlantedError), good, Hook(["forward_preprocess"]):
        x * x
    assert thread_state.hooks == {}
    with good:
        y = x * x
        assert list(thread_state.hooks) == ["good"]
    y.backward()
    assert x.grad == 6.0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_restores_everything_too(error):
    class Interrupted(tn.FunctionNode):
        def forward(self, inputs):
            return inputs

        def backward(self, target_input_indexes, grad_outputs):
            raise error

    x = variable([3.0], grad=np.array([1.0]))
    before = snapshot()
    (y,) = Interrupted().apply((x * 1.0,))
    with pytest.raises(error), Hook():
        y.backward(enable_double_backprop=True)
    assert snapshot() == before and x.grad == 1.0


def test_wrong_gradients_leave_the_graph_usable():
    x, w = variable([3.0]), variable([2.0])
    (h,) = Square().apply((x,))
    y = h * w
    right = h.creator.backward
    for wrong in (
        (np.ones(1),),
        (variable([1.0, 2.0]),),
        (variable([1.0], np.float32),),
        (),
        None,
    ):
        h.creator.backward = lambda indexes, grads, wrong=wrong: wrong
        with pytest.raises(tn.TinynodeError):
            y.backward()
        assert x.grad is None and w.grad is None
    h.creator.backward = right
    y.backward()
    assert x.grad == 12.0 and w.grad == 9.0


@pytest.mark.parametrize(
    "bad",
    [
        lambda x: x * [1.0],
        lambda x: x * np.ones(5),
        lambda x: F.Exp().apply((x, 1.0)),
        lambda x: tn.Variable([1.0]),
        lambda x: setattr(x, "grad", np.ones(5)),
        lambda x: setattr(x, "array", [1.0]),
        lambda x: x.backward(),
        lambda x: tn.grad([x], x),
        lambda x: tn.grad([x], [x], [np.ones(2)]),
        lambda x: tn.backward([x], [None]),
        lambda x: x.to_device("nowhere"),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__iadd__(1.0),
        lambda x: x[5],
        lambda x: tn.using_config("nothing", 1).__enter__(),
        lambda x: tn.using_device("nowhere"),
        lambda x: tn.forget(None, x),
        lambda x: np.asarray(x),
        lambda x: float(x),
        lambda x: Square().add_hook("hook"),
        lambda x: Square().delete_hook("hook"),
    ],
)
def test_bad_input_corrupts_nothing(bad):
    x = variable([1.0, 2.0])
    y = F.sum(x * x)
    before, array, node = snapshot(), x.array, x.node
    with pytest.raises(Exception):  # noqa: B017 - which one is tested elsewhere
        bad(x)
    assert snapshot() == before
    assert x.array is array and x.grad is None and x.node is node
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_an_error_in_one_thread_leaves_the_others_alone():
    failed = []

    def work():
        try:
            program(variable([1.0]), ("backward",), Hook(), "backward")
        except PlantedError:
            failed.append(True)

    with Hook():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert failed == [True] and len(thread_state.hooks) == 1
        x = variable([3.0])
        (x * x).backward()
        assert x.grad == 6.0
