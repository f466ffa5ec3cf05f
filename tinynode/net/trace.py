"""trace: a define-by-run function as a net.

Requirement: the net computes the same as the function. The net is found by one run of the function
on examples. Some actions are refused, with an error at the line. Examples: a decision by a
Variable's value, a look at a Variable's array, a write that no net can repeat.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinynode.core.array_arguments import RawArgument
from tinynode.core.variable import Variable, wrap_array
from tinynode.errors import TraceError
from tinynode.functions.draws import restored_generators
from tinynode.net.net_op import NetOp
from tinynode.net.operator import ArraySpecs
from tinynode.net.recorder import (
    GradientWrite,
    Namer,
    NetRecorder,
    Write,
    needed_operators,
    without_hooks,
)
from tinynode.net.structure import (
    check_constants,
    flatten,
    paths,
    raw_indexes,
    renumbered,
    unflatten,
)
from tinynode.net.updates import Update


class Trace(NamedTuple):
    """The record of one call.

    Attributes:
        net: the operators that the results and the writes depend on; ``print(net)`` shows them.
        inputs: the names of the arguments' Variables, in their order.
        captured: the Variables that the function used without getting them as arguments, such as
            parameters, by name.
        outputs: the names of the returned Variables, each once.
        flags: for each output, True if it requires a gradient.
        result: the treedef of the returned value.
        modules: the modules whose ``training`` was read, and their values.
        writes: the function's writes to captured Variables.
        updates: the optimizers' updates. Moments and numbers, such as the learning rate, are
            inputs of the net too.
        specs: shape and dtype of each computed value, by name.
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
    specs: ArraySpecs

    def written(self) -> list[str]:
        """The names of the values that are written to captured Variables."""
        names = [write.name for write in self.writes if write.name is not None]
        return names + [name for update in self.updates for _, name in update.writes()]

    def written_variables(self) -> list[Variable]:
        """The captured Variables that get a new array."""
        written = [write.variable for write in self.writes if isinstance(write, Write)]
        return written + [part.slot.parameter for one in self.updates for part in one.parts]


def trace(function: Callable[..., Any], *examples: Any, **keywords: Any) -> Trace:
    """Run a function once on examples, and record its net.

    Args:
        function: takes and returns Variables, also in tuples, lists and dicts.
        examples: the arguments, of which shapes, dtypes and devices matter. Every argument that is
            neither a Variable nor an array is a constant of the net.
        keywords: the arguments by name.

    Raises:
        TraceError: a net cannot record an action of the function.
    """
    variables, treedef = flatten((examples, keywords), _name_of(function))
    return trace_flat(function, variables, treedef)


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def trace_flat(function: Callable[..., Any], variables: Sequence[Variable], treedef: Any) -> Trace:
    """``trace`` of a flattened call.

    The recorder knows arrays by identity, so each argument gets a new view. Two arguments, or an
    argument and a constant, may share an array.
    """
    recorder = NetRecorder(Namer(), _name_of(function), records_nets=True)
    views = [None if x.raw is None else x.raw[...] for x in variables]
    stand_ins = [
        wrap_array(view, x.device, x.requires_grad)
        for view, x in zip(views, variables, strict=True)
    ]
    arguments: list[Any] = list(stand_ins)
    for i in raw_indexes(treedef):
        arguments[i] = RawArgument(stand_ins[i])
    names = _input_names(function, treedef, recorder.namer)
    for stand_in, name in zip(stand_ins, names, strict=True):
        recorder.bind(stand_in, name)
        recorder.given[name] = stand_in.raw, stand_in.device
    try:
        outputs, flags, result = _record(function, unflatten(treedef, arguments), recorder)
        _check_arguments(recorder.title, names, stand_ins, views)
        captured = recorder.finish()
        writes = recorder.take_back_writes()
    except BaseException as error:
        recorder.abandon(error)
        raise
    unique = list(dict.fromkeys(outputs))
    written = _all_writes(writes, recorder.updates)
    operators = needed_operators(recorder.operators, [*unique, *written.values()])
    found = Trace(
        NetOp(operators, recorder.title, written),
        names,
        captured,
        unique,
        [flags[name] for name in unique],
        renumbered(result, [unique.index(name) for name in outputs]),
        [(module, module.training) for module in recorder.modules],
        writes,
        recorder.updates,
        recorder.specs,
    )
    _check_closures(found, names, variables)
    return found


def _record(
    function: Callable[..., Any], arguments: Any, recorder: NetRecorder
) -> tuple[list[str], dict[str, bool], Any]:
    """Run the function.

    No Variable made by the function is alive afterwards.

    Returns:
        The names of the returned Variables, their ``requires_grad`` by name, and the treedef.
    """
    args, keywords = arguments
    # the generators are restored: the first run draws the recording's numbers
    with restored_generators(), without_hooks(), recorder:
        returned = function(*args, **keywords)
    if recorder.error is not None:  # the function caught the error and continued
        raise recorder.error
    recorder.check_chains()  # while the results hold their graph
    where = f"what {recorder.title} returned"
    results, result = flatten(returned, where)
    check_constants(result, where)
    outputs = [recorder.name_of(y) for y in results]
    return outputs, {n: y.requires_grad for n, y in zip(outputs, results, strict=True)}, result


def _all_writes(writes: list[Write | GradientWrite], updates: list[Update]) -> dict[str, str]:
    """The final value's name for each written name."""
    found = dict([pair for update in updates for pair in update.writes()])
    for write in writes:
        if write.name is not None:
            found[write.target] = write.name
        else:
            found.pop(write.target, None)  # a gradient cleared after the update
    return found


def _check_arguments(
    title: str, names: list[str], stand_ins: list[Variable], views: list[Any]
) -> None:
    """Refuse a function that changed one of its arguments."""
    for name, stand_in, view in zip(names, stand_ins, views, strict=True):
        if stand_in.raw is not view:
            raise _written_argument(title, name)
        if stand_in.grad_var is not None:
            raise TraceError(
                f"{title}: the gradient of the argument {name} was changed, by backward() for "
                "example, which a net cannot repeat. Take gradients with tinynode.grad and return "
                "them, or call backward() on what the compiled function returns, or pass "
                f"{name}.detach(), if it is data."
            )


def _check_closures(found: Trace, names: list[str], variables: Sequence[Variable]) -> None:
    """Refuse a function that writes to an argument which it knows by a closure as well."""
    written = set(map(id, found.written_variables()))
    for name, x in zip(names, variables, strict=True):
        if id(x) in written:
            raise _written_argument(found.net.type, name)


def _written_argument(title: str, name: str) -> TraceError:
    return TraceError(
        f"{title}: the argument {name} was written to, which a net cannot repeat on the "
        f"Variable of the caller. Write to a copy: {name} = functions.identity({name}), "
        "and return it."
    )


def _input_names(function: Any, treedef: Any, namer: Namer) -> list[str]:
    """A name for each Variable among the arguments, after the function's parameters."""
    args, keywords = treedef.items
    titles: list[str] = []
    with contextlib.suppress(TypeError, ValueError):  # a function not written in Python
        titles = list(inspect.signature(function).parameters)
    names: dict[int, str] = {}
    for number, item in enumerate(args.items):
        title = titles[number] if number < len(titles) else f"x{number}"
        names.update(paths(item, title))
    names.update(paths(keywords))
    return [namer.of_user(names[position]) for position in sorted(names)]
