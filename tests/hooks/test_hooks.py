"""The hooks of tinynode.hooks: what they measure, print and find, also when functions raise."""

from __future__ import annotations

import gc
import inspect
import io
import itertools
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinynode as tn
import tinynode_numpy
from tinynode import functions
from tinynode.core.hooks import thread_state
from tinynode.errors import NaNError
from tinynode.hooks import MemoryHook, NaNHook, PrintHook, ResultHook, TimerHook
from tinynode.hooks.memory import number_of_bytes

Arrays = tuple[Any, ...]


@pytest.fixture(autouse=True)
def nothing_is_left_watching() -> Iterator[None]:
    yield
    assert not thread_state.hooks


def variable(*values: float, **options: Any) -> tn.Variable:
    return tn.Variable(np.array(values), **options)


class Failing(tn.FunctionNode):
    """Raises in forward."""

    def forward(self, inputs: Arrays) -> Arrays:
        raise ZeroDivisionError


class FailingBackward(tn.FunctionNode):
    """y = x; runs another function in its backward, and raises."""

    def forward(self, inputs: Arrays) -> Arrays:
        return inputs

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        functions.sin(grad_outputs[0])
        raise ZeroDivisionError


class Outer(tn.FunctionNode):
    """y = sin(cos(x)): applies two functions in its forward; one in between may fail."""

    def __init__(self, fails_inside: bool = False) -> None:
        self.fails_inside = fails_inside

    def forward(self, inputs: Arrays) -> Arrays:
        inner = functions.cos(tn.Variable(inputs[0]))
        if self.fails_inside:
            with pytest.raises(ZeroDivisionError):
                Failing().apply((inner,))
        return (functions.sin(inner).array,)


class NaNBackward(tn.FunctionNode):
    """y = x, with a gradient that is NaN for the first input."""

    def forward(self, inputs: Arrays) -> Arrays:
        return (inputs[0] + inputs[1],)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (gy,) = grad_outputs
        return gy * float("nan"), gy


# --- TimerHook -----------------------------------------------------------------------------------


