"""The steps of a film, computed again one by one: the work behind ``film.replay()``.

    forward     the function on the recorded operands
    sweep       the start of a backward pass: gradients of 1, as by default
    backward    forward again, then backward on the recorded gradients; the sums of the table too
    end         the gradients of the table, added to each ``grad`` before the pass
    update      the optimizer's rule on the recorded parameter, gradient and moments

Between two steps some values must stay the same: results, retained arrays, and gradients in the
table. So a write into such an array is found at the next use of the array.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy

from tinynode.configuration import backprop_mode, config, using_config
from tinynode.core.dispatch import is_fallback
from tinynode.core.function_node import FunctionNode
from tinynode.core.gradient_table import GradientTable
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Device, OptimizerUpdate, supports, to_host
from tinynode.functions.arithmetic import add_all
from tinynode.functions.masking import FiniteOperands
from tinynode.net.recorder import without_hooks
from tinynode.nn.updates import own_step
from tinynode.show.films.differences import Difference, distance, limit_of
from tinynode.show.films.nodes import Recording, Step
from tinynode.show.films.recipes import (
    ApplicationRecipe,
    BackwardRecipe,
    EndRecipe,
    StartRecipe,
    Strides,
    UpdateRecipe,
)
from tinynode.show.films.values import CELLS, Content, content_of
from tinynode.show.texts import LONGEST_NOTE, cut

R = TypeVar("R")

SUM = "sum of the gradients of {}"
IN_TABLE = "gradient of {}, as in the table"
"""Names of values, with a place for the label of the node."""

TOO_LARGE = f"an array of more than {CELLS} elements was not kept: record(arrays=True) keeps it"


class Finding(NamedTuple):
    """A recorded value, different from the value computed again.

    Attributes:
        step: the index of the step.
        part: the name of the value, with ``{}`` for the label of the node.
        node: the id of the node, or None.
        value: the index of the recorded array, or None.
        size: the largest distance of two elements.
        note: a difference without a number.
        differs: False for a distance within the tolerance.
    """

    step: int
    part: str
    node: str | None
    value: int | None
    size: float
    note: str = ""
    differs: bool = True

    def difference(self, event: str, part: str) -> Difference:
        """The finding in words: the event of the step, and the part with the node's label."""
        steps, values = (self.step + 1, self.step + 1), (self.value, None)
        return Difference(
            steps, event, part, self.size, values, self.note, self.node, self.differs
        )


class _LeftOutError(Exception):
    """The step cannot be computed again; the message is the reason."""


class _Table:
    """The gradient table of a backward pass, as indexes of recorded values.

    Attributes:
        totals: by node, the gradient.
        waiting: by node, contributions before the addition, under ``lazy_grad_sum``.
        taken: by node, the gradient taken by the creator.
    """

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.waiting: dict[str, list[int]] = {}
        self.taken: dict[str, int] = {}


