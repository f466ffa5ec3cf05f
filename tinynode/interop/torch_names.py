"""The names of weights in PyTorch and here.

Layers of both have the same shapes. These kinds of names differ, and are translated:

    PyTorch                             tinynode
    0.weight                            layers.0.weight     in a Sequential
    weight, bias                        gamma, beta         of a normalisation
    running_var                         running_variance    of BatchNorm
    parametrizations.weight.original0   weight_g            of WeightNorm; original1 is weight_v
    parametrizations.weight.original    weight_original     of SpectralNorm
    parametrizations.weight.0._u        weight_u            of SpectralNorm; likewise _v
    bias                                layer.bias          in both of these

A shared parameter has a name for each place in PyTorch, and the first of these names here.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinynode.nn.layers import Sequential
from tinynode.nn.module import Module, Wrapper, members_of
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.nn.weight_norms import SpectralNorm, WeightNorm

_RENAMED = {"gamma": "weight", "beta": "bias", "running_variance": "running_var"}
_IN_WEIGHT_NORM = {"g": "original0", "v": "original1"}
_IN_SPECTRAL_NORM = {"original": "original", "u": "0._u", "v": "0._v"}


class NamedArray(NamedTuple):
    """A name of a parameter or buffer.

    Attributes:
        name: the dotted name.
        torch_name: PyTorch's name for the same array.
        variable: the parameter or buffer.
        owner: the innermost module around.
    """

    name: str
    torch_name: str
    variable: Parameter | Buffer
    owner: Module


def places_of(model: Module) -> list[NamedArray]:
    """Every name of each parameter and buffer, in the order of ``state_dict``."""
    found: list[NamedArray] = []
    waiting: list[tuple[tuple[str, ...], Any, tuple[Module, ...]]] = [((), model, ())]
    while waiting:
        parts, value, around = waiting.pop()
        while isinstance(value, Wrapper):  # a compiled layer has the names of the layer
            value = value.function
        if isinstance(value, Parameter | Buffer):
            if not _is_at_rest(parts, around):
                torch_name = _torch_name(parts, around)
                found.append(NamedArray(".".join(parts), torch_name, value, around[-1]))
            continue
        if any(value is other for other in around):  # a module that holds itself
            continue
        inside = around
        if isinstance(value, Module):
            inside = (*around, value)
        for key, child in reversed(members_of(value)):
            waiting.append(((*parts, str(key)), child, inside))
    return found


def _is_at_rest(parts: tuple[str, ...], around: tuple[Module, ...]) -> bool:
    """True for the weight that a wrapper such as WeightNorm computes anew."""
    wrapper = around[-2] if len(around) > 1 else None
    if not isinstance(wrapper, WeightNorm | SpectralNorm):
        return False
    return around[-1] is wrapper.layer and parts[-1] == wrapper.name


def _torch_name(parts: tuple[str, ...], around: tuple[Module, ...]) -> str:
    """PyTorch's name for an array."""
    *path, last = parts
    owner = around[-1]
    if isinstance(owner, WeightNorm | SpectralNorm):
        kinds = _IN_WEIGHT_NORM if isinstance(owner, WeightNorm) else _IN_SPECTRAL_NORM
        last = f"parametrizations.{owner.name}.{kinds[last.removeprefix('weight_')]}"
    kept = []
    module: Any = around[0]
    for part in path:
        is_sequence = isinstance(module, Sequential) and part == "layers"
        is_wrapper = isinstance(module, WeightNorm | SpectralNorm) and part == "layer"
        if not is_sequence and not is_wrapper:
            kept.append(part)
        module = _member(module, part)
    return ".".join([*kept, _RENAMED.get(last, last)])


def _member(value: Any, key: str) -> Any:
    """The member of a module or container with a key."""
    found = next(child for name, child in members_of(value) if str(name) == key)
    while isinstance(found, Wrapper):
        found = found.function
    return found


def difference(missing: list[str], left: list[str]) -> str:
    """The message for names of the file and of the model that differ."""
    lines = ["load_torch_weights: the names of the file and of the model differ."]
    lines += [f"  the file lacks {name}{suggestion(name, left)}" for name in missing]
    lines += [f"  the model lacks {name}{suggestion(name, missing)}" for name in left]
    lines.append(
        "Give rename={'beginning in the file': 'beginning in the model'}; None leaves entries of "
        "the file out, and keep=['beginning in the model'] keeps the model's own arrays."
    )
    return "\n".join(lines)


def suggestion(name: str, others: Sequence[str]) -> str:
    """The closest of other names, in brackets; an empty text without one."""
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    return f" (close: {close[0]})" if close else ""
