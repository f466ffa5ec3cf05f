"""FunctionHook: who is called, when, in which order, with what; and observers."""

from __future__ import annotations

import inspect
import threading

import numpy as np
import pytest

import tinynode as tn
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.errors import HookError

F = tn.functions

CALLBACKS = [
    "added",
    "deleted",
    "forward_preprocess",
    "forward_postprocess",
    "backward_preprocess",
    "backward_postprocess",
]


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


class Recorder(tn.FunctionHook):
    """Writes (own name, callback, label of the function) into a list."""

    def __init__(self, name, events):
        self.name = name
        self.events = events

    def note(self, callback, function):
        self.events.append((self.name, callback, None if function is None else function.label))

    def added(self, function):
        self.note("added", function)

    def deleted(self, function):
        self.note("deleted", function)

    def forward_preprocess(self, function, in_data):
        self.note("forward_pre", function)

    def forward_postprocess(self, function, in_data):
        self.note("forward_post", function)

    def backward_preprocess(self, function, in_data, out_grad):
        self.note("backward_pre", function)

    def backward_postprocess(self, function, in_data, out_grad):
        self.note("backward_post", function)


def clean():
    return thread_state.hooks == {}


# --- the class -------------------------------------------------------------------------------


def test_the_callbacks_exist_do_nothing_and_have_the_documented_arguments():
    hook = tn.FunctionHook()
    assert tn.FunctionHook.name == "FunctionHook"
    for name in CALLBACKS:
        callback = getattr(hook, name)
        arguments = list(inspect.signature(callback).parameters)
        expected = {"a": ["function"], "d": ["function"], "f": ["function", "in_data"]}
        assert arguments == expected.get(name[0], ["function", "in_data", "out_grad"])
        assert callback(*[None] * len(arguments)) is None


# --- with ------------------------------------------------------------------------------------


def test_with_registers_the_hook_returns_it_and_unregisters_it():
    events = []
    hook = Recorder("a", events)
    with hook as entered:
        assert entered is hook and list(thread_state.hooks) == ["a"]
        assert events == [("a", "added", None)]
    assert events == [("a", "added", None), ("a", "deleted", None)] and clean()


def test_deleted_is_called_before_the_hook_is_removed():
    class Hook(tn.FunctionHook):
        def deleted(self, function):
            assert thread_state.hooks[self.name] is self and function is None

    with Hook():
        pass
    assert clean()


def test_deleted_is_called_by_an_exception_too():
    events = []
    with pytest.raises(RuntimeError, match="planted"), Recorder("a", events):
        raise RuntimeError("planted")
    assert events[-1] == ("a", "deleted", None) and clean()


def test_a_second_hook_of_the_same_name_is_a_key_error_and_the_first_stays():
    first = tn.FunctionHook()
    with first:
        with (
            pytest.raises(KeyError, match="hook FunctionHook already exists") as caught,
            tn.FunctionHook(),
        ):
            raise AssertionError
        assert isinstance(caught.value, HookError)
        assert list(thread_state.hooks.values()) == [first]
    assert clean()


def test_the_same_hook_cannot_nest_and_may_be_used_again_afterwards():
    hook = tn.FunctionHook()
    for _ in range(2):
        with hook, pytest.raises(KeyError), hook:
            raise AssertionError
        assert clean()


def test_hooks_of_different_names_nest():
    events = []
    with Recorder("a", events), Recorder("b", events):
        assert list(thread_state.hooks) == ["a", "b"]
    assert [e[:2] for e in events][-2:] == [("b", "deleted"), ("a", "deleted")] and clean()


def test_hooks_belong_to_the_thread():
    events, seen = [], []

    def work():
        seen.append(dict(thread_state.hooks))
        F.exp(variable(1.0))
        with Recorder("theirs", []):
            pass

    with Recorder("a", events):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert list(thread_state.hooks) == ["a"]
    assert seen == [{}] and [e[1] for e in events] == ["added", "deleted"]


# --- order -----------------------------------------------------------------------------------


def test_global_hooks_come_first_then_local_ones_and_post_hooks_keep_that_order():
    events = []
    x = variable(1.0)
    f = F.Exp()
    f.add_hook(Recorder("local", events))
    with Recorder("b", events), Recorder("a", events):
        (y,) = f.apply((x,))
        forward = [e[:2] for e in events[3:]]
        del events[:]
        tn.grad([y], [x])
        backward = [e[:2] for e in events if e[2] == "Exp"]
    order = ["b", "a", "local"]
    assert forward == [(n, f"forward_{p}") for p in ("pre", "post") for n in order]
    assert backward == [(n, f"backward_{p}") for p in ("pre", "post") for n in order]


