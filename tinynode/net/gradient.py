"""Backward nets: the gradient operator of an operator, and of a whole net.

Requirement: the registry's rule, with no gradient written twice. A function's ``backward`` is made
of differentiable functions, so ``backward`` is recorded on the values in a scope. The recorded net
is the gradient operator. If ``backward`` applies a single optimised function, such as
``SoftmaxCrossEntropyGrad``, the gradient is a single operator.

A backward net has the gradient operators in inverted order. A variable that was read several times
has a gradient of several parts. Each part has a name of its own, and an operator ``add`` computes
the sum before the first read.

Source: Paddle's design of backward nets, 2017; names and the place of the sum as in its later
``append_backward``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tinynode.configuration import force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import is_differentiable
from tinynode.errors import NetError
from tinynode.functions.data_types import Identity
from tinynode.functions.masking import mark
from tinynode.habits import closest
from tinynode.net.helpers import FillLike
from tinynode.net.making import making_net
from tinynode.net.net_op import AnyOp, NetOp
from tinynode.net.operator import EMPTY, GRAD, Operator, frozen, operator_of
from tinynode.net.recorder import Namer, NetRecorder, needed_operators
from tinynode.net.scope import Scope

RENAME = "@RENAME@"
"""The suffix of a gradient's parts, followed by a number."""


class _Request(NamedTuple):
    """The gradients requested of an operator: a name or ``EMPTY`` for each input and output.

    ``is_masked`` is True for an operator before a mask.
    """

    grad_inputs: list[str]
    grad_outputs: list[str]
    is_masked: bool = False


class _Recorded(NamedTuple):
    """The gradient of an operator; ``is_masked`` is True at a mask, and before a mask."""

    operators: list[Operator]
    is_masked: bool


def build_grad_op(operator: Operator, scope: Scope, no_grad_set: Collection[str] = ()) -> AnyOp:
    """The gradient operator of an operator.

    The gradient operator reads ``y@GRAD`` for each output y, and the arrays used by the function's
    backward. ``x@GRAD`` is written for each input x. If x is in several slots, the parts are
    ``x@GRAD@RENAME@0``, ``x@GRAD@RENAME@1`` ...

    Args:
        operator: the forward operator.
        scope: has the inputs; shapes, dtypes and devices matter.
        no_grad_set: inputs without a gradient.

    Returns:
        An operator, or a NetOp of type ``<type>_grad`` with several operators.
    """
    names = operator.input_names
    grad_inputs = []
    for position, name in enumerate(names):
        several = names.count(name) > 1
        part = f"{RENAME}{names[:position].count(name)}" if several else ""
        wanted = name not in no_grad_set and is_differentiable(scope.find(name).raw)
        grad_inputs.append(f"{name}{GRAD}{part}" if wanted else EMPTY)
    grad_outputs = [name if name == EMPTY else name + GRAD for name in operator.output_names]
    namer = Namer([*names, *operator.output_names, *grad_inputs, *grad_outputs])
    found = _record_backward(operator, scope, _Request(grad_inputs, grad_outputs), namer)
    return _as_one(found.operators, operator)


def _as_one(operators: list[Operator], forward: Operator) -> AnyOp:
    return operators[0] if len(operators) == 1 else NetOp(operators, f"{forward.type}_grad")


def _record_backward(
    operator: Operator, scope: Scope, request: _Request, namer: Namer
) -> _Recorded:
    """The operators of a function's backward; none if there is no gradient."""
    targets = tuple(i for i, name in enumerate(request.grad_inputs) if name != EMPTY)
    node = operator.make_node()
    if request.is_masked:
        mark(node, always=True)
    nothing = _Recorded([], request.is_masked)
    sources = [scope.find(name, operator.type) for name in operator.input_names]
    # views: the recorder knows an array under a single name
    xs = [wrap_array(x.raw[...], x.device, i in targets) for i, x in enumerate(sources)]
    with force_backprop_mode(), making_net():
        ys = node.apply(tuple(xs))
        if not targets or node.inputs is None:
            return nothing
        gys = _example_gradients(ys, request.grad_outputs)
        if all(gy is None for gy in gys):
            return nothing
        recorder = NetRecorder(namer)
        for variables, names in (
            (xs, operator.input_names),
            (ys, operator.output_names),
            (gys, request.grad_outputs),
        ):
            for variable, name in zip(variables, names, strict=True):
                if variable is not None:
                    recorder.bind(variable, name)
        given = [(y, gy) for y, gy in zip(ys, gys, strict=True) if gy is not None]
        with recorder:
            results = grad(
                [y for y, _ in given],
                [xs[i] for i in targets],
                [gy for _, gy in given],
                enable_double_backprop=True,
            )
    wanted = [request.grad_inputs[i] for i in targets]
    return _Recorded(_written_to(recorder, results, wanted), node.is_masked)


