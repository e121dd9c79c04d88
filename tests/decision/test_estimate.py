"""The catch-up estimate, the rate limit that bounds it, and the arrival rate it subtracts."""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import pytest

from headgate.decision.estimate import NEVER, Eta, Progress, arrival_rate, records_per_second
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.decision.verdict import decide
from headgate_contract import RateControl

Seen = SourceObservation


UNLIMITED: Final = "Unlimited"
Limit = RateControl | Literal["Unlimited"] | None


def source(
    name: str = "a", limit: RateControl | None = None, during: Limit = None, **more: bool
) -> SourcePolicy:
    """Return a source; `during` is what holds in backlog, `None`: `limit` does."""
    in_backlog = None if during == UNLIMITED else during or limit
    return SourcePolicy(name=name, rate_limit=limit, rate_limit_during_backlog=in_backlog, **more)


def per_second(records: float) -> RateControl:
    return RateControl(records_per_second=records)


def per_checkpoint(records: int) -> RateControl:
    return RateControl(records_per_checkpoint=records)


class Row(NamedTuple):
    name: str
    eta: Eta
    sources: tuple[SourcePolicy, ...] = (source(),)
    seen: tuple[Seen, ...] = (Seen(pending_records=300.0),)
    throughput: float | None = 50.0
    arrivals: float | None = 20.0
    interval: float | None = 10.0
    during_backlog: float | None = 20.0
    backlog: bool = False


def pending(*records: float | None) -> tuple[Seen, ...]:
    return tuple(Seen(pending_records=each) for each in records)


TWO = (source("a"), source("b"))
LIMITED_TWO = (source("a", per_second(30)), source("b", per_second(10)))

