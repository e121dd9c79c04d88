"""What the door costs in throughput: the same topic read by a plain job and by one with the jar, in turns.

As `benchmarks.kafka.scenarios.throughput`, whose job, batches and pairs these are; the governed driver has the jar
and the property and is otherwise started as the plain one. Pairs are read until the interval of their median lies on
one side of the goal, at least ten and at most `--rounds`; every three of them by two other drivers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.door.scenario import Bench, Scenario
from benchmarks.door.starting import by_door
from benchmarks.kafka.scenarios.throughput import (
    PARTITIONS,
    RECORDS,
    compared,
    drivers,
    governed_to_plain,
    read_in_turns,
)
from benchmarks.kafka.turns import Pair
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured
from benchmarks.local.statistics import median_interval

GOAL = Goal(">=", 0.98)
KIND = "forward"
LEAST = 10
PAIRS = 3
"""Of each two drivers."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Read pairs until it is clear how they compare."""
    topic = bench.topic("throughput", [RECORDS // PARTITIONS] * PARTITIONS)
    pairs: list[Pair] = []
    number = 0
    while not is_clear([governed_to_plain(pair) for pair in pairs], bench.rounds):
        number += 1
        with drivers(bench, topic, number, by_door) as readers:
            pairs += read_in_turns(bench, readers, KIND, number, PAIRS)
    return {"throughput_vs_plain_kafka": compared(pairs)}


def is_clear(ratios: Sequence[float], most: int) -> bool:
    """Tell whether all values in the interval of the median hold the goal, or none; or no more pairs are read."""
    if len(ratios) >= most:
        return True
    if len(ratios) < LEAST:
        return False
    low, high = median_interval(ratios)
    return GOAL.holds(low) == GOAL.holds(high)


SCENARIO = Scenario("throughput", (Figure("throughput_vs_plain_kafka", "ratio", GOAL, COLUMNS),), measure)
