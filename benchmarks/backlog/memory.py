"""How much memory a run needed, from what the JVM and Spark write down anyway.

    peak = largest heap after a collection + bytes spilled

The heap *before* a collection says when the collector got round to it, not what the run needed. What a run spilled
would have been in memory, had there been room, so it counts as it lay there (`Memory Bytes Spilled`). Pure but for
reading the two files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path

COLLECTOR = "-XX:+UseParallelGC"
"""What every JVM whose time is compared collects by, Flink's included. To G1, in a heap of a few gigabytes, Spark's
pages and Kafka's fetches are humongous objects, and it marks the whole heap again and again for them."""
OPTIONS = COLLECTOR + " -Xlog:gc:file={log}:time:filecount=0"
"""That, and one line for each collection."""
SETTLED = "-Xms{heap} -XX:-UseAdaptiveSizePolicy"
"""The whole heap from the start, its generations as large as they will ever be: not as a driver's past made them."""
COLLECTION = re.compile(r"\[(?P<at>[^\]]+)\].* \d+[KMG]->(?P<after>\d+)(?P<unit>[KMG])\(")
BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}
STAGE = '{"Event":"SparkListenerStageCompleted"'
SPILLED = "internal.metrics.memoryBytesSpilled"


def peak(log: Path, events: Path, began: float, ended: float) -> int:
    """Return the bytes that the run from `began` to `ended` (seconds since 1970) needed at the most."""
    logged = chain.from_iterable(lines_of(file) for file in events.glob("**/events_*"))
    return heap_after_collection(lines_of(log), began, ended) + spilled(logged, began, ended)


def lines_of(file: Path) -> Iterator[str]:
    """Yield the lines of a file, which may be long: an event log has one for each task."""
    with file.open(encoding="utf-8") as lines:
        yield from lines


def heap_after_collection(lines: Iterable[str], began: float, ended: float) -> int:
    """Return the largest heap after a collection in a time. Raises ValueError where there was no collection."""
    found = (match for line in lines if (match := COLLECTION.match(line)))
    sizes = [
        int(match["after"]) * BYTES[match["unit"]]
        for match in found
        if began <= datetime.fromisoformat(match["at"]).timestamp() <= ended
    ]
    if not sizes:
        raise ValueError("the heap was not collected once during the run")
    return max(sizes)


def spilled(lines: Iterable[str], began: float, ended: float) -> int:
    """Return the bytes that the stages that ended in a time have spilled."""
    stages = (json.loads(line)["Stage Info"] for line in lines if line.startswith(STAGE))
    return sum(
        int(accumulable["Value"])
        for stage in stages
        if began <= stage["Completion Time"] / 1000 <= ended
        for accumulable in stage["Accumulables"]
        if accumulable["Name"] == SPILLED
    )
