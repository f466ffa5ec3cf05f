"""One use of an operation.

Step 15: add the method check_type_forward; apply calls run_check before forward.
"""

from mynode.type_check import run_check