class Clock:
    """Every look at it comes one second after the last."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("tinynode.hooks.timer.time", clock)
    return clock


def test_timer_lists_forward_and_backward_in_order_of_completion(clock: Clock) -> None:
    x = variable(1.0)
    with TimerHook() as timer:
        functions.sigmoid(x).backward()
    assert timer.call_history == [
        ("Sigmoid", 1.0),
        ("SigmoidGrad", 1.0),  # inside the backward of Sigmoid
        ("Sigmoid", 3.0),  # a call of 1 s, and 2 pauses of 1 s around it
    ]


def test_timer_total_counts_nested_calls_once(clock: Clock) -> None:
    with TimerHook() as timer:
        Outer().apply((variable(1.0),))
        functions.exp(variable(1.0))
    assert timer.call_history == [("Cos", 1.0), ("Sin", 1.0), ("Outer", 5.0), ("Exp", 1.0)]
    assert timer.total_time() == 6.0
    assert sum(row["time"] for row in timer.summary().values()) == 8.0
    assert sum(row["own_time"] for row in timer.summary().values()) == 6.0


def test_timer_counts_no_time_outside_of_functions(clock: Clock) -> None:
    with TimerHook() as timer:
        functions.exp(variable(1.0))
        clock.now += 100.0
        functions.exp(variable(1.0))
    clock.now += 100.0
    functions.exp(variable(1.0))
    assert timer.total_time() == 2.0


def test_timer_summary(clock: Clock) -> None:
    x, z = variable(1.0), tn.Variable(np.ones(1, np.float32))
    with TimerHook() as timer:
        functions.sigmoid(x).backward()
        functions.sigmoid(z)
    summary = timer.summary()
    assert list(summary) == ["Sigmoid", "SigmoidGrad"]
    assert summary["Sigmoid"] == {
        "time": 5.0,
        "own_time": 4.0,
        "occurrence": 3,
        "forward_time": 2.0,
        "backward_time": 3.0,
        "dtypes": ["float32", "float64"],
    }
    assert summary["SigmoidGrad"]["occurrence"] == 1
    assert summary["SigmoidGrad"]["dtypes"] == ["float64"]


def test_timer_survives_a_forward_that_raises(clock: Clock) -> None:
    with TimerHook() as timer:
        with pytest.raises(ZeroDivisionError):
            Failing().apply((variable(1.0),))
        functions.exp(variable(1.0))
        Outer().apply((variable(1.0),))
    assert [name for name, _ in timer.call_history] == ["Exp", "Cos", "Sin", "Outer"]
    assert timer.total_time() == 6.0


def test_timer_survives_a_backward_that_raises(clock: Clock) -> None:
    y = FailingBackward().apply((variable(1.0),))[0]
    with TimerHook() as timer:
        with pytest.raises(ZeroDivisionError):
            y.backward()
        functions.exp(variable(1.0))
    assert timer.call_history == [("Sin", 1.0), ("Exp", 1.0)]
    assert timer.total_time() == 2.0  # time was spent in Sin, though its caller did not finish
    with timer:
        functions.exp(variable(1.0))
    assert timer.total_time() == 3.0


def test_timer_survives_a_call_that_raises_inside_another(clock: Clock) -> None:
    with TimerHook() as timer:
        Outer(fails_inside=True).apply((variable(1.0),))
    assert [name for name, _ in timer.call_history] == ["Cos", "Sin", "Outer"]
    assert timer.total_time() == dict(timer.call_history)["Outer"]
    # what ran after the one that raised was inside Outer, not inside that one
    assert sum(row["own_time"] for row in timer.summary().values()) == timer.total_time()


def test_timer_own_time_leaves_out_the_calls_inside_a_call_that_raised(clock: Clock) -> None:
    class Catches(tn.FunctionNode):
        """y = x; a function inside applies Cos and then raises."""

        def forward(self, inputs: Arrays) -> Arrays:
            with pytest.raises(ZeroDivisionError):
                RaisesLate().apply(inputs)
            return inputs

    class RaisesLate(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            functions.cos(tn.Variable(inputs[0]))
            raise ZeroDivisionError

    with TimerHook() as timer:
        Catches().apply((variable(1.0),))
    assert timer.call_history == [("Cos", 1.0), ("Catches", 4.0)]
    assert timer.total_time() == 4.0
    assert timer.summary()["Catches"]["own_time"] == 3.0


def test_timer_forgets_calls_that_raised(clock: Clock) -> None:
    with TimerHook() as timer:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                Failing().apply((variable(1.0),))
            assert [len(calls) for calls in timer._running.values()] == [0]
        functions.exp(variable(1.0))
        assert [len(calls) for calls in timer._running.values()] == [0]
    assert timer._running == {} and timer.call_history == [("Exp", 1.0)]


def test_timer_that_is_left_inside_a_function_ignores_its_end() -> None:
    timer = TimerHook()

    class Leaving(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            timer.__exit__(None, None, None)
            return inputs

    timer.__enter__()
    Leaving().apply((variable(1.0),))
    assert timer.call_history == []


def test_timer_of_a_function_without_inputs_and_of_an_output_without_gradient() -> None:
    class Constant(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            return (np.ones(2),)

    with TimerHook() as timer:
        Constant().apply(())
        functions.split(variable(1.0, 2.0), 2)[1].backward()
    names = [name for name, _ in timer.call_history]
    assert names[0] == "Constant" and names[-1] == "Split"


def test_timer_of_one_function() -> None:
    timer, f = TimerHook(), functions.Exp()
    f.add_hook(timer)
    (y,) = f.apply((variable(1.0),))
    functions.sin(y).backward()
    assert [name for name, _ in timer.call_history] == ["Exp", "Exp"]
    f.delete_hook("TimerHook")
    functions.sin(y).backward()
    assert len(timer.call_history) == 2


def test_timer_keeps_threads_apart(clock: Clock) -> None:
    """A function that runs in another thread meanwhile is not inside this one."""
    timer, inner = TimerHook(), functions.Exp()
    inner.add_hook(timer)

    class Waiting(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            thread = threading.Thread(target=inner.apply, args=(inputs,))
            thread.start()
            thread.join()
            return inputs

    with timer:
        Waiting().apply((variable(1.0),))
    assert timer.call_history == [("Exp", 1.0), ("Waiting", 3.0)]
    assert timer.total_time() == 4.0


def test_timer_waits_for_the_device_before_it_reads_the_clock(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    waits = []

    def synchronize(index: str) -> None:
        waits.append((index, clock.now))

    monkeypatch.setattr(tinynode_numpy, "synchronize", synchronize)
    with TimerHook():
        functions.exp(variable(1.0))
    assert waits == [("cpu", 0.0), ("cpu", 1.0)]


def test_timer_waits_for_the_device_of_the_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    monkeypatch.setattr(tinynode_numpy, "synchronize", waits.append)
    x = tn.asarray([1.0], device="strict:device1")
    with TimerHook():
        x.to_device("numpy")
    assert waits == ["cpu", "cpu"]


def report_of(hook: Any, unit: str = "auto") -> list[list[str]]:
    """The cells of a report's lines, by the widths of the columns; checks that they line up."""
    file = io.StringIO()
    hook.print_report(unit, file)
    lines = file.getvalue().splitlines()
    columns = [match.span() for match in re.finditer("-+", lines[1])]
    for line in lines:
        gaps = "".join(line[a:b] for (_, a), (b, _) in itertools.pairwise(columns))
        assert gaps.strip() == ""
    return [[line[a:b].strip() for a, b in columns] for line in lines[:1] + lines[2:]]


