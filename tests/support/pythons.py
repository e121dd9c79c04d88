"""The Pythons of this machine: what drivers have is often older than what tests need."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SUPPORTED = tuple(range(9, 15))
"""Of Python 3, those in which the planner's process runs."""
PYENV = Path.home() / ".pyenv" / "versions"


def found() -> dict[str, Path]:
    """One of each version that is here, with this one at least; the oldest first."""
    pythons = {}
    for minor in SUPPORTED:
        candidates = [
            *sorted(PYENV.glob(f"3.{minor}.*/bin/python3.{minor}")),
            shutil.which(f"python3.{minor}"),
        ]
        if sys.version_info.minor == minor:
            candidates = [sys.executable]
        here = next((Path(each) for each in candidates if each is not None and Path(each).is_file()), None)
        if here is not None:
            pythons[f"3.{minor}"] = here
    return pythons