def _example_gradients(ys: Sequence[Variable], names: Sequence[str]) -> list[Variable | None]:
    """A Variable of ones for each output with a gradient."""
    examples: list[Variable | None] = []
    for y, name in zip(ys, names, strict=True):
        given = name != EMPTY and y.raw is not None and is_differentiable(y.raw)
        ones = wrap_array(y.xp.ones_like(y.raw), y.device, True) if given else None
        examples.append(ones)
    return examples


def _written_to(
    recorder: NetRecorder, results: Sequence[Variable | None], wanted: list[str]
) -> list[Operator]:
    """The recorded operators, with the wanted names for the results."""
    copies, renamed = [], {}
    own = {name for operator in recorder.operators for name in operator.output_names}
    for result, name in zip(results, wanted, strict=True):
        if result is None:
            continue
        source = recorder.name_of(result)
        if source in own and source not in renamed:
            renamed[source] = name
        else:  # an unchanged gradient, or a gradient of two inputs
            copies.append(operator_of(Identity(), [source], [name]))
    del results
    recorder.finish()
    operators = [one.renamed(renamed) for one in [*recorder.operators, *copies]]
    return needed_operators(operators, wanted)


class _Builder:
    """Collects the operators of a backward net.

    Attributes:
        parts: for each variable, the names of the gradient's parts written so far.
        recorded: the names and the gradient of each kind of operator met so far.
        masked: the names of the variables before a mask; see ``functions/masking.py``.
    """

    def __init__(
        self, scope: Scope, no_grad: Collection[str], zero_fill: bool, dropping: bool
    ) -> None:
        self.scope = scope
        self.dropping = dropping
        self.no_grad = set(no_grad)
        self.zero_fill = zero_fill
        self.parts: dict[str, list[str]] = {}
        self.namer = Namer()
        self.recorded: dict[Any, tuple[list[str], _Recorded]] = {}
        self.masked: set[str] = set()

    def seed(self, name: str) -> str:
        """The name of a target's given gradient, ``name@GRAD`` if free."""
        given = self.namer.like(name + GRAD)
        self.parts.setdefault(name, []).append(given)
        return given

    def gradient(self, name: str, operators: list[AnyOp]) -> str:
        """The name of a variable's gradient, the sum of the parts; ``EMPTY`` without parts."""
        parts = self.parts.get(name, [])
        if not parts or name in self.no_grad:
            return EMPTY
        if len(parts) > 1:
            total = self.namer.like(name + GRAD)
            kind = "add" if len(parts) == 2 else "add_all"
            operators.append(Operator(kind, parts, [total]))
            self.parts[name] = parts = [total]
        return parts[0]

    def net_gradient(self, net: NetOp, needed: set[str]) -> list[AnyOp]:
        """The gradient operators of a net, in inverted order; an inner net gives a net."""
        operators: list[AnyOp] = []
        for operator in reversed(net.operators):
            if isinstance(operator, NetOp):
                inner = self.net_gradient(operator, needed)  # as deep as nets are nested
                if inner:
                    operators.append(NetOp(inner, f"{operator.type}_grad"))
            else:
                self.operator_gradient(operator, needed, operators)
                if self.dropping:  # no operator left reads these outputs
                    for name in operator.output_names:
                        self.scope.drop(name)
        return operators

    def operator_gradient(
        self, operator: Operator, needed: set[str], operators: list[AnyOp]
    ) -> None:
        """Append the gradient of an operator, after sums and zeros for the outputs' gradients."""
        is_masked = not self.masked.isdisjoint(operator.output_names)
        if is_masked:
            self.masked.update(operator.input_names)
        grad_outputs = [self.gradient(name, operators) for name in operator.output_names]
        targets = [name in needed for name in operator.input_names]
        if not any(targets) or all(name == EMPTY for name in grad_outputs):
            return
        if self.zero_fill:
            grad_outputs = self._filled(operator, grad_outputs, operators)
        grad_inputs = [
            self.namer.new(f"{name}{GRAD}{RENAME}") if wanted else EMPTY
            for name, wanted in zip(operator.input_names, targets, strict=True)
        ]
        request = _Request(grad_inputs, grad_outputs, is_masked)
        found, is_mask = self._gradient_of(operator, request)
        if is_mask:
            self.masked.update(operator.input_names)
        written = {name for one in found for name in one.output_names}
        for name, part in zip(operator.input_names, grad_inputs, strict=True):
            if part in written:
                self.parts.setdefault(name, []).append(part)
        if found:
            operators.append(_as_one(found, operator))

    def _gradient_of(self, operator: Operator, request: _Request) -> _Recorded:
        """The recorded backward; equal operators have equal gradients, with other names."""
        given = [*operator.input_names, *operator.output_names, *request.grad_inputs]
        given += request.grad_outputs
        xs = [self.scope.find(name, operator.type) for name in operator.input_names]
        specs = tuple([(x.device, tuple(x.raw.shape), x.raw.dtype) for x in xs])
        positions = {name: i for i, name in enumerate(given)}
        pattern = tuple([name if name == EMPTY else positions[name] for name in given])
        key = operator.type, frozen(operator.attrs), specs, pattern, request.is_masked
        try:
            known = self.recorded.get(key)
        except TypeError:  # a constant without a hash
            return _record_backward(operator, self.scope, request, self.namer)
        if known is None:
            found = _record_backward(operator, self.scope, request, self.namer)
            self.recorded[key] = given, found
            return found
        names = dict(zip(known[0], given, strict=True))
        operators, is_masked = known[1]
        for one in operators:
            for name in one.output_names:
                if name not in names:
                    names[name] = self.namer.new(name.rstrip("0123456789") or "t")
        return _Recorded([one.renamed(names) for one in operators], is_masked)

    def _filled(
        self, operator: Operator, grad_outputs: list[str], operators: list[AnyOp]
    ) -> list[str]:
        """The output gradients, with zeros for missing gradients."""
        filled = []
        for name, gradient in zip(operator.output_names, grad_outputs, strict=True):
            empty = gradient == EMPTY and name != EMPTY
            if empty and is_differentiable(self.scope.find(name).raw):
                gradient = self.namer.like(f"{name}@ZERO")
                operators.append(operator_of(FillLike(0.0), [name], [gradient]))
            filled.append(gradient)
        return filled

    def single_parts(self) -> dict[str, str]:
        """New names ``x@GRAD`` for gradients of a single part: no number is needed."""
        names = {}
        for name, parts in self.parts.items():
            wanted = name + GRAD
            if len(parts) == 1 and RENAME in parts[0] and wanted not in self.namer.taken:
                names[parts[0]] = wanted
        return names


