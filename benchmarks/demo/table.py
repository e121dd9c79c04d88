"""The measures of the runs side by side, for the terminal and for the page, and what they mean in words."""

import os

from benchmarks.demo.results import Findings, Result
from benchmarks.demo.session import NOT_THROUGH

ROWS = {
    "catch_up_seconds": "time to catch up",
    "first_rows_seconds": "first results after",
    "longest_silence_seconds": "longest wait for new results",
    "largest_batch_records": "largest batch, records",
    "peak_state_rows": "peak state, rows",
    "peak_heap_mib": "peak heap after a collection",
    "staleness_p50_seconds": "age of results once live, median",
    "staleness_p95_seconds": "age of results once live, 95th percentile",
    "live_batches": "batches once live",
    "commits": "commits",
    "late_rows": "rows dropped as late",
    "rows_out": "rows out",
}
NONE = "-"
BUSY = 3.0
"""Threads that run or wait for each processor: a run alone has one or two."""
WHEN = (
    "Use Headgate where a query has to be live at low latency and also get through a backlog in bounded memory, with "
    "results on the way, or where streams have to keep step. You need none where a backlog fits into one batch and "
    "nobody minds waiting for its end: Spark's default is as quick then. Nor where one fixed cap "
    "(maxOffsetsPerTrigger) suits you at all times."
)


def cells(findings: Findings) -> list[tuple[str, ...]]:
    """Return the rows of the table: a label, then a value for each run."""
    return [
        (label, *(formatted(result, name) for result in findings.results.values()))
        for name, label in ROWS.items()
    ]


def formatted(result: Result, name: str) -> str:
    """Return a measure as a person reads it, with its unit where the label has none."""
    if name == "catch_up_seconds" and result.failure is not None:
        return result.failure
    value = getattr(result.measures, name)
    if value is None:
        return NONE
    if name == "peak_heap_mib":
        return f"{value:,} MiB"
    if name.startswith("staleness"):
        return f"{value:.2f} s"
    return seconds(value) if name.endswith("_seconds") else f"{value:,}"


def seconds(value: float | None) -> str:
    """Return seconds as a person reads them."""
    return NONE if value is None else f"{value:.1f} s"


def verdict_on_runs(findings: Findings) -> list[str]:
    """Say what the figures mean, whoever they speak for."""
    return [
        of_small_heap(findings.results["plain_small"]),
        of_governed(findings.results["governed"]),
        of_large_heap(findings),
        of_live(findings),
        of_late_rows(findings),
        *of_other_work(findings, os.cpu_count() or 1),
    ]


def of_small_heap(result: Result) -> str:
    """Say whether Spark's default got through in the heap of the governed run."""
    if result.failure is not None:
        given = ", which is as long as the run in the larger heap took in all"
        return (
            f"{result.run.title}: {result.failure} after {seconds(result.ended - result.started)}"
            f"{given if result.failure == NOT_THROUGH else ''}, with "
            f"{result.measures.peak_heap_mib} MiB in use after a collection. It takes the whole backlog as one "
            "batch, and all of its state has to fit into the heap."
        )
    return (
        f"{result.run.title}: through in {seconds(result.measures.catch_up_seconds)}, "
        f"with up to {result.measures.peak_heap_mib} MiB in use after a collection."
    )


def of_governed(result: Result) -> str:
    """Say how the governed run got through."""
    measures = result.measures
    return (
        f"{result.run.title}: through in {seconds(measures.catch_up_seconds)}, in batches of at most "
        f"{measures.largest_batch_records or 0:,} records. First results came after "
        f"{seconds(measures.first_rows_seconds)}, and nobody waited longer than "
        f"{seconds(measures.longest_silence_seconds)} for new ones."
    )


def of_large_heap(findings: Findings) -> str:
    """Say what Spark's default makes of it where it has the memory."""
    roomy, governed = findings.results["plain_uncapped"], findings.measures("governed")
    took, others = roomy.measures.catch_up_seconds, governed.catch_up_seconds
    if took is None or others is None:
        return f"{roomy.run.title}: not through."
    compared = "quicker" if took < others else "no quicker"
    first = roomy.measures.first_rows_seconds
    closed = ", once a further batch had closed what the first one had read" if first and first > took else ""
    return (
        f"{roomy.run.title}: through in {seconds(took)}, {compared} than governed; first results after "
        f"{seconds(first)}{closed}; up to {roomy.measures.peak_heap_mib} MiB in use after a "
        f"collection, against {governed.peak_heap_mib} MiB."
    )


def of_live(findings: Findings) -> str:
    """Say how fresh results are once live, beside plain Spark, whose live batches follow each other at once."""
    plain = findings.measures("plain_uncapped").staleness_p95_seconds
    governed = findings.measures("governed").staleness_p95_seconds
    if plain is None or governed is None:
        return "Not every run went live."
    return (
        f"Once live, the age of results (95th percentile) was {governed:.2f} s governed and {plain:.2f} s in plain "
        f"Spark, {governed / plain:.2f} times as much: both commit one batch after the other then."
    )


def of_other_work(findings: Findings, processors: int) -> list[str]:
    """Say whether the machine had so much else to do that seconds of the runs do not compare."""
    loads = [result.load for result in findings.results.values() if result.load is not None]
    if not loads or max(loads) <= BUSY * processors:
        return []
    told = ", ".join(f"{load:.1f}" for load in loads)
    return [
        f"This machine had other work, too: a load of {told} as the runs ended, on {processors} processors. Sizes, "
        "memory and rows say what they say, but seconds of one run compare badly with those of another."
    ]


def of_late_rows(findings: Findings) -> str:
    """Say whether rows came too late, and where they do."""
    dropped = [(result.run.title, result.measures.late_rows) for result in findings.results.values()]
    elsewhere = (
        "`make demo-kafka` shows a join of two topics that are out of step, where plain Spark drops some."
    )
    if not any(rows for _, rows in dropped):
        return f"No run dropped a row as late, since both streams are in order here. {elsewhere}"
    told = ", ".join(f"{title} {rows:,}" for title, rows in dropped)
    return f"Rows dropped as late: {told}. {elsewhere}"
