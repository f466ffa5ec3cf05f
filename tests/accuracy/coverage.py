"""Which elementwise functions exist, and which of them the rows reach.

No list of names stands here but that of the exceptions. A class says ``is_elementwise`` itself. A
function of ``tinynode.functions`` is elementwise if a case of ``op_cases`` applies elementwise
classes alone. A function of ``xp.special`` has a rule for each argument.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from op_cases import CASES
from support.op_drivers import call, draw_inputs, make_inputs

import tinynode as tn
from accuracy.measure import constant, grid, results
from accuracy.rows import ROWS
from accuracy.special_rows import PREFIX, SPECIAL_ROWS, Called
from tinynode import FunctionNode
from tinynode.array_api.special_rules import RULES
from tinynode.core.hooks import FunctionHook

EXACT = "no rounding, or a single one: the table of operations tests it"
NO_DERIVATIVE = "gives truth values or integers"
NOT_A_FUNCTION = "a base class, or a step of an optimizer, a net or a test"
PLACES = "copies, masks or moves elements"
SEVERAL = "has several parameters: tests/array_api/test_special.py compares it with SciPy"
SAME_RULE = "has the rule of a row: the orders 0 and 1 of the same Bessel function"
EXCEPTIONS_BY_REASON = {
    EXACT: """AddAll Conj Identity Imag Positive Real WholeLines add_all floor_divide identity
        imag""",
    NO_DERIVATIVE: """BinaryLabels BitwiseInvert BitwiseLeftShift BitwiseOr BitwiseRightShift
        BitwiseXor GreaterEqual IsFinite IsInf IsNaN LessEqual LogicalAnd LogicalNot LogicalOr
        LogicalXor NotEqual SignBit bitwise_and bitwise_invert bitwise_left_shift bitwise_or
        bitwise_right_shift bitwise_xor equal greater greater_equal isfinite isinf isnan less
        less_equal logical_and logical_not logical_or logical_xor not_equal signbit""",
    NOT_A_FUNCTION: """AdagradUpdate AdamUpdate BroadcastingNode CheckedRows DecayedSGDUpdate
        DummyGradient FillLike LionUpdate MomentumUpdate NAdamUpdate RMSpropUpdate SGDUpdate
        StopGradient TimesNumber UpdateFunction _Extreme""",
    "random numbers: tests/core/test_keyed_random.py": "KeyedBits KeyedNormal",
    PLACES: "Copy ToDevice astype copy tril triu where",
    "the gradient of a norm: tests/functions/test_scaling.py": "Direction",
    SEVERAL: """special.bdtr special.bdtrc special.betainc special.betaincc special.betainccinv
        special.betaincinv special.binom special.chdtr special.chdtrc special.chdtri special.fdtr
        special.fdtrc special.fdtri special.gammainccinv special.gammaincinv special.gdtr
        special.gdtrc special.hyp0f1 special.hyp1f1 special.hyp2f1 special.hyperu special.nbdtr
        special.nbdtrc special.owens_t special.pdtr special.pdtrc special.radian special.stdtr
        special.stdtrit""",
    SAME_RULE: """special.iv special.ive special.jn special.jv special.kn special.kv special.kve
        special.yn special.yv""",
    "by the parameter, the rule is that of boxcox at the value": """special.inv_boxcox
        special.inv_boxcox1p""",
}
"""The names of classes and functions without a row."""
EXCEPTIONS = {name for names in EXCEPTIONS_BY_REASON.values() for name in names.split()}


class Applied(FunctionHook):
    """Collects the classes of all functions that are applied."""

    name = "Applied"

    def __init__(self) -> None:
        self.kinds: set[type[FunctionNode]] = set()

    def forward_postprocess(self, function: FunctionNode, in_data: Any) -> None:
        self.kinds.add(type(function))


def kinds_of_rows() -> set[type[FunctionNode]]:
    """The classes that the rows apply in values, first and second derivatives."""
    applied = Applied()
    with applied:
        for row in [*ROWS, *SPECIAL_ROWS]:
            results(row, grid(row, "float32", 2), constant(row, "float32"))
    return applied.kinds


def elementwise_kinds() -> set[type[FunctionNode]]:
    """The classes of the package that say ``is_elementwise``."""
    own = {kind for kind in _below(FunctionNode) if kind.__module__.startswith("tinynode.")}
    return {kind for kind in own if kind.is_elementwise}


def _below(root: type[FunctionNode]) -> Iterator[type[FunctionNode]]:
    waiting = [root]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        yield from kinds


def elementwise_operations() -> set[str]:
    """The operations whose cases apply elementwise classes alone, and keep the shape."""
    found: dict[str, bool] = {}
    for case in CASES:
        if case.operation != "to_device":  # needs a second device
            found[case.operation] = found.get(case.operation, True) and _is_elementwise(case)
    return {name for name, is_elementwise in found.items() if is_elementwise}


def _is_elementwise(case: Any) -> bool:
    xs = make_inputs(case, draw_inputs(case, case.dtypes[0]), tn.get_device("numpy"))
    applied = Applied()
    with applied, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ys = call(case, xs)
    if not applied.kinds or not all(kind.is_elementwise for kind in applied.kinds):
        return False
    shape = np.broadcast_shapes(*[x.shape for x in xs])
    return all(y.shape == shape for y in ys)


def rules_without_a_row() -> set[str]:
    """The functions of ``xp.special`` with an argument that has a rule, and no row."""
    calls = [row.function for row in SPECIAL_ROWS]
    known = {(call.name, call.position) for call in calls if isinstance(call, Called)}
    return {
        PREFIX + name
        for name, rules in RULES.items()
        for i, rule in enumerate(rules)
        if rule is not None and (name, i) not in known
    }


def names_of_rows() -> set[str]:
    """The names before the first comma or space of the rows' names."""
    return {row.name.split(",")[0].split()[0] for row in ROWS}


def all_without_a_row() -> set[str]:
    """The names of all classes, operations and rules without a row."""
    reached = kinds_of_rows()
    classes = {kind.__name__ for kind in elementwise_kinds() - reached}
    operations = elementwise_operations() - names_of_rows()
    operations -= {kind.__name__ for kind in reached}
    return classes | operations | rules_without_a_row()
