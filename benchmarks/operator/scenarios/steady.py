"""What a cluster full of running drivers costs, and what a restart of the operator costs there.

Two scenarios. `growth`: the cluster grows to a thousand applications and then to three thousand, and at each size the
ticks are timed: from the start of a look at Prometheus to the end of the last turn that it led to, writes included;
three times as many applications may make them three times as long.
`full`: ten thousand are there, each with its driver, and the operator is started anew. Then it is left alone for ten
minutes, in which one per cent of the verdicts change each minute, its ticks are timed and its writes are counted.

A full cluster takes ten minutes to grow, so it stays in the build folder, and the next call goes on with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.local.results import Figure, Goal, Measured, Since
from benchmarks.local.statistics import divided, median, percentile
from benchmarks.operator.measuring import drivers
from benchmarks.operator.process import Operator, Scrape, operator, problems
from benchmarks.operator.scenario import Bench, Scenario
from benchmarks.operator.site import Site, site, wait_until

SIZES = (1000, 3000)
FULL = 10_000
TICK_SECONDS = 5
LOOK = {"source": "Prometheus"}
"""The looks that are timed; those at drivers themselves are of other applications, and there are none."""
TIMED_ALONE = Since("03542128", "2026-11-29")
"""`LOOK` is timed alone: before, half of the looks were at no driver, and took no time."""
COLLECTED_AT = "800"
"""`GOGC` of control plane and Prometheus while ticks are timed, twice that of other scenarios. Marking the heap of an
API server with ten thousand applications takes a core for two to three seconds, and every tick that meets it."""
SETTLE_SECONDS = 45.0
"""After the last driver was started, or all was written that a restart of the operator left to write: by then
Prometheus has scraped each driver a few times."""
TICKS_SECONDS = 400.0
"""At each size of `growth`: eighty ticks. Of forty the 99th percentile was mostly the longest one, and so the ratio
was that of two single ticks."""
STEADY_SECONDS = 600.0
AFTER_RESTART_SECONDS = 30.0
"""After the last first turn: what a restart writes, it has written by then."""
LONGEST_SECONDS = 1200.0
LOOK_SECONDS = 2.0
"""Between two looks at the operator: no two ticks end in between, and each look is work for it."""


def measure_growth(bench: Bench) -> Mapping[str, Measured]:
    """Grow from nothing, and time ticks on the way."""
    folder, sizes = bench.folder("growth"), [bench.count(size) for size in SIZES]
    found: dict[str, Measured] = {}
    with rarely_collected(), site(folder) as place, drivers(place, bench, sizes[-1]) as prometheus:
        settings = {"prometheus_url": prometheus.url, "tick": f"{TICK_SECONDS}s"}
        with operator(place.kubeconfig, folder / "operator.log", **settings) as process:
            process.lead(LONGEST_SECONDS)
            for size, name in zip(sizes, SIZES, strict=True):
                _grow(place, process, size, bench)
                ticks = _timed(process, size, bench, TICKS_SECONDS)
                found[f"tick_p99_seconds_{name}"] = ticks.measured()
    least, most = (found[f"tick_p99_seconds_{name}"].runs for name in SIZES)
    return found | {"tick_p99_growth": Measured(divided(most, least), {"sizes": SIZES})}


def measure_full(bench: Bench) -> Mapping[str, Measured]:
    """Start the operator where ten thousand drivers run, and leave it alone."""
    size = bench.count(FULL)
    folder = bench.root / f"full-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    with rarely_collected(), site(folder) as place, drivers(place, bench, size) as prometheus:
        settings = {"prometheus_url": prometheus.url, "tick": f"{TICK_SECONDS}s"}
        with operator(place.kubeconfig, folder / "grown.log", **settings) as process:
            process.lead(LONGEST_SECONDS)
            _grow(place, process, size, bench)
            process.running.stop()
        bench.ready("a restart")
        before = _uids(place)
        with operator(place.kubeconfig, folder / "operator.log", **settings) as process:
            restart = _restarted(place, process, before, bench)
            time.sleep(bench.seconds(SETTLE_SECONDS))
            ticks = _timed(process, size, bench, STEADY_SECONDS)
    return restart | {"tick_p99_seconds_10000": ticks.measured(), **ticks.costs(), **_writes(ticks, size)}


@dataclass(frozen=True)
class Ticks:
    """Some ticks of the operator, and what the process took meanwhile."""

    applied_seconds: list[float]
    before: Scrape
    after: Scrape
    cpu_cores: float
    rss_mib: float

    @property
    def p99(self) -> float:
        """Of the times, which with some dozens of them is next to the longest."""
        return percentile(self.applied_seconds, 99)

    def per_tick(self, name: str, **labels: str) -> float:
        """Return by how much a counter grew from one tick to the next; each place is looked at once a tick."""
        ticks = (self.after.at - self.before.at) / TICK_SECONDS
        return (self.after.sum(name, **labels) - self.before.sum(name, **labels)) / ticks

    def measured(self) -> Measured:
        """Return the figure of a size."""
        return Measured([self.p99], self.told())

    def told(self) -> dict[str, Any]:
        """Return what stands behind the figures."""
        return {
            "ticks": len(self.applied_seconds),
            "median_seconds": median(self.applied_seconds),
            "longest_seconds": max(self.applied_seconds),
            "look_mean_seconds": self.per_tick("tick_duration_seconds_sum", **LOOK),
            "turns_per_tick": self.per_tick("reconcile_duration_seconds_count"),
            "promql_per_tick": self.per_tick("prometheus_query_duration_seconds_count"),
            "failed_queries": self.after.sum("prometheus_query_failures_total"),
            "skipped_ticks": self.after.sum("ticks_skipped_total"),
            "cpu_cores": self.cpu_cores,
            "rss_mib": self.rss_mib,
        }

    def costs(self) -> dict[str, Measured]:
        """Return what a steady state costs."""
        queries = self.per_tick("prometheus_query_duration_seconds_count")
        return {
            "cpu_cores_10000": Measured([self.cpu_cores]),
            "rss_mib_10000": Measured([self.rss_mib]),
            "promql_per_tick_10000": Measured([queries]),
        }


def _timed(process: Operator, size: int, bench: Bench, seconds: float) -> Ticks:
    bench.ready(f"ticks of {size} applications")
    ticks = timed(process, bench.seconds(seconds))
    bench.tell(f"{size}: {ticks.told()}")
    return ticks


def timed(process: Operator, seconds: float) -> Ticks:
    """Watch the ticks of some time: the sum of their times grows at each, by the time that it took."""
    applied: list[float] = []
    before = last = process.scrape()
    cpu = process.cpu_seconds()
    while last.at < before.at + seconds:
        time.sleep(LOOK_SECONDS)
        now = process.scrape()
        grown = round(
            now.sum("tick_applied_seconds_count", **LOOK) - last.sum("tick_applied_seconds_count", **LOOK)
        )
        took = now.sum("tick_applied_seconds_sum", **LOOK) - last.sum("tick_applied_seconds_sum", **LOOK)
        applied += [took / grown] * grown if grown else []
        last = now
    cores = (process.cpu_seconds() - cpu) / (last.at - before.at)
    return Ticks(applied, before, last, cores, process.rss_mib())


def _grow(place: Site, process: Operator, size: int, bench: Bench) -> None:
    there = place.applications()
    bench.tell(f"growing from {there} to {size} applications")
    place.apply(range(there, size))

    def all_run() -> bool:
        return round(process.scrape().sum("applications", state="Running")) == size

    seconds = wait_until(f"{size} drivers to run", all_run, LONGEST_SECONDS, every=2)
    bench.tell(f"all run {seconds:.0f} s after the last was applied")
    time.sleep(bench.seconds(SETTLE_SECONDS))


def _writes(ticks: Ticks, size: int) -> dict[str, Measured]:
    """Return what was written meanwhile."""
    before, after = ticks.before, ticks.after
    seconds = after.at - before.at

    def made(verb: str, resource: str) -> int:
        return after.calls(verb, resource) - before.calls(verb, resource)

    writes = made("PATCH", "sparkapplications")
    details = {
        "seconds": seconds,
        "status_writes": writes,
        "documents": made("PATCH", "pods"),
        "events": made("POST", "events") + made("PATCH", "events"),
    }
    return {"status_writes_per_app_hour": Measured([writes / size * 3600 / seconds], details)}


def _restarted(place: Site, process: Operator, drivers_before: set[str], bench: Bench) -> dict[str, Measured]:
    size = len(drivers_before)
    process.lead(LONGEST_SECONDS)

    def has_turned_all() -> bool:
        seen = process.scrape()
        turned = seen.sum("reconcile_duration_seconds_count", result="done")
        return turned >= size and not seen.sum("queue_depth")

    wait_until("a turn of every application", has_turned_all, LONGEST_SECONDS, every=0.5)
    seconds = time.monotonic() - process.started_at
    time.sleep(bench.seconds(AFTER_RESTART_SECONDS))
    seen = process.scrape()
    details = {
        "heard_of_everything_seconds": _seconds_to(process, "everything that is there"),
        "drivers_created": seen.calls("POST", "pods"),
        "drivers_deleted": seen.calls("DELETE", "pods"),
        "same_drivers": _uids(place) == drivers_before,
        "documents": seen.calls("PATCH", "pods"),
        "cpu_seconds": process.cpu_seconds(),
        "rss_mib": process.rss_mib(),
        "warnings": problems(process.running.path),
    }
    bench.tell(f"{seconds:.1f} s, {details}")
    writes = seen.calls("PATCH", "sparkapplications") / size
    return {
        "restart_resync_seconds_10000": Measured([seconds], details),
        "restart_status_writes_per_app": Measured([writes]),
    }


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Have servers that are started meanwhile collect their heap at nine times what lives of it."""
    before = os.environ.get("GOGC")
    os.environ["GOGC"] = COLLECTED_AT
    try:
        yield
    finally:
        if before is None:
            del os.environ["GOGC"]
        else:
            os.environ["GOGC"] = before


