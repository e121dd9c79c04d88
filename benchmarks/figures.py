"""The figures in documents, written from the result files: `python -m benchmarks.figures`.

A number in a document is only as good as the run it comes from, so no person types one: this page does, from
`benchmarks/results/`, and `make lint` compares (`--check`). The README has the most important ones: what has no value
yet is left out, what missed its goal says so. The page on backlogs has all of theirs, and the plot beside their
results is drawn anew.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.backlog import plot
from benchmarks.local.results import REPORT

README: Final = Path("README.md")
BACKLOGS: Final = Path("docs/backlog-speed.md")
RESULTS: Final = Path("benchmarks/results")
PLOT: Final = RESULTS / "backlog.html"
BEGIN: Final = "<!-- figures: written by `make generate` from benchmarks/results -->"
END: Final = "<!-- end of figures -->"


@dataclass(frozen=True)
class Line:
    """One row of the table: which result, and what a reader is told it is."""

    file: str
    id: str
    says: str
    form: str = "{:.1f}x"


LINES: Final = (
    Line(
        "local",
        "catchup_vs_low_latency",
        "ten million records of a keyed aggregation caught up, against batches of 50,000",
    ),
    Line("local", "catchup_0s_vs_low_latency", "the same with `intervalDuringBacklog: 0s`"),
    Line("local", "demo_vs_low_latency", "`make demo`: a year of flights, against batches of 2,000"),
    Line(
        "local",
        "staleness_vs_low_latency",
        "how old results are from a minute after the catch-up on (95th percentile), against low latency",
        "{:.2f}x",
    ),
    Line(
        "local",
        "first_batch_after_stall",
        "first batch after a stall of a minute, in lengths of its target",
        "{:.2f}",
    ),
    Line("local", "rate_error_100k", "error of a rate limit of 100,000 records/s", "{:.2%}"),
    Line("local", "interval_error_500ms", "error of a commit interval of 500 ms", "{:.2%}"),
    Line("local", "reaction_p95_seconds", "new settings in force in the running query", "{:.2f} s"),
    Line("local", "idle_cpu_cores", "cost of governing an idle query", "{:.3f} cores"),
    Line(
        "kafka",
        "records_past_limit",
        "records read past the limit of an alignment on Kafka, from a cold start",
        "{:,.0f}",
    ),
    Line("kafka", "late_records_dropped", "late records that the join of those topics dropped", "{:,.0f}"),
    Line(
        "kafka",
        "throughput_vs_plain",
        "speed of a governed Kafka source, against Spark's own, in batches of the same size",
        "{:.2f}x",
    ),
    Line("kafka", "records_lost", "records lost in three crashes of the broker", "{:,.0f}"),
    Line("kafka", "records_doubled", "records doubled in them", "{:,.0f}"),
    Line(
        "operator",
        "drivers_created_per_minute",
        "drivers created in a minute, on two cores, with the chart's policy for finalizers",
        "{:,.0f}",
    ),
    Line(
        "operator",
        "tick_p99_seconds_10000",
        "one look at 10,000 applications, decided and applied",
        "{:.1f} s",
    ),
    Line("operator", "failover_seconds", "leader killed, another acts", "{:.0f} s"),
    Line(
        "backlog",
        "aggregation_vs_low_latency",
        "a backlog as one batch: keyed aggregation, against batches of 50,000",
    ),
    Line("backlog", "cogroup_vs_low_latency_4k", "coGroup, against batches of 4,000"),
    Line("backlog", "join_vs_low_latency", "interval join with backfill, against batches of 20,000"),
    Line(
        "backlog",
        "aggregation_vs_flink_streaming",
        "the same on Kafka, against Flink 2.3 on the same topics: keyed aggregation",
    ),
    Line("backlog", "cogroup_vs_flink_streaming", "coGroup"),
    Line("backlog", "join_vs_flink_streaming", "interval join with backfill"),
    Line(
        "backlog",
        "alignment_records_beyond_headgate",
        "records read past the limit of an alignment of 1 s at a cold start",
        "{:,.0f}",
    ),
    Line(
        "backlog",
        "alignment_records_beyond_flink",
        "the same in Flink 2.3",
        "{:,.0f}",
    ),
)


def table(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the lines of the table; `results` has the rows of each file by id."""
    yield "| | measured | goal |"
    yield "|---|---|---|"
    for line in LINES:
        row = results.get(line.file, {}).get(line.id)
        if row is not None and row["value"] is not None:
            yield f"| {line.says} | {line.form.format(row['value'])} | {goal(row)} |"


def goal(row: Mapping[str, Any]) -> str:
    """Return the goal of a row and whether it was missed; "-" where it is only reported."""
    if row["goal"] == REPORT:
        return "-"
    return row["goal"] if row["holds"] else f"{row['goal']}, **missed**"


def backlogs(document: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines of two tables, all figures of backlogs and the times of variants, and what measured them."""
    if document is None:
        yield "Nothing has been measured yet."
        return
    yield f"| {' | '.join(plot.TITLES)} |"
    yield f"|{'---|' * len(plot.TITLES)}"
    for row in document["results"]:
        name, *others = plot.cells(row)
        yield f"| `{name}` | {' | '.join(others)} |"
    yield ""
    yield "| workload | records | median seconds of each variant (batches or checkpoints), slowest first |"
    yield "|---|---|---|"
    for workload in plot.by_workload(document["results"]).values():
        taken = ", ".join(
            f"{name} {seconds:.1f} ({batches:.0f})" for name, seconds, batches in plot.medians(workload)
        )
        yield f"| {workload['workload']} | {workload['records']:,} | {taken} |"
    yield ""
    yield f"`{document['command']}`, {plot.measured_with(document)}."


def read() -> dict[str, Mapping[str, Any]]:
    """Return each result file by its name."""
    return {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(RESULTS.glob("*.json"))
    }


def by_id(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the rows of each result file by their id."""
    return {name: {row["id"]: row for row in found["results"]} for name, found in documents.items()}


def with_figures(page: str, lines: Iterator[str]) -> str:
    """Return the page with the table in its place. Raises `ValueError` where it has no place for one."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page has no place for figures: put the lines {BEGIN!r} and {END!r} there")
    head, rest = page.split(BEGIN, 1)
    return head + "\n".join([BEGIN, *lines, END]) + rest.split(END, 1)[1]


def generated(documents: Mapping[str, Mapping[str, Any]]) -> dict[Path, str]:
    """Return what each file that has figures is to say."""
    backlog = documents.get("backlog")
    tables = {README: table(by_id(documents)), BACKLOGS: backlogs(backlog)}
    pages = {file: with_figures(file.read_text(encoding="utf-8"), lines) for file, lines in tables.items()}
    return pages if backlog is None else {**pages, PLOT: plot.render(backlog)}


def main() -> int:
    """Write what is generated; with `--check` only compare: exit code 1 if a file says something else."""
    parser = argparse.ArgumentParser(description="Write the figures in documents, and the plot of backlogs.")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    code = 0
    for file, text in generated(read()).items():
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file}: figures are not those of {RESULTS}; run `make generate`", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