def test_timer_report(clock: Clock) -> None:
    with TimerHook() as timer:
        functions.sigmoid(variable(1.0)).backward()
    assert report_of(timer) == [
        ["function", "time", "own time", "calls", "forward", "backward", "dtype"],
        ["Sigmoid", "4.00 s", "3.00 s", "2", "1.00 s", "3.00 s", "float64"],
        ["SigmoidGrad", "1.00 s", "1.00 s", "1", "1.00 s", "0.00 s", "float64"],
        ["total", "4.00 s", "", "3", "", "", ""],
    ]


def test_timer_report_as_text(clock: Clock) -> None:
    file = io.StringIO()
    with TimerHook() as timer:
        variable(1.0) ** 3  # its label is PowConstant(3); the table is by class
        for _ in range(10):
            functions.exp(variable(1.0))
    timer.print_report(file=file)
    assert file.getvalue() == (
        "function        time  own time  calls  forward  backward  dtype\n"
        "-----------  -------  --------  -----  -------  --------  -------\n"
        "Exp          10.00 s   10.00 s     10  10.00 s    0.00 s  float64\n"
        "PowConstant   1.00 s    1.00 s      1   1.00 s    0.00 s  float64\n"
        "total        11.00 s               11\n"
    )


@pytest.mark.parametrize(
    ("unit", "time", "backward"),
    [
        ("auto", "8.00 ms", "0.00 ms"),
        ("auto_foreach", "8.00 ms", "0.00 ns"),
        ("s", "0.01 s", "0.00 s"),
        ("ms", "8.00 ms", "0.00 ms"),
        ("us", "8000.00 us", "0.00 us"),
        ("ns", "8000000.00 ns", "0.00 ns"),
    ],
)
def test_timer_units(clock: Clock, unit: str, time: str, backward: str) -> None:
    with TimerHook() as timer:
        functions.exp(variable(1.0))
    timer.finished[0].seconds = 0.008
    assert report_of(timer, unit)[1][:6] == ["Exp", time, time, "1", time, backward]


