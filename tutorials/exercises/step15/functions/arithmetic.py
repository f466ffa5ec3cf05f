"""Negation, sums and products.

Step 15: BroadcastingNode checks its two inputs: their shapes broadcast together.
"""

from mynode.type_check import broadcasts, expect
