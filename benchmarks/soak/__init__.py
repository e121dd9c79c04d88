"""What weeks of use leave behind: nothing."""

import sys
from pathlib import Path

# Brokers and stand-ins are those of the tests.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
