"""NVTXHook and CUDAMemoryHook, on a backend that writes down what it is told. No GPU is used."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tinynode as tn
import tinynode_numpy
from tinynode import functions
from tinynode.core.hooks import thread_state
from tinynode.devices import Device
from tinynode.errors import DeviceError
from tinynode.hooks import CUDAMemoryHook, NVTXHook


@pytest.fixture(autouse=True)
def nothing_is_left_watching() -> Iterator[None]:
    yield
    assert not thread_state.hooks


class Pretend(ModuleType):
    """NumPy's backend with profiler ranges and a memory pool, both made up."""

    def __init__(self) -> None:
        super().__init__("pretend")
        vars(self).update(vars(tinynode_numpy), name="pretend")
        self.open: list[str] = []
        self.lines: list[str] = []
        self.used, self.reserved = 100, 1000
        self.range_push, self.range_pop = self._push, self._pop
        self.memory_used = lambda index: self.used
        self.memory_reserved = lambda index: self.reserved

    def _push(self, text: str) -> None:
        self.lines.append("  " * len(self.open) + text)
        self.open.append(text)

    def _pop(self) -> None:
        self.open.pop()

    def device(self) -> Device:
        return Device(self, "0", "pretend")


class Takes(tn.FunctionNode):
    """y = x; changes the pool in forward and in backward; may run another in forward, or raise."""

    def __init__(self, pool: Pretend, used: int, reserved: int, inner: Any = None) -> None:
        self.pool, self.used, self.reserved, self.inner = pool, used, reserved, inner

    @property
    def _impl_name(self) -> str:
        return f"Takes{self.used}"

    def take(self) -> None:
        self.pool.used += self.used
        self.pool.reserved += self.reserved

    def forward(self, inputs: Any) -> Any:
        self.take()
        if self.inner is not None:
            self.inner.apply(inputs)
        if self.used < 0:
            raise ZeroDivisionError
        return inputs

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        self.take()
        return grad_outputs


class Catches(tn.FunctionNode):
    """y = x; a function that it applies in its forward raises."""

    def __init__(self, pool: Pretend) -> None:
        self.pool = pool

    def forward(self, inputs: Any) -> Any:
        self.pool.used += 1
        with pytest.raises(ZeroDivisionError):
            Takes(self.pool, -7, 0).apply(inputs)
        return inputs


def sweep(y: tn.Variable) -> None:
    tn.backward([y], [tn.Variable(np.ones_like(y.array))])


def variable() -> tn.Variable:
    return tn.Variable(np.array([1.0, 2.0]))


def test_nvtx_ranges_have_names_and_nest_as_functions_do() -> None:
    backend = Pretend()
    x = variable()
    with NVTXHook(backend.device()):
        sweep(functions.sin(x))
    assert backend.lines == [
        "Sin.forward",
        "Sin.backward",
        "  Cos.forward",
        "  Multiply.forward",
    ]
    assert backend.open == []


def test_nvtx_ranges_of_one_function() -> None:
    backend = Pretend()
    node = Takes(backend, 1, 0)
    node.add_hook(NVTXHook(backend.device()))
    sweep(node.apply((variable(),))[0])
    assert backend.lines == ["Takes1.forward", "Takes1.backward"] and backend.open == []


def test_nvtx_ranges_are_closed_after_an_error() -> None:
    backend = Pretend()
    with NVTXHook(backend.device()):
        with pytest.raises(ZeroDivisionError):
            Takes(backend, 5, 0, Takes(backend, -7, 0)).apply((variable(),))
        assert backend.open == []
        functions.sin(variable())
        assert backend.open == []
    assert backend.lines == ["Takes5.forward", "  Takes-7.forward", "Sin.forward"]


def test_nvtx_ranges_that_are_open_are_closed_when_the_hook_goes() -> None:
    backend = Pretend()
    hook = NVTXHook(backend.device())

    class Leaves(tn.FunctionNode):
        """Leaves the hook's block before its own forward has ended."""

        def forward(self, inputs: Any) -> Any:
            assert backend.open == ["Leaves.forward"]
            hook.__exit__(None, None, None)
            return inputs

    with contextlib.ExitStack() as stack:
        stack.enter_context(hook)
        Leaves().apply((variable(),))
        stack.pop_all()
    assert backend.open == [] and hook._running == {}


class Fails(Takes):
    """Its backward raises."""

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        raise ZeroDivisionError


def test_nvtx_ranges_do_not_nest_under_those_of_functions_that_raised() -> None:
    class Quiet(NVTXHook):
        def forward_preprocess(self, function: Any, in_data: Any) -> None:
            super().forward_preprocess(function, in_data)

    backend = Pretend()
    with Quiet(backend.device()) as hook:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                Takes(backend, -7, 0).apply((variable(),))
            assert len(backend.open) == sum(map(len, hook._running.values())) == 0
        y = Fails(backend, 1, 0, Takes(backend, 2, 0)).apply((variable(),))[0]
        with pytest.raises(ZeroDivisionError):
            sweep(y)
        functions.sin(variable())
        assert backend.open == []
    assert backend.lines == [
        *["Takes-7.forward"] * 3,
        "Takes1.forward",
        "  Takes2.forward",
        "Takes1.backward",
        "Sin.forward",
    ]


