"""The reason why a Variable has a gradient, or none, in words.

Requirement: ``x.grad is None`` has a dozen reasons, each with another cure. The reason is read off
the Variable and the graph behind the Variable. If several reasons are possible, the text names all
reasons and a way to find out. The text holds no guess, and the graph does not change.

A run of backward and a cleared gradient leave no trace. Outputs hold the graph, not inputs. So the
text can name a path from y to x only if y is given: ``x.explain_grad(y)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import tell_value_read
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import is_floating, to_host
from tinynode.errors import OperandError, describe, dtype_name, number_text, printable
from tinynode.hooks.not_finite import first_bad, is_finite, place_text
from tinynode.hooks.origins import Origin, OriginFinder, place_of
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.show.graphs.text import functions_behind

_WIDTH = 92
_NAMED = 6  # Variables that are named; further ones are counted


class Explanation(str):
    """A text with a ``repr`` without quotes, for prompts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain_grad(x: Variable, y: Variable | None = None) -> Explanation:
    """The text of ``Variable.explain_grad``."""
    tell_value_read("x.explain_grad()")
    if y is not None and not isinstance(y, Variable):
        raise OperandError(f"explain_grad: y must be a Variable or None, got {describe(y)}.")
    if x.grad_var is not None:
        head = f"{_title(x)} is there: {_gradient_facts(x.grad_var)}."
        origin = [] if is_finite(x.grad_var.raw) else _origin_lines(x, y)
        return _wrapped([head, *origin, *_with_gradient(x, x.grad_var)])
    head = f"{_title(x)} is None"
    lines = _reasons_in_variable(x)
    if lines is None and y is not None:
        lines = _reasons_from_result(x, y, printable(y.name or "y"))
    if lines is None:
        lines = _reasons_in_graph(x)
    return _wrapped([f"{head}: {lines[0]}", *lines[1:]])


def _wrapped(lines: list[str]) -> Explanation:
    """The sentences as a text, in lines of at most 92 letters."""
    indents = ["  " if line.startswith("- ") else "" for line in lines]
    pairs = zip(lines, indents, strict=True)
    return Explanation("\n".join(fill(line, _WIDTH, subsequent_indent=i) for line, i in pairs))


def gradient_state(x: Variable) -> str:
    """The state of a gradient in a few words; every word is certain."""
    if x.grad_var is not None:
        if x.raw is not None and x.grad_var.shape != x.shape:
            return f"kept, shape {x.grad_var.shape}"
        return "kept" if x.requires_grad else "assigned"
    if x.raw is None:
        return "none, no array"
    if not x.requires_grad:
        return "not required"
    if x.node_or_none is None:
        return "none, not in a graph"
    return "none yet" if x.creator_node is None else "none, not a leaf"


def gradient_reasons(x: Variable) -> str:
    """The explanation of ``gradient_state``: that of ``explain_grad``, without numbers."""
    if x.grad_var is not None:
        return _wrapped(_with_gradient(x, x.grad_var))
    lines = _reasons_in_variable(x) or _reasons_in_graph(x)
    return _wrapped([lines[0][0].upper() + lines[0][1:], *lines[1:]])


def reasons_without_gradient(x: Variable, y: Variable, to: str) -> str:
    """The reason why a backward from y gives x no gradient; ``to`` is the name of y.

    A gradient of an earlier backward is not looked at.
    """
    lines = _reasons_in_variable(x) or _reasons_from_result(x, y, to)
    return " ".join(line for line in lines if not line.startswith("It depends on"))


def _title(x: Variable) -> str:
    """The gradient in words; a Variable without a name is not called x."""
    return f"{printable(x.name)}.grad" if x.name else "The gradient of this variable (x)"


def _name(x: Variable | VariableNode) -> str:
    return printable(x.name or "x")


# --- the gradient exists -------------------------------------------------------------------------


