"""The backend of ``vmap``: arrays with a hidden axis at the front, an entry for each example.

A function of an example sees arrays without the hidden axis, and so do FunctionNodes. Each
function of the namespace works on all examples at once. So vmap needs no second set of rules.

``array`` has the arrays, ``lifting`` the rules for families of functions, ``namespace`` the
functions by name, and ``backend`` the backend.
"""

from tinynode_batched.array import BatchedArray
from tinynode_batched.backend import Batched, Library

__all__ = ["Batched", "BatchedArray", "Library"]