ROWS = (
    Row("pending over what is gained", 10.0),
    Row("pending is summed over sources", 20.0, TWO, pending(300, 300)),
    Row("nothing pending", 0.0, seen=pending(0)),
    Row("nothing pending, all else unknown", 0.0, seen=pending(0), throughput=None, arrivals=None),
    Row("nothing pending, arrivals too fast", 0.0, seen=pending(0), arrivals=100.0),
    Row("pending unknown", None, seen=pending(None)),
    Row("pending of one of two sources unknown", None, TWO, pending(300, None)),
    Row("throughput unknown", None, throughput=None),
    Row("arrival rate unknown", None, arrivals=None),
    Row("arrivals as fast as throughput", NEVER, arrivals=50.0),
    Row("arrivals faster than throughput", NEVER, arrivals=51.0),
    Row("a small gain is a gain", 2000.0, seen=pending(1), throughput=0.0005, arrivals=0.0),
    Row("counts taken at different times: below 0 is none", 10.0, TWO, pending(-50, 300)),
    Row("longer than any number", NEVER, seen=pending(1e308), throughput=1e-5, arrivals=0.0),
    Row("limit below throughput", 30.0, (source(limit=per_second(30)),)),
    Row("limit above throughput", 10.0, (source(limit=per_second(80)),)),
    Row("limit below arrivals", NEVER, (source(limit=per_second(20)),)),
    Row("limit per checkpoint", 30.0, (source(limit=per_checkpoint(300)),)),
    Row("limit per checkpoint, interval unknown", None, (source(limit=per_checkpoint(300)),), interval=None),
    Row(
        "both limits: the smaller holds",
        30.0,
        (source(limit=RateControl(records_per_second=40, records_per_checkpoint=300)),),
    ),
    Row("limits of two sources add up", 30.0, LIMITED_TWO, pending(300, 300)),
    Row("a source with nothing pending lends no limit", 30.0, LIMITED_TWO, pending(300, 0)),
    Row(
        "a finished source lends no limit",
        30.0,
        LIMITED_TWO,
        (Seen(pending_records=300), Seen(finished=True)),
    ),
    Row("one of two is unlimited", 20.0, (source("a", per_second(1)), source("b")), pending(300, 300)),
    Row("in backlog the limit stays", 30.0, (source(limit=per_second(30)),), backlog=True),
    Row("in backlog it is lifted", 10.0, (source(limit=per_second(30), during=UNLIMITED),), backlog=True),
    Row(
        "in backlog another holds", 15.0, (source(limit=per_second(30), during=per_second(40)),), backlog=True
    ),
    Row("outside it does not", 30.0, (source(limit=per_second(30), during=per_second(40)),)),
    Row(
        "in backlog the interval is that of a backlog",
        30.0,
        (source(limit=per_checkpoint(600)),),
        backlog=True,
    ),
    Row(
        "interval 0 limits nothing",
        10.0,
        (source(limit=per_checkpoint(1)),),
        during_backlog=0.0,
        backlog=True,
    ),
    Row("no source is known", None, (), ()),
    Row("a source that is not listed counts", 20.0, seen=pending(300, 300)),
    Row("and must be known", None, seen=pending(300, None)),
    Row("and is not limited", 20.0, (source("a", per_second(30)),), pending(300, 300)),
    Row("nothing is listed", 10.0, ()),
    Row("a paused source counts", 20.0, (source("a"), source("b", paused=True)), pending(300, 300)),
    Row("a paused source must be known", None, (source("a"), source("b", paused=True)), pending(300, None)),
    Row("seen paused", 20.0, TWO, (Seen(pending_records=300), Seen(pending_records=300, paused=True))),
    Row("everything paused, nothing pending", 0.0, (source(paused=True),), pending(0)),
    Row("everything paused, pending unknown", None, (source(paused=True),), pending(None)),
    Row("a finished source has nothing pending", 10.0, TWO, (Seen(pending_records=300), Seen(finished=True))),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_time_to_catch_up(row: Row) -> None:
    policy = QueryPolicy(
        name="q",
        sources=row.sources,
        interval_seconds=row.interval,
        interval_during_backlog_seconds=row.during_backlog,
    )
    names = dict.fromkeys((*(rules.name for rules in row.sources), "a", "b"))
    measured = dict(zip(names, row.seen, strict=False))
    if row.backlog:
        first = row.sources[0].name
        measured[first] = Seen(pending_records=measured[first].pending_records, phase=True)
    seen = Observation(
        t=0.0, query="q", sources=measured, throughput=row.throughput, arrival_rate=row.arrivals
    )

    verdict, _ = decide(seen, policy, Memory())

    assert verdict.eta_seconds == row.eta


def test_the_limit_follows_the_settings_in_force_and_not_the_verdict() -> None:
    """In an outage with `onOutage: Normal` the verdict is held, but the normal limit governs."""
    lagging = SourcePolicy(
        name="a", query_configured=True, rate_limit=per_second(30), rate_limit_during_backlog=None
    )
    policy = QueryPolicy(name="q", sources=(lagging,), interval_seconds=1.0, on_outage=OnOutage.NORMAL)

    def seen(t: float, sample: float | None) -> Observation:
        measured = {"a": Seen(pending_records=300, query_value=sample)}
        return Observation(t=t, query="q", sources=measured, throughput=50, arrival_rate=20)

    verdict, memory = decide(seen(0, 1.0), policy, Memory())
    assert verdict.eta_seconds == 10.0

    verdict, _ = decide(seen(1, None), policy, memory)
    assert (verdict.backlog, verdict.eta_seconds) == (True, 30.0)


def test_no_limit_is_an_infinite_rate() -> None:
    assert records_per_second(None, None) == math.inf


def progress(t: float, processed: float | None, waiting: float | None) -> Progress:
    return Progress(t=t, processed_records=processed, pending_records=waiting)


ARRIVALS = (
    ("processed and growth", progress(0, 100, 50), progress(10, 300, 150), 30.0),
    ("pending shrinks as fast as it is read", progress(0, 0, 500), progress(10, 500, 0), 0.0),
    ("pending shrinks faster: records expired", progress(0, 0, 500), progress(10, 100, 0), 0.0),
    ("counter started over", progress(0, 100, 50), progress(10, 20, 50), None),
    ("no time has passed", progress(5, 100, 50), progress(5, 200, 50), None),
    ("time ran backwards", progress(5, 100, 50), progress(4, 200, 50), None),
    ("processed unknown before", progress(0, None, 50), progress(10, 300, 150), None),
    ("processed unknown after", progress(0, 100, 50), progress(10, None, 150), None),
    ("pending unknown before", progress(0, 100, None), progress(10, 300, 150), None),
    ("pending unknown after", progress(0, 100, 50), progress(10, 300, None), None),
)


@pytest.mark.parametrize(("_", "earlier", "later", "expected"), ARRIVALS, ids=[row[0] for row in ARRIVALS])
def test_arrival_rate(_: str, earlier: Progress, later: Progress, expected: float | None) -> None:
    assert arrival_rate(earlier, later) == expected
