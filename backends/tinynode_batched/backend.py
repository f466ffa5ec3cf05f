"""Batched: the backend over a wrapped array library."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy

from tinynode.devices import axis_of, count_use, fallback_uses, hidden_axes
from tinynode.errors import TraceError, VmapError, describe
from tinynode_batched.array import BatchedArray
from tinynode_batched.namespace import BatchedNamespace, Extension


class Library(Protocol):
    """The wrapped array library, and functions beyond the Array API standard.

    While a net is recorded, the wrapped arrays are Variables, and the library is tinynode's own
    namespace. So the net has operators on whole batches.
    """

    device: Any
    """The wrapped device."""
    xp: Any
    """The namespace of the wrapped arrays."""
    is_recorded: bool
    """True if the wrapped arrays are Variables."""

    def is_array(self, value: object) -> bool:
        """True for a wrapped array."""

    def from_host(self, array: Any) -> Any:
        """A NumPy array as a wrapped array."""

    def to_host(self, array: Any) -> Any:
        """A wrapped array as a NumPy array."""

    def put(self, array: Any, key: Any, value: Any) -> Any:
        """The array with a value at a key: as ``tinynode.devices.put``."""

    def add_at(self, indices: Any, values: Any, length: int) -> Any:
        """As ``tinynode.devices.add_at``."""

    def run(self, node: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode, from wrapped arrays."""

    def run_on_rows(self, node: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The outputs of cross entropy, from the rows of all examples; else None."""

    def is_elementwise(self, node: Any) -> bool:
        """True for a FunctionNode of tinynode with one operand of each input for an element."""

    def run_elementwise(self, node: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of an elementwise FunctionNode, as the same operator on whole batches."""

    def run_on_all(self, node: Any, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of a FunctionNode for all examples, as an operator of the net."""

    def with_gradient_of(
        self, node: Any, arrays: tuple[Any, ...], results: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The results of a FunctionNode's forward, with the node's own backward."""

    def synchronize(self) -> None:
        """Wait until the wrapped device has finished the work."""


class Batched:
    """A backend of BatchedArrays.

    Args:
        name: the name of the backend and of the only device.
        library: the wrapped array library.
    """

    capabilities = frozenset({"batched", "float64"})

    def __init__(self, name: str, library: Library) -> None:
        self.name = name
        self.library = library
        self.xp = BatchedNamespace(self, library.xp)

    # --- what tinynode asks of every backend -----------------------------------------------

    def devices(self) -> tuple[str, ...]:
        """The only device."""
        return (self.name,)

    def namespace(self) -> Any:
        """The lifted namespace."""
        return self.xp

    def owns(self, array: object) -> bool:
        """True for a BatchedArray of this backend."""
        return type(array) is BatchedArray and array.tinynode_backend is self

    def index_of(self, array: Any) -> str:
        """The name of the only device of the array's backend."""
        return str(array.tinynode_backend.name)

    def from_host(self, array: Any, index: str) -> Any:
        """A NumPy array, shared by all examples."""
        return self.shared(self.library.from_host(array))

    def to_host(self, array: Any) -> Any:
        """The values, if all examples have the same."""
        return self.common_value(array, "a value in Python, as for if or float(),")

    def synchronize(self, index: str) -> None:
        """Wait until the wrapped device has finished the work."""
        self.library.synchronize()

    def lift(self, value: object) -> None:
        """There are no scalars: each array has the hidden axis."""

    def add_at(self, indices: Any, values: Any, length: int) -> Any:
        """result[indices[k]] += values[k] in each example, from zeros."""
        xp, base = self.xp, self.library.xp
        indices, values = xp.of_one_length([indices, values])
        n = indices.length
        if n == 1:
            return self.shared(
                self.library.add_at(indices.raw[0, ...], values.raw[0, ...], length)
            )
        starts = base.reshape(base.arange(n, device=indices.device) * length, (n, 1))
        wrapped = base.where(indices.raw < 0, indices.raw + length, indices.raw)
        places = base.reshape(wrapped + starts, (-1,))
        rest = values.shape[1:]
        rows = base.reshape(values.raw, (places.shape[0], *rest))
        total = self.library.add_at(places, rows, n * length)
        return self.wrap(base.reshape(total, (n, length, *rest)))

    def forward(self, node: Any, arrays: tuple[Any, ...]) -> Any:
        """Run a FunctionNode on all examples at once; without a rule, on one after another."""
        if node.is_random:
            return self._drawn(node)
        own_device = node.output_device is None or node.output_device.backend is self
        if not (node.crosses_vmap or own_device):
            raise VmapError(
                f"{node.label}: a vmapped function cannot move an array to {node.output_device}. "
                "Move the arguments before vmap, or the results after vmap."
            )
        if self.library.is_recorded:
            return self._recorded(node, arrays)
        outputs = self.library.run_on_rows(node, tuple([x.raw for x in arrays]))
        if outputs is not None:
            return self.wrap(outputs)
        try:
            return node.forward(arrays)
        except VmapError as error:
            reason = str(error)
        except AttributeError as error:
            if not isinstance(error.obj, BatchedArray | BatchedNamespace | Extension):
                raise
            reason = f"vmap has no rule for {error.name}"
        start = time.perf_counter()
        outputs = self._looped(node, arrays)
        count_use(fallback_uses, (self.name, node.label, reason), time.perf_counter() - start)
        return outputs

    def _recorded(self, node: Any, arrays: tuple[Any, ...]) -> Any:
        """A FunctionNode as operators of a net; the derivative is always that of its backward.

        - An elementwise function is one operator on whole batches, cross entropy on all rows.
        - Other functions of tinynode become those of ``forward``. A plan may fuse these functions.
          The results get the backward of the FunctionNode.
        - A function of a user is a single operator. The same holds where ``forward`` looks at
          values.
        """
        if node.crosses_vmap:
            return node.forward(arrays)
        raws = tuple([x.raw for x in arrays])
        is_of_user = type(node).__module__.partition(".")[0] != "tinynode"
        if is_of_user or node.needs_values:
            return self.wrap(self.library.run_on_all(node, raws))
        if self.library.is_elementwise(node):
            aligned = tuple(self.aligned(arrays))
            return self.wrap(self.library.run_elementwise(node, aligned))
        results = self.library.run_on_rows(node, raws)
        if results is not None:
            return self.wrap(self.library.with_gradient_of(node, raws, results))
        hidden_axes.trials += 1
        try:
            outputs = node.forward(arrays)
        except (VmapError, TraceError, AttributeError, NotImplementedError):
            outputs = None  # what was recorded so far is not needed by any result
        finally:
            hidden_axes.trials -= 1
        if outputs is None:
            return self.wrap(self.library.run_on_all(node, raws))
        results = tuple([y.raw for y in outputs])
        return self.wrap(self.library.with_gradient_of(node, raws, results))

    # --- arrays ----------------------------------------------------------------------------

    def wrap(self, result: Any) -> Any:
        """A result of the wrapped library with the hidden axis as a BatchedArray; or several."""
        if isinstance(result, tuple | list):
            parts = [BatchedArray(one, self) for one in result]
            make = getattr(type(result), "_make", tuple)  # a named tuple, such as that of eigh
            return make(parts)
        return BatchedArray(result, self)

    def shared(self, array: Any) -> BatchedArray:
        """An array of the wrapped library, the same for all examples."""
        return BatchedArray(self.library.xp.reshape(array, (1, *array.shape)), self)

    def taken_in(self, x: Any) -> Any:
        """A BatchedArray of this backend; an array of the wrapped library is shared by all."""
        if type(x) is BatchedArray and x.tinynode_backend is self:
            return x
        return self.shared(x) if self.library.is_array(x) else x

    def aligned(self, operands: Sequence[Any], least: int = 0) -> list[Any]:
        """The wrapped arrays of the operands, with equal numbers of axes; numbers unchanged."""
        taken = [self.taken_in(x) for x in operands]
        counts = [x.raw.ndim - 1 for x in taken if type(x) is BatchedArray]
        axes = max([least, *counts])
        if counts and min(counts) == axes:
            return [x.raw if type(x) is BatchedArray else x for x in taken]
        with_axes = self.xp.with_axes
        return [with_axes(x, axes) if type(x) is BatchedArray else x for x in taken]

    def common_value(self, x: BatchedArray, what: str) -> Any:
        """The values as a NumPy array, if all examples have the same.

        Raises:
            VmapError: two examples differ.
        """
        if hidden_axes.trials:
            raise VmapError(f"vmap: {what} asks for a value while a net is recorded.")
        host = self.library.to_host(x.raw)
        if host.shape[0] == 0:
            return numpy.zeros(host.shape[1:], host.dtype)
        first = host[0]
        if host.shape[0] > 1 and not numpy.array_equal(
            host, numpy.broadcast_to(first, host.shape), equal_nan=host.dtype.kind in "fc"
        ):
            raise VmapError(
                f"vmap: {what} has to be one number, and the array here ({describe(x)}) has "
                f"different values in the {host.shape[0]} examples. Choose with "
                "where(condition, a, b) for each example, take rows of a NumPy array by "
                "take(array, x, axis=0), or compute the value outside of the vmapped function."
            )
        return first

    # --- the ways around the rules ---------------------------------------------------------

    def _drawn(self, node: Any) -> Any:
        """Random numbers: independent draws for each example, by one generator."""
        axis = axis_of(self, node.label)
        clone = copy.copy(node)
        clone.shape = (axis.size, *node.shape)
        clone.output_device = axis.below
        return self.wrap(tuple(self.library.run(clone, ())))

    def _looped(self, node: Any, arrays: tuple[Any, ...]) -> Any:
        """Run a FunctionNode on one example after another, and stack the results."""
        base = self.library.xp
        length = max([1, *(x.length for x in arrays if x.length != 1)], default=1)
        if any(x.length == 0 for x in arrays):
            raise VmapError(
                f"{node.label}: vmap has no rule for the function, and there is no example to "
                "run it on. Give at least one example."
            )
        rows, clone = [], node
        for i in range(length):
            clone = copy.copy(node)
            example = tuple([x.raw[i if x.length > 1 else 0, ...] for x in arrays])
            rows.append(self.library.run(clone, example))
        node.retain_inputs(clone.retained_input_indexes)
        node.retain_outputs(clone.retained_output_indexes)
        outputs: list[Any] = []
        for parts in zip(*rows, strict=True):
            if any(part is None for part in parts):
                outputs.append(None)
                continue
            if len({tuple(part.shape) for part in parts}) > 1:
                raise VmapError(
                    f"{node.label}: the result has another shape in each example, "
                    f"{[tuple(part.shape) for part in parts][:4]} ..., and vmap needs one shape. "
                    "Use where(mask, x, 0) in place of x[mask], or run the examples one by one."
                )
            outputs.append(self.wrap(base.stack(list(parts), axis=0)))
        return tuple(outputs)
