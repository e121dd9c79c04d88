"""One small job under `headgate-run` with the real governor and a real broker, on any version of Spark.

Two topics in one union, aligned, the first run with a rate limit. That run is stopped before its end, and the next
one goes on, and reads in columns, as is the default: what both have written must be every record once.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from headgate_contract import AlignmentControl, BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.exit_codes import ExitCode
from support.driver import QUICK_START, Driver, driver, ids_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill

JOB = Path(__file__).with_name("job.py")
RECORDS = 1_500
"""Of each topic; their timestamps are a second apart, so that the drift of the group is many batches."""
RATE = 100.0
BATCH = BatchControl(initial_records=200, max_records=200)


COLUMNAR_KAFKA = "spark.headgate.columnarKafka"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""With it sources have names, and from Spark 4.3 on an offset log that goes by them."""


def check(
    python: Path,
    jars: Sequence[Path],
    broker: Broker,
    folder: Path,
    *,
    named: bool = False,
    in_columns: bool = True,
) -> None:
    """Run the job twice on one checkpoint; `named`: its sources have names, and have changed places the second time.

    `in_columns`: whether Kafka can be read so, which the first run is told not to.

    Raises AssertionError with what went wrong.
    """
    topics = [broker.topic() for _ in range(2)]
    for number, topic in enumerate(topics):
        ids = range(number * RECORDS, (number + 1) * RECORDS)
        fill(
            broker.bootstrap,
            topic,
            [Ramp(0, RECORDS, step_ms=1_000)],
            value=lambda n, ids=ids: b"%d" % ids[n],
        )
    names = ["flights", "bookings"] if named else topics
    given = [f"{name}={topic}" for name, topic in zip(names, topics, strict=True)] if named else topics
    conf = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.defaultJavaOptions": QUICK_START,
        EVOLUTION: str(named).lower(),
    }

    def run(name: str, sources: Sequence[str], rate: float | None, *, stop: bool) -> str:
        return _run(
            driver(
                folder / name,
                JOB,
                *(broker.bootstrap, folder, *sources),
                control={"versions": _control(names, rate)},
                conf={**conf, COLUMNAR_KAFKA: "false"} if stop else conf,
                python=python,
            ),
            len(sources),
            stop=stop,
        )

    run("first", given, RATE, stop=True)
    read = ids_in(folder / "out")
    assert 0 < len(read) < 2 * RECORDS, f"{len(read)} records when it was stopped"
    log = run("second", given[::-1] if named else given, None, stop=False)
    assert ("ColumnarToRow" in log) == in_columns, f"how Kafka was read:\n{log[-4000:]}"
    read = sorted(ids_in(folder / "out"))
    assert f"history all {RECORDS} replayed from" in log, log[-4000:]
    assert "history none 0 replayed from" in log, log[-4000:]
    assert read == list(range(2 * RECORDS)), f"{len(read)} records, {len(set(read))} different ones"
    offsets = next((folder / "checkpoint" / "offsets").glob("[0-9]*")).read_text()
    assert offsets.startswith("v2" if named else "v1"), "the form of the offset log that this is about"


def _control(topics: Sequence[str], rate: float | None) -> QueryControl:
    member = SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=60),
        rate_limit=None if rate is None else RateControl(records_per_second=rate, max_burst_seconds=1),
    )
    return QueryControl(batch=BATCH, sources=dict.fromkeys(topics, member))


def _run(started: AbstractContextManager[Driver], sources: int, *, stop: bool) -> str:
    with started as running:
        if stop:
            running.wait_for_metric(
                "headgate_source_processed_records_total", lambda n: n > 0, query="versions"
            )
            running.signal(signal.SIGTERM)
        ended, log = running.wait(), running.log
    assert ended == (ExitCode.UNFINISHED if stop else 0), f"it ended with {ended}:\n{log[-4000:]}"
    assert log.count("read_limit=offsets") == sources, (
        f"not every topic was governed by offsets:\n{log[-4000:]}"
    )
    assert "planner call failed" not in log, log[-4000:]
    return log
