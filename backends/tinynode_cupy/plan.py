"""Plans: how nets run on a GPU. Chains of elementwise operators are one kernel each.

Not yet run on a GPU. The tests compile the kernels' bodies for the host, and say nothing about
CUDA, launches or speed.

Requirement: on a GPU an elementwise operator costs a launch, and a pass over memory. A chain of
operators on arrays of equal shape and dtype becomes a single kernel. The kernel reads the inputs
of the chain and writes its results; intermediate values stay in registers. The other operators run
in turn, as in the default plan. No kernel waits for the GPU. Some portable forwards do:
``ReLUGrad`` and ``ZeroSafeMultiply`` look at values before they compute.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import cupy

import tinynode_cupy.updates as updates
from tinynode import functions
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Device
from tinynode.errors import snake_case
from tinynode.functions.arithmetic import ZeroSafeMultiply
from tinynode.functions.comparison import ExtremeGrad
from tinynode.functions.logistic import Sigmoid
from tinynode.functions.trigonometric import TanhGrad
from tinynode.net.operator import ArraySpec, ArraySpecs, Operator
from tinynode.net.passes import TimesNumber, node_class_of
from tinynode.net.plan import Packing, Plan
from tinynode.net.registry import OpInfo
from tinynode.nn.updates import AdamUpdate
from tinynode_cupy.kernels import ElementwiseSource
from tinynode_cupy.updates import AdamNumbers, UpdateKernel

Operators: TypeAlias = Sequence[Operator]

EXPRESSIONS: dict[type, str] = {
    functions.Add: "{0} + {1}",
    functions.Subtract: "{0} - {1}",
    functions.Multiply: "{0} * {1}",
    functions.Divide: "{0} / {1}",
    functions.Negative: "-{0}",
    functions.Exp: "exp({0})",
    functions.Log: "log({0})",
    functions.Sqrt: "sqrt({0})",
    functions.Tanh: "tanh({0})",
    TanhGrad: "{1} * (T(1) / cosh({0}) * (T(1) / cosh({0})))",
    functions.Sin: "sin({0})",
    functions.Cos: "cos({0})",
    functions.Square: "{0} * {0}",
    functions.Abs: "fabs({0})",
    functions.Reciprocal: "T(1) / {0}",
    functions.Maximum: "isnan({0}) ? {0} : isnan({1}) ? {1} : max({0}, {1})",
    functions.Minimum: "isnan({0}) ? {0} : isnan({1}) ? {1} : min({0}, {1})",
    functions.ReLU: "isnan({0}) ? {0} : max({0}, T(0))",
    functions.ReLUGrad: "{0} > T(0) ? {1} : T(0)",
    ExtremeGrad: "{0} != {2} ? T(0) : {0} == {1} ? {3} * T(0.5) : {3}",
    Sigmoid: "({0} > T(0) ? T(1) : exp(-fabs({0}))) / (exp(-fabs({0})) + T(1))",
    TimesNumber: "{0} * T({number!r})",
    ZeroSafeMultiply: "{0} * (isfinite({1}) || {0} != T(0) ? {1} : T(0))",
    functions.KeepZeros: "isfinite({2}) || {1} != T(0) ? {0} : T(0)",
}
"""An expression of CUDA C for each function: {0}, {1} are its inputs, T is the dtype.

Constants go by their names. NaN and infinities are as in the portable forwards; the sign of a zero
may differ where a gradient is masked. ``AddAll`` has no entry: the number of inputs varies.
"""

SEVERAL = (functions.ReLU, functions.ReLUGrad, Sigmoid, ZeroSafeMultiply)
"""Each of these functions is several kernels of CuPy, as is any function of three inputs."""
DTYPES = ({"float32"}, {"float64"})
MOST_ARRAYS = 24
"""24 arrays with up to 8 axes each fit into the 4096 bytes of a kernel's arguments."""
MOST_OPERATORS = 64
"""A kernel of more operators takes long to compile."""
OPTIONS = ("--fmad=false",)
"""A product is rounded before an addition, as between two kernels."""


