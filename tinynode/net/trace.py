"""trace: a define-by-run function as a net.

Requirement: the net is what the function does, found by running it once on examples. What a net
cannot hold is an error that shows the line: a decision by a Variable's value, a look at its array,
or a change of a Variable that the net would not repeat.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tinynode.core.conversion import RawArgument
from tinynode.core.variable import Variable, wrap_array
from tinynode.errors import TraceError
from tinynode.functions.draws import noted_generators, put_back
from tinynode.net.net_op import NetOp
from tinynode.net.recorder import (
    GradientWrite,
    Namer,
    NetRecorder,
    Write,
    needed_operators,
    without_hooks,
)
from tinynode.net.structure import (
    Container,
    Slot,
    check_constants,
    join,
    paths,
    raw_positions,
    split,
)
from tinynode.net.updates import Update
from tinynode.nn.module import Module


class Trace(NamedTuple):
    """What was recorded of one call.

    Attributes:
        net: the operators that the results depend on, and the writes; ``print(net)`` shows them.
        inputs: the names of the arguments' Variables, in their order.
        captured: the Variables that the function brings along, such as parameters, by name.
        outputs: the names of the Variables that were returned, each once.
        flags: for each output, whether it requires a gradient.
        result: the skeleton of what was returned.
        modules: the modules that were called, and whether each was in training.
        writes: what the function did to captured Variables.
        updates: what optimizers do; what they have beside parameters, such as the learning rate,
            are inputs too.
    """

    net: NetOp
    inputs: list[str]
    captured: dict[str, Variable]
    outputs: list[str]
    flags: list[bool]
    result: Any
    modules: list[tuple[Any, bool]]
    writes: list[Write | GradientWrite]
    updates: list[Update]

    def written(self) -> list[str]:
        """The names of what is written to captured Variables."""
        names = [write.name for write in self.writes if write.name is not None]
        return names + [name for update in self.updates for _, name in update.writes()]


def _all_writes(writes: list[Write | GradientWrite], updates: list[Update]) -> dict[str, str]:
    """What is written to which name in the end."""
    found = dict([pair for update in updates for pair in update.writes()])
    for write in writes:
        if write.name is not None:
            found[write.target] = write.name
        else:
            found.pop(write.target, None)  # a gradient that was cleared after the update
    return found


def trace(function: Callable[..., Any], *examples: Any, **keywords: Any) -> Trace:
    """Run a function once on examples, and record the net of what it did.

    Args:
        function: takes and returns Variables, also in tuples, lists and dicts.
        examples: the arguments; values do not matter, shapes, dtypes and devices do. What is no
            Variable and no array is a constant of the net.
        keywords: the arguments by name.

    Raises:
        TraceError: the function does what a net cannot record.
    """
    variables, skeleton = split((examples, keywords), _name_of(function))
    return trace_split(function, variables, skeleton)


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def trace_split(function: Callable[..., Any], variables: list[Variable], skeleton: Any) -> Trace:
    """``trace`` of a call that was split already."""
    recorder = NetRecorder(Namer(), _name_of(function), records_nets=True)
    stand_ins = [wrap_array(x.raw, x.device, x.requires_grad) for x in variables]
    arguments: list[Any] = list(stand_ins)
    for i in raw_positions(skeleton):
        arguments[i] = RawArgument(stand_ins[i])
    names = _input_names(function, skeleton, recorder.namer)
    for stand_in, name in zip(stand_ins, names, strict=True):
        recorder.bind(stand_in, name)
    try:
        outputs, flags, result = _record(function, join(skeleton, arguments.__getitem__), recorder)
        _check_arguments(recorder.title, names, stand_ins, variables)
    except BaseException:
        with contextlib.suppress(TraceError):  # the first error is the one to show
            recorder.take_back_writes()
        raise
    captured = recorder.finish()
    writes = recorder.take_back_writes()
    unique = list(dict.fromkeys(outputs))
    written = _all_writes(writes, recorder.updates)
    operators = needed_operators(recorder.operators, [*unique, *written.values()])
    return Trace(
        NetOp(operators, recorder.title, written),
        names,
        captured,
        unique,
        [flags[name] for name in unique],
        _renumbered(result, [unique.index(name) for name in outputs]),
        [(module, module.training) for module in recorder.modules],
        writes,
        recorder.updates,
    )


def _record(
    function: Callable[..., Any], arguments: Any, recorder: NetRecorder
) -> tuple[list[str], dict[str, bool], Any]:
    """Run the function: the names of what it returned, whether each requires a gradient, and the
    skeleton. No Variable that it made is held afterwards.
    """
    args, keywords = arguments
    with noted_generators() as states:
        try:
            return _watch(function, args, keywords, recorder)
        finally:
            put_back(states)  # a recording is no run: the first run draws what was drawn


def _watch(
    function: Callable[..., Any], args: Any, keywords: Any, recorder: NetRecorder
) -> tuple[list[str], dict[str, bool], Any]:
    """Run the function under the recorder's eyes."""
    with without_hooks(), recorder:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Module):  # a method, which may ask whether it is in training
            recorder.module_called(owner)
        returned = function(*args, **keywords)
    if recorder.error is not None:  # the function has caught it, and gone on without
        raise recorder.error
    recorder.check_chains()  # as long as the results hold their graph
    where = f"what {recorder.title} returned"
    results, result = split(returned, where)
    check_constants(result, where)
    outputs = [recorder.name_of(y) for y in results]
    return outputs, {n: y.requires_grad for n, y in zip(outputs, results, strict=True)}, result


def _check_arguments(
    title: str, names: list[str], stand_ins: list[Variable], variables: list[Variable]
) -> None:
    """Refuse a function that changed a Variable which it was given."""
    for name, stand_in, x in zip(names, stand_ins, variables, strict=True):
        if stand_in.raw is not x.raw:
            raise TraceError(
                f"{title}: the argument {name} was written to, which a net cannot repeat on the "
                f"Variable of the caller. Write to a copy: {name} = functions.identity({name}), "
                "and return it."
            )
        if stand_in.grad_var is not None:
            raise TraceError(
                f"{title}: the gradient of the argument {name} was changed, by backward() for "
                "example, which a net cannot repeat. Take gradients with tinynode.grad and return "
                "them, or call backward() on what the compiled function returns, or pass "
                f"{name}.detach(), if it is data."
            )


def _renumbered(skeleton: Any, numbers: list[int]) -> Any:
    """The skeleton with other positions, where several places have one Variable."""
    if isinstance(skeleton, Slot):
        return Slot(numbers[skeleton.position])
    if isinstance(skeleton, Container):
        items = tuple([_renumbered(item, numbers) for item in skeleton.items])
        return Container(skeleton.kind, skeleton.keys, items)
    return skeleton


def _input_names(function: Any, skeleton: Any, namer: Namer) -> list[str]:
    """A name for each Variable among the arguments, after the function's parameters."""
    args, keywords = skeleton.items
    titles: list[str] = []
    with contextlib.suppress(TypeError, ValueError):  # a function that is not written in Python
        titles = list(inspect.signature(function).parameters)
    names = {}
    for number, item in enumerate(args.items):
        title = titles[number] if number < len(titles) else f"x{number}"
        names.update(dict(paths(item, title)))
    names.update(dict(paths(keywords)))
    return [namer.like(names[position]) for position in sorted(names)]
