"""`make demo-live`: makes three runs, prints what came of them, and writes `build/demo-live/index.html`.

Exit code 0: each record was counted once in each run; 1: a run failed, or one was not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kafka.scenario import Bench
from benchmarks.live.demo.page import cells, render
from benchmarks.live.demo.runs import OUTAGE_PER_SECOND, OUTAGE_SECONDS, PER_SECOND, RUNS, Outcome, run
from benchmarks.local.child import ChildFailedError
from support.kafka import kafka_in

TARGET = Path("build/demo-live")
SUBTITLE = (
    f"{PER_SECOND:,} records come each second, and are counted by key, from Kafka to Kafka. Then every process of "
    f"the driver stands still for {OUTAGE_SECONDS:g} s, in which "
    f"{int(OUTAGE_PER_SECOND * OUTAGE_SECONDS):,} records come: as many as usually in five minutes. "
    "All runs are the same script; the governed one has a control document, with live: RealTime and a threshold of "
    "pending records (reentry.dwell: 0s)."
)


def main() -> int:
    """Run the demo from the root of the project; returns the exit code."""
    console = Console()
    console.print(SUBTITLE, highlight=False)
    outcomes: dict[str, Outcome] = {}
    with kafka_in((TARGET / "broker").resolve()) as broker:
        bench = Bench(TARGET, TARGET, 1, console.print, broker=broker)
        for key, title in RUNS.items():
            console.print(title)
            try:
                outcomes[key] = run(bench, key)
            except (ChildFailedError, TimeoutError) as error:
                console.print(f"demo failed: {error}", style="red", markup=False)
                return 1
    report = TARGET / "index.html"
    report.write_text(render(outcomes, SUBTITLE), encoding="utf-8")
    table = Table("", *(RUNS[key] for key in outcomes))
    for row in cells(outcomes):
        table.add_row(*row)
    console.print(table)
    console.print(f"The picture: {report.resolve()}", highlight=False, soft_wrap=True)
    return 0 if all(each.counted == each.sent for each in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
