"""The required part of a backend module, and the optional parts.

Requirement: adding an array library takes a small module, and this page lists everything for the
author. ``Backend`` has the required members. Each further protocol is an optional part;
``supports(backend, Planner)`` is True if a backend has all members of the part ``Planner``.

| optional part | members | who asks for it |
|---|---|---|
| ``Overlay`` | ``base`` | devices: arrays without an explicit device belong to the base |
| ``Versioned`` | ``version`` | ``python -m tinynode backends`` |
| ``CurrentDevice`` | ``on_device`` | ``using_device`` and the backward pass |
| ``Scatter`` | ``add_at`` | gradients of indexing |
| ``FunctionalWrites`` | ``put`` | functions that fill an array piece by piece |
| ``Planner`` | ``make_plan`` | nets: how a compiled net runs |
| ``NetCompiler`` | ``compiler_status`` | says which compiler of the system compiles nets |
| ``OptimizerUpdate`` | ``update_parameters`` | optimizers: one update of all parameters |
| ``Profiler`` | ``range_push``, ``range_pop`` | ``NVTXHook`` |
| ``MemoryPool`` | ``memory_used``, ``memory_reserved`` | ``CUDAMemoryHook`` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar

Array: TypeAlias = Any
"""An array of any library that follows the Array API standard."""
Arrays: TypeAlias = tuple[Array, ...]


class Fallback:
    """What a backend's ``forward`` returns to ask for the function's portable forward.

    Either the class itself, or an instance with a reason: ``Fallback("float16 has no kernel")``.
    """

    def __init__(self, reason: str = "no reason given") -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"Fallback({self.reason!r})"


class Backend(Protocol):
    """The required part of a backend module. ``tinynode_numpy`` is the shortest example."""

    name: str
    """The name that users write: ``numpy``, ``cupy``."""
    capabilities: frozenset[str]
    """Facts about the library. ``"gpu"`` selects ``forward_gpu``, else ``forward_cpu`` is used.
    ``"cpu"`` lets functions cut work into pieces that fit the cache. ``"float64"``: the library
    has float64. ``"shapes"``: the arrays have no values."""

    def devices(self) -> tuple[str, ...]:
        """The indices of the devices on this machine; the first one is the default."""

    def namespace(self) -> Any:
        """The Array API namespace of the arrays."""

    def owns(self, array: object) -> bool:
        """True if an object is an array of this backend."""

    def index_of(self, array: Array) -> str:
        """The index of the device with an array of the backend."""

    def from_host(self, array: Array, index: str) -> Array:
        """A NumPy array, on device ``index``; memory may be shared."""

    def to_host(self, array: Array) -> Array:
        """An array of this backend as a NumPy array; memory may be shared."""

    def synchronize(self, index: str) -> None:
        """Wait until the device has finished its work."""

    def lift(self, value: object) -> Array | None:
        """The 0-d array for a scalar of the array library; None for any other object."""

    def forward(self, node: Any, arrays: Arrays) -> Any:
        """Run a FunctionNode on arrays of this backend: a tuple of arrays, or ``Fallback``."""


class Overlay(Protocol):
    """A backend on the memory of another backend, as ``fast`` is on the memory of NumPy."""

    base: str
    """The name of the other backend. An array without an explicit device belongs to it."""


class Versioned(Protocol):
    """A backend with the version of the library."""

    version: str


class CurrentDevice(Protocol):
    """A backend whose library puts new arrays on a *current* device."""

    def on_device(self, index: str) -> AbstractContextManager[Any]:
        """A ``with`` block in which device ``index`` is the library's current device."""


class Scatter(Protocol):
    """A backend with a scatter-add, which the Array API standard lacks."""

    def add_at(self, indices: Array, values: Array, length: int) -> Array:
        """result[indices[k]] += values[k], from zeros.

        indices: (k), integer, values: (k, ...) -> (length, ...).
        """


class FunctionalWrites(Protocol):
    """A backend of arrays that never change, as in JAX."""

    def put(self, array: Array, key: Any, value: Any) -> Array:
        """A new array with ``value`` at the index ``key``."""


class Planner(Protocol):
    """A backend that plans how a compiled net runs."""

    def make_plan(
        self,
        operators: Sequence[Any],
        devices: Any,
        outputs: Sequence[str],
        specs: Any,
        saved: Sequence[str],
        layout: Any,
    ) -> Any:
        """A plan with ``run``, ``describe`` and ``layout``: see ``tinynode.net.plan.plan_of``."""


class NetCompiler(Protocol):
    """A backend that compiles nets by a compiler of the system."""

    def compiler_status(self) -> Iterable[str]:
        """Lines about the compiler, and the reasons of nets that were not compiled."""


class OptimizerUpdate(Protocol):
    """A backend that updates all parameters of an optimizer at once."""

    def update_parameters(self, optimizer: Any, steps: Sequence[Any]) -> Any:
        """A list of (array, moments), or ``Fallback``.

        Args:
            optimizer: the optimizer.
            steps: for each parameter the array, the gradient, the moments by name, and the number
                of the step, from 1.

        The function may write to the moments, and not to the arrays, which graphs may retain.
        """


class Profiler(Protocol):
    """A backend that marks named ranges in the profiler of the GPU's vendor."""

    def range_push(self, text: str) -> None:
        """Begin a named range in this thread."""

    def range_pop(self) -> None:
        """End the newest range of this thread."""


class MemoryPool(Protocol):
    """A backend whose library keeps a pool of device memory."""

    def memory_used(self, index: str) -> int:
        """The bytes that arrays use on device ``index``."""

    def memory_reserved(self, index: str) -> int:
        """The bytes that the pool holds of device ``index``."""


OPTIONAL_PARTS: tuple[type, ...] = (
    Overlay,
    Versioned,
    CurrentDevice,
    Scatter,
    FunctionalWrites,
    Planner,
    NetCompiler,
    OptimizerUpdate,
    Profiler,
    MemoryPool,
)
"""Every optional part of a backend."""

Part = TypeVar("Part")
_members: dict[type, tuple[str, ...]] = {}


def supports(backend: object, part: type[Part]) -> TypeGuard[Part]:
    """True if a backend has every member of an optional part, such as ``Planner``."""
    return all(hasattr(backend, name) for name in members_of(part))


def members_of(part: type) -> tuple[str, ...]:
    """The names that a protocol lists: attributes first, then functions."""
    if part not in _members:
        functions = [name for name in vars(part) if not name.startswith("_")]
        _members[part] = (*part.__annotations__, *functions)
    return _members[part]
