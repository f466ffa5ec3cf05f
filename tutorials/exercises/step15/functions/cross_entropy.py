"""The loss of a classifier.

Step 15: SoftmaxCrossEntropy gets check_type_forward: floating scores, a label for each row.
"""

from mynode.type_check import expect, is_floating