def test_a_local_hook_replaces_the_global_one_of_its_name_for_that_function():
    shared, local = [], []
    x = variable(1.0)
    f = F.Exp()
    f.add_hook(Recorder("a", local))
    with Recorder("a", shared):
        (y,) = f.apply((x,))
        F.sin(y)
    assert [e[2] for e in shared if e[1].startswith("forward")] == ["Sin", "Sin"]
    assert [e[1] for e in local] == ["added", "forward_pre", "forward_post"]


def test_a_local_hook_registered_after_apply_sees_the_backward():
    events = []
    x = variable(1.0)
    y = F.exp(x)
    y.creator.add_hook(Recorder("late", events))
    F.sum(y).backward()
    assert [e[1:] for e in events] == [
        ("added", "Exp"),
        ("backward_pre", "Exp"),
        ("backward_post", "Exp"),
    ]


def test_functions_inside_a_backward_fire_their_forward_hooks_between_pre_and_post():
    events = []
    x = variable(1.0)
    y = F.sin(x)
    with Recorder("a", events):
        y.backward()
    assert [e[1:] for e in events[1:-1]] == [
        ("backward_pre", "Sin"),
        ("forward_pre", "Cos"),
        ("forward_post", "Cos"),
        ("forward_pre", "Multiply"),
        ("forward_post", "Multiply"),
        ("backward_post", "Sin"),
    ]


def test_additions_of_gradients_are_seen_only_under_double_backprop():
    def labels(double):
        events = []
        x = variable(1.0)
        y = F.identity(x) + F.identity(x)
        with Recorder("a", events):
            y.backward(enable_double_backprop=double)
        return [e[2] for e in events if e[1] == "forward_pre"]

    assert labels(False) == [] and labels(True) == ["Add"]


# --- what the callbacks get ------------------------------------------------------------------


