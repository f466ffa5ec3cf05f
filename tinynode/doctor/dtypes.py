"""float64 creep: float32 values that become float64 on the way.

Requirement: a float64 array among float32 values makes all later results float64, in silence:
twice the memory, and slow on GPUs. The first such function is named. A cast by ``astype`` is
intended, and no finding.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from tinynode.core.function_node import FunctionNode
from tinynode.doctor.findings import Finding
from tinynode.doctor.naming import Names, line_of_call
from tinynode.doctor.replay import living_outputs
from tinynode.errors import dtype_name


def dtype_findings(functions: Sequence[FunctionNode], names: Names) -> list[Finding]:
    """The first function with inputs of float32 and float64, and an output of float64."""
    for function in functions:
        inputs = function.inputs or ()
        dtypes = [dtype_name(node.dtype) for node in inputs]
        outputs = [dtype_name(node.dtype) for node in living_outputs(function).values()]
        if not {"float32", "float64"} <= set(dtypes) or "float64" not in outputs:
            continue
        node = inputs[dtypes.index("float64")]
        where = names.function(function)
        origin = names.input(node)
        return [
            Finding(
                kind="float64 creep",
                severity="warning",
                where=where,
                message=(
                    f"{where}: input {dtypes.index('float64')} ({origin}) is float64 beside "
                    "float32, so this output and later ones are float64."
                ),
                remedy=f"Make {origin} float32: astype(x, 'float32'), or dtype='float32'.",
                line=line_of_call(function),
                mark="float64 from here",
                about=(weakref.ref(function),),
            )
        ]
    return []
