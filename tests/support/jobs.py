"""The example jobs, loaded as modules: they are scripts, and in no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

JOBS = Path(__file__).parents[2] / "examples" / "jobs"


def load_job(name: str) -> ModuleType:
    """Return `examples/jobs/<name>.py`, run as it is when it is imported."""
    spec = importlib.util.spec_from_file_location(f"{name}_job", JOBS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
