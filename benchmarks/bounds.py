"""Goals that are missed, and what was measured beside each, in the same rounds, that may bound what can be reached.

Such a row tells one thing where it reaches the goal, and another where it does not: what each kind of row can show
and cannot is said once, in the page on backlogs.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.local.results import REPORT, Goal
from benchmarks.standing import MISSED

KINDS: Final = {
    "batch": "a batch job of Spark: no state, no commit, Spark's reader of Kafka",
    "uncounted": "the same query, but Spark does not count the rows of its state",
}
"""Beside `NAME_vs_OTHER` stands `NAME_KIND_vs_OTHER`."""
OTHERS: Final = {
    "cogroup_vs_batch": ("cogroup_uncapped_vs_batch", "plain Spark's default"),
    "large_backlog_largest_batch": (
        "large_backlog_largest_batch_unrepeated",
        "without the batch that is repeated after the kill",
    ),
    "demo_vs_default": ("demo_same_heap_vs_default", "the same governed run in the default's heap"),
}

Row = Mapping[str, Any]
"""What is shown of a figure."""


def beside(figure: str) -> Iterator[tuple[str, str]]:
    """Yield the id of each row that may bound a figure, and what it is; whether it was measured is not said."""
    name, _, other = figure.partition("_vs_")
    for kind, says in KINDS.items():
        yield f"{name}_{kind}_vs_{other}", says
    if figure in OTHERS:
        yield OTHERS[figure]


def lines(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield a table of the goals that are missed; `rows` has what is shown of each figure by its id."""
    missed = [name for name, row in rows.items() if row["verdict"] == MISSED and row["goal"] != REPORT]
    if not missed:
        yield "No goal is missed."
        return
    yield "| missed | median | goal | beside it | what that is | median | reaches the goal |"
    yield "|---|---|---|---|---|---|---|"
    for name in missed:
        row = rows[name]
        found = [(other, says) for other, says in beside(name) if measured(rows.get(other))]
        about = f"| `{name}` | {told(row)} | {row['goal']} |"
        for other, says in found:
            reaches = "yes" if Goal.read(row["goal"]).holds(rows[other]["value"]) else "no"
            yield f"{about} `{other}` | {says} | {told(rows[other])} | {reaches} |"
        if not found:
            yield f"{about} - | nothing bounds it | - | - |"


def measured(row: Row | None) -> bool:
    """Tell whether a figure has a value."""
    return row is not None and row["value"] is not None


def told(row: Row) -> str:
    """Return the value of a figure, or a dash."""
    return f"{row['value']:.4g}" if measured(row) else "-"
