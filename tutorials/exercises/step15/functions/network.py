"""What the layers of a network compute.

Step 15: Linear gets check_type_forward: floating x and W, numbers of axes, and lengths that fit.
"""

from mynode.type_check import expect, is_floating
