"""The names of weights in PyTorch and here.

Layers of both have the same shapes. Three kinds of names differ, and are translated:

    PyTorch                         tinynode
    0.weight                        layers.0.weight      in a Sequential
    weight, bias                    gamma, beta          of a normalisation
    running_var                     running_variance     of BatchNorm
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tinynode.nn.layers import Sequential
from tinynode.nn.module import Module

_RENAMED = {"gamma": "weight", "beta": "bias", "running_variance": "running_var"}


def torch_names_of(model: Module, names: Iterable[str]) -> dict[str, str]:
    """For each of the model's names PyTorch's name for the same array."""
    modules = dict(model.named_modules())
    translated = {}
    for name in names:
        parts = name.split(".")
        kept = []
        for i, part in enumerate(parts):
            owner = modules.get(".".join(parts[:i]))
            if isinstance(owner, Sequential) and part == "layers":
                continue  # PyTorch counts the layers of a Sequential directly
            kept.append(part)
        kept[-1] = _RENAMED.get(kept[-1], kept[-1])
        translated[name] = ".".join(kept)
    return translated


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


def suggestion(name: str, others: list[str]) -> str:
    """The closest of other names, in brackets; an empty text without one."""
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    return f" (close: {close[0]})" if close else ""
