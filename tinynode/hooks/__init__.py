"""Hooks that are ready to use: time, text, memory and NaN.

``with TimerHook() as timer:`` watches every function of this thread; ``function.add_hook(hook)``
watches one. Hooks of your own derive from ``tinynode.FunctionHook``.
"""

from tinynode.hooks.memory import MemoryHook
from tinynode.hooks.nan import NaNHook
from tinynode.hooks.printing import PrintHook
from tinynode.hooks.timer import TimerHook

__all__ = ["MemoryHook", "NaNHook", "PrintHook", "TimerHook"]
