"""Devices and backends. Each module of this folder imports only modules above it in the table.

| module | content |
|---|---|
| ``protocol`` | the required part of a backend module, and the optional parts |
| ``dtypes`` | kinds of dtypes |
| ``hidden_axes`` | the hidden axes of running vmaps |
| ``loader`` | the known backends |
| ``device`` | a device: a backend and an index |
| ``registry`` | backends and devices by name; the current device |
| ``arrays`` | questions about raw arrays |
| ``use_counts`` | counts of kernels and of fallbacks |
"""

from tinynode.devices.arrays import (
    add_at,
    backend_of,
    base_of,
    check_cast,
    device_of,
    find_device,
    is_array,
    is_differentiable,
    is_float16,
    is_floating,
    is_integer,
    is_separate,
    kind_of,
    namespace_of,
    narrowed_array,
    own_backend,
    put,
    put_sum,
    sum_array,
    to_host,
    widened_array,
    without_hidden_axes,
)
from tinynode.devices.device import Device, device_names, indices_of, namespace_from
from tinynode.devices.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, complex_dtypes, kind_of_dtype
from tinynode.devices.hidden_axes import (
    HiddenAxis,
    axis_of,
    below,
    hidden_axes,
    hides_variables,
    is_over,
)
from tinynode.devices.loader import backend_origin, import_vmap
from tinynode.devices.protocol import (
    OPTIONAL_PARTS,
    Array,
    Arrays,
    Backend,
    CurrentDevice,
    Fallback,
    FunctionalWrites,
    MemoryPool,
    OptimizerUpdate,
    Overlay,
    Planner,
    Profiler,
    Scatter,
    Versioned,
    members_of,
    supports,
)
from tinynode.devices.registry import (
    backend_names,
    current_device,
    get_backend,
    get_device,
    register_backend,
    register_device,
    synchronize,
    using_device,
)
from tinynode.devices.use_counts import Use, count_use, fallback_uses, kernel_uses

__all__ = [
    "BOOL",
    "COMPLEX",
    "FLOATING",
    "INTEGER",
    "OPTIONAL_PARTS",
    "Array",
    "Arrays",
    "Backend",
    "CurrentDevice",
    "Device",
    "Fallback",
    "FunctionalWrites",
    "HiddenAxis",
    "MemoryPool",
    "OptimizerUpdate",
    "Overlay",
    "Planner",
    "Profiler",
    "Scatter",
    "Use",
    "Versioned",
    "add_at",
    "axis_of",
    "backend_names",
    "backend_of",
    "backend_origin",
    "base_of",
    "below",
    "check_cast",
    "complex_dtypes",
    "count_use",
    "current_device",
    "device_names",
    "device_of",
    "fallback_uses",
    "find_device",
    "get_backend",
    "get_device",
    "hidden_axes",
    "hides_variables",
    "import_vmap",
    "indices_of",
    "is_array",
    "is_differentiable",
    "is_float16",
    "is_floating",
    "is_integer",
    "is_over",
    "is_separate",
    "kernel_uses",
    "kind_of",
    "kind_of_dtype",
    "members_of",
    "namespace_from",
    "namespace_of",
    "own_backend",
    "narrowed_array",
    "put",
    "put_sum",
    "register_backend",
    "register_device",
    "sum_array",
    "supports",
    "synchronize",
    "to_host",
    "using_device",
    "widened_array",
    "without_hidden_axes",
]
