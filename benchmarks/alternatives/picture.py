"""The picture of one backlog beside what one would otherwise choose: time, unit of failure and processor time.

`make generate` draws it from `benchmarks/results/alternatives.json`, and `make lint` compares. It has the rounds of
the aggregation, over the latest days as in the tables (`benchmarks.standing`), and from the screening the ways that
take no part in these. Other ways to set what is ours (`by_rows`, `uncounted`) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks.alternatives.opponents import CAPS, FLINK_BATCH
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED
from benchmarks.demo.chart import WIDTH, Scale, short
from benchmarks.local.statistics import median
from benchmarks.result_file import Attempt
from benchmarks.standing import latest_days

PICTURE: Final = Path("docs/images/alternatives.svg")
SCREENING, ROUNDS = "aggregation_screening", "aggregation_vs_best_flink"
LEFT, RIGHT, HEAD, ROW = 300, 270, 30, 24
REPEATED, USED = WIDTH - 160, WIDTH - 10
"""Where the columns behind the bars end. A wide font has room everywhere."""
BACKENDS: Final = {"hashmap": "in memory", "rocksdb": "RocksDB", "forst": "ForSt, asynchronous"}
NAMES: Final = {
    GOVERNED: "Headgate, intervalDuringBacklog: 0s",
    UNCAPPED: "Spark's default: no cap",
    BATCH: "batch job of Spark",
    FLINK_BATCH: "batch job of Flink",
    **{way: f"Spark, {records:,} records a batch" for way, records in CAPS.items()},
}
STYLE: Final = """
svg { font-family: system-ui, sans-serif; } .paper { fill: #fff; } text { fill: #17202a; font-size: 12.5px; }
.unit { fill: #5b6774; } .limit { opacity: .35; } .headgate { fill: #0f766e; } .spark { fill: #6d5bd0; }
.flink { fill: #c2570c; } text.headgate { font-weight: 600; }
"""


def called(way: str) -> str:
    """Return what a reader is told that a way is."""
    if way in NAMES:
        return NAMES[way]
    _, backend, checkpoint, *combined = way.split("_")
    mini = ", mini-batches" if combined else ""
    return f"Flink, {BACKENDS[backend]}, {checkpoint}{mini}"


def ways(made: Mapping[str, Sequence[Attempt]]) -> dict[str, tuple[float, float, float]]:
    """Return of each way its seconds, the records that a failure repeats, and processor seconds of a million records.

    Each is the median over the latest days on which the way was measured, and of a day the median of its rounds. A
    failure repeats what is between two commits, as their mean.
    """
    found: dict[str, tuple[float, float, float]] = {}
    for figure in (SCREENING, ROUNDS):
        days = [costs_of(day["details"]) for day in latest_days(made[figure]) if has_costs(day)]
        for way in dict.fromkeys(way for day in days for way in day):
            seconds, repeated, used = zip(*(day[way] for day in days if way in day), strict=True)
            found[way] = median(seconds), median(repeated), median(used)
    return {way: found[way] for way in sorted(found, key=lambda each: found[each][0]) if is_shown(way)}


def costs_of(details: Mapping[str, Any]) -> dict[str, tuple[float, float, float]]:
    """Return the costs of each way on one day."""
    records = details["records"]
    costs: dict[str, tuple[float, float, float]] = {}
    for way in details["seconds"]:
        seconds, commits, used = (
            median(details[part][way]) for part in ("seconds", "batches", "cpu_seconds")
        )
        costs[way] = seconds, records / commits, used / records * 1e6
    return costs


def has_costs(attempt: Attempt) -> bool:
    """Tell whether an attempt says what each way took of the processor."""
    return "cpu_seconds" in attempt.get("details", {})


def is_measured(made: Mapping[str, Sequence[Attempt]]) -> bool:
    """Tell whether there is something to draw: of a figure whose last attempt failed there is not."""
    return all(figure in made and has_costs(made[figure][-1]) for figure in (SCREENING, ROUNDS))


def is_shown(way: str) -> bool:
    """Tell whether a way is one that somebody would choose."""
    return way in NAMES or way.startswith("flink_")


def draw(made: Mapping[str, Sequence[Attempt]]) -> str:
    """Return the picture of what the attempts at the figures come to, by their ids."""
    taken = ways(made)
    x = Scale(0, max(seconds for seconds, _, _ in taken.values()), LEFT, WIDTH - RIGHT)
    height = HEAD + ROW * len(taken) + 8
    head = "".join(
        f'<text class="unit" x="{end}" y="18" text-anchor="{anchor}">{escape(said)}</text>'
        for said, end, anchor in (
            (title(made), LEFT, "start"),
            ("records that a failure repeats", REPEATED, "end"),
            ("CPU s per million", USED, "end"),
        )
    )
    body = "".join(
        row(way, HEAD + ROW * number, x, *costs) for number, (way, costs) in enumerate(taken.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="One backlog, by Headgate, Spark and Flink"><style>{STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>{head}{body}</svg>\n'
    )


def title(made: Mapping[str, Sequence[Attempt]]) -> str:
    """Say what the bars are."""
    return f"seconds for {short(made[ROUNDS][-1]['details']['records'])} records"


def row(way: str, top: float, x: Scale, seconds: float, repeated: float, used: float) -> str:
    """Return the name, the bar and the numbers of a way."""
    kind = "headgate" if way == GOVERNED else "flink" if way.startswith("flink") else "spark"
    limit = " limit" if way in (BATCH, FLINK_BATCH) else ""
    end = x.at(seconds)
    width = round(max(end - LEFT, 1), 1)
    columns = "".join(
        f'<text x="{place}" y="{top + 14}" text-anchor="end">{number}</text>'
        for place, number in ((REPEATED, short(float(f"{repeated:.2g}"))), (USED, f"{used:.1f}"))
    )
    return (
        f'<text class="{kind if way == GOVERNED else ""}" x="{LEFT - 10}" y="{top + 14}" text-anchor="end">'
        f'{escape(called(way))}</text><rect class="{kind}{limit}" x="{LEFT}" y="{top}" width="{width}" '
        f'height="{ROW - 6}" rx="3"/><text x="{end + 8}" y="{top + 14}">{seconds:.1f} s</text>{columns}'
    )
