"""Who holds whom: reference counting alone frees the graph and the arrays that nobody needs."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import tinynode as tn

F = tn.functions


def variable(values, dtype=np.float64, **settings):
    return tn.Variable(np.asarray(values, dtype=dtype), **settings)


@pytest.fixture(autouse=True)
def without_the_collector():
    """The cycle collector is off, and passes over older objects where a test calls it."""
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()
    gc.unfreeze()


def probes(y):
    """Weak references to every function and node upstream of y."""
    functions, nodes, waiting = {}, {}, [y.creator_node]
    nodes[y.node] = None
    while waiting:
        function = waiting.pop()
        if function is None or function in functions:
            continue
        functions[function] = None
        for node in function.inputs:
            nodes[node] = None
            waiting.append(node.creator_node)
    return [weakref.ref(thing) for thing in (*functions, *nodes)]


def alive(references):
    return sum(reference() is not None for reference in references)


def graph():
    x = variable([1.0, 2.0])
    h = F.exp(x) * F.tanh(x) / (x + 3.0)
    return x, F.sum(F.log(h * h) + h)


# --- ownership -------------------------------------------------------------------------------


def test_strong_edges_lead_from_the_output_to_the_inputs():
    x = variable(1.0)
    y = x * x
    node, function = y.node, y.node.creator_node
    source = x.node
    del x, y
    assert node.creator_node is function and function.inputs == (source, source)


def test_the_edges_forward_are_weak():
    x = variable(1.0)
    y = F.exp(x)
    function, node = y.creator_node, weakref.ref(y.node)
    assert function.outputs[0]() is node()
    del y
    assert function.outputs[0]() is None and node() is None


def test_a_node_does_not_keep_its_variable():
    x = variable(1.0)
    node, probe = x.node, weakref.ref(x)
    del x
    assert probe() is None and node.get_variable_or_none() is None


def test_dropping_the_last_output_frees_the_whole_graph():
    x, y = graph()
    references = probes(y)
    assert alive(references) == len(references) > 15
    leaf = weakref.ref(x.node)
    del y
    assert alive(references) == 1 and leaf() is not None  # x's own node
    del x
    assert alive(references) == 0


@pytest.mark.parametrize("retain_grad", [False, True])
def test_backward_leaves_no_cycle(retain_grad):
    x, y = graph()
    y.backward(retain_grad=retain_grad)
    references = probes(y)
    del y
    assert alive(references) == 1
    del x
    assert alive(references) == 0


def test_double_backprop_leaves_no_cycle():
    x, y = graph()
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    x.cleargrad()
    F.sum(gx).backward(enable_double_backprop=True)
    ggx = x.grad_var
    references = probes(y) + probes(gx) + probes(ggx)
    x.cleargrad()
    del y, gx, ggx
    assert alive(references) == sum(r() is x.node for r in references) > 0
    del x
    assert alive(references) == 0


def test_grad_leaves_no_cycle():
    x, y = graph()
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([gx], [x], enable_double_backprop=True)
    references = probes(y) + probes(gx) + probes(ggx)
    del x, y, gx, ggx
    assert alive(references) == 0


def test_an_error_in_backward_leaves_no_cycle():
    class Fails(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            self.retain_outputs((0,))
            return (inputs[0] * 2,)

        def backward(self, target_input_indexes, grad_outputs):
            self.get_retained_outputs()
            raise RuntimeError("planted")

    x = variable(1.0)
    y = F.exp(Fails().apply((x,))[0])
    references = probes(y)
    with contextlib.suppress(RuntimeError):
        y.backward()
    del x, y
    assert alive(references) == 0


def test_old_style_functions_leave_no_cycle():
    class Double(tn.Function):
        def forward(self, inputs):
            self.retain_outputs((0,))
            return (inputs[0] * 2,)

        def backward(self, inputs, grad_outputs):
            return (grad_outputs[0] * 2,)

    x = variable(1.0)
    function = Double()
    y = function(x)
    y.backward()
    references = [*probes(y), weakref.ref(function)]
    del y, x, function
    assert alive(references) == 0


@pytest.mark.parametrize("how", ["node", "add_hook", "failed call", "call without a graph"])
def test_an_old_style_function_that_is_not_in_a_graph_leaves_no_cycle(how):
    class Double(tn.Function):
        def forward(self, inputs):
            if how == "failed call":
                raise RuntimeError("planted")
            return (inputs[0] * 2,)

    function = Double()
    adapter = weakref.ref(function.node)
    assert adapter() is not None  # the Function owns it until the call
    if how == "add_hook":
        function.add_hook(tn.FunctionHook())
    elif how == "failed call":
        with contextlib.suppress(RuntimeError):
            function(variable(1.0))
    elif how == "call without a graph":
        function(np.ones(1))
    probe = weakref.ref(function)
    del function
    assert probe() is None and adapter() is None


def test_forget_leaves_no_cycle():
    x = variable([1.0, 2.0])
    y = F.sum(tn.forget(lambda v: F.exp(v) * v, x))
    y.backward()
    references = probes(y)
    del x, y
    assert alive(references) == 0


def test_hooks_debug_mode_and_lazy_sums_leave_no_cycle():
    class Hook(tn.FunctionHook):
        pass

    with Hook(), tn.using_config(debug=True, lazy_grad_sum=True):
        x, y = graph()
        y.backward()
        references = probes(y)
        del x, y
    assert alive(references) == 0


def test_writing_leaves_no_cycle():
    x = variable([1.0, 2.0])
    y = x * 2.0
    for i in range(3):
        y[0] = y[1] * float(i)
        y += 1.0
    references = probes(y)
    F.sum(y).backward()
    del x, y
    assert alive(references) == 0


# --- arrays ----------------------------------------------------------------------------------


def test_the_array_of_a_deleted_intermediate_goes_unless_it_was_retained():
    x = variable(np.ones(4))
    dropped = x + 1.0
    kept = x * 1.0
    y = F.sum((dropped + 1.0) + F.log(kept))
    arrays = weakref.ref(dropped.array), weakref.ref(kept.array)
    node = weakref.ref(dropped.node)
    del dropped, kept
    assert arrays[0]() is None and arrays[1]() is not None
    assert node() is not None  # a consumer holds the node
    del y
    assert arrays[1]() is None


def test_a_retained_output_outlives_its_variable_and_goes_with_the_function():
    x = variable(np.ones(4))
    h = F.exp(x)
    array = weakref.ref(h.array)
    y = h + 1.0
    del h
    assert array() is not None
    del y
    assert array() is None


def test_without_a_graph_nothing_is_kept():
    x = variable(np.ones(4))
    with tn.no_backprop_mode():
        h = x * x
        array = weakref.ref(h.array)
        y = h * h
        del h
    assert array() is None and x.node.data is None
    del y


def test_gradients_of_intermediates_go_during_the_sweep():
    """A long chain needs memory for a few gradients, not for one per function."""
    gradients = []

    class Watched(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes, grad_outputs):
            gradients.append(weakref.ref(grad_outputs[0].array))
            assert alive(gradients) <= 3
            return (grad_outputs[0] * 1.0,)

    y = variable(np.ones(4))
    for _ in range(20):
        (y,) = Watched().apply((y,))
    y.grad = np.ones(4)
    y.backward()
    assert len(gradients) == 20


def test_an_error_of_a_sweep_holds_no_gradient_once_it_is_gone():
    seen = []

    class Fails(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 1,)

        def backward(self, target_input_indexes, grad_outputs):
            seen.append(weakref.ref(grad_outputs[0].array))
            raise RuntimeError("planted")

    y = Fails().apply((variable(1.0),))[0] * 2.0
    with contextlib.suppress(RuntimeError):
        y.backward()
    assert seen[0]() is None


def test_unchain_backward_frees_what_is_behind():
    x, h = graph()
    references = probes(h)[1:]
    y = h * 2.0
    h.unchain_backward()
    assert h.creator is None and y.creator is not None
    kept = {x.node, h.node}
    assert all(r() is None or r() in kept for r in references)


# --- depth -----------------------------------------------------------------------------------

DEPTH = 100_000


def chain(x, depth):
    y = x
    for _ in range(depth):
        y = F.identity(y)
    return y


@pytest.mark.slow
def test_a_chain_of_100_000_functions_goes_forward_backward_and_is_freed():
    x = variable(1.0)
    y = chain(x, DEPTH)
    assert y.rank == DEPTH
    probe = weakref.ref(x.node)
    y.backward()
    assert x.grad == 1.0
    (gx,) = tn.grad([y], [x])
    assert gx.array == 1.0
    first = y.creator_node
    del first, y, x, gx
    assert probe() is None


@pytest.mark.slow
def test_a_chain_of_100_000_functions_is_unchained():
    x = variable(1.0)
    y = chain(x, DEPTH)
    probe = weakref.ref(y.creator_node)
    y.unchain_backward()
    assert y.creator is None and probe() is None and y.rank == DEPTH


def test_a_deep_gradient_graph_is_differentiated_and_freed():
    depth = 20_000
    x = variable(1.0)
    y = x
    for _ in range(depth):
        y = y * 1.0
    (gx,) = tn.grad([y * y], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([gx], [x])
    assert gx.array == 2.0 and ggx.array == 2.0
    probe = weakref.ref(gx.creator_node)
    del y, gx, ggx
    assert probe() is None


def test_a_deep_chain_is_freed_in_a_thread_with_a_small_stack():
    done = []

    def work():
        y = chain(variable(1.0), 20_000)
        y.backward()
        del y
        done.append(True)

    # Python 3.13 frees any chain of objects by 10,000 nested calls: plain classes crash too
    kilobytes = 1024 if sys.version_info[:2] == (3, 13) else 256
    before = threading.stack_size(kilobytes * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done == [True]


# --- a training loop -------------------------------------------------------------------------


def test_training_with_the_collector_off_does_not_grow():
    w = tn.Variable(np.full((8, 8), 0.1), name="w")
    b = tn.Variable(np.zeros(8), name="b")
    data = variable(np.linspace(-1, 1, 32).reshape(4, 8), requires_grad=False)
    functions = weakref.WeakSet()

    def step():
        loss = F.sum(F.tanh(F.linear(data, w, b)) ** 2)
        functions.add(loss.creator_node)
        for p in (w, b):
            p.cleargrad()
        loss.backward()
        for p in (w, b):
            p.array = p.array - 0.01 * p.grad

    for _ in range(20):
        step()
    before = len(gc.get_objects())
    tracemalloc.start()
    for _ in range(200):
        step()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(functions) == 0
    assert len(gc.get_objects()) - before < 20
    assert grown < 200_000  # bytes; what is left is in Python's own free lists
    assert gc.collect() == 0  # there was no cycle