def test_timer_refuses_an_unknown_unit() -> None:
    with pytest.raises(ValueError, match="no unit 'h'; there are: auto, auto_foreach, ns, us"):
        TimerHook().print_report("h")


def test_reports_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    TimerHook().print_report()
    MemoryHook().print_report()
    assert capsys.readouterr().out.count("total") == 2


# --- PrintHook -----------------------------------------------------------------------------------


def printed(**options: Any) -> tuple[PrintHook, io.StringIO]:
    file = io.StringIO()
    return PrintHook(file=file, **options), file


def test_print_hook_in_forward() -> None:
    hook, file = printed()
    with hook:
        functions.multiply(variable(1.0, 2.0), tn.Variable(np.array(3, np.int64)))
    assert file.getvalue().splitlines() == [
        "function\tMultiply",
        "input data",
        "(2,)\tfloat64\t[1., 2.]",
        "()\tint64\t3",
    ]


def test_print_hook_in_backward() -> None:
    x = variable(1.0, 2.0)
    parts = functions.split(x, 2)
    y = functions.reshape(parts[1], ())
    del parts
    hook, file = printed()
    for function in (y.creator_node, y.creator_node.inputs[0].creator_node):
        function.add_hook(hook)
    y.backward()
    assert file.getvalue().splitlines() == [
        "function\tReshape",
        "input data",
        "(removed)",
        "output gradient",
        "()\tfloat64\t1.",
        "function\tSplit",
        "input data",
        "(removed)",
        "output gradient",
        "(none)",
        "(1,)\tfloat64\t[1.]",
    ]


def test_print_hook_separators() -> None:
    hook, file = printed(sep=" | ", end=";")
    with hook:
        functions.exp(variable(1.0))
    assert file.getvalue() == "function | Exp;input data;(1,) | float64 | [1.];"


def test_print_hook_shows_few_values_on_one_line() -> None:
    hook, file = printed()
    with hook:
        functions.exp(tn.Variable(np.zeros((100, 100))))
    lines = file.getvalue().splitlines()
    assert len(lines) == 3 and len(lines[2]) < 100 and "..." in lines[2]
    file.truncate(0)
    with hook:
        functions.sin(tn.Variable(np.arange(100.0)))
    assert file.getvalue().splitlines()[-1].endswith("float64\t[0., 1., ..., 98., 99.]")


