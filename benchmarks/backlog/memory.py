"""How much memory a run needed, from what the JVM and Spark write down anyway.

    peak = largest heap after a collection + bytes spilled

The heap *before* a collection says when the collector got round to it, not what the run needed. What a run spilled
would have been in memory, had there been room, so it counts as it lay there (`Memory Bytes Spilled`). Pure but for
reading the two files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

OPTIONS = "-Xlog:gc:file={log}:time:filecount=0"
"""What makes a JVM write one line for each collection."""
COLLECTION = re.compile(r"\[(?P<at>[^\]]+)\].* \d+[KMG]->(?P<after>\d+)(?P<unit>[KMG])\(")
BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}
STAGE = '{"Event":"SparkListenerStageCompleted"'
SPILLED = "internal.metrics.memoryBytesSpilled"


def peak(log: Path, events: Path, began: float, ended: float) -> int:
    """Return the bytes that the run from `began` to `ended` (seconds since 1970) needed at the most."""
    lines = (line for file in events.glob("**/events_*") for line in file.read_text("utf-8").splitlines())
    collections = log.read_text(encoding="utf-8").splitlines()
    return heap_after_collection(collections, began, ended) + spilled(lines, began, ended)


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
