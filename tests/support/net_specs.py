"""Array specs for tests of passes and plans, found by a run, as a plan finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinynode.devices import Device
from tinynode.net.operator import ArraySpecs, Operator
from tinynode.net.plan import Plan, note_specs


def specs_of(
    operators: Sequence[Operator], inputs: Mapping[str, Any], device: Device
) -> ArraySpecs:
    """Shapes and dtypes of all variables."""
    specs: ArraySpecs = {}
    note_specs(specs, list(inputs), list(inputs.values()))
    for one in operators:
        if one.type == "constant":
            note_specs(specs, one.output_names, [one.attrs["value"]])
    with np.errstate(all="ignore"):
        Plan(operators, dict.fromkeys(inputs, device), []).run(tuple(inputs.values()), specs)
    return specs