def expression(operator: Operator, names: Sequence[str]) -> str | None:
    """An operator as an expression of named variables; None for operators without an entry."""
    node_class = node_class_of(operator)
    if node_class is functions.AddAll:
        return " + ".join(names)
    text = EXPRESSIONS.get(node_class)
    number = float(operator.attrs.get("number", 0.0))  # no other attribute becomes CUDA C
    if text is None or not math.isfinite(number):
        return None
    return text.format(*names, number=number)


@functools.cache
def kernel_of(source: ElementwiseSource) -> Any:
    """The kernel; CUDA compiles at the first call with a dtype."""
    name, *rest = source
    return cupy.ElementwiseKernel(*rest, name, options=OPTIONS)


class ChainNode(FunctionNode):
    """ys = the results of one kernel on xs.

    xs: they broadcast to (s) -> ys: (s) each. No gradient: the node stands in nets that only run.
    """

    def __init__(self, source: ElementwiseSource) -> None:
        self.source = source

    def forward(self, inputs: Arrays) -> Arrays:
        results = kernel_of(self.source)(*inputs)
        return results if isinstance(results, tuple) else (results,)


class Chain(Operator):
    """Elementwise operators on arrays of equal shape and dtype; writes the names in ``kept``."""

    def __init__(self, operators: Operators, kept: Sequence[str]) -> None:
        reads = _outer_reads(operators)
        self.source = _source(operators, reads, kept)
        self._name(OpInfo(self.source.name, ChainNode), reads, kept)
        self.attrs = {}

    def make_node(self) -> FunctionNode:
        return ChainNode(self.source)


class ByKernel(Operator):
    """An operator with a given node, computed by a kernel."""

    def __init__(self, node: FunctionNode, reads: Sequence[str], writes: Sequence[str]) -> None:
        self._name(OpInfo(snake_case(type(node).__name__), type(node)), reads, writes)
        self.node = node
        self.attrs = {}

    def make_node(self) -> FunctionNode:
        return self.node


def with_update_kernels(operators: Operators, specs: ArraySpecs) -> list[Operator]:
    """Optimizers' updates by kernels; the corrections of Adam are computed once."""
    result: list[Operator] = []
    numbers: dict[Any, list[str]] = {}
    for operator in operators:
        reads = operator.input_names
        dtypes = {str(specs[name][1]) for name in reads[:2] if name in specs}
        if isinstance(operator, Chain) or dtypes not in DTYPES:
            result.append(operator)
            continue
        node = operator.make_node()
        if isinstance(node, AdamUpdate):
            key = (*reads[4:], node.betas, node.weight_decay)
            if key not in numbers:
                numbers[key] = [f"@adam {len(numbers)} {name}" for name in ("d1", "d2", "shrink")]
                result.append(ByKernel(AdamNumbers(node), reads[4:], numbers[key]))
            reads = [*reads[:5], *numbers[key]]
        is_update = type(node) in updates.KERNELS
        writes = operator.output_names
        result.append(ByKernel(UpdateKernel(node), reads, writes) if is_update else operator)
    return result


def _source(operators: Operators, reads: list[str], kept: Sequence[str]) -> ElementwiseSource:
    """A line for each operator, then for each result; no names of the net: nets share kernels."""
    short = {name: f"x{i}" for i, name in enumerate(reads)}
    lines = []
    for i, operator in enumerate(operators):
        right = expression(operator, [short[name] for name in operator.input_names])
        short[operator.output_names[0]] = f"t{i}"
        lines.append(f"const T t{i} = {right};  // {operator.type}")
    lines += [f"y{i} = {short[name]};" for i, name in enumerate(kept)]
    return ElementwiseSource(
        "_".join(["tinynode_chain", *[operator.type for operator in operators]])[:80],
        ", ".join(f"T x{i}" for i in range(len(reads))),
        ", ".join(f"T y{i}" for i in range(len(kept))),
        "\n".join(lines),
    )