class StepReplayer:
    """Computes the steps of a film again.

    Args:
        film: the film.
        tolerance: as for ``tinynode.show.compare``.

    Attributes:
        findings: the differences.
        computed: the indexes of the steps computed again.
        left_out: by the index of a step left out, the reason.
    """

    def __init__(self, film: Recording, tolerance: float | None) -> None:
        self.film = film
        self.tolerance = tolerance
        self.findings: list[Finding] = []
        self.computed: list[int] = []
        self.left_out: dict[int, str] = {}
        self._step = 0
        self._functions: dict[str, tuple[Step, Any]] = {}
        self._results: dict[str, tuple[int, int]] = {}
        self._tables: list[_Table] = []

    def run(self) -> None:
        """Compute all steps again, unseen by hooks."""
        with without_hooks(), warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the program has had the warnings
            for index, step in enumerate(self.film.steps):
                self._step = index
                try:
                    self._replay(step)
                    self.computed.append(index)
                except _LeftOutError as reason:
                    self.left_out[index] = str(reason)

    def _replay(self, step: Step) -> None:
        kind = step["kind"]
        methods = {
            "forward": self._forward,
            "sweep": self._start,
            "backward": self._backward,
            "end": self._end,
            "update": self._update,
        }
        if step["error"] is not None and kind != "end":
            raise _LeftOutError(f"the step ended with {step['error']['name']}")
        if kind not in methods:
            raise _LeftOutError(f"a step of kind {kind} computes no value")
        methods[kind](step)

    # --- forward ---------------------------------------------------------------------------------

    def _forward(self, step: Step) -> None:
        recipe = self.film.recipes.get(self._step)
        self._functions[step["function"]] = step, recipe
        for node, value in step["inputs"]:
            if node in self._results and value is not None:
                before, number = self._results[node]
                self._same(f"operand {{}}, computed in step {number}", node, value, before)
                self._results[node] = value, number  # each write is found once
        for node, value in step["outputs"]:
            if value is not None:
                self._results[node] = value, self._step + 1
        with self._caught():
            outputs = self._applied(step, recipe)[2]
            for (node, value), y in zip(step["outputs"], outputs, strict=True):
                self._compare("result {}", node, value, y.raw)

    def _applied(
        self, step: Step, recipe: Any
    ) -> tuple[FunctionNode, list[Variable], tuple[Variable, ...]]:
        """The function, the inputs and the outputs of a forward step, all made anew."""
        recipe = _expect(ApplicationRecipe, recipe)
        known: dict[Any, Variable] = {}
        inputs = []
        for (node, value), operand in zip(step["inputs"], recipe.operands, strict=True):
            x = known.get((node, value))
            if x is None:
                array = self._array(value, operand.device, operand.strides)
                x = wrap_array(array, operand.device, operand.requires_grad)
                known[node, value] = x
            inputs.append(x)
        function = recipe.function()
        settings = {n: setting for n, setting in recipe.settings.items() if hasattr(config, n)}
        with using_config(**{**settings, "debug": False}):
            return function, inputs, function.apply(tuple(inputs))

    # --- backward --------------------------------------------------------------------------------

    def _start(self, step: Step) -> None:
        table = _Table()
        self._tables.append(table)
        table.totals.update(step["grad_outputs"])
        recipe = _expect(StartRecipe, self.film.recipes.get(self._step))
        for (node, value), device in zip(step["grad_outputs"], recipe.devices, strict=True):
            seed = self.film.values.whole(value)
            if seed is None:
                raise _LeftOutError(TOO_LARGE)
            if not (seed.numbers() == 1).all():
                raise _LeftOutError("the program gave the gradient to start from")
            y = self._results.get(node)
            like = seed if y is None else self.film.values.content(y[0])
            ones = device.from_host(numpy.ones(like.shape, like.dtype))
            self._compare("gradient of {}", node, value, ones)

    def _backward(self, step: Step) -> None:
        if not self._tables:
            raise _LeftOutError("its backward pass began before the recording")
        table = self._tables[-1]
        of_forward, application = self._functions.get(step["function"], (None, None))
        if of_forward is not None:
            self._check_retained(step, of_forward)
        for node, value in step["grad_outputs"]:
            self._check_taken(table, node, value, application)
        for node in step["table"]["removed"]:
            table.totals.pop(node, None)
        recipe = self.film.recipes.get(self._step)
        try:
            recipe = _expect(BackwardRecipe, recipe)
            if of_forward is None:
                raise _LeftOutError("the function was applied before the recording")
            with self._caught():
                self._gradients(step, recipe, of_forward, application)
        finally:
            table.totals.update(step["table"]["set"])

    def _check_retained(self, step: Step, of_forward: Step) -> None:
        """Compare the retained arrays with the arrays of the forward step."""
        for key in ("inputs", "outputs"):
            for (node, value), (_, before) in zip(step[key], of_forward[key], strict=True):
                if value is not None and before is not None:
                    self._same("retained {}", node, value, before)

    def _check_taken(self, table: _Table, node: str, value: int | None, application: Any) -> None:
        """Compare the gradient of an output with the gradient in the table."""
        total = table.totals.get(node)
        if total is None or value is None:
            return
        waiting = table.waiting.pop(node, [])
        if waiting:
            device = _expect(ApplicationRecipe, application).operands[0].device
            parts = [self._variable(one, device) for one in (total, *waiting)]
            self._compare(SUM, node, value, add_all(*parts).raw)
        else:
            self._same(IN_TABLE, node, value, total)
        table.taken[node] = value

    def _gradients(
        self, step: Step, recipe: BackwardRecipe, of_forward: Step, application: Any
    ) -> None:
        """The gradients by the function's backward, and the sums of the table."""
        function, inputs, outputs = self._applied(of_forward, application)
        function.is_masked = recipe.is_masked
        if recipe.keeps_zeros:
            function.add_hook(FiniteOperands())
        grad_outputs: list[Variable | None] = []
        entries = zip(step["grad_outputs"], outputs, recipe.strides, strict=True)
        for (_, value), y, strides in entries:
            array = None if value is None else self._array(value, y.device, strides)
            gy = None if array is None else wrap_array(array, y.device, recipe.has_graph)
            grad_outputs.append(gy)
        is_fused = type(function).backward_accumulate is not FunctionNode.backward_accumulate
        hooks = tuple((function.local_hooks_or_none or {}).values())
        with backprop_mode(recipe.has_graph), inputs[0].device.active():
            table = GradientTable()
            if is_fused:
                self._fill(table, step, [inputs[i] for i in recipe.targets])
            found = table.run_backward(function, recipe.targets, tuple(grad_outputs), hooks)
            for (node, value, *_), gx in zip(step["grad_inputs"], found, strict=True):
                self._compare("gradient of {}", node, value, None if gx is None else gx.raw)
            devices = {
                entry[0]: inputs[i].device
                for entry, i in zip(step["grad_inputs"], recipe.targets, strict=True)
            }
            self._check_sums(step, recipe.is_lazy, is_fused, devices)

    def _fill(self, table: GradientTable, step: Step, targets: Sequence[Variable]) -> None:
        """Give a table the gradients from before the step, for ``backward_accumulate``."""
        totals = self._tables[-1].totals
        for (node, *_), x in zip(step["grad_inputs"], targets, strict=True):
            if node in totals:
                table.gradients[x.node] = self._variable(totals[node], x.device)

    def _check_sums(
        self, step: Step, is_lazy: bool, is_fused: bool, devices: Mapping[str, Device]
    ) -> None:
        """The gradients in the table after the step are the sums of the contributions."""
        table = self._tables[-1]
        given: dict[str, list[int]] = {}
        for node, value, how, _ in step["grad_inputs"]:
            if how != "none":
                given.setdefault(node, []).append(value)
        for node, total in step["table"]["set"]:
            parts = given.get(node, [])
            if node in table.totals and not is_fused:
                parts = [table.totals[node], *parts]
            if is_lazy:
                table.waiting.setdefault(node, []).extend(parts[1:])
                parts = parts[:1]
            part = SUM if len(parts) > 1 else IN_TABLE
            self._check_sum(part, node, total, parts, devices[node])

    def _check_sum(
        self, part: str, node: str, total: int, parts: Sequence[int], device: Device
    ) -> None:
        """Compare a recorded total with the sum of recorded parts."""
        if len(parts) == 1:
            self._same(part, node, total, parts[0])
        elif parts:
            found = self._variable(parts[0], device)
            for one in parts[1:]:
                found = GradientTable().sum_of(found, self._variable(one, device))
            self._compare(part, node, total, found.raw)

    def _end(self, step: Step) -> None:
        table = self._tables.pop() if self._tables else _Table()
        recipe = _expect(EndRecipe, self.film.recipes.get(self._step))
        if step["error"]:
            raise _LeftOutError("the backward pass ended with an error")
        for entry, (before, device) in zip(step["grad_inputs"], recipe.grads, strict=True):
            node, value, how, total = entry
            known = table.totals.get(node, table.taken.get(node))
            if known is not None:
                parts = [known, *table.waiting.get(node, ())]
                self._check_sum(IN_TABLE, node, value, parts, device)
            if how == "none":
                continue
            if not recipe.is_backward and total != value:
                raise _LeftOutError("tn.grad added grad_inputs, which the film does not have")
            parts = [value] if how == "first" or before is None else [before, value]
            self._check_sum("grad of {}", node, total, parts, device)

    # --- optimizers ------------------------------------------------------------------------------

    def _update(self, step: Step) -> None:
        recipe = _expect(UpdateRecipe, self.film.recipes.get(self._step))
        for entry, slot in zip(step["updates"], recipe.slots, strict=True):
            node, before, gradient, after, moments = entry
            if slot.is_frozen:
                self._same("{} after", node, after, before)
                continue
            device = slot.device
            arrays = [self._array(value, device, None) for value in (before, gradient)]
            old = {name: self._array(value, device, None) for name, value, _ in moments}
            with self._caught():
                optimizer = recipe.optimizer(slot.group)
                new, found = _updated(optimizer, device, (*arrays, old, slot.number))
                for name, _, value in moments:
                    self._compare(f"{name} of {{}}", node, value, found[name])
                self._compare("{} after", node, after, new)

    # --- values ----------------------------------------------------------------------------------

    def _array(self, value: int | None, device: Device, strides: Strides) -> Array | None:
        """A recorded array, on a device.

        Raises:
            _LeftOutError: the film has a sample only.
        """
        if value is None:
            return None
        content = self.film.values.whole(value)
        if content is None:
            raise _LeftOutError(TOO_LARGE)
        return device.from_host(_laid_out(content, strides))

    def _variable(self, value: int, device: Device) -> Variable:
        return wrap_array(self._array(value, device, None), device, False)

    def _compare(self, part: str, node: str, value: int | None, array: Array | None) -> None:
        """Compare a recorded array with the array computed again."""
        if value is None or array is None:
            if value is not None or array is not None:
                which = "recorded" if value is None else "computed again"
                self._find(part, node, value, math.inf, f"none was {which}")
            return
        whole = self.film.values.whole(value)
        recorded = self.film.values.content(value) if whole is None else whole
        found = content_of(numpy.asarray(to_host(array)), whole is not None)
        size, note = distance(recorded, found)
        if recorded.dtype != found.dtype:
            size, note = math.inf, f"dtypes {recorded.dtype} and {found.dtype}"
        if note or size:
            differs = bool(note) or size > limit_of(recorded, found, self.tolerance)
            self._find(part, node, value, size, note, differs)

    def _same(self, part: str, node: str, value: int, before: int) -> None:
        """Compare a recorded array with an earlier record of the array."""
        if value != before:
            values = self.film.values
            ends = [values.whole(one) or values.content(one) for one in (before, value)]
            size, note = distance(*ends)
            if note or size:
                self._find(part, node, value, size, note)

    def _find(
        self,
        part: str,
        node: str | None,
        value: int | None,
        size: float,
        note: str = "",
        differs: bool = True,
    ) -> None:
        self.findings.append(Finding(self._step, part, node, value, size, note, differs))

    @contextmanager
    def _caught(self) -> Iterator[None]:
        """An error of a function in the second run is a finding."""
        try:
            yield
        except _LeftOutError:
            raise
        except Exception as error:
            note = cut(f"ends with {type(error).__name__}: {error}", LONGEST_NOTE)
            self._find("the second run", None, None, math.inf, note)


