"""A doctor for models: ``tinynode.diagnose(loss)`` names what is wrong with a recorded graph.

Each file looks for one family of faults, and returns ``Finding`` objects:

    node_check    a backward that is not the derivative of forward
    not_finite    the origin of NaN and inf, forward and backward
    activations   dead ReLUs, saturated sigmoids and tanhs
    layers        vanishing and exploding gradients, the size of updates
    parameters    parameters without a gradient, parameters that never change
    dtypes        float64 results of float32 inputs

``replay`` has the values of the graph's nodes, ``backward_pass`` the gradients. ``thresholds`` has
the limits, with reasons.
"""

import tinynode.show  # noqa: F401 - the package first: see late_imports
from tinynode.doctor.culprits import blame
from tinynode.doctor.diagnosis import Diagnosis
from tinynode.doctor.findings import Finding, Layer
from tinynode.doctor.visit import diagnose

__all__ = ["Diagnosis", "Finding", "Layer", "blame", "diagnose"]
__dir__ = __all__.copy  # for completion