@pytest.mark.parametrize("flush", [True, False])
def test_print_hook_flushes(flush: bool) -> None:
    class File(io.StringIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    file = File()
    with PrintHook(file=file, flush=flush):
        functions.exp(variable(1.0))
    assert (file.flushes > 0) == flush


def test_print_hook_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with PrintHook():
        functions.exp(tn.asarray([0.5], device="strict:device1"))
    assert capsys.readouterr().out == "function\tExp\ninput data\n(1,)\tfloat32\t[0.5]\n"


# --- MemoryHook ----------------------------------------------------------------------------------


def test_memory_by_call_and_by_label() -> None:
    x, y = variable(1.0, 2.0, 3.0), tn.Variable(np.array(2.0))
    with MemoryHook() as memory:
        a = functions.multiply(x, y)  # retains x and y: 24 + 8 bytes
        b = functions.exp(a)  # retains its output: 24
        c = functions.exp(b)  # 24
        d = functions.add(c, x)  # nothing
    assert memory.call_history == [("Multiply", 32), ("Exp", 24), ("Exp", 24), ("Add", 0)]
    assert memory.summary()["Exp"] == {"bytes": 48, "shared_bytes": 0, "occurrence": 2}
    assert memory.total_bytes() == memory.peak_bytes() == memory.current_bytes() == 80
    assert d.shape == (3,)


def test_memory_counts_a_shared_array_once() -> None:
    x = variable(1.0, 2.0)
    with MemoryHook() as memory:
        y = functions.multiply(x, x)  # one array at two positions
        z = functions.sin(x)  # the same array once more
        w = functions.multiply(z, x)
    assert memory.call_history == [("Multiply", 16), ("Sin", 0), ("Multiply", 16)]
    assert memory.summary()["Multiply"] == {"bytes": 32, "shared_bytes": 16, "occurrence": 2}
    assert memory.summary()["Sin"]["shared_bytes"] == 16
    assert memory.current_bytes() == 32
    del y
    assert memory.current_bytes() == 32  # Sin and the second Multiply still hold x
    del w, z
    assert memory.current_bytes() == 0


def test_memory_of_a_freed_graph() -> None:
    """Peak and total stay, what is held now goes down at once: no collector is needed."""
    x = variable(1.0)
    gc.disable()
    try:
        with MemoryHook() as memory:
            for _ in range(3):
                y = functions.exp(functions.exp(x))
                y.backward()
                assert memory.current_bytes() >= 16
                del y
                assert memory.current_bytes() == 0
    finally:
        gc.enable()
    assert memory.summary()["Exp"]["bytes"] == 48
    assert memory.peak_bytes() == 16
    assert memory.current_bytes() == 0


def test_memory_peak_is_the_most_at_one_time() -> None:
    with MemoryHook() as memory:
        functions.exp(tn.Variable(np.ones(100)))
        y = functions.exp(tn.Variable(np.ones(10)))
    assert (memory.peak_bytes(), memory.current_bytes(), memory.total_bytes()) == (800, 80, 880)
    assert y.shape == (10,)


def test_memory_of_a_deep_graph_is_released_without_recursion() -> None:
    y = variable(1.0)
    with MemoryHook() as memory:
        for _ in range(20_000):
            y = functions.sin(y)
    assert memory.current_bytes() == 160_000
    del y
    assert memory.current_bytes() == 0


def test_memory_without_a_graph_is_none() -> None:
    with MemoryHook() as memory, tn.no_backprop_mode():
        functions.exp(variable(1.0))
    assert memory.call_history == [("Exp", 0)]
    assert memory.current_bytes() == 0


def test_memory_of_one_function() -> None:
    memory, f = MemoryHook(), functions.Exp()
    f.add_hook(memory)
    (y,) = f.apply((variable(1.0, 2.0),))
    functions.sum(functions.exp(y)).backward()
    assert memory.call_history == [("Exp", 16)]


def test_memory_is_asked_of_the_right_function() -> None:
    """Debug mode raises after the hook's callback, before the graph is connected."""
    x = variable(-1.0)
    with tn.using_config(debug=True), MemoryHook() as memory:
        with np.errstate(all="ignore"), pytest.raises(NaNError):
            functions.log(x)
        functions.exp(x)
        functions.exp(x)
    assert memory.call_history == [("Exp", 8), ("Exp", 8)]


def test_memory_hook_that_awaits_a_result_leaves_no_trace() -> None:
    memory = MemoryHook()
    with (
        tn.using_config(debug=True),
        np.errstate(all="ignore"),
        pytest.raises(NaNError),
        memory,
    ):
        functions.log(variable(-1.0))
    assert memory.calls == []


def test_memory_of_a_local_hook_ignores_other_functions() -> None:
    memory, f = MemoryHook(), functions.Log()
    f.add_hook(memory)
    with tn.using_config(debug=True), np.errstate(all="ignore"), pytest.raises(NaNError):
        f.apply((variable(-1.0),))
    functions.exp(variable(1.0))
    assert memory.calls == []


def test_memory_report() -> None:
    x = tn.Variable(np.ones(1024))
    with MemoryHook() as memory:
        y = functions.exp(functions.sin(x))
        z = functions.cos(x)
    assert report_of(memory) == [
        ["function", "retained", "shared", "calls"],
        ["Sin", "8.00 KiB", "0.00 KiB", "1"],
        ["Exp", "8.00 KiB", "0.00 KiB", "1"],
        ["Cos", "0.00 KiB", "8.00 KiB", "1"],
        ["total", "16.00 KiB", "", "3"],
        ["at one time", "16.00 KiB", "", ""],
        ["now", "16.00 KiB", "", ""],
    ]
    del y, z
    assert report_of(memory, "B")[-3:] == [
        ["total", "16384 B", "", "3"],
        ["at one time", "16384 B", "", ""],
        ["now", "0 B", "", ""],
    ]
    with pytest.raises(ValueError, match="no unit 'KB'; there are: auto, B, KiB, MiB, GiB"):
        memory.print_report("KB")


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128"]
)
def test_number_of_bytes(dtype: str) -> None:
    array = np.zeros((2, 3), dtype)
    assert number_of_bytes(array) == array.nbytes
    if dtype != "float16":
        strict = tn.get_device("strict").from_host(array)
        assert number_of_bytes(strict) == array.nbytes


