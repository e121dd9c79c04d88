"""`make demo`: makes the three runs, compares their results, prints the table and writes the report.

Exit code 0: all runs ended well and their results are equal; 1: one failed, or a row differs; 130: Ctrl-C.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.status import Status
from rich.table import Table

from benchmarks.demo.decisions import Decision, governed_decisions, plain_decision
from benchmarks.demo.input import Input, read_input
from benchmarks.demo.measures import measure
from benchmarks.demo.outputs import Row, first_differences, read_output
from benchmarks.demo.page import render
from benchmarks.demo.recordings import prepare
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.runs import RESOURCE, Run, plan_runs, read_resource
from benchmarks.demo.session import Recorded, RunFailedError, record
from benchmarks.demo.table import cells, verdict_on_runs
from benchmarks.event_log import Batch

TARGET = Path("build/demo")
STOPPED = 130
"""What a shell returns for a command that Ctrl-C ended."""


def main() -> int:
    """Run the demo from the root of the project; return the exit code."""
    console = Console()
    source = read_input(prepare(TARGET / "data"), read_resource(RESOURCE).arguments)
    subtitle = describe(source)
    console.print(subtitle)
    try:
        results, outputs = make_runs(source, console)
    except RunFailedError as failed:
        console.print("demo failed:", failed, style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("demo stopped; no report is written")
        return STOPPED
    differences = first_differences(outputs)
    findings = Findings(results, outputs_equal=not differences)
    write_report(findings, subtitle)
    show(findings, differences, console)
    return 0 if findings.outputs_equal else 1


def describe(source: Input) -> str:
    """Say what the runs read."""
    flights, weather = source.rows
    share = sum(source.backlog) / sum(source.rows)
    seconds = max(source.schedule.seconds_until(int(times[-1])) for times in source.event_times)
    return (
        f"{flights:,} flights out of New York in 2013 and {weather:,} hourly observations of the weather: "
        f"{share:.0%} of them wait as a backlog, the rest arrives live within {seconds:.0f} s, once it is read."
    )


def make_runs(source: Input, console: Console) -> tuple[dict[str, Result], dict[str, list[Row]]]:
    """Make all runs, one after the other; return what came of them and what they wrote, by their keys."""
    results: dict[str, Result] = {}
    outputs: dict[str, list[Row]] = {}
    for run in plan_runs():
        with console.status(run.title) as status:
            recorded = record(run, source.backlog, partial(report_to, status))
        outputs[run.key] = read_output(run.output)
        results[run.key] = evaluate(recorded, source, len(outputs[run.key]))
        seconds = results[run.key].measures.catch_up_seconds
        console.print(f"{run.title}: caught up in {seconds:.1f} s", highlight=False)
    return results, outputs


def report_to(line: Status, run: Run, batches: Sequence[Batch]) -> None:
    """Show how far a run has come."""
    if batches:
        line.update(f"{run.title}: {sum(batches[-1].end_rows):,} records in {len(batches)} batches")


def evaluate(recorded: Recorded, source: Input, rows_out: int) -> Result:
    """Compute the measures of a run.

    Raises RunFailedError where it did not read everything or never caught up.
    """
    batches, run = recorded.batches, recorded.run
    if batches[-1].end_rows != source.rows:
        raise RunFailedError(
            f"the run {run.key} read {batches[-1].end_rows} rows of {source.rows}; see {run.log}"
        )
    arrivals = source.arrivals(batches[0].started, recorded.live_since)
    try:
        measures = measure(batches, arrivals, rows_out)
    except ValueError as unmeasurable:
        raise RunFailedError(f"the run {run.key} cannot be measured: {unmeasurable}") from unmeasurable
    return Result(run, batches, arrivals, decisions_of(recorded), measures)


def decisions_of(recorded: Recorded) -> tuple[Decision, ...]:
    """Return what was in force when."""
    run = recorded.run
    if run.trigger is None:
        return governed_decisions(run.log)
    return plain_decision(recorded.batches[0].started, run.trigger)


def write_report(findings: Findings, subtitle: str) -> None:
    """Write `report.json` and `report.html`."""
    (TARGET / "report.json").write_text(json.dumps(findings.report(), indent=2) + "\n")
    (TARGET / "report.html").write_text(render(findings, subtitle))


def show(findings: Findings, differences: Sequence[str], console: Console) -> None:
    """Print the table, what it means, and where the results differ."""
    console.print(drawn(findings.results, cells(findings)))
    for sentence in verdict_on_runs(findings):
        console.print(sentence, highlight=False)
    if differences:
        console.print("The results of the runs differ:", style="red")
        console.print(*differences, sep="\n", markup=False, highlight=False)
    else:
        console.print("The results of the three runs are equal, row by row.")
    console.print(f"Plots: {TARGET / 'report.html'}", highlight=False)


def drawn(results: Mapping[str, Result], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the table for the terminal."""
    table = Table()
    table.add_column("")
    for result in results.values():
        table.add_column(result.run.title, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    sys.exit(main())
