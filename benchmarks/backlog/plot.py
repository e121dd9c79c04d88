"""The plot beside the result file: how long each variant of each workload took, drawn from the rows of the file.

A page that opens anywhere, without a network: the charts and the style are those of the demo's report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.catalogs import read
from benchmarks.demo.chart import Bar, Row, bars, seconds_scale, short
from benchmarks.demo.page import STYLE, heading
from benchmarks.local.statistics import median
from benchmarks.standing import shown

SERIES = {
    "headgate": "governed",
    "columnar": "governed",
    "by_rows": "governed",
    "uncounted": "governed",
    "plain_uncapped": "plain_uncapped",
}
"""The colour of a variant, by the series of the demo that it is; the others are low latency, but for the limit."""
LIMITS = frozenset({"batch", "flink_batch"})
"""Batch jobs."""
SPARE = 1.05
"""Of the axis, over the longest bar."""


BACKLOG = "A backlog as a batch"
ALTERNATIVES = "A backlog beside what one would otherwise choose"


def draw(results: Path, title: str = BACKLOG) -> Path:
    """Write the page beside a result file; returns it."""
    page = results.with_suffix(".html")
    page.write_text(render(shown(read(results)), title), encoding="utf-8")
    return page


def render(rows: Sequence[Mapping[str, Any]], title: str = BACKLOG) -> str:
    """Return the page of what is shown of all figures."""
    body = [f"<h1>{title}</h1>", table(rows)]
    body += [plot(row) for row in by_workload(rows).values()]
    head = f'<meta charset="utf-8"><title>Headgate: {title}</title><style>{STYLE.read_text()}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def measured_on(row: Mapping[str, Any]) -> str:
    """Return when and on what a figure was measured."""
    about = row["machine"]
    return (
        f"{row['date']}, {about['cores']} cores, {about['memory_gib']} GiB, "
        f"processor {about['processor']}, commit {row['commit']}"
    )


TITLES = ("", "median", "its interval", "all runs", "number", "days", "goal", "", "last measured")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return all figures with their goals."""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(row))}</tr>" for row in rows)
    titles = "".join(f"<th>{title}</th>" for title in TITLES)
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a table says of a figure, by `TITLES`; one that was not measured has a dash.

    The runs of a ratio are pairs. Fewer than six have no interval.
    """
    interval, (low, high) = row.get("interval"), (row.get("lowest"), row.get("highest"))
    return (
        row["id"],
        "-" if row["value"] is None else f"{row['value']:g}",
        "-" if interval is None else "{:.3g} to {:.3g}".format(*interval),
        "-" if low == high else f"{low:.3g} to {high:.3g}",
        str(row.get("count", 0)),
        str(row["days"]),
        row["goal"],
        row["verdict"],
        measured_on(row),
    )


def by_workload(rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return a row of each workload: what stands behind its figures is the same for all of them."""
    return {row["details"]["workload"]: row for row in rows if "workload" in row.get("details", {})}


def commits(variant: str) -> str:
    """Return what a variant counts as its batches."""
    return "checkpoints" if variant.startswith("flink") else "batches"


def medians(details: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return each variant of a workload with its median seconds and number of commits, the slowest first."""
    found = [
        (name, median(runs), median(details["batches"][name])) for name, runs in details["seconds"].items()
    ]
    return sorted(found, key=lambda variant: -variant[1])


def costs(details: Mapping[str, Any], name: str, batches: float) -> str:
    """Return how many records a failure repeats, as the mean of all commits, and the processor time, where known."""
    unit = f" of {short(details['records'] / batches)}" if batches > 1 else ""
    if name not in details.get("cpu_seconds", {}):
        return unit
    per_million = median(details["cpu_seconds"][name]) / details["records"] * 1e6
    return f"{unit}, {per_million:.2f} CPU s per million records"


def plot(row: Mapping[str, Any]) -> str:
    """Return one bar for each variant of a workload, the slowest first."""
    details = row["details"]
    variants = medians(details)
    rows = [
        Row(
            SERIES.get(name, "plain_low_latency"),
            [Bar(0, seconds, "calm" if name in LIMITS else "busy", name)],
            f"{name}: {seconds:.1f} s, {batches:.0f} {commits(name)}{costs(details, name, batches)}",
        )
        for name, seconds, batches in variants
    ]
    title = f"{details['workload']}: {details['records']:,} records"
    slowest = max(seconds for _, seconds, _ in variants)
    return heading(
        title, f"Median seconds of each variant; alternated runs, equal results. {measured_on(row)}."
    ) + bars(title, seconds_scale(slowest * SPARE), rows)
