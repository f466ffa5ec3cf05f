"""Trees: nested tuples, lists and dicts of Variables, and the call of a function on fresh leaves.

Requirement: each transform takes and gives the nested values of the user's function. A *tree* is a
Variable, an array, or a tuple, list or dict of trees. The Variables and arrays are the *leaves*. A
*path* names a leaf for messages: ``argument 0['w'][1]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tinynode.configuration import config, force_backprop_mode
from tinynode.core.array_arguments import StandIn
from tinynode.core.backprop import grad
from tinynode.core.conversion import as_flag, as_variable
from tinynode.core.hooks import tell_detached, thread_state
from tinynode.core.nested import MOST_LEAVES, check_nested
from tinynode.core.paths import depends_on_others
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    COMPLEX,
    Device,
    device_beside,
    from_host_data,
    is_floating,
    kind_of,
)
from tinynode.errors import RequiresGradError, describe, dtype_name
from tinynode.functions import astype, identity
from tinynode.transforms.batching import is_lifted, shared_with_examples

Leaves = list[tuple[str, Any]]
"""The path and the value of each leaf."""


class Point(NamedTuple):
    """A function that was called on fresh leaves.

    Attributes:
        inputs: the Variables that f was called on, the leaves of the differentiated arguments.
        trees: the differentiated arguments, as the user gave them.
        outputs: the leaves of f's result.
        result: f's result, without aux.
        aux: what f returned beside the result, for ``has_aux=True``; else None.
        enable_double_backprop: the user's choice, or None.
        depends: True if the outputs depend on Variables of the user that require a gradient.
    """

    inputs: list[Variable]
    trees: tuple[Any, ...]
    outputs: list[Variable]
    result: Any
    aux: Any
    enable_double_backprop: bool | None
    depends: bool

    def needs_graph(self, factors: Sequence[Variable] = ()) -> bool:
        """Whether derivatives get a graph, back to the user's Variables.

        Without a choice of the user, they get one as the results of any function do.
        Back-propagation is enabled, and they depend on a Variable that requires a gradient.

        Args:
            factors: the Variables that multiply the derivatives, such as a tangent.
        """
        if self.enable_double_backprop is not None:
            return self.enable_double_backprop
        return config.enable_backprop and (self.depends or any(v.requires_grad for v in factors))


# --- trees ---------------------------------------------------------------------------------------


def leaves_of(name: str, tree: Any, path: str) -> Leaves:
    """The leaves of a tree from left to right, with paths; ``name`` is the called function.

    Raises:
        ValueError: the tree is nested too deeply, or holds itself, or has too many leaves.
    """
    check_nested(name, path or "the result of f", tree, MOST_LEAVES)
    return _leaves_of(tree, path)


def _leaves_of(tree: Any, path: str) -> Leaves:
    if not _is_nested(tree):
        return [(path, tree)]
    return [leaf for key, part in _parts(tree) for leaf in _leaves_of(part, path + key)]


def _is_nested(tree: Any) -> bool:
    return isinstance(tree, tuple | list | dict)


def _parts(tree: Any) -> list[tuple[str, Any]]:
    """The parts of a tuple, list or dict, each with the text of its index."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return [(f"[{key!r}]", part) for key, part in pairs]


def rebuilt(tree: Any, values: Iterable[Any]) -> Any:
    """A tree nested as ``tree``, with other leaves."""
    return _rebuilt(tree, iter(values))


def _rebuilt(tree: Any, values: Iterator[Any]) -> Any:
    if not _is_nested(tree):
        return next(values)
    if isinstance(tree, dict):
        return {key: _rebuilt(part, values) for key, part in tree.items()}
    parts = [_rebuilt(part, values) for part in tree]
    if hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*parts)
    return tuple(parts) if isinstance(tree, tuple) else parts


def matched(name: str, what: str, tree: Any, other: Any, path: str) -> Leaves:
    """The leaves of ``other``, in the order of ``tree``'s leaves.

    Raises:
        ValueError: ``other`` is nested in another way. The message calls ``other`` ``what``.
    """
    if not _is_nested(tree):
        if _is_nested(other):
            raise _other_nesting(name, what, path, f"one array, like {describe(tree)}", other)
        return [(path, other)]
    if isinstance(tree, dict):
        fits = isinstance(other, dict) and other.keys() == tree.keys()
        expected, keys = f"a dict with the keys {list(tree)}", list(tree)
    else:
        fits = isinstance(other, tuple | list) and len(other) == len(tree)
        expected = f"a {type(tree).__name__} of length {len(tree)}"
        keys = list(range(len(tree)))
    if not fits:
        raise _other_nesting(name, what, path, expected, other)
    found = []
    for key in keys:
        found += matched(name, what, tree[key], other[key], f"{path}[{key!r}]")
    return found


