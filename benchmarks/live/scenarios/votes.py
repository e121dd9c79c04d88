"""Whether driver, operator and `headgate replay` give one verdict on the same history.

A driver's planner goes through hours of arrivals on a clock of its own. Each scrape records what the driver reports.
The operator judges what was scraped as if the driver did not vote, and `headgate replay` reads it from a recording.
They look every fifteen seconds, the driver at each trigger; so verdicts may differ for two scrapes about a change.
Everything else has to be the same.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.live.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from headgate.cli.replay import verdicts
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate.decision.verdict import decide
from headgate_contract import BacklogControl, QueryControl, SourceControl
from headgate_contract.lag_votes import IDLE_SECONDS
from headgate_spark.planner.model import Position, SourceFigures
from headgate_spark.planner.unread import First
from support.scripted_spark import ScriptedSpark, Stream

SCRAPE_SECONDS = 15.0
DELAY_SECONDS = 2 * SCRAPE_SECONDS
"""After a change of a verdict: a scrape until it is seen, and one by which a dwell ends later."""
DWELL_SECONDS = 60.0
START_SECONDS = DWELL_SECONDS + DELAY_SECONDS
"""A driver gives its first answer at its first trigger, before anything is scraped. Where that is no, and the first
that is scraped would be yes, it takes a re-entry."""
LAG_SECONDS, PENDING = 300.0, 200_000
SPEED = 40_000.0
"""Records a second that the query gets through."""
SPLITS = ("0", "1", "2", "3")
HOUR = 3600.0

Rate = Callable[[float, str], float]
"""Records a second that arrive in a split, by seconds since the beginning."""


def _flights(t: float, _: str) -> float:
    return 500 * (1 + math.sin(t / HOUR)) + (80_000 if 2 * HOUR <= t < 2.2 * HOUR else 0)


def _bids(t: float, split: str) -> float:
    return 2_000 if (t // 60 + int(split)) % 20 else 60_000


def _sawtooth(t: float, _: str) -> float:
    return 3 * SPEED / len(SPLITS) if t % HOUR < 0.15 * HOUR else 100


def _stall(t: float, _: str) -> float:
    return 0 if HOUR <= t < 2 * HOUR else 60_000 if 2 * HOUR <= t < 2.1 * HOUR else 900


def _lagging(t: float, split: str) -> float:
    return 70_000 if split == "3" and HOUR <= t < 1.3 * HOUR else 300


TRACES: Mapping[str, Rate] = {
    "flights": _flights,
    "nexmark": _bids,
    "sawtooth": _sawtooth,
    "stall": _stall,
    "one lagging partition": _lagging,
}


@dataclass
class Arrivals:
    """When the records of each split came; looks at them at once (`UnreadTimes`)."""

    ends: dict[str, list[int]] = field(default_factory=lambda: {split: [0] for split in SPLITS})
    times: dict[str, list[float]] = field(default_factory=lambda: {split: [0.0] for split in SPLITS})
    at: dict[str, Sequence[int]] = field(default_factory=dict)
    end: Position = field(default_factory=dict)

    def look(self, _: str, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        """Note where it is looked."""
        self.at |= places
        self.end = {**self.end, **ends}

    def known(self, _: str) -> Mapping[str, Sequence[First]]:
        """Return when the records there came."""
        return {
            split: [First(n, self._came(split, n), until=self.end[split]) for n in places]
            for split, places in self.at.items()
        }

    def _came(self, split: str, offset: int) -> int | None:
        n = bisect_right(self.ends[split], offset)
        return round(self.times[split][n] * 1000) if n < len(self.ends[split]) else None

    def arrive(self, stream: Stream, split: str, records: int, now: float) -> None:
        """Records have come."""
        stream.latest[split] += records
        if records:
            self.ends[split].append(stream.latest[split])
            self.times[split].append(now)


def measure(bench: Bench) -> dict[str, Measured]:
    """Go through every history; returns the part of scrapes on which all three agree, in percent."""
    found = {name: _agreement(rate, 6 * HOUR * max(bench.scale, 0.4)) for name, rate in TRACES.items()}
    for name, (same, of, changes) in found.items():
        bench.tell(f"{name}: {same} of {of} scrapes, {changes} changes of the verdict")
    share = 100 * sum(same for same, _, _ in found.values()) / sum(of for _, of, _ in found.values())
    details = {
        name: {"agree": same, "scrapes": of, "changes": changes}
        for name, (same, of, changes) in found.items()
    }
    return {
        "votes_agree": Measured(
            [share], {"delay_seconds": DELAY_SECONDS, "start_seconds": START_SECONDS, "traces": details}
        )
    }


def _agreement(rate: Rate, seconds: float) -> tuple[int, int, int]:
    scrapes = _scrapes(rate, seconds)
    policy = QueryPolicy(
        name="delays",
        sources=(SourcePolicy(name="flights", watermark_lag_seconds=LAG_SECONDS, pending_records=PENDING),),
        interval_seconds=5.0,
        interval_during_backlog_seconds=60.0,
    )
    judged, memory = [], Memory()
    for _, seen in scrapes:
        verdict, memory = decide(seen, policy, memory)
        judged.append(verdict.backlog)
    replayed = [line["backlog"] for line in verdicts(map(_line, scrapes), "recorded", {"delays": policy})]
    given = [backlog for backlog, _ in scrapes]
    changes = {n for told in (given, judged, replayed) for n in range(1, len(told)) if told[n] != told[n - 1]}
    spared = round(DELAY_SECONDS / SCRAPE_SECONDS)
    counted = [
        n
        for n in range(round(START_SECONDS / SCRAPE_SECONDS), len(scrapes))
        if not any(0 <= n - at < spared or 0 < at - n < spared for at in changes)
    ]
    same = sum(given[n] == judged[n] == replayed[n] for n in counted)
    return same, len(counted), sum(given[n] != given[n - 1] for n in range(1, len(given)))


def _scrapes(rate: Rate, seconds: float) -> list[tuple[bool, Observation]]:
    """Return what the driver says, and what is scraped of it, every 15 seconds."""
    arrivals, stream = Arrivals(), Stream("flights", dict.fromkeys(SPLITS, 0))
    control = QueryControl(
        interval_seconds=5,
        interval_during_backlog_seconds=60,
        sources={
            "flights": SourceControl(
                backlog=BacklogControl(watermark_lag_seconds=LAG_SECONDS, pending_records=PENDING)
            )
        },
    )
    spark = ScriptedSpark(stream, control=control, records_per_second=SPEED, unread=arrivals)
    spark.planner.tell_time(0.0)
    began, told = spark.now, dict.fromkeys(SPLITS, 0.0)
    found: list[tuple[bool, Observation]] = []

    def arrive(passed: float) -> None:
        for split in SPLITS:
            told[split] += passed * rate(spark.now - began, split)
            count, told[split] = int(told[split]), told[split] % 1
            arrivals.arrive(stream, split, count, spark.now)
        scrape(spark.now, spark.now)

    def scrape(_: float, until: float) -> None:
        while (at := began + len(found) * SCRAPE_SECONDS) <= until:
            figures = spark.planner.figures(max(at, spark.now))
            found.append((figures.backlog, _observed(figures.sources[0], max(at, spark.now))))

    spark.arrivals, spark.while_running = arrive, scrape
    spark.run_for(seconds)
    return found


def _observed(source: SourceFigures, now: float) -> Observation:
    """Return what an exporter would have told of it."""
    since, idle = source.unread_since, source.idle_seconds
    lag = max(0.0, now - since) if since is not None else 0.0 if source.is_all_read else None
    seen = SourceObservation(
        watermark_lag_seconds=lag,
        pending_records=source.pending_records,
        phase=source.phase,
        idle=None if idle is None else idle >= IDLE_SECONDS,
        finished=source.finished,
    )
    return Observation(t=now, query="delays", sources={"flights": seen})


def _line(scraped: tuple[bool, Observation]) -> bytes:
    seen = scraped[1].source("flights")
    members = {
        "watermarkLag": seen.watermark_lag_seconds,
        "pendingRecords": seen.pending_records,
        "phase": seen.phase,
        "idle": seen.idle,
        "finished": seen.finished,
    }
    return json.dumps({"t": scraped[1].t, "query": "delays", "sources": {"flights": members}}).encode()


SCENARIO = Scenario("votes", (Figure("votes_agree", "%", Goal(">=", 100)),), measure, measures=())
