"""Drills of a backend of one's own: arrays that never change."""

import re

import numpy as np

import tinynode as tn
from tinynode import functions as F


def draw_protocol(rng):
    return {"x": rng.normal(size=(2, 3)), "value": rng.normal(size=2)}


def drill_protocol(work, inputs):
    """Conversions by copies, owners, and put into a new array"""
    backend = work.BACKEND
    host = inputs["x"].copy()
    array = backend.from_host(host, "0")
    host[:] = 0.0
    found = [type(array).__name__, backend.to_host(array), backend.owns(array), backend.owns(host)]
    old = work.frozen(np.zeros(3))
    new = backend.put(old, slice(0, 2), work.frozen(inputs["value"].copy()))
    found += [type(new).__name__, new.to_numpy(), old.to_numpy(), backend.index_of(array)]
    found.append(re.findall(r'^frozen *= *["\'](.+)["\']$', work.ENTRY_POINT, re.MULTILINE))
    return [*found, '[project.entry-points."tinynode.backends"]' in work.ENTRY_POINT]


def draw_functions(rng):
    return {"x": rng.uniform(0.1, 1, (3, 4)), "order": [int(n) for n in rng.permutation(5)]}


def drill_functions(work, inputs):
    """Functions and gradients on the device"""
    if "frozen" not in tn.devices.backend_names():
        tn.register_backend(work.BACKEND)
    found = []
    functions = (F.softmax, F.tanh, _part, _padded, F.exp)
    for place in inputs["order"]:
        x = tn.asarray(inputs["x"].copy(), device=tn.get_device("frozen"), requires_grad=True)
        y = functions[place](x)
        F.sum(y * y).backward()
        found += [type(y.array).__name__, tn.to_host(y.array), tn.to_host(x.grad)]
    return found


def _part(x):
    return x[1:, 0]


def _padded(x):
    return F.pad(x, ((1, 1), (1, 1)))
