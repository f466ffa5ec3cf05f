"""Hooks that are ready to use: time, text, memory, NaN, and a GPU's profiler and memory pool.

``with TimerHook() as timer:`` watches every function of this thread. ``function.add_hook(hook)``
watches a single function. Hooks of your own derive from ``tinynode.FunctionHook``.
"""

from tinynode.hooks.device_memory import CUDAMemoryHook
from tinynode.hooks.memory import MemoryHook
from tinynode.hooks.nan import NaNHook
from tinynode.hooks.nvtx import NVTXHook
from tinynode.hooks.printing import PrintHook
from tinynode.hooks.results import ResultHook  # of version 0.1
from tinynode.hooks.timer import TimerHook

__all__ = [
    "CUDAMemoryHook",
    "MemoryHook",
    "NVTXHook",
    "NaNHook",
    "PrintHook",
    "ResultHook",
    "TimerHook",
]
__dir__ = __all__.copy  # for completion
