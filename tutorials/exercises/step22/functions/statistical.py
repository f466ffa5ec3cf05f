"""Sums and means over axes.

Step 22: Sum.backward calls repeat in place of np.broadcast_to.
"""

from mynode.functions.shapes import repeat