def backward(
    net: NetOp,
    scope: Scope,
    no_grad_set: Collection[str] = (),
    *,
    targets: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    zero_fill: bool = False,
) -> NetOp:
    """The backward net of a net: from the targets' gradients to the inputs' gradients.

    The backward net reads ``y@GRAD`` for each target y, and variables of the forward net.
    ``x@GRAD`` is written for each input x with an influence on a target. Run the backward net in
    the scope of the forward run.

    Args:
        net: the forward net.
        scope: the scope of a forward run, with shapes, dtypes and devices.
        no_grad_set: variables without a gradient, such as frozen weights.
        targets: the variables to start from; by default the outputs not read by an operator.
        inputs: the variables to differentiate with respect to; by default all floating inputs.
        zero_fill: give zeros for the missing gradient of an output, as Paddle does. Otherwise the
            function's backward gets None, as in define-by-run code.

    Raises:
        NetError: the net does not write a target, the gradient's name is taken by the net, or a
            variable is not in the scope.
    """
    found = build_backward(net, scope, no_grad_set, targets, inputs, zero_fill)
    for target, given in found.seeds.items():
        if given != target + GRAD:
            raise NetError(
                f"backward: {target}{GRAD}, from which it starts, is a variable of the net "
                "already. Use append_backward, which gives the gradients other names."
            )
    return found.net


