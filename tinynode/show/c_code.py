"""The C of a compiled function, beside the nets.

Requirement: a reader compares an operator of the net with the line of C. A notebook
shows each net beside the C functions made from the net; a terminal shows the C below the net.
"""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

from tinynode.errors import describe
from tinynode.net import CompiledFunction

_NONE = "no C: no operator of this net becomes C on this device"


class CCode(NamedTuple):
    """The C of a compiled function; ``print`` it, or let a notebook show it.

    Attributes:
        nets: the text of each net: the function, then the gradient.
        sources: the C source of each net; "" for a net without C.
    """

    nets: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def functions(self) -> tuple[str, ...]:
        """The C functions of all nets, each with the formulas as a comment."""
        found: list[str] = []
        for source in self.sources:
            blocks = [one for one in source.split("\n\n") if "(void **p, " in one]
            found += [block.strip() for block in blocks]
        return tuple(found)

    def __str__(self) -> str:
        parts = []
        for net, source in zip(self.nets, self.sources, strict=True):
            comment = "\n".join(f"// {line}" for line in net.splitlines())
            parts.append(f"{comment}\n\n{source or f'// {_NONE}'}".rstrip())
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        rows = [
            f"<tr>{_cell(net)}{_cell(source or _NONE)}</tr>"
            for net, source in zip(self.nets, self.sources, strict=True)
        ]
        return f"<table>{''.join(rows)}</table>"


def _cell(text: str) -> str:
    style = "text-align: left; vertical-align: top"
    return f'<td style="{style}"><pre>{escape(text)}</pre></td>'


def c(function: CompiledFunction[..., Any], *args: Any, **keywords: Any) -> CCode:
    """The C of a compiled function, for a call with such arguments.

    The source does not depend on a compiler: it is shown where none is installed, too. The
    function is called twice, as by ``explain``.

    Raises:
        TypeError: ``function`` is not the result of ``tn.compile``.
    """
    if not isinstance(function, CompiledFunction):
        raise TypeError(
            f"show.c: function must come from tn.compile, got {describe(function)}. "
            "Write tn.show.c(tn.compile(f), x)."
        )
    runs = function.described_plans(*args, **keywords)
    sources: dict[str, str] = {}
    for net, _, plan in runs:  # the last plan of a net has the most results
        sources[net] = plan.c_source() if hasattr(plan, "c_source") else ""
    return CCode(tuple(sources), tuple(sources.values()))
