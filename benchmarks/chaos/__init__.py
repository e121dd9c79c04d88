"""Faults, misuse and nonsense by the thousand, each drawn from a seed, and the laws that hold throughout."""

import sys
from pathlib import Path

# The laws, and what they are tried on, are those of the tests.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
