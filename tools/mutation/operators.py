"""The operators of tinynode's own mutants, in the form of cosmic-ray.

Requirement: a mutant is a bug that a person could write: a lost ``unbroadcast``, a cut in the
graph, two swapped arguments, a wrong sign. Each operator yields source texts that replace a node
of parso's tree. ``OPERATORS`` names all operators of a run, cosmic-ray's own included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import cosmic_ray.plugins
import parso
from cosmic_ray.operators.operator import Example, Operator

Node = parso.tree.NodeOrLeaf

KEPT_FORM = {"device", "dtype", "form", "ndim", "node", "raw", "shape", "size", "spec", "xp"}
"""Attributes outside every graph: a cut before these attributes has no effect."""

FIRST_ARGUMENT = {"broadcast_to", "sum_to", "unbroadcast"}
CASTS = {"as_type", "astype", "narrowed", "widened"}
COPIES = {"ascontiguousarray", "copy", "deepcopy"}
RETAINING = {"retain_inputs", "retain_outputs"}
GRADIENT_NAME = re.compile(r"g{1,3}[a-z]?\d?")

SYMMETRIC = {"add", "equal", "logaddexp", "logical_and", "logical_or", "max", "maximum", "min"}
SYMMETRIC |= {"add_arrays", "minimum", "multiply", "not_equal", "sum_of"}
NO_ORDER = SYMMETRIC | {"cast", "getattr", "hasattr", "isinstance", "range", "reshape", "setattr"}
"""Calls whose first two arguments have no order, or crash at once in the other order."""

NEIGHBOURS = {
    "all": "any",
    "any": "all",
    "argmax": "argmin",
    "argmin": "argmax",
    "ceil": "floor",
    "cos": "sin",
    "exp": "expm1",
    "extend": "append",
    "floor": "ceil",
    "greater": "greater_equal",
    "greater_equal": "greater",
    "less": "less_equal",
    "less_equal": "less",
    "log": "log1p",
    "max": "min",
    "maximum": "minimum",
    "mean": "sum",
    "min": "max",
    "minimum": "maximum",
    "ones": "zeros",
    "ones_like": "zeros_like",
    "sin": "cos",
    "sum": "max",
    "zeros": "ones",
    "zeros_like": "ones_like",
}


# --- reading the tree ------------------------------------------------------------------------


def text_of(node: Node) -> str:
    """The source text without the blanks and comments before the node."""
    return str(node.get_code(include_prefix=False))


def call_name(node: Node) -> str:
    """``f`` of ``f(...)``, ``xp.f(...)`` and ``x.y.f(...)``; empty for other nodes."""
    if node.type != "atom_expr" or not text_of(node.children[-1]).startswith("("):
        return ""
    called = node.children[-2].get_last_leaf()
    return str(called.value) if called.type == "name" else ""


def arguments_of(call: Node) -> list[Node]:
    """The nodes of all arguments of a call."""
    inside = call.children[-1].children[1:-1]
    if inside and inside[0].type == "arglist":
        inside = inside[0].children
    return [one for one in inside if text_of(one) != ","]


def positional(call: Node) -> list[Node]:
    """The positional arguments of a call, up to the first starred argument."""
    found = []
    for one in arguments_of(call):
        if one.type == "argument":
            break
        found.append(one)
    return found


def elements_of(node: Node) -> list[Node]:
    """The elements of a tuple, with or without parentheses; empty for other nodes."""
    if node.type == "atom" and text_of(node).startswith("(") and len(node.children) == 3:
        node = node.children[1]
    if node.type in {"testlist_comp", "testlist", "testlist_star_expr"}:
        if any(child.type == "sync_comp_for" for child in node.children):
            return []
        return [one for one in node.children if text_of(one) != ","]
    return []


def tuple_text(elements: list[str]) -> str:
    """The source text of a tuple."""
    return "(" + ", ".join(elements) + ("," if len(elements) == 1 else "") + ")"


def function_around(node: Node) -> Node | None:
    """The innermost function around a node."""
    return parso.python.tree.search_ancestor(node, "funcdef")


def is_gradient_code(node: Node) -> bool:
    """True inside of a backward, or of a function that returns gradients."""
    function = function_around(node)
    if function is None:
        return False
    result = text_of(function.annotation) if function.annotation else ""
    return function.name.value in {"backward", "backward_accumulate"} or "Gradient" in result


def returned_in_backward(node: Node) -> list[Node]:
    """The elements of a tuple that a function of gradients returns."""
    if node.type != "return_stmt" or not is_gradient_code(node):
        return []
    return elements_of(node.children[1])


# --- the operators ---------------------------------------------------------------------------


class Rewrite(Operator):  # type: ignore[misc]
    """An operator that replaces a node by other source text; see ``texts``."""

    shown: tuple[tuple[str, str], ...] = ()

    def texts(self, node: Node) -> Iterator[str]:
        """The source texts that can replace a node."""
        raise NotImplementedError

    def mutation_positions(self, node: Node) -> Iterator[tuple[Any, Any]]:
        for _ in self.texts(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        prefix = node.get_first_leaf().prefix
        return parso.python.tree.Name(list(self.texts(node))[index], node.start_pos, prefix=prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return tuple(Example(before, after) for before, after in cls.shown)


class DropUnbroadcast(Rewrite):
    """unbroadcast(gx, self, 0) -> gx"""

    shown = (("y = unbroadcast(g * x, self, 0)", "y = (g * x)"), ("y = tn.sum_to(g, s)", "y = g"))
    names = FIRST_ARGUMENT

    def texts(self, node: Node) -> Iterator[str]:
        if call_name(node) in self.names and positional(node):
            first = positional(node)[0]
            is_short = first.type in {"name", "atom_expr", "atom"}
            yield text_of(first) if is_short else f"({text_of(first)})"


class DropCast(DropUnbroadcast):
    """xp.astype(x, dtype) -> x"""

    shown = (("y = xp.astype(x, xp.int8)", "y = x"), ("y = x.astype(d)", "y = x"))
    names = CASTS

    def texts(self, node: Node) -> Iterator[str]:
        if call_name(node) in self.names and len(positional(node)) < 2:
            yield owner_text(node)
        else:
            yield from super().texts(node)


class DropCopy(Rewrite):
    """x.copy() -> x"""

    shown = (("y = x.copy()", "y = x"), ("y = copy.copy(x)", "y = x"), ("y = dict(x)", "y = x"))

    def texts(self, node: Node) -> Iterator[str]:
        name, values = call_name(node), []
        if name in COPIES or name in {"dict", "list"}:
            values = arguments_of(node)
            if len(values) == 1 and values[0].type != "argument":
                yield text_of(values[0])
            elif not values and name in COPIES:
                yield owner_text(node)


def owner_text(call: Node) -> str:
    """``x.y`` of ``x.y.f(...)``."""
    return "".join(one.get_code() for one in call.children[:-2]).strip()


class CutGraph(Rewrite):
    """A Variable of a backward, outside of the graph: gy * cos(x) -> gy * cos(x.detach())"""

    shown = (
        ("def backward(self, t, gs):\n  x, = self.get_retained_inputs()\n  return f(x),",
         "def backward(self, t, gs):\n  x, = self.get_retained_inputs()\n  return f(x.detach()),"),
    )  # fmt: skip

    def texts(self, node: Node) -> Iterator[str]:
        if node.type == "name" and is_gradient_code(node) and is_read_as_variable(node):
            yield f"{node.value}.detach()"


def is_read_as_variable(name: Node) -> bool:
    """True for a Variable of a backward, unless only a shape or a dtype is read."""
    parent, after = name.parent, name.get_next_sibling()
    if name.is_definition() or parent.type in {"param", "comparison", "argument"}:
        return False
    if is_attribute(name):
        return False
    if parent.type == "atom_expr" and after is not None:
        attribute = after.children[1] if after.type == "trailer" else None
        if attribute is None or text_of(after).startswith("("):
            return False
        if getattr(attribute, "value", "") in KEPT_FORM | {"detach"}:
            return False
    return name.value in variables_of(function_around(name))


def is_attribute(name: Node) -> bool:
    """True for ``f`` of ``x.f``."""
    return name.parent.type == "trailer" and text_of(name.parent).startswith(".")


def variables_of(function: Node) -> set[str]:
    """The names that a backward unpacks from gradients and from retained Variables."""
    found: set[str] = set()
    for leaf in leaves_of(function):
        if leaf.type != "name" or not leaf.is_definition():
            continue
        statement = leaf.get_definition()
        if statement.type == "param":
            if statement.annotation is not None and text_of(statement.annotation) == "Variable":
                found.add(leaf.value)
        elif statement.type == "expr_stmt":
            source = text_of(statement.get_rhs())
            if "get_retained" in source or source == "grad_outputs":
                found.add(leaf.value)
    return found


def leaves_of(node: Node) -> Iterator[Node]:
    """All leaves below a node."""
    leaf, last = node.get_first_leaf(), node.get_last_leaf()
    while leaf is not None:
        yield leaf
        if leaf is last:
            return
        leaf = leaf.get_next_leaf()


class DropGradient(Rewrite):
    """return (gx, gy) of a backward -> return (None, gy)"""

    shown = (
        ("def backward(self): return (gx, gy)", "def backward(self): return (None, gy)"),
        ("def backward(self): return gx * 2,", "def backward(self): return (None,)"),
    )

    def texts(self, node: Node) -> Iterator[str]:
        elements = [text_of(one) for one in returned_in_backward(node)]
        for i, one in enumerate(elements):
            if one != "None" and not one.startswith("*"):
                changed = [*elements[:i], "None", *elements[i + 1 :]]
                yield f"return {tuple_text(changed)}"


class FlipSign(Rewrite):
    """A gradient with the other sign: return (gx,) -> return (-(gx),), and gx = a -> gx = -(a)"""

    shown = (
        ("def backward(self): return (a * b, g)", "def backward(self): return (-(a * b), g)"),
        ("def backward(self):\n  gx = a", "def backward(self):\n  gx = -(a)"),
    )

    def texts(self, node: Node) -> Iterator[str]:
        elements = [text_of(one) for one in returned_in_backward(node)]
        for i, one in enumerate(elements):
            if one != "None" and not one.startswith(("*", "-")) and not is_local(node, one):
                changed = [*elements[:i], f"-({one})", *elements[i + 1 :]]
                yield f"return {tuple_text(changed)}"
        if (
            node.type == "expr_stmt"
            and is_gradient_code(node)
            and text_of(node.children[1]) == "="
        ):
            target, value = text_of(node.children[0]), text_of(node.get_rhs())
            if GRADIENT_NAME.fullmatch(target) and not value.startswith("-"):
                short, _, condition = value.partition(" if ")
                yield f"{target} = -({short})" + (f" if {condition}" if condition else "")


def is_local(statement: Node, name: str) -> bool:
    """True for a gradient that an assignment of the same function computes."""
    function = function_around(statement)
    return bool(GRADIENT_NAME.fullmatch(name)) and f"{name} = " in text_of(function)


class RetainLess(Rewrite):
    """self.retain_inputs((0, 1)) -> self.retain_inputs((1,)), and (0,)"""

    shown = (("self.retain_inputs((0, 1))", "self.retain_inputs((1,))"),)

    def texts(self, node: Node) -> Iterator[str]:
        if call_name(node) in RETAINING and positional(node):
            argument = positional(node)[0]
            elements = [text_of(one) for one in elements_of(argument)]
            start = "".join(one.get_code() for one in node.children[:-1]).strip()
            for i in range(len(elements)):
                yield f"{start}({tuple_text(elements[:i] + elements[i + 1 :])})"
            if not elements and text_of(argument) != "()":
                yield f"{start}(())"


class SwapArguments(Rewrite):
    """f(x0, x1) -> f(x1, x0), for two different short arguments"""

    shown = (("y = xp.subtract(x0, x1)", "y = xp.subtract(x1, x0)"), ("f(a[0], a[1])", "f(a[1], a[0])"))  # noqa: E501  # fmt: skip

    def texts(self, node: Node) -> Iterator[str]:
        name = call_name(node)
        given = positional(node) if name else []
        if len(given) < 2 or name in NO_ORDER or not is_short(given[0], given[1]):
            return
        texts = [text_of(one) for one in arguments_of(node)]
        if texts[0] != texts[1]:
            start = "".join(one.get_code() for one in node.children[:-1]).strip()
            yield f"{start}({', '.join([texts[1], texts[0], *texts[2:]])})"


def is_short(*nodes: Node) -> bool:
    """True for names, attributes and items, which any place of a call can take."""
    return all(one.type in {"name", "atom_expr"} and call_name(one) == "" for one in nodes)


class SwapBranches(Rewrite):
    """where(c, x, y) -> where(c, y, x)"""

    shown = (("y = xp.where(x > 0, x, 0)", "y = xp.where(x > 0, 0, x)"),)

    def texts(self, node: Node) -> Iterator[str]:
        if call_name(node) == "where" and len(arguments_of(node)) == 3:
            condition, first, second = (text_of(one) for one in arguments_of(node))
            start = "".join(one.get_code() for one in node.children[:-1]).strip()
            yield f"{start}({condition}, {second}, {first})"


class PlainProduct(Rewrite):
    """zero_safe_multiply(g, d) -> g * d: an infinite derivative gives NaN where g is 0"""

    shown = (("y = zero_safe_multiply(g, d + 1)", "y = ((g) * (d + 1))"),)

    def texts(self, node: Node) -> Iterator[str]:
        if call_name(node) == "zero_safe_multiply" and len(positional(node)) == 2:
            first, second = (text_of(one) for one in positional(node))
            yield f"(({first}) * ({second}))"


class SwapReturned(Rewrite):
    """return (gx, gy) -> return (gy, gx)"""

    shown = (("def f(): return a, b", "def f(): return (b, a)"),)

    def texts(self, node: Node) -> Iterator[str]:
        if node.type == "return_stmt":
            elements = [text_of(one) for one in elements_of(node.children[1])]
            if len(elements) > 1 and elements[0] != elements[1]:
                yield f"return {tuple_text([elements[1], elements[0], *elements[2:]])}"


class DropRequiresGrad(Rewrite):
    """x.requires_grad -> False, where the value is read"""

    shown = (("y = wrap(a, x.requires_grad)", "y = wrap(a, False)"),)

    def texts(self, node: Node) -> Iterator[str]:
        ends = node.type == "atom_expr" and text_of(node.children[-1])
        is_attribute_read = ends in {".requires_grad", "._requires_grad"} and not is_target(node)
        is_name = node.type == "name" and node.value == "requires_grad"
        if is_attribute_read or (is_name and is_plain_read(node)):
            yield "False"


def is_target(node: Node) -> bool:
    """True left of an assignment."""
    statement = parso.python.tree.search_ancestor(node, "expr_stmt")
    if statement is None:
        return False
    rhs = statement.get_rhs()
    return bool(node.start_pos < rhs.start_pos)


def is_plain_read(name: Node) -> bool:
    """True for a variable that is read: no attribute, parameter, keyword or target."""
    if name.is_definition() or is_attribute(name) or name.parent.type in {"param", "funcdef"}:
        return False
    is_keyword = name.parent.type == "argument" and name.parent.children[0] is name
    return not is_keyword


class DropStatement(Rewrite):
    """A call for its effect, or an assignment to an attribute or an item -> pass"""

    shown = (
        ("hooks.append(x)\n", "pass\n"),
        ("x.grad = None\n", "pass\n"),
        ("x += 1\n", "pass\n"),
        ("del x[0]\n", "pass\n"),
    )

    def texts(self, node: Node) -> Iterator[str]:
        if node.parent is None or node.parent.type != "simple_stmt":
            return
        if node.type == "del_stmt" or (call_name(node) and call_name(node) not in RETAINING):
            yield "pass"
        elif node.type == "expr_stmt":
            sign = text_of(node.children[1])
            is_kept = node.children[0].type == "atom_expr" and sign == "="
            if is_kept or (sign.endswith("=") and sign != "="):
                yield "pass"


class ReturnEarly(Rewrite):
    """A statement of a procedure -> return, before the rest"""

    shown = (("def f() -> None:\n  a()\n  b()", "def f() -> None:\n  return\n  b()"),)

    def texts(self, node: Node) -> Iterator[str]:
        function = function_around(node)
        if node.type not in {"expr_stmt", "atom_expr"} or function is None:
            return
        line = node.parent
        is_step = line.type == "simple_stmt" and line.parent is function.children[-1]
        result = text_of(function.annotation) if function.annotation else ""
        if is_step and result == "None" and line is not line.parent.children[-1]:
            yield "return"


class NeverBranch(Rewrite):
    """if a: b -> if False and (a): b"""

    shown = (("if a or b:\n  c()", "if False and (a or b):\n  c()"),)

    def texts(self, node: Node) -> Iterator[str]:
        statement = node.parent
        if statement is not None and statement.type == "if_stmt":
            leaf = node.get_previous_sibling()
            if leaf is not None and text_of(leaf) in {"if", "elif"}:
                yield f"False and ({text_of(node)})"


class AssignOnly(Rewrite):
    """x += y -> x = y"""

    shown = (("x += y", "x = y"),)

    def texts(self, node: Node) -> Iterator[str]:
        if node.type == "operator" and node.value in {"+=", "-=", "*=", "/=", "|=", "&="}:
            yield "="


class NeighbourFunction(Rewrite):
    """xp.maximum -> xp.minimum, zeros -> ones, any -> all, ..."""

    shown = (("y = xp.sum(x)", "y = xp.max(x)"), ("y = zeros_like(x)", "y = ones_like(x)"))

    def texts(self, node: Node) -> Iterator[str]:
        if node.type != "name" or node.value not in NEIGHBOURS or node.is_definition():
            return
        after = node.parent if node.parent.type == "trailer" else node
        called = after.get_next_sibling()
        if called is not None and called.type == "trailer" and text_of(called).startswith("("):
            yield NEIGHBOURS[node.value]


class ChangeLimit(Rewrite):
    """LIMITS.block -> (1 << 40): a limit that is never reached"""

    shown = (("if n < LIMITS.columns: pass", "if n < (1 << 40): pass"),)

    def texts(self, node: Node) -> Iterator[str]:
        if node.type == "atom_expr" and text_of(node.children[0]) == "LIMITS":
            kernel = parso.python.tree.search_ancestor(node, "argument")
            if len(node.children) == 2 and kernel is None and not is_target(node):
                yield "(1 << 40)"


class NextNumber(Rewrite):
    """1 -> 2: an index, an axis, a factor"""

    shown = (("y = x[0]", "y = x[1]"), ("y = 0.5 * x", "y = 1.5 * x"))

    def texts(self, node: Node) -> Iterator[str]:
        if node.type == "number" and not re.search("[xXoObBjJ]", node.value):
            yield str(float(node.value) + 1 if "." in node.value or "e" in node.value.lower()
                      else int(node.value) + 1)  # fmt: skip


OWN = (
    AssignOnly,
    ChangeLimit,
    CutGraph,
    DropCast,
    DropCopy,
    DropGradient,
    DropRequiresGrad,
    DropStatement,
    DropUnbroadcast,
    FlipSign,
    NeighbourFunction,
    NeverBranch,
    NextNumber,
    PlainProduct,
    RetainLess,
    ReturnEarly,
    SwapArguments,
    SwapBranches,
    SwapReturned,
)

BUILT_IN = (
    "core/ReplaceAndWithOr",
    "core/ReplaceBinaryOperator_Add_Sub",
    "core/ReplaceBinaryOperator_BitAnd_BitOr",
    "core/ReplaceBinaryOperator_BitOr_BitAnd",
    "core/ReplaceBinaryOperator_Div_Mul",
    "core/ReplaceBinaryOperator_Mul_Div",
    "core/ReplaceBinaryOperator_Pow_Mul",
    "core/ReplaceBinaryOperator_Sub_Add",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceComparisonOperator_Eq_NotEq",
    "core/ReplaceComparisonOperator_GtE_Gt",
    "core/ReplaceComparisonOperator_Gt_GtE",
    "core/ReplaceComparisonOperator_IsNot_Is",
    "core/ReplaceComparisonOperator_Is_IsNot",
    "core/ReplaceComparisonOperator_LtE_Lt",
    "core/ReplaceComparisonOperator_Lt_LtE",
    "core/ReplaceComparisonOperator_NotEq_Eq",
    "core/ReplaceContinueWithBreak",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceOrWithAnd",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceUnaryOperator_Delete_Invert",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/ReplaceUnaryOperator_Delete_USub",
)


class Provider:
    """The operators of this module, by name, as cosmic-ray asks for them."""

    def __iter__(self) -> Iterator[str]:
        return iter([one.__name__ for one in OWN])

    def __getitem__(self, name: str) -> type[Rewrite]:
        return {one.__name__: one for one in OWN}[name]


def register() -> tuple[str, ...]:
    """Make the operators known to cosmic-ray; gives the names of all operators of a run."""
    cosmic_ray.plugins.OPERATOR_PROVIDERS["tinynode"] = Provider()
    return (*(f"tinynode/{one.__name__}" for one in OWN), *BUILT_IN)