def _with_gradient(x: Variable, gradient: Variable) -> list[str]:
    """The possible origins of the gradient."""
    lines = []
    if x.raw is not None and gradient.shape != x.shape:
        lines.append(
            f"It has another shape than the array, {x.shape}: the array was replaced since. Call "
            "cleargrad(), and run backward again."
        )
    if not x.requires_grad:
        lines.append(
            "It was assigned, to grad or grad_var: backward gives none to a variable that "
            "requires no gradient."
        )
    elif x.creator_node is not None:
        lines.append(
            f"{_name(x)} was computed by {x.creator_node.label}. Its gradient was kept by "
            "backward(retain_grad=True) or grad(..., set_grad=True), or it was assigned, for a "
            "backward to start from."
        )
    else:
        lines.append(
            "Each backward pass that reaches it adds to it. The number of passes is not recorded: "
            "call cleargrad() before a backward pass that must start from zero."
        )
    if gradient.creator_node is not None:
        lines.append("It has a graph of its own: grad_var can be differentiated in turn.")
    return lines


def _gradient_facts(grad: Variable) -> str:
    """Shape, dtype, device, norm and range of a gradient."""
    host = to_host(grad.raw).astype(numpy.float64)
    facts = f"shape {grad.shape}, {dtype_name(grad.dtype)}, on {grad.device}"
    bad = int(host.size - numpy.isfinite(host).sum())
    if not host.size:
        return f"{facts}; it has no entries"
    if bad:
        first = first_bad(grad.raw)
        return (
            f"{facts}; {bad} of its {host.size} entries are nan or inf. First, "
            f"{place_text(first.place)} is {first.value}"
        )
    if not host.any():
        return (
            f"{facts}; all of it is 0: the result does not change with it here (a ReLU that is "
            "off, a product with 0), or it was assigned"
        )
    low, high = number_text(host.min()), number_text(host.max())
    norm = number_text(float(numpy.linalg.norm(host.reshape(-1))))
    return f"{facts}; norm {norm}, entries from {low} to {high}"


def _origin_lines(x: Variable, y: Variable | None) -> list[str]:
    """The function that made NaN or inf, the operands and the guard, if y is given."""
    again = (
        "tinynode.using_config(debug=True), around forward and backward, names the function and "
        "the line where NaN or inf comes up."
    )
    if y is None:
        return [
            f"{_name(x)}.explain_grad(y), with y the start of backward, names the function.",
            again,
        ]
    to = printable(y.name or "y")
    if not y.requires_grad or not _uses(functions_behind([y.node], differentiable=True), x):
        return [f"{to} does not depend on it: no backward from {to} gave these entries."]
    origin, error = _origin_from(x, y)
    if error is not None:
        return [f"Another backward from {to} ended with {type(error).__name__}: {error}", again]
    if origin is None:
        return [f"Another backward from {to} gives finite entries: these came from elsewhere."]
    line = ""
    if origin.function is not None and origin.function.stack:
        line = f", called at {place_of(origin.function)}"
    return [f"The origin is the backward of {origin.head}{line}.", *origin.facts]


def _origin_from(x: Variable, y: Variable) -> tuple[Origin | None, Exception | None]:
    """The origin for a second backward from y, which writes no gradient; or the error of it."""
    # here, since the doctor shows pictures
    from tinynode.doctor.backward_pass import BackwardPass, undisturbed

    finder = OriginFinder()
    with undisturbed(), finder:
        ran = BackwardPass(y, [x.node], functions_behind([y.node]))
    return finder.found.get(x.node), ran.error


# --- no gradient: the variable itself tells the reason -------------------------------------------


def _reasons_in_variable(x: Variable) -> list[str] | None:
    """The reasons that need no graph; None if none applies."""
    if x.raw is None:
        return ["the variable is empty. Assign an array to its .array, and compute with it."]
    if not x.requires_grad:
        return _no_gradient_required(x)
    if x.node_or_none is not None and x.node_or_none.get_variable_or_none() is not x:
        return [
            "in the graph another Variable stands in its place, and a gradient goes to that one. "
            "That is so for what a function retained (get_retained_inputs), where the Variable "
            "that was given to it is gone, or has another array now. tinynode.grad([y], [x]) "
            "gives the gradient all the same."
        ]
    return None


