"""What every test runs under: threads of torch that sleep while they wait, as in the product's own worker."""

from __future__ import annotations

import os

# Read by the OpenMP library when torch is first loaded; several test processes share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
