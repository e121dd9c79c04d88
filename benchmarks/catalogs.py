"""Every figure that a scenario measures today, by its result file, with its code, and the attempts as they are read.

An attempt that was made before its figure named a `since`, and by its day measured the same, is read with it. And the
last one is judged by the goal that its figure has today: whoever sets another one need not measure to see it missed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks import result_file
from benchmarks.imports import files
from benchmarks.local.results import Figure
from benchmarks.result_file import Attempt, Attempts
from benchmarks.runner import Scenario, Suite

FILES: Final = ("alternatives", "backlog", "chaos", "door", "kafka", "live", "local", "operator", "soak")
"""Packages that have a catalog, and write the result file of the same name."""


@cache
def scenarios(file: str) -> Mapping[str, Scenario[Any]]:
    """Return the scenario of each figure of a file, by the figure's id; of a file without a catalog none."""
    if file not in FILES:
        return {}
    found = suite(file).scenarios
    return {figure.id: scenario for scenario in found for figure in scenario.figures}


def suite(file: str) -> Suite[Any]:
    """Return the suite that writes a result file."""
    found: Suite[Any] = importlib.import_module(f"benchmarks.{file}.__main__").SUITE
    return found


@cache
def code(file: str) -> Mapping[str, tuple[str, ...]]:
    """Return the paths of what is measured for each figure of a file, and of what measures it, by the figure's id."""
    measures = suite(file).origin.measures
    return {
        name: (*(measures if of.measures is None else of.measures), *files(of.measure))
        for name, of in scenarios(file).items()
    }


@cache
def figures(file: str) -> Mapping[str, Figure]:
    """Return each figure of a file by its id."""
    return {figure.id: figure for scenario in scenarios(file).values() for figure in scenario.figures}


def read(file: Path) -> Attempts:
    """Return all attempts of a file, each with the `since` of what it measured, the last one with its figure's goal.

    Raises ResultFileError where the file is not of its form.
    """
    known = figures(file.stem)
    return {name: as_today(made, known.get(name)) for name, made in result_file.read(file).items()}


def as_today(made: Sequence[Attempt], figure: Figure | None) -> list[Attempt]:
    """Return the attempts at a figure as it is today; None: nothing measures it any more, and all is as it was."""
    if figure is None:
        return list(made)
    *earlier, last = (measured(attempt, figure) for attempt in made)
    return [*earlier, {**last, "goal": str(figure.goal)}]


def measured(attempt: Attempt, figure: Figure) -> Attempt:
    """Return an attempt with the `since` of its figure, if by its day it measured what the figure does now."""
    since = figure.since
    if since is None or "since" in attempt or attempt["date"] < since.day:
        return attempt
    return {**attempt, "since": since.commit}
