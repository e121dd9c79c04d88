"""The figures in documents, written from the result files: `python -m benchmarks.figures`.

A number in a document is only as good as the run it comes from, so no person types one: this page does, from
the last attempts in `benchmarks/results/`, and `make lint` compares (`--check`). The README has those that a user
asks for first, and beside each that is taken against small batches what plain Spark makes of the same without any
cap. What has no value yet is left out, what missed its goal says so. The page on backlogs has all of theirs, and the
plot beside their results is drawn anew.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.backlog import plot
from benchmarks.local.results import REPORT
from benchmarks.local.statistics import median
from benchmarks.provenance import UNKNOWN
from benchmarks.result_file import Attempts, ResultFileError, latest, read

README: Final = Path("README.md")
BACKLOGS: Final = Path("docs/backlog-speed.md")
RESULTS: Final = Path("benchmarks/results")
PLOT: Final = RESULTS / "backlog.html"
BEGIN: Final = "<!-- figures: written by `make generate` from benchmarks/results -->"
END: Final = "<!-- end of figures -->"


@dataclass(frozen=True)
class Variant:
    """Whose seconds are in the details of a figure: of which figure, and under what name."""

    id: str
    name: str


@dataclass(frozen=True)
class Line:
    """One row of the table: which result, and what a reader is told it is."""

    file: str
    id: str
    says: str
    form: str = "{:.1f}x"
    capped: Variant | None = None
    """The small batches that it is taken against, where it is."""
    default: Variant | None = None
    """Plain Spark without a cap, of the same rounds."""


def beside_default(file: str, figure: str, says: str, capped: str, default: str | None = None) -> Line:
    """Return a line of a figure that is taken against small batches; `default` has the times without a cap.

    They are in the details of that very figure unless another one is named.
    """
    return Line(
        file,
        figure,
        says,
        capped=Variant(figure, capped),
        default=Variant(default or figure, "plain_uncapped"),
    )


CATCH_UP: Final = "catchup_vs_low_latency"
LINES: Final = (
    beside_default(
        "local",
        CATCH_UP,
        "count and sum of a million keys, ten million records, `intervalDuringBacklog: 2m`, against batches of 50k",
        "plain_low_latency",
        "catchup_vs_uncapped",
    ),
    beside_default(
        "local",
        "catchup_0s_vs_low_latency",
        "the same, `intervalDuringBacklog: 0s`",
        "plain_low_latency",
        "catchup_0s_vs_uncapped",
    ),
    beside_default(
        "backlog",
        "aggregation_vs_low_latency",
        "the same on Kafka, one batch, told from the start that it is a backlog, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "windows_vs_low_latency",
        "count and sum per key and ten minutes, one batch, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "deduplication_vs_low_latency",
        "deduplication, one batch, against batches of 50k",
        "plain_50k",
    ),
    beside_default(
        "backlog",
        "cogroup_vs_low_latency_40k",
        "coGroup, one batch, against batches of 40k",
        "plain_40k",
    ),
    beside_default(
        "backlog",
        "join_vs_low_latency",
        "interval join, with `headgate_spark.backfill` written into the job, against batches of 20k",
        "plain_20k",
    ),
    Line(
        "backlog",
        "aggregation_vs_flink_streaming",
        "aggregation on Kafka, against Flink 2.3 on RocksDB (its default, state in memory, was not run)",
    ),
    Line("backlog", "cogroup_vs_flink_streaming", "coGroup, against the same"),
    Line("backlog", "join_vs_flink_streaming", "interval join with backfill, against the same"),
    Line(
        "backlog",
        "live_latency_vs_low_latency",
        "latency once live (95th percentile, 20,000 records/s, from 60 s on), against low latency",
        "{:.2f}x",
    ),
    Line(
        "backlog",
        "alignment_records_beyond_headgate",
        "two topics aligned to 1 s: records read past the limit, from a cold start",
        "{:,.0f}",
    ),
    Line("backlog", "alignment_records_beyond_flink", "the same in Flink 2.3", "{:,.0f}"),
    Line(
        "kafka",
        "late_records_dropped",
        "late records that the join of two aligned topics dropped",
        "{:,.0f}",
    ),
    Line(
        "kafka",
        "throughput_vs_plain",
        "speed of reading Kafka, against Spark's own in batches of the same size",
        "{:.2f}x",
    ),
    Line(
        "kafka",
        "records_lost",
        "records lost when a broker that has no replica is killed three times",
        "{:,.0f}",
    ),
    Line("kafka", "records_doubled", "records doubled in that", "{:,.0f}"),
    Line(
        "door", "cells", "kinds of job with features, governed by one jar and one property, of 49", "{:.0f}"
    ),
    Line(
        "door",
        "throughput_vs_plain_kafka",
        "speed of reading Kafka with that jar and property, against the same job without",
        "{:.2f}x",
    ),
    Line(
        "door",
        "question_p50_seconds",
        "a question to the planner and its answer, as the query waits for it: median",
        "{:.5f} s",
    ),
    Line("door", "question_p99_seconds", "the same, 99th percentile", "{:.4f} s"),
    Line(
        "door",
        "foreach_batch_busy",
        "planning a batch while the job's own Python holds its lock for seconds (99th percentile)",
        "{:.4f} s",
    ),
    Line(
        "door",
        "streams_leaked",
        "streams that have left anything behind in their driver (a kilobyte of its heap counts as one)",
        "{:,.0f}",
    ),
    Line(
        "door", "idle_cpu_cores_100", "cost of a driver with a hundred idle governed queries", "{:.2f} cores"
    ),
    Line(
        "local",
        "rate_error_100k",
        "mean error of a limit of 100,000 records/s over half a minute (within a batch it reads as fast as it can)",
        "{:.2%}",
    ),
    Line(
        "local",
        "reaction_p95_seconds",
        "new settings written to the control document of a driver until they are in force in the running query",
        "{:.2f} s",
    ),
    Line("local", "idle_cpu_cores", "cost of governing an idle query", "{:.3f} cores"),
)

Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""The last attempt at each figure by its id, by the file that it is in."""


