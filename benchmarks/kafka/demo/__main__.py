"""`make demo-kafka`: joins two topics twice, prints what came of it, and writes `build/demo-kafka/index.html`.

Exit code 0: both runs ended well and the aligned one dropped nothing; 1: one failed, or it dropped a record.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kafka.demo.page import cells, render
from benchmarks.kafka.demo.runs import MAX_DRIFT_SECONDS, ORDERS, PAYMENTS, Outcome, fill_topics, run
from benchmarks.local.child import ChildFailedError
from benchmarks.local.drivers import Place
from support.kafka import kafka_in

TARGET = Path("build/demo-kafka")
SUBTITLE = (
    f"An hour of {ORDERS:,} orders and {PAYMENTS:,} payments is waiting in two topics of four partitions; half of "
    "the partitions cover the hour, the others its last quarter. Both runs are the same script; the aligned one is "
    f"under headgate-run with an alignment group, at most {MAX_DRIFT_SECONDS:g} s apart. The watermark waits 30 s."
)


def main() -> int:
    """Run the demo from the root of the project; returns the exit code."""
    console = Console()
    console.print(SUBTITLE)
    with kafka_in((TARGET / "broker").resolve()) as broker:
        topics = fill_topics(broker)
        outcomes: dict[str, Outcome] = {}
        for name in ("plain", "aligned"):
            console.print(f"{name} run")
            try:
                outcomes[name] = run(
                    Place(TARGET / name).cleared(), broker, topics, aligned=name == "aligned"
                )
            except (ChildFailedError, TimeoutError) as error:
                console.print(f"demo failed: {error}", style="red", markup=False)
                return 1
    report = TARGET / "index.html"
    report.write_text(render(outcomes, SUBTITLE), encoding="utf-8")
    show(outcomes, console)
    console.print(f"report: {report}")
    return 0 if outcomes["aligned"].dropped == 0 else 1


def show(outcomes: dict[str, Outcome], console: Console) -> None:
    """Print the table."""
    table = Table("", *outcomes)
    for row in cells(outcomes):
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
