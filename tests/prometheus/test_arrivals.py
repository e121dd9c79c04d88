"""How fast records come in, by a real Prometheus: batches commit in steps, drivers and counters start over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.adapters.metrics.prometheus.fetch import arrivals
from headgate_contract import metrics
from support.prometheus import prometheus

pytestmark = pytest.mark.programs

WINDOW, SCRAPE = 120, 5
PER_SECOND = 100.0
BATCH = 35
YOUNG = 30
"""How old the youngest driver is, in seconds."""


def read(second: float) -> float:
    """Return what has been committed by then: batches of `BATCH` seconds take all there is."""
    return second // BATCH * BATCH * PER_SECOND


def begins_anew(second: float) -> float:
    return read(second) if second < 7 * BATCH else read(second) - read(7 * BATCH)


DRIVERS: dict[str, tuple[int, Callable[[float], float]]] = {
    "in-steps": (300, read),
    "young": (YOUNG, lambda second: read(second + 20)),
    "anew": (300, begins_anew),
}
"""For how many seconds each has been scraped, and what it says of what it has read."""


def history(now: float) -> Iterator[str]:
    for metric in (metrics.SOURCE_PROCESSED, metrics.SOURCE_PENDING):
        for pod, (age, processed) in DRIVERS.items():
            for second in range(0, age + 1, SCRAPE):
                came = PER_SECOND * (second + 20 if pod == "young" else second)
                value = (
                    processed(second)
                    if metric is metrics.SOURCE_PROCESSED
                    else came - processed_of(pod, second)
                )
                yield f'{metric.name}{{pod="{pod}",source="clicks"}} {value} {now - age + second}'
    yield "# EOF\n"


def processed_of(pod: str, second: float) -> float:
    """Return what was read in truth, whatever the counter says."""
    return read(second) if pod == "anew" else DRIVERS[pod][1](second)


def test_what_comes_in_is_told_whatever_a_batch_takes_at_once(tmp_path: Path) -> None:
    now = float(int(time.time()) - 60)
    with prometheus(tmp_path, history="\n".join(history(now))) as server:
        found = {
            sample.labels["pod"]: sample.value
            for sample in server.query(arrivals(list(DRIVERS), "", WINDOW), at=now)
        }
    assert found == {"in-steps": pytest.approx(PER_SECOND), "young": pytest.approx(PER_SECOND)}