def table(results: Rows) -> Iterator[str]:
    """Yield the lines of the table, and where its figures come from."""
    yield "| | measured | all runs | plain Spark's default | goal |"
    yield "|---|---|---|---|---|"
    quoted = []
    for line in LINES:
        row = results.get(line.file, {}).get(line.id)
        if row is not None and row["value"] is not None:
            quoted.append(row)
            cells = (line.says, line.form.format(row["value"]), spread(line, row), default(line, results))
            yield f"| {' | '.join(cells)} | {goal(row)} |"
    if quoted:
        yield ""
        yield measured_on(quoted)


def spread(line: Line, row: Mapping[str, Any]) -> str:
    """Return the lowest and the highest run, or that there was one."""
    if len(row["runs"]) == 1:
        return "one"
    low, high = (line.form.format(edge) for edge in (min(row["runs"]), max(row["runs"])))
    return f"{low} to {high}"


def default(line: Line, results: Rows) -> str:
    """Return what plain Spark without a cap makes against the same small batches; a dash where nothing is.

    It is the median over rounds in which both ran. Raises ValueError where they never did: such a line may not be
    shown without.
    """
    if line.capped is None or line.default is None:
        return "-"
    capped, uncapped = (seconds(results[line.file], variant) for variant in (line.capped, line.default))
    paired = [slow / fast for slow, fast in zip(capped, uncapped, strict=False)]
    if not paired:
        raise ValueError(f"{line.id}: no times of plain Spark without a cap beside it")
    return f"{line.form.format(median(paired))}{'' if len(paired) > 1 else ' (one run)'}"


def seconds(rows: Mapping[str, Mapping[str, Any]], variant: Variant) -> list[float]:
    """Return the seconds of each round of a variant."""
    details = rows[variant.id]["details"] if variant.id in rows else {}
    found: Mapping[str, list[float]] = details.get("seconds") or details.get("catch_up_seconds") or {}
    return found.get(variant.name, [])