def _no_gradient_required(x: Variable) -> list[str]:
    if not is_floating(x.raw):
        return [
            f"it is {dtype_name(x.dtype)}, and only floating dtypes have derivatives. Start from "
            "floats: 1.0 in place of 1, or tinynode.asarray(..., dtype='float32')."
        ]
    if x.creator_node is not None:
        return [
            f"it requires no gradient. It was computed by {x.creator_node.label}, of whose inputs "
            "none does."
        ]
    if isinstance(x, Buffer):
        return ["it is a Buffer: state that is not trained. Only a Parameter gets a gradient."]
    if isinstance(x, Parameter):
        return [
            "it is frozen: its requires_grad is False. Call model.unfreeze(), or set its "
            "requires_grad to True, and compute again."
        ]
    return [
        "it requires no gradient. One of these made it so:",
        "- it was made with requires_grad=False;",
        "- it was made by as_variable, which takes an array as a constant;",
        "- it is a detach() of another Variable: look at the grad of that one;",
        "- it was computed from Variables none of which requires a gradient;",
        "- it was computed without a graph, as under no_backprop_mode().",
        "Make it with Variable(array, requires_grad=True), and compute with that.",
    ]


def _reasons_in_graph(x: Variable) -> list[str]:
    """The reasons in the node and the graph, if no result was given."""
    if x.node_or_none is None:
        return [
            "no recorded function has used it, so no backward can reach it. That is so for",
            "- a leaf that the result does not depend on, or that was used only under "
            "no_backprop_mode(), through x.array, or through x.detach();",
            "- a result that was computed under no_backprop_mode();",
            "- a variable whose array was replaced by one of another shape, dtype or device.",
            "Compute with the variable itself, outside of no_backprop_mode(), then run backward.",
        ]
    creator = x.creator_node
    if creator is not None:
        return [f"it was computed by {creator.label}, so it is not a leaf.", *_intermediate(x)]
    ask = f"Which one it is, {_name(x)}.explain_grad(y) says, with y the Variable to start from."
    if x.rank > 0:
        return [
            f"unchain() or unchain_backward() cut it from what computed it (its rank is {x.rank}, "
            "and it has no creator). Now it is a leaf: a backward from a result that was computed "
            "from it gives it a gradient, and none has since, or it was cleared.",
            f"Whether y depends on it, {_name(x)}.explain_grad(y) says.",
        ]
    return [
        "it is a leaf that requires a gradient, and has none now. Either",
        "- no backward has run since it was made, or since its gradient was cleared (cleargrad(), "
        "cleargrads()): call y.backward();",
        "- or y.backward() has run, and y does not depend on it: it was used for something else;",
        "- or y depends on it, and a function between the two has no gradient for it.",
        ask,
    ]


def _intermediate(x: Variable) -> list[str]:
    """For a function's output: the reasons, the state of the leaves, and cures."""
    leaves = [
        node
        for node in _leaves(functions_behind([x.node], differentiable=True))
        if node.requires_grad
    ]
    reached = sum(node.grad is not None for node in leaves)
    lines = [
        "- backward keeps the gradients of leaves alone: y.backward(retain_grad=True) keeps this "
        "one too, and tinynode.grad([y], [x]) gives it without touching any grad;",
        "- the gradient that a backward starts from is used up by it;",
        "- or no backward has run yet.",
    ]
    if leaves:
        lines.append(
            f"Leaves behind it that require a gradient: {len(leaves)}; {reached} of them "
            f"{'has' if reached == 1 else 'have'} one at present."
        )
    return lines


# --- no gradient: the result that backward started from tells the reason -------------------------