class Backward(NamedTuple):
    """A backward net, and the names of its gradients.

    Attributes:
        net: the backward net.
        gradients: for each input, the gradient's name, or None.
        seeds: for each target, the name of the given gradient.
        masked: the names of the variables before a mask.
    """

    net: NetOp
    gradients: dict[str, str | None]
    seeds: dict[str, str]
    masked: set[str]


def build_backward(
    net: NetOp,
    scope: Scope,
    no_grad_set: Collection[str],
    targets: Sequence[str] | None,
    inputs: Sequence[str] | None,
    zero_fill: bool,
    taken: Iterable[str] = (),
    dropping: bool = False,
    is_masked: bool = False,
) -> Backward:
    """The backward net. New names differ from the names of the net and from ``taken``.

    With ``dropping`` the scope loses each variable after the last use. With ``is_masked`` the
    targets stand before a mask.
    """
    targets = unread(net) if targets is None else targets
    _check_targets(net, targets)
    _check_no_grad_set(net, scope, no_grad_set)
    sources = [n for n in (net.input_names if inputs is None else inputs) if n not in no_grad_set]
    builder = _Builder(scope, no_grad_set, zero_fill, dropping)
    builder.namer.taken.update([*net.input_names, *net.output_names, *taken])
    seeds = {name: builder.seed(name) for name in targets}
    builder.masked.update(targets if is_masked else ())
    needed = _needed(net, sources, set(no_grad_set), scope)
    operators = builder.net_gradient(net, needed)
    gradients = {}
    for name in sources:
        found = builder.gradient(name, operators)
        gradients[name] = None if found == EMPTY else found
    names = builder.single_parts()
    result = NetOp(operators, f"{net.type}_grad").renamed(names)
    gradients = {x: gx and names.get(gx, gx) for x, gx in gradients.items()}
    return Backward(result, gradients, seeds, builder.masked)


def _check_no_grad_set(net: NetOp, scope: Scope, names: Collection[str]) -> None:
    """Raises NetError if neither the net nor the scope has a variable of a name."""
    known = {*net.input_names, *net.output_names}
    for operator in net.flattened():
        known.update([*operator.input_names, *operator.output_names])
    for name in names:
        if name not in known and name not in scope:
            close = closest(name, known)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"inputs: {sorted(net.input_names)}."
            )
            raise NetError(f"backward: no_grad_set has {name!r}, no variable of the net; {hint}")


def unread(net: NetOp) -> list[str]:
    """The names that are written by the net, and not read."""
    flat = net.flattened()
    read = {name for operator in flat for name in operator.input_names}
    return [name for name in net.output_names if name not in read]


def _check_targets(net: NetOp, targets: Iterable[str]) -> None:
    written = set(net.output_names)
    for name in targets:
        if name not in written:
            raise NetError(
                f"backward: target {name!r} is not written by the net; it writes "
                f"{', '.join(sorted(written))}."
            )


def _needed(net: NetOp, sources: Iterable[str], no_grad: set[str], scope: Scope) -> set[str]:
    """The sources, and the floating variables computed from a source."""
    needed = {name for name in sources if is_differentiable(scope.find(name).raw)}
    for operator in net.flattened():
        if needed.isdisjoint(operator.input_names):
            continue
        for name in operator.output_names:
            if name != EMPTY and name not in no_grad and is_differentiable(scope.find(name).raw):
                needed.add(name)
    return needed


def append_backward(
    net: NetOp,
    scope: Scope,
    targets: Sequence[str],
    parameters: Sequence[str],
    no_grad_set: Collection[str] = (),
) -> dict[str, str | None]:
    """Append the gradient operators of some targets to a net.

    Each target's gradient starts as ones.

    Returns:
        The name of each parameter's gradient; None without an influence on a target.
    """
    found = build_backward(net, scope, no_grad_set, targets, parameters, False)
    for name, given in found.seeds.items():
        net.append(operator_of(FillLike(1.0), [name], [given]))
    for operator in found.net.operators:
        net.append(operator)
    return found.gradients