def measured_on(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence: from when to when, on what and at which commits these figures were measured."""
    dates = sorted({row["date"] for row in rows})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    processors = sorted({f"{row['machine']['processor']}" for row in rows})
    commits = sorted({row["commit"] for row in rows} - {UNKNOWN})
    old = sum(row["commit"] == UNKNOWN for row in rows)
    said = [f"commits: {', '.join(commits)}"] if commits else []
    if old:
        of = "all" if old == len(rows) else f"{old} of {len(rows)}"
        said.append(f"{of} are from before rows named their commit, and name the one that recorded them")
    return (
        f"Measured {span}; processors: {', '.join(processors)}; {'; '.join(said)}. "
        "Which row was measured where is in its file."
    )


def goal(row: Mapping[str, Any]) -> str:
    """Return the goal of a row and whether it was missed, or is open; "-" where it is only reported."""
    if row["goal"] == REPORT:
        return "-"
    if not row["holds"]:
        return f"{row['goal']}, **missed**{while_busy(row)}"
    return f"{row['goal']}, open: runs lie on both sides" if plot.is_open(row) else row["goal"]


def while_busy(row: Mapping[str, Any]) -> str:
    """Return that somebody else was at work, where more than twice as much wanted to run as there are cores."""
    load, cores = row.get("load_average"), row.get("machine", {}).get("cores")
    if not isinstance(load, float) or not isinstance(cores, int) or load <= 2 * cores:
        return ""
    return f" (while {load:.0f} processes wanted to run on {cores} cores)"


def backlogs(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of two tables: all figures of backlogs, and the times of variants."""
    if not rows:
        yield "Nothing has been measured yet."
        return
    yield f"| {' | '.join(plot.TITLES)} |"
    yield f"|{'---|' * len(plot.TITLES)}"
    for row in rows:
        name, *others = plot.cells(row)
        yield f"| `{name}` | {' | '.join(others)} |"
    yield ""
    yield "| workload | records | median seconds of each variant (batches or checkpoints), slowest first |"
    yield "|---|---|---|"
    for row in plot.by_workload(rows).values():
        workload = row["details"]
        taken = ", ".join(
            f"{name} {seconds:.1f} ({batches:.0f})" for name, seconds, batches in plot.medians(workload)
        )
        yield f"| {workload['workload']} | {workload['records']:,} | {taken} |"


def read_all() -> dict[str, Attempts]:
    """Return what each result file has, by its name. Raises ResultFileError where one is not of their form."""
    return {file.stem: read(file) for file in sorted(RESULTS.glob("*.json"))}


def by_id(results: Mapping[str, Attempts]) -> Rows:
    """Return the last attempt at each figure of each result file by its id."""
    return {name: {row["id"]: row for row in latest(found)} for name, found in results.items()}


def with_figures(page: str, lines: Iterator[str]) -> str:
    """Return the page with the table in its place. Raises `ValueError` where it has no place for one."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page has no place for figures: put the lines {BEGIN!r} and {END!r} there")
    head, rest = page.split(BEGIN, 1)
    return head + "\n".join([BEGIN, *lines, END]) + rest.split(END, 1)[1]


def generated(results: Mapping[str, Attempts]) -> dict[Path, str]:
    """Return what each file that has figures is to say."""
    backlog = latest(results.get("backlog", {}))
    tables = {README: table(by_id(results)), BACKLOGS: backlogs(backlog)}
    pages = {file: with_figures(file.read_text(encoding="utf-8"), lines) for file, lines in tables.items()}
    return {**pages, PLOT: plot.render(backlog)} if backlog else pages


def main() -> int:
    """Write what is generated; with `--check` only compare: exit code 1 if a file says something else."""
    parser = argparse.ArgumentParser(description="Write the figures in documents, and the plot of backlogs.")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args()
    code = 0
    try:
        results = read_all()
    except ResultFileError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    for file, text in generated(results).items():
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file}: figures are not those of {RESULTS}; run `make generate`", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