class _Grouping:
    """Gathers the operators of each chain.

    A group is open until an operator outside needs a result of the group. Operators of other kinds
    wait until then. No open group reads a result of another open group.

    Attributes:
        done: operators and chains, in run order.
    """

    def __init__(self, operators: Operators, wanted: Sequence[str], specs: ArraySpecs) -> None:
        self.specs = specs
        self.uses = Counter([*wanted, *_all_reads(operators)])
        self.done: list[Operator] = []
        self.open: dict[ArraySpec, list[Operator]] = {}
        self.writer: dict[str, ArraySpec] = {}
        self.waiting: list[Operator] = []
        self.late: set[str] = set()
        for operator in operators:
            self._add(operator)
        self._flush()

    def _form(self, operator: Operator) -> ArraySpec | None:
        """Shape and dtype of an elementwise operator's group; None for other operators."""
        names = [*operator.input_names, *operator.output_names]
        if expression(operator, operator.input_names) is None or len(names) > MOST_ARRAYS:
            return None
        dtypes = {str(self.specs[name][1]) for name in names}
        return self.specs[names[-1]] if dtypes in DTYPES else None

    def _add(self, operator: Operator) -> None:
        form = self._form(operator)
        reads = operator.input_names
        if form is None:
            is_late = any(name in self.late or name in self.writer for name in reads)
            (self.waiting if is_late else self.done).append(operator)
            self.late.update(operator.output_names if is_late else ())
            return
        if not self.late.isdisjoint(reads):
            self._flush()
        for name in reads:
            if self.writer.get(name, form) != form:
                self._close(self.writer[name])
        larger = [*self.open.get(form, []), operator]
        arrays = len(_outer_reads(larger)) + len(self._kept(larger))
        if arrays > MOST_ARRAYS or len(larger) > MOST_OPERATORS:
            self._flush()
            larger = [operator]
        self.open[form] = larger
        self.writer[operator.output_names[0]] = form

    def _kept(self, group: Operators) -> list[str]:
        """The values of a group that are results, or inputs of other operators."""
        inside = Counter(_all_reads(group))
        made = [operator.output_names[0] for operator in group]
        return [name for name in made if self.uses[name] > inside[name]]

    def _close(self, form: ArraySpec) -> None:
        group = self.open.pop(form)
        for operator in group:
            del self.writer[operator.output_names[0]]
        alone = len(group) == 1 and len(group[0].input_names) <= 2
        if alone and node_class_of(group[0]) not in SEVERAL:
            self.done += group
        else:
            self.done.append(Chain(group, self._kept(group)))

    def _flush(self) -> None:
        for form in list(self.open):
            self._close(form)
        self.done += self.waiting
        self.waiting, self.late = [], set()


def _all_reads(operators: Operators) -> list[str]:
    return [name for operator in operators for name in operator.input_names]


def _outer_reads(operators: Operators) -> list[str]:
    """The inputs from outside, without repetitions."""
    made = {name for operator in operators for name in operator.output_names}
    return [name for name in dict.fromkeys(_all_reads(operators)) if name not in made]


class CupyPlan(Plan):
    """The default plan, with chains among the operators."""

    def describe(self) -> Iterator[str]:
        """The operators, line by line, with the source of the kernels."""
        number = sum(isinstance(step.operator, Chain) for step in self.steps)
        yield f"  kernels of chains: {number}; operators in turn: {len(self.steps) - number}"
        for step in self.steps:
            yield f"    {step.operator}"
            if isinstance(step.operator, Chain):
                yield from (f"      {line}" for line in step.operator.source.body.split("\n"))


def make_plan(
    operators: Operators,
    devices: Mapping[str, Device],
    outputs: Sequence[str],
    specs: ArraySpecs,
    saved: Sequence[str],
    layout: Packing | None,
) -> CupyPlan:
    """The plan for ``tinynode.net``. No arrays are packed, so there is no layout."""
    assert layout is None
    wanted = [*outputs, *saved]
    grouped = _Grouping(operators, wanted, specs).done
    return CupyPlan(with_update_kernels(grouped, specs), devices, wanted)
