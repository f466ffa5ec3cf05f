"""Figures for the documentation, by commands such as ``python -m tools.benchmarks.overhead``.

All benchmarks run on a single thread, to compare libraries without thread pools. The variables
must be set before NumPy is imported, hence here.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
