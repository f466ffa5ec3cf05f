"""The operators of a Variable.

Step 7: the operator / in both orders, __truediv__ and __rtruediv__.
"""