# --- NaNHook -------------------------------------------------------------------------------------


def here(offset: int = 0) -> str:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno + offset}. "


def test_nan_in_forward() -> None:
    x = variable(1.0, -1.0)
    with np.errstate(all="ignore"), NaNHook(), pytest.raises(NaNError) as info:
        y = functions.exp(x)
        line = here(1)
        z = functions.log(x)
        functions.add(y, z)
    message = str(info.value)
    assert message.startswith("Log is the first function with a NaN: in forward, output 0 ")
    assert "shape (2,), float64" in message
    assert line in message
    assert message.endswith("Its inputs hold none: look at their values there.")


def test_nan_that_came_in_with_the_data() -> None:
    with NaNHook(), pytest.raises(NaNError, match="Its input 1 held a NaN already"):
        functions.multiply(variable(1.0), variable(float("nan")))


def test_nan_in_backward_names_the_gradient_and_the_forward_line() -> None:
    x, y = variable(1.0), variable(2.0)
    with NaNHook(), pytest.raises(NaNError) as info:
        line = here(1)
        z = NaNBackward().apply((x, y))[0]
        functions.exp(z).backward()
    message = str(info.value)
    assert message.startswith("NaNBackward is the first function with a NaN: in backward, ")
    assert "the gradient of input 0 (" in message
    assert line in message
    assert x.grad is None and y.grad is None


def test_nan_in_backward_counts_all_inputs() -> None:
    class Second(NaNBackward):
        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return super().backward(target_input_indexes, grad_outputs)[::-1]

    x, y = variable(1.0, requires_grad=False), variable(2.0)
    with NaNHook(), pytest.raises(NaNError, match="the gradient of input 1 "):
        Second().apply((x, y))[0].backward()


def test_nan_hook_looks_only_at_gradients_that_are_asked_for() -> None:
    x, y = variable(1.0, requires_grad=False), variable(2.0)
    with NaNHook():
        NaNBackward().apply((x, y))[0].backward()
    assert y.grad == 1.0


def test_nan_that_backward_started_from() -> None:
    y = functions.exp(variable(1.0))
    y.grad = np.array([np.nan])
    with (
        NaNHook(),
        pytest.raises(NaNError, match=r"the gradient of output 0 .* came in with"),
    ):
        y.backward()


def test_nan_that_two_contributions_add_up_to() -> None:
    x = variable(1.0)
    h = functions.identity(x)
    y = functions.concat([h * float("inf"), h * float("-inf")])
    y.grad = np.ones(2)
    with np.errstate(all="ignore"), NaNHook(), pytest.raises(NaNError) as info:
        y.backward()
    assert "Identity is the first function with a NaN: in backward, the gradient of output 0" in (
        str(info.value)
    )


