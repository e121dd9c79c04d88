"""Figures that are stale: code that they measure, or that measures them, has changed since.

`catalogs.code` names that code for each figure, as narrowly as it is true; how many later commits touched any of it
is asked of git. No figure is refused for it: while a product is worked on many are stale, and a release is the day to
measure them anew.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.catalogs import code
from benchmarks.provenance import CHANGED
from benchmarks.result_file import Attempt, Attempts

PAGES: Final = ":(exclude)*.md"


@dataclass(frozen=True)
class Stale:
    """A figure whose last attempt is older than its code."""

    file: str
    id: str
    date: str
    """Of that attempt."""
    commits: int | None
    """How many later ones touched the code; None: this history does not have what was measured."""

    def __str__(self) -> str:
        later = "not in this history" if self.commits is None else f"{self.commits} commits since"
        return f"{self.date} {self.file}.json {self.id}: {later}"


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


def stale(results: Mapping[str, Attempts]) -> list[Stale]:
    """Return the figures whose last attempt is stale, those that were measured longest ago first.

    What nothing measures any more cannot be measured anew, and is none of them.
    """
    found = []
    for file, figures in results.items():
        for name, paths in code(file).items():
            if name in figures:
                last = figures[name][-1]
                since = commits_since(measured_at(last), paths)
                if since != 0:
                    found.append(Stale(file, name, last["date"], since))
    return sorted(found, key=lambda one: one.date)


def summary(found: Sequence[Stale], results: Mapping[str, Attempts]) -> Iterator[str]:
    """Yield a line for each file that has stale figures, the one with the oldest of them first.

    `found` are these, the oldest first.
    """
    for file in dict.fromkeys(one.file for one in found):
        of_file = [one for one in found if one.file == file]
        all_of_file = sum(name in results[file] for name in code(file))
        known = sorted(one.commits for one in of_file if one.commits is not None)
        by = f"by {known[0]} to {known[-1]} commits" if known else "by commits that are not in this history"
        yield (
            f"{file}.json: {len(of_file)} of {all_of_file} figures are older than their code, {by}; "
            f"the oldest of {of_file[0].date}: {of_file[0].id}"
        )
