"""Figures that are stale: what they measured has changed since.

An attempt names the paths of what it measured (`paths`), and its commit; how many later commits touched any of them
is asked of git. One from before attempts named paths counts as of all that its file measures. No figure is refused
for it: while a product is worked on nearly all are stale, and a release is the day to measure them anew.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import CHANGED
from benchmarks.result_file import Attempt, Attempts

OF_OLD: Final = {"operator": ("operator", "spark_jobs/headgate_contract"), "chaos": ("operator",)}
"""What a file measures whose attempts name no paths; others: what runs in a driver."""
PAGES: Final = ":(exclude)*.md"


@cache
def commits_since(commit: str, paths: tuple[str, ...], root: Path = Path()) -> int | None:
    """Return how many commits after this one touched a path; None where this history does not have it.

    None, too, where there is no repository or no git: nobody can tell then.
    """
    command = ["git", "-C", str(root), "rev-list", "--count", f"{commit}..HEAD", "--", *paths, PAGES]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return int(found.stdout)


def measured_at(attempt: Attempt) -> str:
    """Return the commit that was measured, or one that recorded it later, where this history does not have that.

    That is so where nobody wrote it down, and where it was replaced by another one before it came here.
    """
    commit: str = attempt.get("recorded_in") or attempt["commit"]
    return commit.removesuffix(CHANGED)


def paths(file: str, attempt: Attempt) -> tuple[str, ...]:
    """Return the paths that the attempt of a file names, or all that the file measures."""
    return tuple(attempt.get("paths") or (*OF_OLD.get(file, ("spark_jobs",)), f"benchmarks/{file}"))


def stale(results: Mapping[str, Attempts]) -> Iterator[tuple[str, str, int | None]]:
    """Yield file, id and number of later commits of each figure whose last attempt is stale; None: unknown."""
    for file, figures in results.items():
        for name, made in figures.items():
            since = commits_since(measured_at(made[-1]), paths(file, made[-1]))
            if since != 0:
                yield file, name, since


def summary(found: Sequence[tuple[str, str, int | None]], results: Mapping[str, Attempts]) -> Iterator[str]:
    """Yield a line for each file that has stale figures."""
    for file, figures in results.items():
        of_file: list[Any] = [since for name, _, since in found if name == file]
        if of_file:
            most = max((since for since in of_file if since is not None), default=None)
            says = (
                "of commits that are not in this history" if most is None else f"up to {most} commits later"
            )
            yield f"{file}.json: {len(of_file)} of {len(figures)} figures are stale ({says})"
