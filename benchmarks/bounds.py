"""Goals that are missed, and what was measured beside each, in the same rounds, that may bound what can be reached.

What each kind of row can show, and what it cannot, is said in the page on backlogs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.local.results import REPORT, Goal
from benchmarks.standing import MISSED


@dataclass(frozen=True)
class Beside:
    """A row that stands beside a goal."""

    id: str
    says: str
    """What it is."""
    bounds: bool = True
    """Whether a goal that it misses is shown to be out of reach by what is measured."""


OTHERS: Final = {
    "cogroup_vs_batch": Beside("cogroup_uncapped_vs_batch", "plain Spark's default", bounds=False),
    "large_backlog_largest_batch": Beside(
        "large_backlog_largest_batch_unrepeated", "without the batch that is repeated after the kill"
    ),
    "demo_vs_default": Beside("demo_same_heap_vs_default", "the same governed run in the default's heap"),
}

Row = Mapping[str, Any]
"""What is shown of a figure."""


def beside(figure: str) -> Iterator[Beside]:
    """Yield the rows that may bound a figure; whether they were measured is not said."""
    name, _, other = figure.partition("_vs_")
    yield Beside(f"{name}_batch_vs_{other}", "a batch job of Spark")
    yield Beside(f"{name}_uncounted_vs_{other}", "without Spark's count of rows", bounds=False)
    if figure in OTHERS:
        yield OTHERS[figure]


def lines(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield a table of the goals that are missed, and whether what stands beside each reaches it.

    `rows` has what is shown of each figure by its id.
    """
    missed = [name for name, row in rows.items() if row["verdict"] == MISSED and row["goal"] != REPORT]
    if not missed:
        yield "No goal is missed."
        return
    yield "| missed | median | goal | beside it | which is | median | reaches the goal |"
    yield "|---|---|---|---|---|---|---|"
    bounded, others = [], []
    for name in missed:
        wanted = Goal.read(rows[name]["goal"])
        about = f"| `{name}` | {told(rows[name])} | {wanted} |"
        found = [one for one in beside(name) if one.id in rows and rows[one.id]["value"] is not None]
        reaching = {one.id: wanted.holds(rows[one.id]["value"]) for one in found}
        for one in found:
            reaches = "yes" if reaching[one.id] else "no"
            yield f"{about} `{one.id}` | {one.says} | {told(rows[one.id])} | {reaches} |"
        if not found:
            yield f"{about} - | - | - | - |"
        (bounded if any(one.bounds and not reaching[one.id] for one in found) else others).append(name)
    yield ""
    if bounded:
        yield f"What bounds it misses the goal, too: {listed(bounded)}."
    if others:
        yield f"Nothing here shows that the goal is out of reach: {listed(others)}."


def listed(names: list[str]) -> str:
    """Return ids as a page names them."""
    return ", ".join(f"`{name}`" for name in names)


def told(row: Row) -> str:
    """Return the value of a figure, or a dash."""
    return "-" if row["value"] is None else f"{row['value']:.4g}"
