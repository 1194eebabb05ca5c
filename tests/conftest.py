"""Settings of the whole test run."""

from __future__ import annotations

import os

# Tests run side by side; threads of BLAS and torch would only take turns on the same cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