def test_nan_inside_a_backward_that_masks_it() -> None:
    class Masked(tn.FunctionNode):
        def forward(self, inputs: Arrays) -> Arrays:
            return inputs

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (gy,) = grad_outputs
            return (functions.where(np.array([True]), gy, gy * float("nan")),)

    x = variable(1.0)
    with NaNHook():
        Masked().apply((x,))[0].backward()
    assert x.grad == 1.0


def test_nan_in_forward_after_a_backward_that_raised() -> None:
    """That the backward never came to its end does not make the hook blind."""
    y = FailingBackward().apply((variable(1.0),))[0]
    with np.errstate(all="ignore"), NaNHook():
        with pytest.raises(ZeroDivisionError):
            y.backward()
        with pytest.raises(NaNError, match="Log is the first"):
            functions.log(variable(-1.0))


def test_nan_in_double_backprop() -> None:
    x = variable(0.0)
    with np.errstate(all="ignore"), NaNHook():
        y = x**1.5
        y.backward(enable_double_backprop=True)
        gx = x.grad_var
        assert gx is not None
        x.cleargrad()
        gx.backward(enable_double_backprop=True)  # 0.75 / sqrt(0): infinite, no NaN
        assert x.grad == np.inf


def test_nan_hook_of_one_function() -> None:
    hook, x = NaNHook(), variable(-1.0)
    watched, other = functions.Log(), functions.Log()
    watched.add_hook(hook)
    with np.errstate(all="ignore"):
        other.apply((x,))
        with pytest.raises(NaNError, match="Log is the first function with a NaN: in forward"):
            watched.apply((x,))
    f = NaNBackward()
    f.add_hook(hook)
    with pytest.raises(NaNError, match=r"NaNBackward .* in backward"):
        f.apply((x, x))[0].backward()


def test_nan_hook_of_one_function_ignores_others_after_an_error() -> None:
    class Raising(tn.FunctionHook):
        name = "Raising"

        def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
            raise ZeroDivisionError

    hook, f = NaNHook(), functions.Identity()
    f.add_hook(hook)
    f.add_hook(Raising())
    (y,) = f.apply((variable(1.0),))
    z = functions.identity(variable(1.0))
    with pytest.raises(ZeroDivisionError):
        y.backward()
    z.grad = np.array([np.nan])
    z.backward()


def test_nan_hook_in_debug_mode_keeps_the_stack_that_is_there() -> None:
    with tn.using_config(debug=True), NaNHook():
        y = functions.exp(variable(1.0))
    assert y.creator_node.stack[-1].filename == __file__


def test_nan_hook_after_the_forward_says_that_it_does_not_know_the_line() -> None:
    y = NaNBackward().apply((variable(1.0), variable(1.0)))[0]
    with NaNHook(), pytest.raises(NaNError, match="called at an unknown line"):
        y.backward()


def test_nan_hook_passes_what_is_right() -> None:
    x = tn.Variable(np.array([1, 2]))
    y = variable(1.0, 2.0)
    with NaNHook():
        z = functions.sum(functions.multiply(x, y))
        z.backward()
    assert y.grad is not None and y.grad.tolist() == [1.0, 2.0]


def test_the_result_hook_of_version_0_1_still_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="Old: derive from tinynode.FunctionHook"):

        class Old(ResultHook):
            def after_forward(self, function: Any, inputs: Any, outputs: Any) -> None:
                labels.append(function.label)

    labels: list[str] = []
    with Old():
        functions.exp(variable(1.0))
    assert labels == ["Exp"]


def test_hooks_work_side_by_side_and_after_an_error() -> None:
    timer, memory, nan = TimerHook(), MemoryHook(), NaNHook()
    with timer, nan, memory:
        with np.errstate(all="ignore"), pytest.raises(NaNError):
            functions.log(variable(-1.0))
        y = functions.exp(variable(1.0))
        y.backward()
    assert [name for name, _ in timer.call_history] == ["Log", "Exp", "Multiply", "Exp"]
    assert [label for label, _ in memory.call_history][-2:] == ["Exp", "Multiply"]
