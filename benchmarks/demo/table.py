"""The measures of the runs side by side, for the terminal and for the page."""

from benchmarks.demo.measures import Measures
from benchmarks.demo.results import Findings

ROWS = {
    "catch_up_seconds": "time to catch up",
    "commits": "commits",
    "largest_batch_records": "largest batch, records",
    "staleness_p50_seconds": "staleness once live, p50",
    "staleness_p95_seconds": "staleness once live, p95",
    "peak_state_rows": "peak state, rows",
    "rows_out": "rows out",
}


def cells(findings: Findings) -> list[tuple[str, ...]]:
    """Return the rows of the table: a label, then a value for each run."""
    measures = [result.measures for result in findings.results.values()]
    return [(label, *(formatted(each, name) for each in measures)) for name, label in ROWS.items()]


def formatted(measures: Measures, name: str) -> str:
    """Return a measure as a person reads it, with its unit where the label has none."""
    value = getattr(measures, name)
    if name == "catch_up_seconds":
        return f"{value:.1f} s"
    return f"{value:.2f} s" if name.endswith("_seconds") else f"{value:,}"


def verdict_on_runs(findings: Findings) -> list[str]:
    """Say what the figures mean, in two sentences."""
    faster = findings.ratio("catch_up_seconds", "plain_low_latency", "governed")
    smaller = findings.ratio("largest_batch_records", "governed", "plain_uncapped")
    fresh = findings.ratio("staleness_p95_seconds", "governed", "plain_low_latency")
    return [
        f"Governed, the backlog was cleared {faster:.1f} times as fast as at plain low latency, and the largest "
        f"batch had {smaller:.0%} of the records of the uncapped one.",
        f"Once live, its staleness (p95) was {fresh:.2f} times that of plain low latency.",
    ]
