"""Settings.

Step 13: Config gets enable_backprop = True; write no_backprop_mode.
"""

import contextlib


@contextlib.contextmanager
def no_backprop_mode():
    """In this block, operations record no graph. The old setting comes back at the end."""
    raise NotImplementedError("step 13: set config.enable_backprop, yield, put the old value back")
