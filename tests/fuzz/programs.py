"""Programs as data: run on any array library, and printed as a script.

A program is a list of inputs, a list of steps and the names of the results. A step names a
function, arguments and constants. ``Program.source`` writes the steps as a Python function. The
tests run exactly this text; so a printed failure computes what the test computed.

The text has two dialects. ``python`` uses operators, indexing and writes in place, for tinynode.
``functional`` calls ``F.name(...)`` for every step, for libraries that differ in operators.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from fuzz.derivatives import derivatives

OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "pow": "**",
    "matmul": "@",
    "less": "<",
    "greater_equal": ">=",
    "equal": "==",
}
SPECIAL = (
    "[nan, nan, inf, -inf, 0.0, 0.0, -0.0, -0.0, 1.0, 1.0, -1.0, 2.0, {tiny}, -{tiny}, {huge}]"
)
"""Values at which formulas break: the smallest subnormal and the largest number of a dtype too."""
PRINTED = 200
"""Arrays with more elements are printed as the expression that draws the elements."""


class Var(NamedTuple):
    """A reference to a value of the program."""

    name: str


# --- constants as text ---------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """A constant, or a reference, as an expression."""
    if isinstance(value, Var):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))}{',' * (len(value) == 1)})"
    if isinstance(value, np.ndarray):
        values = value.tolist() if value.size else f"np.zeros({value.shape})"
        return f'array({values}, dtype="{value.dtype}")'
    if isinstance(value, np.generic):
        return f"np.{value.dtype}({value.item()!r})"
    return "..." if value is Ellipsis else repr(value)


def index_text(index: Any) -> str:
    """An index between brackets."""
    if isinstance(index, tuple) and index and type(index) is tuple:
        return ", ".join(map(_item_text, index)) + "," * (len(index) == 1)
    return _item_text(index)


def _item_text(item: Any) -> str:
    if isinstance(item, slice):
        first, stop, step = ("" if n is None else n for n in (item.start, item.stop, item.step))
        return f"{first}:{stop}" + f":{step}" * (step != "")
    return text_of(item)


# --- the data ------------------------------------------------------------------------------------


@functools.lru_cache(64)
def _evaluate(expression: str) -> Any:
    return np.asarray(eval(expression, {"np": np, "nan": np.nan, "inf": np.inf}))


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument of the program.

    Attributes:
        name: the parameter's name.
        shape: the shape of the array in memory, before the view.
        dtype: the dtype's name.
        view: an expression behind the array: ".T", "[::2]", or empty.
        seed: draws the values.
        requires_grad: True for a differentiable input.
        values: "near", thousandths of at most 3 in magnitude; "ties", small whole numbers;
            "range", all magnitudes of the dtype; "special", the same with NaN, infinities, zeros.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    view: str = ""
    seed: int = 0
    requires_grad: bool = True
    values: str = "near"

    @property
    def drawn(self) -> str:
        """The expression that draws the values."""
        if not self.dtype.startswith("float"):
            ends = (0, 2) if self.dtype == "bool" else (-4, 5)
            return self._numbers(f"integers(*{ends}, {self.shape})")
        if self.values == "near":
            return self._numbers(f"integers(-3000, 3001, {self.shape}) / 1000")
        if self.values == "ties":
            return self._numbers(f"integers(-2, 3, {self.shape}) * 1.0")
        return self._drawn_from_range()

    def _numbers(self, drawn: str, part: int = 0) -> str:
        seed = self.seed if part == 0 else [self.seed, part]
        return f"np.random.default_rng({seed}).{drawn}"

    def _drawn_from_range(self) -> str:
        limits = np.finfo(self.dtype)
        exponents = (limits.minexp - limits.nmant, limits.maxexp)
        parts = self._numbers(f"uniform(-1, 1, {self.shape})")
        scaled = f"np.ldexp({parts}, {self._numbers(f'integers(*{exponents}, {self.shape})', 1)})"
        if self.values == "range":
            return scaled
        special = SPECIAL.format(tiny=float(limits.smallest_subnormal), huge=float(limits.max))
        is_special = self._numbers(f"random({self.shape}) < 0.4", 2)
        chosen = self._numbers(f"choice({special}, {self.shape})", 3)
        return f"np.where({is_special}, {chosen}, {scaled})"

    def host(self, moved: float = 0.0) -> Any:
        """The array; floating values move by up to ``moved``."""
        base = _evaluate(self.drawn)
        if moved and self.dtype.startswith("float"):
            base = base + moved * np.random.default_rng(1).uniform(-1, 1, self.shape)
        array = np.asarray(base).astype(self.dtype)
        return eval(f"array{self.view}", {"array": array})

    def text(self) -> str:
        """The array as an expression."""
        if math.prod(self.shape) > PRINTED:
            return f'({self.drawn}).astype("{self.dtype}"){self.view}'
        return text_of(_evaluate(self.drawn).astype(self.dtype)) + self.view


@dataclasses.dataclass(frozen=True)
class Step:
    """One line of the program.

    Attributes:
        target: the name of the result; in a write also the first argument.
        function: a name in ``tinynode.functions``; "detach"; or "constant", a raw array.
        args, keywords: references and constants.
        form: "call", "operator", "write" (``x[i] = v``), "in-place" (``x += v``); "closure", a
            call of a global function; or "no backprop", a call without a graph.
        pick: the index of the result, for functions with several results.
    """

    target: str
    function: str
    args: tuple[Any, ...]
    keywords: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    form: str = "call"
    pick: int | str | None = None

    def with_noise(self) -> Step:
        """The step; an operand that came before is ``noisy(operand)``."""
        args: list[Any] = []
        for one in self.args:
            again = isinstance(one, Var) and one in args
            args.append(Var(f"noisy({one.name})") if again else one)
        return dataclasses.replace(self, args=tuple(args))

    def line(self, functional: bool = False) -> str:
        """The step as a line of Python."""
        texts = [text_of(one) for one in self.args]
        if self.function == "constant":
            return f"{self.target} = {texts[0]}"
        if functional and self.form == "in-place":
            return f"{self.target} = F.in_place('{self.function}', {', '.join(texts)})"
        if self.form == "closure":
            return f"{self.target} = {self.function}({', '.join(texts)})"
        if not functional and self.form not in ("call", "no backprop"):
            return self._operator_line(texts)
        texts += [f"{name}={text_of(value)}" for name, value in self.keywords.items()]
        picked = "" if self.pick is None else f"[{self.pick}]"
        if isinstance(self.pick, str):
            picked = f".{self.pick}"
        before = "with tn.no_backprop_mode(): " if self.form == "no backprop" else ""
        return f"{before}{self.target} = F.{self.function}({', '.join(texts)}){picked}"

    def _operator_line(self, texts: list[str]) -> str:
        target, function = self.target, self.function
        if function == "set_item":
            return f"{target}[{index_text(self.args[1])}] = {texts[2]}"
        if function == "get_item":
            return f"{target} = {texts[0]}[{index_text(self.args[1])}]"
        if function == "detach":
            return f"{target} = {texts[0]}.detach()"
        operator = OPERATORS[function]
        if self.form == "in-place":
            return f"{target} {operator}= {texts[1]}"
        return f"{target} = {texts[0]} {operator} {texts[1]}"


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of arrays.

    Attributes:
        inputs: the arguments.
        steps: the lines, in order.
        outputs: the names of the results.
    """

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]

    def source(self, functional: bool = False, noisy: bool = False) -> str:
        """The program as a Python function.

        Args:
            functional: every step is a call of a function.
            noisy: the results of all steps go through a function ``noisy``, and so does an operand
                that stands twice in a step: x - x is rounded in one way, and its gradients cancel.
        """
        names = [one.name for one in self.inputs]
        lines = [f"{name} = noisy({name})" for name in names if noisy]
        for step in self.steps:
            lines.append((step.with_noise() if noisy else step).line(functional))
            if noisy:
                lines.append(f"{step.target} = noisy({step.target})")
        lines.append(f"return [{', '.join(self.outputs)}]")
        return f"def program({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)

    def function(
        self, namespace: Mapping[str, Any], functional: bool = False, noisy: bool = False
    ) -> Callable[..., list[Any]]:
        """The Python function, whose globals are ``F``, ``np``, ``array`` of a namespace."""
        known = dict(namespace)
        exec(compile(self.source(functional, noisy), "<program>", "exec"), known)
        return known["program"]

    @property
    def dtypes(self) -> set[str]:
        """The dtypes of the inputs and of the casts."""
        casts = [step.args[1] for step in self.steps if step.function == "astype"]
        return {one.dtype for one in self.inputs}.union(casts)

    @property
    def functions(self) -> set[str]:
        """The names of the functions."""
        return {step.function for step in self.steps}

    @property
    def is_wide(self) -> bool:
        """True if values are drawn from the whole range: formulas may overflow, and give NaN."""
        return any(one.values != "near" for one in self.inputs)

    @property
    def constants(self) -> list[Any]:
        """The raw arrays."""
        return [step.args[0] for step in self.steps if step.function == "constant"]

    def script(self, oracle: str) -> str:
        """A program that a user can paste. The results and gradients on NumPy and elsewhere.

        Args:
            oracle: "fast", "compiled on fast" and so on; its last word names the device.
        """
        inputs = "".join(f"{one.name} = {one.text()}\n" for one in self.inputs)
        return SCRIPT.format(
            source=self.source(),
            inputs=inputs,
            names=f"[{', '.join(one.name for one in self.inputs)}]",
            flags=[one.requires_grad for one in self.inputs],
            derivatives=inspect.getsource(derivatives),
            call="tn.compile(program)" if "compiled" in oracle else "program",
            device="fast" if oracle.endswith("fast") else "numpy",
            forced=FORCED if "every kernel" in oracle else "",
        )


FORCED = """
import sys

sys.path[:0] = ["tests", "tests/support"]  # run the script in the root of a checkout
from fuzz.oracles import every_limit_forced

limits = every_limit_forced()
limits.__enter__()
"""
SCRIPT = """\
from typing import Any

import numpy as np
from numpy import array, inf, nan

import tinynode as tn
from tinynode import functions as F
{forced}
{inputs}

{source}

{derivatives}

function = {call}
arrays, flags = {names}, {flags}
derivatives(function, arrays, flags, "{device}")  # a compiled function plans after this call
expected = derivatives(program, arrays, flags)
found = derivatives(function, arrays, flags, "{device}")
for title, ours, theirs in zip(["results", "gradients", "second gradients"], found, expected):
    for i, (one, other) in enumerate(zip(ours, theirs)):
        print(f"{{title}} {{i}}, on {device}:", None if one is None else repr(one.array))
        print(f"{{title}} {{i}}, on numpy:", None if other is None else repr(other.array))
"""