def _other_nesting(name: str, what: str, path: str, expected: str, got: Any) -> ValueError:
    place = f"{what} of {path}" if path else what
    return ValueError(
        f"{name}: the {place} must be {expected}, got {describe(got)}. Nest every {what} in the "
        "same tuples, lists and dicts."
    )


def fitting(
    name: str, what: str, tree: Any, other: Any, likes: Sequence[Variable], path: str
) -> list[Variable]:
    """The leaves of ``other`` as Variables, each of the shape, dtype and device in ``likes``.

    Real numbers of another dtype are cast, as the input of a layer is (``docs/dtypes.md``).

    Raises:
        ValueError: the nesting, a shape or a device differs, or complex stands for real.
        TypeError: a leaf is neither a Variable nor an array.
    """
    found = []
    pairs = zip(matched(name, what, tree, other, path), likes, strict=True)
    for (place, value), like in pairs:
        one = value
        if not isinstance(value, Variable):
            argument = f"the {what} of {place}" if place else f"the {what}"
            one = as_leaf(name, argument, value, like.device)
        one = shared_with_examples(one)
        is_near = one.device is like.device or is_lifted(one.device, like.device)
        if is_near and one.dtype != like.dtype and kind_of(one.filled_array()) < COMPLEX:
            one = astype(one, like.dtype)
        fits = like.is_like(one.raw, one.device)
        if not fits and is_lifted(one.device, like.device):  # one for each example of a vmap
            fits = one.shape == like.shape and one.dtype == like.dtype
        if not fits:
            raise ValueError(
                f"{name}: the {what}{f' of {place}' if place else ''} must be {_form(like)}, got "
                f"{_form(one)}. Make the {what} with zeros_like or astype, or move it with "
                "to_device."
            )
        found.append(one)
    return found


def _form(x: Variable) -> str:
    return f"of shape {x.shape}, {dtype_name(x.dtype)} on {x.device}"


def as_leaf(name: str, what: str, value: Any, beside: Device | None = None) -> Variable:
    """A leaf as a Variable. An array lies on the device ``beside``, if the memory is the same.

    Raises:
        TypeError: the value is neither a Variable nor an array.
    """
    if beside is not None and not isinstance(value, StandIn):
        value = from_host_data(value, name, beside)
        device = device_beside(value, beside)
        if device is not None:
            return wrap_array(value, device, False)
    try:
        return as_variable(value)
    except TypeError:
        raise TypeError(
            f"{name}: {what} must be a Variable or an array, got {describe(value)}. Convert the "
            "value with tinynode.asarray."
        ) from None


# --- calls ---------------------------------------------------------------------------------------


@contextmanager
def differentiating() -> Iterator[None]:
    """Transforms in the block are inside the function of a transform."""
    thread_state.differentiating += 1
    try:
        with force_backprop_mode():
            yield
    finally:
        thread_state.differentiating -= 1


def checked_choice(name: str, enable_double_backprop: Any) -> bool | None:
    """The option ``enable_double_backprop``: a bool, or None for the usual choice."""
    if enable_double_backprop is None:
        return None
    return as_flag(name, "enable_double_backprop", enable_double_backprop)


def check_call(name: str, f: Any, argnums: Any = 0, has_aux: Any = False) -> bool:
    """Refuse an f that is no function, and arguments of f in the place of ``argnums``.

    Returns:
        The option ``has_aux`` as a bool.
    """
    if not callable(f):
        raise TypeError(f"{name}: f must be a function, got {describe(f)}.")
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(position, int) for position in positions):
        raise TypeError(
            f"{name}: argnums must be an integer or a tuple of them, got {describe(argnums)}. "
            f"{name} makes a function: write {name}(f)(x)."
        )
    return as_flag(name, "has_aux", has_aux)


