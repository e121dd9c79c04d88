"""Measurements of the operator: a real API server, a real Prometheus, and drivers that are played.

The programs and the control plane are those of the tests, which are looked for in `tests`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))
