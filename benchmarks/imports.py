"""Which files of this repository a scenario is made of: what its module imports, and what that does.

Drivers and operators are processes of their own, and no import tells what runs in them: each suite names that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from grimp import ImportGraph, build_graph

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # grimp looks for `support` as Python does

ROOTS: Final = {
    "benchmarks": Path("benchmarks"),
    "headgate": Path("operator/headgate"),
    "headgate_contract": Path("spark_jobs/headgate_contract"),
    "headgate_spark": Path("spark_jobs/headgate_spark"),
    "support": Path("tests/support"),
}
"""Where the packages lie."""
KEEPING: Final = frozenset(
    f"benchmarks.{name}"
    for name in (
        "backlog.plot",
        "catalogs",
        "local.results",
        "provenance",
        "result_file",
        "runner",
        "standing",
    )
)
"""Modules that keep, judge and draw what was measured: no value is another one by them."""


def files(measure: Callable[..., Any]) -> tuple[str, ...]:
    """Return the files of the module of a function, of all that it imports, and the jobs beside these."""
    while isinstance(measure, partial):
        measure = measure.func
    found = closure(measure.__module__)
    jobs = {job for file in found if file.parts[0] == "benchmarks" for job in jobs_beside(file)}
    return tuple(sorted(str(file) for file in found | jobs))


def jobs_beside(file: Path) -> Iterator[Path]:
    """Yield the folders of what a suite runs in other processes."""
    if len(file.parts) > 2:
        yield from filter(Path.is_dir, (Path(*file.parts[:2], name) for name in ("jobs", "agent")))


@cache
def closure(module: str) -> frozenset[Path]:
    """Return the files of a module and of all modules that it imports, those of this repository."""
    return frozenset(file_of(name) for name in {module} | graph().find_upstream_modules(module))


@cache
def graph() -> ImportGraph:
    """Return which module imports which, but for those that only keep results."""
    found = build_graph(*ROOTS, cache_dir=None)
    for name in KEEPING:
        found.remove_module(name)
    return found


def file_of(module: str) -> Path:
    """Return the file of a module of this repository."""
    root, *rest = module.split(".")
    place = ROOTS[root].joinpath(*rest)
    return next(filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py")))
