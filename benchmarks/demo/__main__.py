"""`make demo`: makes the runs, compares their results, prints the table and writes the report.

Exit code 0: all runs ended as they may and their results are equal; 1: one failed, or a row differs; 130: Ctrl-C, or
another signal that asks for the end.
"""

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.demo import picture
from benchmarks.demo.decisions import Decision, governed_decisions, plain_decision
from benchmarks.demo.heap import collections
from benchmarks.demo.input import Input, read_input
from benchmarks.demo.measures import Seen, measure, measure_unfinished
from benchmarks.demo.outputs import Row, first_differences, of_same_hours, read_output
from benchmarks.demo.page import render
from benchmarks.demo.progress import Runs
from benchmarks.demo.recordings import prepare
from benchmarks.demo.results import Findings, Result
from benchmarks.demo.runs import RESOURCE, plan_runs, read_resource
from benchmarks.demo.session import DEADLINE_SECONDS, Recorded, RunFailedError, record
from benchmarks.demo.table import WHEN, cells, verdict_on_runs
from benchmarks.demo.visible import appearances
from benchmarks.provenance import commit, machine

TARGET = Path("build/demo")
STOPPED = 130
"""What a shell returns for a command that Ctrl-C ended."""


def main() -> int:
    """Run the demo from the root of the project; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description="The demo.")
    parser.add_argument("--record", action="store_true", help=f"keep its points in {picture.RECORDED}")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):  # else a run would go on that nobody watches
        signal.signal(number, signal.default_int_handler)
    console = Console()
    resource = read_resource(RESOURCE)
    prepare(resource.data)
    source = read_input(resource.data, resource.arguments)
    subtitle = describe(source)
    console.print(subtitle, highlight=False)
    try:
        results, outputs = make_runs(source, console)
    except RunFailedError as failed:
        console.print("demo failed:", failed, style="red", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("demo stopped; no report is written")
        return STOPPED
    differences = compared(results, outputs)
    findings = Findings(results, outputs_equal=not differences)
    write_report(findings, subtitle)
    if options.record:
        about = {"date": datetime.now(UTC).date().isoformat(), "commit": commit(), "machine": machine()}
        picture.record(findings, about)
    show(findings, differences, console)
    return 0 if findings.outputs_equal else 1


def describe(source: Input) -> str:
    """Say what the runs read, and in what."""
    flights, weather = source.rows
    share = sum(source.backlog) / sum(source.rows)
    seconds = max(source.schedule.seconds_until(int(times[-1])) for times in source.event_times)
    return (
        f"{flights:,} flights out of New York (the year 2013, told four times over) and {weather:,} hourly "
        f"observations of the weather. {share:.1%} of them wait as a backlog; once that is read, the rest arrives "
        f"live within {seconds:.0f} s. A flight that is told twice counts once: the state keeps each flight until "
        "the watermark has passed it."
    )


def make_runs(source: Input, console: Console) -> tuple[dict[str, Result], dict[str, list[Row]]]:
    """Make all runs, one after the other; return what came of them and what they wrote, by their keys.

    A run that may run out of memory is given as long as Spark's default took with more of it, live part included.
    """
    results: dict[str, Result] = {}
    outputs: dict[str, list[Row]] = {}
    patience = DEADLINE_SECONDS
    with Runs(console) as shown:
        for run in plan_runs():
            shown.begin(run)
            recorded = record(run, source.backlog, shown.tell, patience)
            patience = min(patience, recorded.ended - recorded.started)
            outputs[run.key] = read_output(run.output)
            results[run.key] = evaluate(recorded, source, len(outputs[run.key]))
            shown.ended(run, told(results[run.key]))
    return results, outputs


def told(result: Result) -> str:
    """Say in a line what came of a run."""
    if result.failure:
        return f"{result.failure} after {result.ended - result.started:.1f} s"
    return f"caught up in {result.measures.catch_up_seconds:.1f} s"


def evaluate(recorded: Recorded, source: Input, rows_out: int) -> Result:
    """Compute the measures of a run.

    Raises RunFailedError where it did not read everything or never caught up, unless it failed as it may.
    """
    batches, run = recorded.batches, recorded.run
    started = batches[0].started if batches else recorded.started
    arrivals = source.arrivals(started, recorded.live_since)
    seen = Seen(
        batches, arrivals, appearances(run.output), collections(run.collections), started, recorded.ended
    )
    if recorded.failure:
        measures = measure_unfinished(seen, rows_out)
    else:
        if batches[-1].end_rows != source.rows:
            raise RunFailedError(
                f"the run {run.key} read {batches[-1].end_rows} rows of {source.rows}; see {run.log}"
            )
        try:
            measures = measure(seen, rows_out)
        except ValueError as unmeasurable:
            raise RunFailedError(f"the run {run.key} cannot be measured: {unmeasurable}") from unmeasurable
    return Result(
        run,
        batches,
        arrivals,
        decisions_of(recorded, started),
        measures,
        tuple(seen.appeared),
        tuple(seen.collections),
        started,
        recorded.ended,
        recorded.failure,
        recorded.load,
    )


def decisions_of(recorded: Recorded, started: float) -> tuple[Decision, ...]:
    """Return what was in force when."""
    run = recorded.run
    return governed_decisions(run.log) if run.is_governed else plain_decision(started)


def compared(results: Mapping[str, Result], outputs: Mapping[str, list[Row]]) -> list[str]:
    """Return where results differ from those of the governed run, row by row.

    Of a run that did not get through all that it wrote is compared.
    """
    governed, found = outputs["governed"], list[str]()
    for key, rows in outputs.items():
        expected = governed
        if results[key].failure:
            expected = of_same_hours(governed, rows)
        found += first_differences(("governed", expected), (key, rows))
    return found


def write_report(findings: Findings, subtitle: str) -> None:
    """Write `report.json` and `report.html`."""
    (TARGET / "report.json").write_text(json.dumps(findings.report(), indent=2) + "\n")
    (TARGET / "report.html").write_text(render(findings, subtitle))


def show(findings: Findings, differences: Sequence[str], console: Console) -> None:
    """Print the table, what it means, where the results differ, and last where the picture is."""
    console.print(drawn(findings.results, cells(findings)))
    for sentence in [*verdict_on_runs(findings), WHEN]:
        console.print(sentence, highlight=False, markup=False)
    if differences:
        console.print("The results of the runs differ:", style="red")
        console.print(*differences, sep="\n", markup=False, highlight=False)
    else:
        console.print("What the runs wrote is equal, row by row.")
    console.print(f"The picture: {(TARGET / 'report.html').resolve()}", highlight=False, soft_wrap=True)


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