def split_aux(name: str, returned: Any) -> tuple[Any, Any]:
    """The value and the aux of a function for ``has_aux=True``.

    Raises:
        TypeError: the function returned no pair.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        kind = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else describe(returned)
        raise TypeError(
            f"{name}: with has_aux=True, f must return a pair (value, aux), got {kind}. Return a "
            "tuple of two, or leave has_aux out."
        )
    return returned[0], returned[1]


def call(
    name: str,
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    enable_double_backprop: bool | None,
    has_aux: bool = False,
) -> Point:
    """Call f with fresh Variables in the arguments at ``argnums``.

    Raises:
        ValueError: an argument is missing.
        TypeError: f gives a leaf that is no Variable, or an argument is not floating; or f gives
            no pair, and ``has_aux`` is True.
    """
    positions = (argnums,) if isinstance(argnums, int) else argnums
    given, inputs = list(args), []
    choice = checked_choice(name, enable_double_backprop)
    connected = config.enable_backprop if choice is None else choice
    with differentiating():
        for position in positions:
            if not 0 <= position < len(args):
                raise ValueError(
                    f"{name}: argnums={argnums!r}, but f was called with {len(args)} positional "
                    "arguments; they are counted from 0."
                )
            found = leaves_of(name, args[position], f"argument {position}")
            fresh = [fresh_leaf(name, path, value, connected) for path, value in found]
            given[position] = rebuilt(args[position], fresh)
            inputs += fresh
        returned = f(*given, **kwargs)
    result, aux = split_aux(name, returned) if has_aux else (returned, None)
    outputs = [_output(name, path, y) for path, y in leaves_of(name, result, "")]
    trees = tuple([args[position] for position in positions])
    depends = choice is None and connected and depends_on_others(outputs, inputs)
    return Point(inputs, trees, outputs, result, aux, choice, depends)


def fresh_leaf(name: str, path: str, value: Any, connected: bool) -> Variable:
    """A Variable with the values of a leaf: outside of any graph, or connected to the leaf.

    Raises:
        TypeError: the value is neither a Variable nor an array.
        RequiresGradError: the value is not floating.
    """
    x = shared_with_examples(as_leaf(name, path, value))
    if not is_floating(x.raw):
        raise RequiresGradError(
            f"{name}: {path} is {describe(x.raw)}: only floating arguments have a derivative. "
            "Cast it first, or leave its position out of argnums."
        )
    if connected and x.requires_grad:
        return identity(x)
    leaf = wrap_array(x.raw, x.device, True)
    tell_detached(x, leaf)
    return leaf


def _output(name: str, path: str, y: Any) -> Variable:
    """A leaf of f's result, if the leaf has a derivative."""
    place = f" (the part {path} of f's result)" if path else ""
    if not isinstance(y, Variable):
        other = ", or pass has_aux=True for a pair (value, aux)" if path else ""
        raise TypeError(
            f"{name}: f must give a Variable, got {describe(y)}{place}. Compute f with "
            f"tinynode.functions{other}."
        )
    if not is_floating(y.raw):
        raise RequiresGradError(
            f"{name}: f gives {dtype_name(y.dtype)}, which has no derivative{place}. Cast it with "
            "astype."
        )
    return shared_with_examples(y)


# --- gradients -----------------------------------------------------------------------------------


def gradients(
    ys: Sequence[Variable], xs: Sequence[Variable], gys: Sequence[Variable | None], again: bool
) -> list[Variable]:
    """The gradients of ys with respect to xs; zeros where no y depends on x.

    Args:
        ys: the Variables to differentiate.
        xs: the Variables to differentiate with respect to.
        gys: the gradients of ys; None stands for 1.
        again: True to record a graph of the gradients.
    """
    seeds = [_ones_like(y) if gy is None else gy for y, gy in zip(ys, gys, strict=True)]
    found = grad(ys, xs, seeds, enable_double_backprop=again)
    return [or_zeros(gx, x) for gx, x in zip(found, xs, strict=True)]


def or_zeros(gx: Variable | None, x: Variable) -> Variable:
    """A gradient of x, or zeros in place of None."""
    return zeros_like(x) if gx is None else gx


def _ones_like(y: Variable) -> Variable:
    """Ones beside y, outside of any graph: the gradient does not depend on them."""
    return wrap_array(y.xp.ones_like(y.raw), y.device, False)


def zeros_like(x: Variable) -> Variable:
    """Zeros beside x, outside of any graph."""
    return wrap_array(x.xp.zeros_like(x.raw), x.device, False)


def zeros(like: Variable, shape: tuple[int, ...]) -> Variable:
    """Zeros of a shape beside a Variable, outside of any graph."""
    array = like.xp.zeros(shape, dtype=like.dtype, device=like.raw.device)
    return wrap_array(array, like.device, False)


def unit_vectors(x: Variable, start: int, stop: int) -> Variable:
    """The vectors from ``start`` to ``stop`` of the standard basis of x, one row for each."""
    xp = x.xp
    numbers = xp.arange(x.size, device=x.raw.device)
    rows = xp.arange(start, stop, device=x.raw.device)
    ones = xp.astype(xp.reshape(rows, (-1, 1)) == xp.reshape(numbers, (1, -1)), x.dtype)
    return wrap_array(xp.reshape(ones, (stop - start, *x.shape)), x.device, False)


def basis(x: Variable, position: int) -> Variable:
    """1 at a position of x's elements, 0 elsewhere."""
    xp = x.xp
    numbers = xp.arange(x.size, device=x.raw.device)
    ones = xp.astype(numbers == position, x.dtype)
    return wrap_array(xp.reshape(ones, x.shape), x.device, False)
