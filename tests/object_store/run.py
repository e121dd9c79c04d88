"""`make test-object-store`: the fence on a real S3 client, and a server that speaks S3 with conditional writes.

Not a part of `make test`: what it shows beyond the store of ours that the tests have is that S3A says what it can
do, and that what is written through it fails as Spark understands it. The server is gofakes3, in memory, on loopback.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from object_store.races import doors, race

from headgate_contract import QueryControl, RateControl, SourceControl
from support.driver import Driver, driver, ids_in, recording, wait_for
from support.object_store import S3A, conf, jars, server

ROWS = 5_000
SLOW = QueryControl(
    interval_seconds=0.5, sources={"source": SourceControl(rate_limit=RateControl(records_per_second=100))}
)
HELD = replace(SLOW, sources={"source": SourceControl(paused=True)})
RACES = 40


def on_s3(port: int, take_over_after: str) -> dict[str, str]:
    """Return the settings of a driver whose checkpoint is on the server."""
    return {**conf(port), "spark.headgate.fence.takeOverAfter": take_over_after}


def processed(running: Driver) -> None:
    running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0)


def story(directory: Path, port: int) -> None:
    """A second driver is refused, a third shuts the first one out, and every row is there once."""
    job = ("copy.py", recording(directory / "source", ROWS), directory / "out", "s3a://bucket/ck")
    with driver(directory / "one", *job, conf=on_s3(port, "1h"), control={"copy": SLOW}) as first:
        processed(first)
        print("the first driver commits", flush=True)
        with driver(directory / "two", *job, conf=on_s3(port, "1h"), control={"copy": SLOW}) as second:
            assert second.wait() == 75, second.log[-3000:]
            found = re.search(
                r"is in use by (the driver of application \S+ on host \S+, pid (\d+))", second.log
            )
            assert found, second.log[-3000:]
            jvm = int(found[2])
            print(f"the second one is refused: in use by {found[1]}", flush=True)
        first.control(copy=HELD)
        wait_for(lambda: first.metric("headgate_source_paused", query="copy") == 1, "a pause", first)
        os.kill(jvm, signal.SIGSTOP)
        first.control(copy=SLOW)
        with driver(directory / "three", *job, conf=on_s3(port, "2s")) as third:
            processed(third)
            os.kill(jvm, signal.SIGCONT)
            assert first.wait() == 75, first.log[-3000:]
            assert "has taken it over; stop one of the two" in first.log, first.log[-3000:]
            print("the third one has shut out the first", flush=True)
            wait_for(lambda: len(ids_in(directory / "out")) == ROWS, "all rows", third)
            third.signal(signal.SIGTERM)
            assert third.wait() == 0, third.log[-3000:]
    assert sorted(ids_in(directory / "out")) == list(range(ROWS))
    print(f"{ROWS} rows are there once", flush=True)


def at_once(port: int, races: int, first_seed: int) -> None:
    """Of two drivers that write one entry at the same moment one goes on, again and again."""
    # In front of the class path they would part a JVM from its shared classes, of which it says a word among answers.
    environment = {"PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars()))} pyspark-shell"}
    s3a = {f"fs.s3a.{name}": value for name, value in S3A.items()}
    with doors(port, environment, s3a) as opened:
        found = race(opened, races, first_seed)
    print(
        f"{races} races, in {len(opened.met)} of them both wrote one entry at once: {dict(found.ends)}",
        flush=True,
    )


def main() -> None:
    """Run all of it, or races alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--races", type=int, help="run so many and nothing else")
    parser.add_argument("--seed", type=int, default=0, help="of the first race [0]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="object-store-") as scratch, server(Path(scratch)) as port:
        if options.races is None:
            story(Path(scratch), port)
        at_once(port, options.races or RACES, options.seed)


if __name__ == "__main__":
    main()