def test_nvtx_a_function_after_one_that_raised_stands_beside_it() -> None:
    class Retries(Catches):
        def forward(self, inputs: Any) -> Any:
            super().forward(inputs)
            functions.sin(inputs[0])
            return inputs

    backend = Pretend()
    with NVTXHook(backend.device()):
        Retries(backend).apply((variable(),))
    assert backend.lines == ["Retries.forward", "  Takes-7.forward", "  Sin.forward"]


def test_nvtx_an_error_caught_inside_a_function_closes_with_it() -> None:
    backend = Pretend()
    with NVTXHook(backend.device()):
        Catches(backend).apply((variable(),))
        assert backend.open == []
        functions.sin(variable())
    assert backend.lines == ["Catches.forward", "  Takes-7.forward", "Sin.forward"]


def test_nvtx_hook_added_in_the_middle_of_a_function_pops_nothing() -> None:
    backend = Pretend()
    hook = NVTXHook(backend.device())

    class Adds(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            hook.forward_postprocess(self, inputs)
            return inputs

    with hook:
        node = Adds()
        hook.forward_postprocess(node, ())
        node.backward((0,), (None,))
        hook.backward_postprocess(node, (), ())
    assert backend.lines == [] and backend.open == []


@pytest.mark.parametrize("hook", [NVTXHook, CUDAMemoryHook])
def test_a_device_without_a_profiler_or_pool_is_refused_with_the_cure(hook: Any) -> None:
    with pytest.raises(DeviceError, match=f"{hook.__name__}: device numpy has no"):
        hook()
    with pytest.raises(DeviceError, match="there is no backend 'nowhere'"):
        hook("nowhere")


def test_the_current_device_is_asked() -> None:
    backend = Pretend()
    with tn.using_device(backend.device()):
        hook = NVTXHook()
        memory = CUDAMemoryHook()
    with hook, memory:
        functions.sin(variable())
    assert backend.lines == ["Sin.forward"] and len(memory.calls) == 1


def test_memory_of_calls_and_of_those_inside_them() -> None:
    backend = Pretend()
    with CUDAMemoryHook(backend.device()) as memory:
        y = Takes(backend, 30, 500, Takes(backend, 7, 64)).apply((variable(),))[0]
        backend.used -= 10  # between the functions: nobody's
        sweep(y)
    assert memory.call_history == [
        ("Takes7", 7, 64),
        ("Takes30", 30, 500),
        ("Takes30", 30, 500),
    ]
    assert [call.direction for call in memory.calls][-1] == "backward"
    assert memory.total_used_bytes() == 67 and memory.total_acquired_bytes() == 1064
    assert memory.peak_bytes() == 157
    assert memory.summary()["Takes30"] == {
        "used_bytes": 60,
        "acquired_bytes": 1000,
        "occurrence": 2,
    }


def test_memory_after_an_error_counts_what_ends() -> None:
    backend = Pretend()
    with CUDAMemoryHook(backend.device()) as memory:
        with pytest.raises(ZeroDivisionError):
            Takes(backend, -7, 0).apply((variable(),))
        Takes(backend, 4, 0).apply((variable(),))
    assert memory.call_history == [("Takes4", 4, 0)]
    with CUDAMemoryHook(backend.device()) as other:
        Catches(backend).apply((variable(),))
    assert other.call_history == [("Catches", -6, 0)]
    with memory:
        Takes(backend, 5, 0).apply((variable(),))
    assert memory.call_history == [("Takes4", 4, 0), ("Takes5", 5, 0)]


def test_memory_of_a_function_that_raised_is_forgotten() -> None:
    class Retries(Catches):
        def forward(self, inputs: Any) -> Any:
            super().forward(inputs)
            Takes(self.pool, 20, 0).apply(inputs)
            return inputs

    backend = Pretend()
    with CUDAMemoryHook(backend.device()) as memory:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                Takes(backend, -7, 0).apply((variable(),))
            assert [len(calls) for calls in memory._running.values()] == [0]
        Retries(backend).apply((variable(),))
        assert [len(calls) for calls in memory._running.values()] == [0]
    assert memory.call_history == [("Takes20", 20, 0), ("Retries", -6, 0)]


def test_memory_of_a_call_inside_one_that_raised_counts_once() -> None:
    class RaisesLate(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            Takes(backend, 20, 64).apply(inputs)
            raise ZeroDivisionError

    class Caught(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            with pytest.raises(ZeroDivisionError):
                RaisesLate().apply(inputs)
            return inputs

    backend = Pretend()
    with CUDAMemoryHook(backend.device()) as memory:
        Caught().apply((variable(),))
    assert memory.call_history == [("Takes20", 20, 64), ("Caught", 0, 0)]
    assert memory.total_used_bytes() == 20 and memory.total_acquired_bytes() == 64


def test_memory_report() -> None:
    backend = Pretend()
    with CUDAMemoryHook(backend.device()) as memory:
        Takes(backend, 2048, 4096).apply((variable(),))
        Takes(backend, 3, 0).apply((variable(),))
    text = io.StringIO()
    memory.print_report(file=text)
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert lines[0] == ["function", "used", "acquired", "calls"]
    assert lines[2:] == [
        ["Takes2048", "2.00", "KiB", "4.00", "KiB", "1"],
        ["Takes3", "0.00", "KiB", "0.00", "KiB", "1"],
        ["total", "2.00", "KiB", "4.00", "KiB", "2"],
        ["at", "one", "time", "2.10", "KiB"],
    ]
    memory.print_report("B", text)
    assert "2051 B" in text.getvalue()
    with pytest.raises(ValueError, match="no unit 'kB'"):
        memory.print_report("kB")
