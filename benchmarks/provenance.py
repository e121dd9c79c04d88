"""Where a figure comes from: the commit that was measured, and the machine that it was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any, Final

UNKNOWN: Final = "unknown"
"""What a row says where nobody wrote it down: never a guess."""
CHANGED: Final = "+changes"
"""Behind a commit: something that is measured, or that measures, was not as it was committed."""
WRITTEN: Final = ("benchmarks/results", "docs", "*.md")
"""What measuring writes, and what is only read: no change in these is one of what is measured."""


def commit(root: Path = Path()) -> str:
    """Return the commit of the working tree at `root`, with `CHANGED` behind it where files differ from it.

    `UNKNOWN` where there is no repository, nor a `git` to ask.
    """
    others = [f":(exclude){path}" for path in WRITTEN]
    try:
        found = _git(root, "rev-parse", "--short=12", "HEAD")
        changes = _git(root, "status", "--porcelain", "--", ":/", *others)
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return found + (CHANGED if changes else "")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def machine() -> dict[str, Any]:
    """Return what is measured on: cores that this process may use, memory in GiB, system, kernel, processor."""
    return {
        "processor": processor() or UNKNOWN,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.system(),
        "kernel": platform.release(),
    }


def processor(about: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the model of the processor, where Linux tells it."""
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def processor_speed() -> float:
    """Return how many millions of turns of an empty loop one core makes in a second, at its best of five times.

    A machine that is shared is now quicker, now slower by half. Times of two runs compare only where this is alike.
    """

    def seconds() -> float:
        began = time.perf_counter()
        for _ in range(1_000_000):
            pass
        return time.perf_counter() - began

    return 1 / min(seconds() for _ in range(5))
