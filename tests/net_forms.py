"""Forms for tests of passes and plans: found by a run, as a plan finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinynode.devices import Device
from tinynode.net.operator import Operator
from tinynode.net.plan import Forms, Plan, note_forms


def forms_of(operators: Sequence[Operator], inputs: Mapping[str, Any], device: Device) -> Forms:
    """Shapes and dtypes of all variables."""
    forms: Forms = {}
    note_forms(forms, list(inputs), list(inputs.values()))
    for one in operators:
        if one.type == "constant":
            note_forms(forms, one.output_names, [one.attrs["value"]])
    with np.errstate(all="ignore"):
        Plan(operators, dict.fromkeys(inputs, device), []).run(tuple(inputs.values()), forms)
    return forms
