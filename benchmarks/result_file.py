"""A file of results: for each figure all attempts to measure it, in the order in which they were made.

An attempt says itself what was measured and on what: commit, machine, versions, date, command. It is added behind
the earlier ones and never changed; one that failed, or missed its goal, stays. What documents make of them is in
`benchmarks.standing`.
Each attempt is a line of the file, so that a call adds lines and touches no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import UNKNOWN

Attempt = Mapping[str, Any]
"""Everything of one measurement of one figure, but for the id of the figure."""
Attempts = dict[str, list[Attempt]]
"""All attempts of each figure, by its id."""

SAYS: Final = (
    "date",
    "commit",
    "machine",
    "versions",
    "command",
    "unit",
    "goal",
    "value",
    "holds",
    "runs",
    "load_average",
    "processor_speed",
)
"""The members of every attempt. Members of `machine`, and `processor_speed` may be "unknown"."""
COMMITS_KEPT_SINCE: Final = "2026-11-24"
"""An attempt of an earlier day may have an "unknown" `commit`, and then says in `recorded_in` which commit of this
history put it into its file. What was measured is that commit or one before it; nobody wrote down which."""
MACHINE: Final = ("processor", "cores", "memory_gib")


class ResultFileError(ValueError):
    """A file of results that is not of this form; the message says where."""


def read(file: Path) -> Attempts:
    """Return all attempts of a file; of one that is not there, none.

    Raises ResultFileError where it is not of this form.
    """
    if not file.exists():
        return {}
    document = json.loads(file.read_text(encoding="utf-8"))
    if wrong := next(faults(document), None):
        raise ResultFileError(f"{file}: {wrong}")
    return {row["id"]: row["attempts"] for row in document["results"]}


def faults(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a document: what an attempt does not say, or that a later one stands before it."""
    for row in document["results"]:
        if not row.get("attempts"):
            yield f"{row['id']} has no attempts"
            continue
        for number, attempt in enumerate(row["attempts"], 1):
            missing = [name for name in SAYS if name not in attempt]
            missing += [f"machine.{name}" for name in MACHINE if name not in attempt.get("machine", MACHINE)]
            if missing:
                yield f"attempt {number} of {row['id']} does not say its {', '.join(missing)}"
            elif attempt["commit"] in ("", UNKNOWN) and not is_of_old(attempt):
                yield f"attempt {number} of {row['id']} does not say its commit: measure in a clone of the repository"
        dates = [attempt["date"] for attempt in row["attempts"] if "date" in attempt]
        if dates != sorted(dates):
            yield f"the attempts of {row['id']} are not in the order of their dates: new ones go to the end"


def is_of_old(attempt: Attempt) -> bool:
    """Tell whether it was made when no commits were kept, and says where it was put into its file."""
    return attempt["date"] < COMMITS_KEPT_SINCE and bool(attempt.get("recorded_in"))


def append(file: Path, command: str, rows: Iterable[Mapping[str, Any]], order: Sequence[str]) -> None:
    """Add an attempt for each of `rows`, which have the `id` of their figure; the file is replaced in one step.

    Figures are in `order`; those not in it, which nothing measures any more, stay behind the others. Raises
    ResultFileError, and leaves the file as it is, where a row does not say where it comes from.
    """
    attempts = read(file)
    for row in rows:
        attempt = {name: value for name, value in row.items() if name != "id"}
        attempts.setdefault(row["id"], []).append(attempt)
    document = {"results": [{"id": name, "attempts": made} for name, made in attempts.items()]}
    if wrong := next(faults(document), None):
        raise ResultFileError(f"{file}: {wrong}")
    names = [name for name in order if name in attempts]
    names += [name for name in attempts if name not in order]
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(written(command, {name: attempts[name] for name in names}), encoding="utf-8")
    unfinished.replace(file)


def written(command: str, attempts: Attempts) -> str:
    """Return the text of a file: JSON, with a line for each attempt."""
    rows = [
        f'  {{"id": {json.dumps(name)}, "attempts": [\n'
        + ",\n".join(f"   {json.dumps(attempt)}" for attempt in made)
        + "\n  ]}"
        for name, made in attempts.items()
    ]
    return f'{{\n "command": {json.dumps(command)},\n "results": [\n' + ",\n".join(rows) + "\n ]\n}\n"