def test_forward_callbacks_get_the_node_and_the_raw_input_arrays():
    calls = []

    class Hook(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            calls.append((function, in_data))

        def forward_postprocess(self, function, in_data):
            calls.append((function, in_data))

    x, array = variable([1.0]), np.array([2.0])
    with Hook():
        y = x * array
    for function, in_data in calls:
        assert function is y.creator and type(in_data) is tuple
        assert in_data[0] is x.array and in_data[1] is array
    assert len(calls) == 2


def test_backward_in_data_has_none_for_inputs_that_were_not_retained():
    class Second(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((1,))
            return inputs[0] * inputs[1], inputs[0] + 0

        def backward(self, target_input_indexes, grad_outputs):
            return grad_outputs[0] * self.get_retained_inputs()[0], None

    calls = []

    class Hook(tn.FunctionHook):
        def backward_preprocess(self, function, in_data, out_grad):
            calls.append((function, in_data, out_grad))

        backward_postprocess = backward_preprocess

    x, w = variable([2.0]), variable([3.0])
    function = Second()
    y, unused = function.apply((x, w))
    y.grad = g = np.array([5.0])
    with Hook():
        y.backward()
    before, after = [c for c in calls if c[0] is function]
    assert before[1:] == after[1:]
    in_data, out_grad = before[1:]
    assert type(in_data) is tuple and in_data[0] is None and in_data[1] is w.array
    assert type(out_grad) is tuple and out_grad[0] is g and out_grad[1] is None
    del unused


def test_in_data_is_all_none_where_nothing_was_retained():
    seen = []

    class Hook(tn.FunctionHook):
        def backward_preprocess(self, function, in_data, out_grad):
            seen.append(in_data)

    x = variable(1.0)
    with Hook():
        (x + x).backward()
    assert seen == [(None, None)]


@pytest.mark.parametrize("how", ["Variable.backward", "backward", "grad"])
def test_backward_hooks_are_called_by_every_kind_of_sweep(how):
    events = []
    x = variable(1.0)
    y = F.exp(x)
    with Recorder("a", events):
        if how == "grad":
            tn.grad([y], [x])
        elif how == "backward":
            tn.backward([y], [variable(1.0)])
        else:
            y.backward()
    assert ("a", "backward_pre", "Exp") in events and ("a", "backward_post", "Exp") in events


def test_functions_skipped_for_lack_of_targets_call_no_hook():
    events = []
    x, w = variable(1.0), variable(1.0)
    h = F.exp(x)
    y = h * w
    with Recorder("a", events):
        tn.grad([y], [w])
    assert "Exp" not in [e[2] for e in events]


# --- exceptions ------------------------------------------------------------------------------


class Fails(tn.FunctionNode):
    def __init__(self, where):
        self.where = where

    def forward(self, inputs):
        if self.where == "forward":
            raise RuntimeError("planted")
        return (inputs[0] * 1,)

    def backward(self, target_input_indexes, grad_outputs):
        raise RuntimeError("planted")


def test_postprocess_is_not_called_if_forward_raised():
    events = []
    with Recorder("a", events), pytest.raises(RuntimeError, match="planted"):
        Fails("forward").apply((variable(1.0),))
    assert [e[1] for e in events] == ["added", "forward_pre", "deleted"]


def test_postprocess_is_not_called_if_backward_raised():
    events = []
    (y,) = Fails("backward").apply((variable(1.0),))
    with Recorder("a", events), pytest.raises(RuntimeError, match="planted"):
        y.backward()
    assert [e[1] for e in events] == ["added", "backward_pre", "deleted"]


def test_a_hook_whose_added_raises_is_not_registered():
    class Hook(tn.FunctionHook):
        def added(self, function):
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"), Hook():
        raise AssertionError
    assert clean()
    f = F.Exp()
    with pytest.raises(RuntimeError, match="planted"):
        f.add_hook(Hook())
    assert f.local_function_hooks == {}


def test_a_hook_whose_deleted_raises_is_removed_all_the_same():
    class Hook(tn.FunctionHook):
        def deleted(self, function):
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"), Hook():
        pass
    assert clean()
    f = F.Exp()
    f.add_hook(Hook())
    with pytest.raises(RuntimeError, match="planted"):
        f.delete_hook("FunctionHook")
    assert f.local_function_hooks == {}


def test_a_hook_may_register_another_one_inside_a_callback():
    events = []

    class Nests(tn.FunctionHook):
        def forward_preprocess(self, function, in_data):
            if function.label == "Exp":
                with Recorder("inner", events):
                    F.sin(variable(1.0))

    with Nests():
        F.exp(variable(1.0))
    assert [e[2] for e in events if e[1] == "forward_pre"] == ["Sin"] and clean()


# --- the further events ------------------------------------------------------------------------


class Everything(tn.FunctionHook):
    """Writes down every event, by its name and the function's label."""

    name = "Everything"

    def __init__(self, events):
        self.events = events

    def forward_preprocess(self, function, in_data):
        self.events.append(("forward_preprocess", function.label))

    def forward_postprocess(self, function, in_data):
        self.events.append(("forward_postprocess", function.label))

    def applied(self, function, inputs, outputs):
        assert all(isinstance(x, tn.Variable) for x in (*inputs, *outputs))
        self.events.append(("applied", function.label, function.inputs is not None))

    def before_backward(self, sweep, function):
        assert [ref() in sweep.table.gradients for ref in function.outputs] == [True]
        self.events.append(("before_backward", function.label))

    def backward_preprocess(self, function, in_data, out_grad):
        self.events.append(("backward_preprocess", function.label))

    def backward_postprocess(self, function, in_data, out_grad):
        self.events.append(("backward_postprocess", function.label))

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        assert len(target_input_indexes) == len(grad_inputs)
        self.events.append(("after_backward", function.label))

    def after_accumulate(self, sweep, function):
        assert all(node in sweep.table.gradients for node in function.inputs)
        self.events.append(("after_accumulate", function.label))

    def sweep_began(self, sweep):
        self.events.append(("sweep_began", len(sweep.heap)))

    def sweep_ended(self, sweep, error):
        self.events.append(("sweep_ended", type(error).__name__, len(sweep.results)))

    def failed(self, function, direction, error):
        self.events.append(("failed", function.label, direction, str(error)))

    def value_read(self, what):
        self.events.append(("value_read", what))

    def detached(self, source, copy):
        self.events.append(("detached", source.name))

    def array_assigned(self, variable):
        self.events.append(("array_assigned", variable.name))

    def gradient_cleared(self, variable):
        self.events.append(("gradient_cleared", variable.name))


def test_the_order_of_all_events_of_a_forward_and_a_backward():
    events = []
    x = variable(1.0)
    with Everything(events):
        F.identity(x).backward()
    assert events == [
        ("forward_preprocess", "Identity"),
        ("forward_postprocess", "Identity"),
        ("applied", "Identity", True),
        ("sweep_began", 1),
        ("before_backward", "Identity"),
        ("backward_preprocess", "Identity"),
        ("backward_postprocess", "Identity"),
        ("after_backward", "Identity"),
        ("after_accumulate", "Identity"),
        ("sweep_ended", "NoneType", 1),
    ]
    assert clean()


class Leaves(tn.FunctionHook):
    """A hook that ends itself in an event."""

    name = "leaves"

    def __init__(self, event):
        self.event = event

    def sweep_began(self, sweep):
        if self.event == "sweep_began":
            self.__exit__(None, None, None)

    def sweep_ended(self, sweep, error):
        if self.event == "sweep_ended":
            self.__exit__(None, None, None)

    def value_read(self, what):
        if self.event == "value_read":
            self.__exit__(None, None, None)


@pytest.mark.parametrize("event", ["sweep_began", "sweep_ended"])
def test_a_hook_may_end_itself_while_a_sweep_begins_or_ends(event):
    x, events = variable(2.0), []
    with Everything(events):
        Leaves(event).__enter__()
        (x * x).backward()
    assert x.grad == 4.0 and clean()
    assert [one[0] for one in events if one[0].startswith("sweep")] == [
        "sweep_began",
        "sweep_ended",
    ]


def test_a_hook_may_end_itself_when_a_value_is_read():
    events = []
    with Everything(events):
        Leaves("value_read").__enter__()
        assert float(variable(2.0)) == 2.0
    assert [one[0] for one in events] == ["value_read"] and clean()


def test_one_hook_of_several_records_a_net():
    recorder = tn.FunctionHook()
    recorder.name, recorder.records_nets = "recorder", True
    assert not is_recording_net()
    with recorder, Everything([]):
        assert is_recording_net()
    with Everything([]):
        assert not is_recording_net()


def test_an_index_tells_hooks_that_a_value_is_read():
    events = []
    with Everything(events):
        assert [10, 11][tn.Variable(np.asarray(1))] == 11
    assert events == [("value_read", "an index")]


def test_a_forward_that_raises_is_failed_and_nothing_after_it():
    events = []
    with Everything(events), pytest.raises(RuntimeError, match="planted"):
        Fails("forward").apply((variable(1.0),))
    assert events == [
        ("forward_preprocess", "Fails"),
        ("failed", "Fails", "forward", "planted"),
    ]


def test_a_backward_that_raises_is_failed_and_the_sweep_ends_with_the_error():
    events = []
    (y,) = Fails("backward").apply((variable(1.0),))
    with Everything(events), pytest.raises(RuntimeError, match="planted"):
        y.backward()
    assert events == [
        ("sweep_began", 1),
        ("before_backward", "Fails"),
        ("backward_preprocess", "Fails"),
        ("failed", "Fails", "backward", "planted"),
        ("sweep_ended", "RuntimeError", 0),
    ]


def test_every_hook_of_the_function_hears_that_it_failed_also_by_another_hook():
    class Raises(tn.FunctionHook):
        name = "raises"

        def forward_postprocess(self, function, in_data):
            raise RuntimeError("of a hook")

    first, last = [], []
    f = F.Exp()
    f.add_hook(Everything(last))
    with Everything(first), Raises(), pytest.raises(RuntimeError, match="of a hook"):
        f.apply((variable(1.0),))
    # the local hook of that name stands in the place of the thread's one
    assert first == [] and last == [
        ("forward_preprocess", "Exp"),
        ("forward_postprocess", "Exp"),
        ("failed", "Exp", "forward", "of a hook"),
    ]


def test_an_interrupt_is_a_failure_too():
    class Interrupted(tn.FunctionNode):
        def forward(self, inputs):
            raise KeyboardInterrupt

    events = []
    with Everything(events), pytest.raises(KeyboardInterrupt):
        Interrupted().apply((variable(1.0),))
    assert events[-1] == ("failed", "Interrupted", "forward", "") and clean()


def test_a_hook_hears_what_happens_to_values_outside_of_functions():
    events = []
    x = variable(1.0, name="x")
    with Everything(events):
        float(x)
        _ = x.array
        x.array = np.array(2.0)
        x.cleargrad()
        bool(x)
        x.detach()
        tn.asarray(x, requires_grad=False)
    number = "x.item(), or bool(x), int(x) or float(x),"
    assert events == [
        ("value_read", number),
        ("value_read", "x.array"),
        ("array_assigned", "x"),
        ("gradient_cleared", "x"),
        ("value_read", number),
        ("detached", "x"),
        ("detached", "x"),
    ]


def test_a_hook_may_refuse_that_values_are_read():
    class Refuses(tn.FunctionHook):
        def value_read(self, what):
            raise RuntimeError(what)

    x = variable(1.0)
    with Refuses(), pytest.raises(RuntimeError, match=r"x\.array"):
        _ = x.array
    assert x.array == 1.0


def test_a_hook_without_any_override_changes_nothing():
    with tn.FunctionHook():
        x = variable(1.0)
        (x * x).backward()
    assert x.grad == 2.0