def _reasons_from_result(x: Variable, y: Variable, to: str) -> list[str]:
    """The path of a backward from y to x, or the end of the path before x."""
    if not y.requires_grad:
        return [
            f"{to} requires no gradient, so {to}.backward() is an error: it is not floating, is a "
            "detach() of another, was computed from variables none of which requires one, or "
            "under no_backprop_mode()."
        ]
    if y.creator_node is None:
        why = "it is a leaf"
        if y.rank > 0:
            why = "unchain() or unchain_backward() cut it off"
        return [f"{to} has no recorded graph behind it: {why}. Start from one that has."]
    if y is x:
        return [
            "it is the variable that backward starts from, and its gradient is used up by it. "
            "backward(retain_grad=True) keeps it.",
        ]
    functions = functions_behind([y.node], differentiable=True)
    users = _uses(functions, x)
    return _reached(x, to, users) if users else _not_reached(x, y, to, functions)


def _uses(functions: Iterable[FunctionNode], x: Variable) -> list[FunctionNode]:
    """The functions with x as an input."""
    return [f for f in functions if any(node is x.node_or_none for node in f.inputs or ())]


def _reached(x: Variable, to: str, users: Sequence[FunctionNode]) -> list[str]:
    labels = _some(dict.fromkeys(f.label for f in users))
    if x.creator_node is not None:
        return [
            f"{to} depends on it (by {labels}), and it was computed by {x.creator_node.label}: "
            "backward keeps the gradients of leaves alone.",
            f"{to}.backward(retain_grad=True) keeps this one too; tinynode.grad([{to}], "
            f"[{_name(x)}]) gives it without touching any grad.",
        ]
    return [
        f"{to} depends on it (by {labels}), so {to}.backward() gives it one. Either",
        f"- {to}.backward() has not run since {_name(x)} was made, or since its gradient was "
        "cleared;",
        "- or a function on the way has no gradient for its input (it is not differentiable).",
        f"If tinynode.grad([{to}], [{_name(x)}]) gives [None], it is the second.",
    ]


def _not_reached(x: Variable, y: Variable, to: str, functions: list[FunctionNode]) -> list[str]:
    """The leaves of a result without a path to x."""
    leaves = _leaves(functions)
    if _uses(functions_behind([y.node]), x):
        return [
            f"{to} was computed with it, but only through variables that have no derivative "
            "(whole numbers: an index, an argmax)."
        ]
    lines = [f"{to} does not depend on it: the graph has no path from {to} to it."]
    same = [node for node in leaves if _has_array(node, x)]
    if same:
        lines.append(
            f"The graph of {to} has the array of {_name(x)}, but as another variable: "
            f"{_name(x)}.array, {_name(x)}.detach() or a new Variable was given to a function. "
            f"Give {_name(x)} itself."
        )
    cut = [node for node in leaves if node.rank > 0]
    if cut:
        lines.append(
            f"The graph was cut by unchain() or unchain_backward() at {_some(map(_node, cut))}: "
            "what lies behind is not reached."
        )
    others = [node for node in leaves if node.rank == 0 and node.requires_grad]
    if others:
        lines.append(f"It depends on {_some(map(_node, others))}.")
    return lines


def _leaves(functions: list[FunctionNode]) -> list[VariableNode]:
    """The inputs without a creator, each once."""
    nodes = dict.fromkeys(node for function in functions for node in function.inputs or ())
    return [node for node in nodes if node.creator_node is None]


def _has_array(node: VariableNode, x: Variable) -> bool:
    """True if a leaf has the very array of x; False too if the leaf's Variable was freed."""
    variable = node.get_variable_or_none()
    return node.data is x.raw or (variable is not None and variable.raw is x.raw)


def _node(node: VariableNode) -> str:
    return f"{printable(node.name)} ({node.label})" if node.name else f"a variable ({node.label})"


def _some(texts: Iterable[str]) -> str:
    """The first few texts, and the number of the others."""
    known = list(texts)
    more = len(known) - _NAMED
    return ", ".join(known[:_NAMED]) + (f" and {more} more" if more > 0 else "")