def _expect(kind: type[R], recipe: Any) -> R:
    """The recipe of a step.

    Raises:
        _LeftOutError: there is no recipe, or there is a reason against the replay.
    """
    if not isinstance(recipe, kind):
        raise _LeftOutError("another engine computed it")
    reason = getattr(recipe, "reason", "")
    if reason:
        raise _LeftOutError(reason)
    return recipe


def _laid_out(content: Content, strides: Strides) -> Any:
    """An array on the host, in memory as it was: the order of a sum depends on it."""
    flat = numpy.frombuffer(content.cells, content.dtype).reshape(content.shape)
    if strides is None or not flat.size:
        return flat.copy()
    ends = [(n - 1) * stride for n, stride in zip(flat.shape, strides, strict=True)]
    low = sum(end for end in ends if end < 0)
    high = sum(end for end in ends if end > 0) + flat.itemsize
    if high - low > 4 * flat.nbytes + 4096:
        return flat.copy()  # a small part of a large array
    memory = numpy.zeros(high - low, numpy.uint8)
    array: Any = numpy.ndarray(flat.shape, flat.dtype, memory, -low, strides)
    array[...] = flat
    return array


def _updated(optimizer: Any, device: Device, step: Sequence[Any]) -> tuple[Array, dict[str, Any]]:
    """The next array and moments of a parameter, by the backend's kernel or by the rule."""
    with device.active():
        if supports(device.backend, OptimizerUpdate):
            found = device.backend.update_parameters(optimizer, [step])
            if not is_fallback(found):
                new, moments = found[0]
                return device.lift(new), {name: device.lift(m) for name, m in moments.items()}
        new, moments = own_step(optimizer, *step)
    return device.lift(new), {name: device.lift(moment) for name, moment in moments.items()}
