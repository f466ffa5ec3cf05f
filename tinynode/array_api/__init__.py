"""The differentiable Array API namespace, called ``xp`` in many libraries.

x = tn.asarray([1.0, 2.0])
xp = x.__array_namespace__()
xp.linalg.vector_norm(xp.exp(x)).backward()

Source: the Array API standard 2025.12.
"""

from tinynode.array_api import gradient_cut as gradient_cut
from tinynode.array_api.namespace import (
    ArrayNamespace,
    array_namespace,
    checked_namespace,
    namespace_of_device,
)

__all__ = ["ArrayNamespace", "array_namespace", "checked_namespace", "namespace_of_device"]
__dir__ = __all__.copy  # for completion
