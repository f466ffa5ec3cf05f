"""Figures for the documentation, each by one command: ``python -m benchmarks.overhead`` and so on.

Everything runs on one thread, so that the libraries are compared and not their thread pools. The
variables have to be set before NumPy is imported, hence here.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