def _uids(place: Site) -> set[str]:
    return {pod["metadata"]["uid"] for pod in place.pods()}


def _seconds_to(process: Operator, pattern: str) -> float:
    """Return how long after its first line the operator logged a line."""
    from datetime import datetime

    first, then = (
        datetime.fromisoformat(process.running.line(one)["timestamp"])
        for one in ("headgate operator", pattern)
    )
    return (then - first).total_seconds()


GROWTH = Scenario(
    "growth",
    (
        *(Figure(f"tick_p99_seconds_{size}", "s", Goal("<=", 2), TIMED_ALONE) for size in SIZES),
        Figure("tick_p99_growth", "ratio", Goal("<=", SIZES[-1] / SIZES[0]), TIMED_ALONE),
    ),
    measure_growth,
)
WHEN_FULL = Scenario(
    "full",
    (
        Figure("tick_p99_seconds_10000", "s", Goal("<=", 2), TIMED_ALONE),
        Figure("cpu_cores_10000", "cores", Goal("<=", 0.5)),
        Figure("rss_mib_10000", "MiB", Goal("<=", 700)),
        Figure("promql_per_tick_10000", "queries", Goal("<=", 10)),
        Figure("status_writes_per_app_hour", "writes/h", Goal("<=", 6)),
        Figure("restart_resync_seconds_10000", "s", Goal("<=", 90)),
        Figure("restart_status_writes_per_app", "writes", Goal("<=", 1)),
    ),
    measure_full,
)
