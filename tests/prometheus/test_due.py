"""When nothing is decided and a status only grows old."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.adapters.metrics.due import Due
from headgate.adapters.metrics.poller import ChosenPoller, NoPrometheus
from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.readings import DriverMetrics, QueryMetrics, SourceMetrics
from support.looping import application, query, source

KEY = Key("team", "flights")
FAR = application(queries=[query(sources=[source(backlog={"watermarkLag": "100h"})])])


def pulse(at: float, lag: float | None = 100.0, pending: float | None = 50_000.0) -> dict[Key, DriverMetrics]:
    source = SourceMetrics(watermark_lag_seconds=lag, pending_records=pending)
    return {KEY: driver(at, flights=source)}


def driver(at: float, *, attempt: int = 1, **sources: SourceMetrics) -> DriverMetrics:
    """A driver whose query has these sources."""
    return DriverMetrics(
        at=at, attempt=attempt, queries={"delays": QueryMetrics(sources=sources)}, source_count=len(sources)
    )


class Watched:
    """One application whose reconciles are counted."""

    def __init__(
        self, declared: SparkApplication = FAR, key: Key = KEY, numbers_seconds: float = 30.0
    ) -> None:
        self.due = Due(numbers_seconds=numbers_seconds)
        self.due.watch(key, declared)

    def is_reconciled(self, now: float, scrapes: dict[Key, DriverMetrics]) -> bool:
        due = self.due.look(scrapes, now, scrapes)
        self.due.queued(due, scrapes, now, scrapes)
        return bool(due)

    def turn_ends(self, now: float, scrapes: dict[Key, DriverMetrics], *, clock_at: float | None) -> None:
        self.due.read(KEY, scrapes[KEY], now, scrapes[KEY])
        self.due.reconciled(KEY, clock_at=clock_at)


@pytest.mark.parametrize(
    ("lag", "pending", "moved"),
    [
        (199.0, 50_000.0, False),
        (201.0, 50_000.0, True),
        (51.0, 50_000.0, False),
        (49.0, 50_000.0, True),
        (100.0, 99_000.0, False),
        (100.0, 101_000.0, True),
        (100.0, 24_000.0, True),
    ],
)
def test_numbers_that_moved_by_more_than_a_factor_of_two_are_worth_a_reconcile(
    lag: float, pending: float, moved: bool
) -> None:
    watched = Watched()
    assert watched.is_reconciled(1000.0, pulse(1000.0))
    assert not watched.is_reconciled(1029.0, pulse(1029.0, lag, pending))
    assert watched.is_reconciled(1030.0, pulse(1030.0, lag, pending)) is moved


def test_a_source_that_is_out_of_reach_and_one_that_is_again_within_are_worth_a_reconcile_at_once() -> None:
    watched = Watched()

    def pulse_of(at: float, cause: str | None) -> dict[Key, DriverMetrics]:
        return {KEY: driver(at, undeclared=SourceMetrics(pending_records=0.0, out_of_reach=cause))}

    causes = [None, "broker:9092 does not answer", "broker:9092 does not answer", "no such topic", None]
    given = [watched.is_reconciled(1000.0 + 5 * n, pulse_of(1000.0 + 5 * n, c)) for n, c in enumerate(causes)]
    assert given == [True, True, False, True, True]


def test_the_end_of_a_query_that_nobody_declared_is_worth_a_reconcile_at_once() -> None:
    watched = Watched()
    given = [
        watched.is_reconciled(
            at, {KEY: DriverMetrics(attempt=1, at=at, queries={"undeclared": QueryMetrics(active=active)})}
        )
        for at, active in ((1000.0, True), (1005.0, True), (1010.0, False), (1015.0, False))
    ]
    assert given == [True, False, True, False]


COMPLAINTS = [
    DriverMetrics(),
    DriverMetrics(executors=2),
    DriverMetrics(executors=1),
    DriverMetrics(executors=1, executors_refused="exceeded quota: pods"),
    DriverMetrics(unmatched=("spark.headgate.queries.delay.interval is of no query",)),
    DriverMetrics(unheeded=("query delays: alignment of flights does nothing",)),
    DriverMetrics(unfenced=("s3a://flights: nothing",)),
    DriverMetrics(control_unread=("generation 7: of a newer Headgate",)),
    DriverMetrics(control_unknown=("queries[delays].later",)),
    DriverMetrics(spark_version="4.0.5"),
    DriverMetrics(headgate_version="0.2.0"),
    DriverMetrics(queries={"delays": QueryMetrics(owner="ada")}),
    DriverMetrics(queries={"delays": QueryMetrics(failure="no space left")}),
    DriverMetrics(queries={"delays": QueryMetrics(unplanned=True)}),
    DriverMetrics(queries={"delays": QueryMetrics(trigger_problem="Spark 5")}),
    DriverMetrics(queries={"delays": QueryMetrics(real_time_refused="foreachBatch")}),
    DriverMetrics(queries={"delays": QueryMetrics(real_time=False)}),
    DriverMetrics(queries={"delays": QueryMetrics(real_time=True)}),
    DriverMetrics(queries={"delays": QueryMetrics(watermark_held_by="flights")}),
    DriverMetrics(queries={"delays": QueryMetrics(future_batches=1.0)}),
    DriverMetrics(queries={"delays": QueryMetrics(sources={"a": SourceMetrics(snapshot_problem="no end")})}),
    DriverMetrics(queries={"delays": QueryMetrics(sources={"a": SourceMetrics(unreadable={"t-0": 3.0})})}),
    DriverMetrics(queries={"delays": QueryMetrics(sources={"a": SourceMetrics(far_ahead={"t-0": 3.0})})}),
]


@pytest.mark.parametrize(
    ("before", "after"), [(n, after) for n in range(1, len(COMPLAINTS)) for after in sorted({0, n - 1})]
)
def test_whatever_a_driver_complains_of_is_worth_one_reconcile_once_it_is_read(
    before: int, after: int
) -> None:
    watched, given = Watched(), []
    for t, details in enumerate((before, before, after, after, before)):
        found, now = {KEY: COMPLAINTS[details]}, 1000.0 + 5 * t
        if due := watched.due.look(pulse(1000.0), now, found):
            watched.due.queued(due, pulse(1000.0), now, found)
            watched.due.read(KEY, pulse(1000.0)[KEY], now, found[KEY])
        given.append(bool(due))
    assert given == [True, False, True, False, True]


def looks(watched: Watched, drivers: dict[Key, DriverMetrics], details: list[DriverMetrics]) -> list[bool]:
    """Whether each of some looks, five seconds apart, is worth a reconcile; the details are what changes."""
    given = []
    for n, one in enumerate(details):
        due = watched.due.look(drivers, 1000.0 + 5 * n, {KEY: one})
        watched.due.queued(due, drivers, 1000.0 + 5 * n, {KEY: one})
        given.append(bool(due))
    return given


@pytest.mark.parametrize(
    ("lag", "real_time", "expected"),
    [
        (None, None, [True, False, True, False, True]),
        (5.0, None, [True, False, False, False, False]),
        (None, True, [True, False, False, False, False]),
    ],
    ids=["no lag", "a lag", "live in real-time mode"],
)
def test_that_no_lag_is_told_after_two_batches_is_worth_a_reconcile_at_once(
    lag: float | None, real_time: bool | None, expected: list[bool]
) -> None:
    """By then the driver has told one, or never will: the condition `LagKnown` is false."""
    details = [
        DriverMetrics(queries={"delays": QueryMetrics(data_batches=batches, real_time=real_time)})
        for batches in (0.0, 1.0, 2.0, 9.0, 1.0)
    ]
    assert looks(Watched(), pulse(1000.0, lag=lag), details) == expected


def aligned(**member: Any) -> DriverMetrics:
    """Details of a driver that has asked for the event times of its only member of a group."""
    of_kafka = {"read_limit": "offsets", "planned_records": 7.0, "unreadable_partitions": 0.0}
    return DriverMetrics(
        queries={"delays": QueryMetrics(sources={"flights": SourceMetrics(**{**of_kafka, **member})})}
    )


WITHIN = aligned(alignment_limit=1600.0, alignment_floor=1000.0, alignment_drift_seconds=600.0)
OVER = aligned(alignment_limit=1600.0, alignment_floor=1000.0, alignment_drift_seconds=601.0)
LEFT_OUT = aligned(unreadable_partitions=None)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ([WITHIN, OVER, OVER, WITHIN], [True, True, False, True]),
        ([WITHIN, LEFT_OUT, LEFT_OUT, aligned()], [True, True, False, True]),
        ([aligned(), WITHIN, aligned()], [True, False, False]),
    ],
    ids=["further ahead than its group allows", "left out of its group", "nothing to align for a while"],
)
def test_a_member_that_its_group_does_not_hold_is_worth_a_reconcile_at_once(
    details: list[DriverMetrics], expected: list[bool]
) -> None:
    group = {"group": "trips", "maxDrift": "10m"}
    assert looks(
        Watched(application(queries=[query(sources=[source(alignment=group)])])), pulse(1000.0), details
    ) == (expected)
    assert looks(Watched(), pulse(1000.0), details) == [True] + [False] * (len(details) - 1), "in no group"


def test_what_was_told_without_details_is_told_once_more_when_there_are_some() -> None:
    """Nothing is known of executors at first; that is worth no reconcile of its own, however long it lasts."""
    watched, drivers = Watched(), pulse(1000.0)
    assert watched.due.look(drivers, 1000.0, {}) == [KEY]
    watched.due.read(KEY, drivers[KEY], 1001.0, None)
    given = [watched.due.look(drivers, 1005.0 + 5 * n, {}) for n in range(10)]
    assert given == [[]] * 10
    assert watched.due.look(drivers, 1055.0, {KEY: DriverMetrics(executors=2)}) == [KEY]
    watched.due.read(KEY, drivers[KEY], 1056.0, DriverMetrics(executors=2))
    assert watched.due.look(drivers, 1057.0, {KEY: DriverMetrics(executors=2)}) == []


@pytest.mark.parametrize("conf", [{"spark.dynamicAllocation.enabled": "true"}, {"spark.master": "local[2]"}])
def test_executors_whose_number_the_resource_does_not_say_may_come_and_go(conf: dict[str, str]) -> None:
    watched, drivers = Watched(application(sparkConf=conf)), pulse(1000.0)
    two = {KEY: DriverMetrics(executors=2)}
    watched.due.queued(watched.due.look(drivers, 1000.0, two), drivers, 1000.0, two)
    assert watched.due.look(drivers, 1005.0, {KEY: DriverMetrics(executors=7)}) == []


@pytest.mark.parametrize(
    ("silences", "expected"),
    [
        ("aaaaaaaaaa", "x---------"),
        ("abbbbbbbbb", "x------x--"),
        ("ababababab", "x---------"),
        ("abbabbbbbb", "x---------"),
        ("abbbabbbbbbbbb", "x----------x--"),
    ],
)
def test_another_reason_for_silence_is_worth_a_reconcile_once_it_has_lasted(
    silences: str, expected: str
) -> None:
    """Prometheus did not answer (a), and answers, and has nothing of the driver (b)."""
    watched, given = Watched(), ""
    for n, reason in enumerate(silences):
        now = 1000.0 + 5 * n
        due = watched.due.look({}, now, {}, lambda _, reason=reason: reason)  # type: ignore[misc]
        watched.due.queued(due, {}, now, {})
        if due:
            watched.due.read(KEY, None, now + 1, None, reason)
        given += "x" if due else "-"
    assert given == expected


def test_why_nothing_was_known_is_no_news_of_a_driver_that_is_heard() -> None:
    watched, drivers = Watched(), pulse(1000.0)
    assert watched.is_reconciled(1000.0, drivers)
    given = [watched.due.look(drivers, 1005.0 + 5 * n, drivers, lambda _: "a") for n in range(9)]
    assert given == [[]] * 9
    assert watched.due.look(drivers, 1100.0, drivers, lambda _: "a") == [KEY], "it is stale"


def test_small_numbers_are_all_alike() -> None:
    watched = Watched()
    assert watched.is_reconciled(1000.0, pulse(1000.0, lag=1.0, pending=1.0))
    assert not watched.is_reconciled(1100.0, pulse(1100.0, lag=29.0, pending=9_999.0))
    assert watched.is_reconciled(1200.0, pulse(1200.0, lag=61.0, pending=1.0))
    assert watched.is_reconciled(1300.0, pulse(1300.0, lag=1.0, pending=1.0))


def test_what_does_not_change_is_never_worth_a_reconcile_again() -> None:
    watched = Watched()
    assert watched.is_reconciled(1000.0, pulse(1000.0))
    assert not any(watched.is_reconciled(float(t), pulse(float(t))) for t in range(1005, 10_000, 5))


def test_a_change_of_what_is_declared_is_worth_a_reconcile_and_the_same_again_is_not() -> None:
    watched = Watched()
    watched.is_reconciled(1000.0, pulse(1000.0))
    watched.due.watch(KEY, application(queries=[query(sources=[source(backlog={"watermarkLag": "100h"})])]))
    assert not watched.is_reconciled(1005.0, pulse(1005.0))
    watched.due.watch(KEY, application())
    assert watched.is_reconciled(1010.0, pulse(1010.0))


def test_while_nothing_changes_a_clock_is_worth_a_reconcile_from_when_the_last_one_said() -> None:
    watched = Watched(application())
    assert watched.is_reconciled(1000.0, pulse(1000.0, lag=1e6))
    watched.turn_ends(1000.5, pulse(1000.0, lag=1e6), clock_at=1030.5)
    given = [t for t in range(1005, 1040, 5) if watched.is_reconciled(float(t), pulse(float(t), lag=1e6))]
    assert given == [1030, 1035]
    watched.turn_ends(1035.5, pulse(1035.0, lag=1e6), clock_at=None)
    assert not any(watched.is_reconciled(float(t), pulse(float(t), lag=1e6)) for t in range(1040, 1900, 5))


@pytest.mark.parametrize(("look_at", "worth_a_reconcile"), [(1060.0, False), (1061.0, True), (999.0, True)])
def test_too_long_a_gap_between_two_looks_is_worth_a_reconcile_while_a_clock_runs(
    look_at: float, worth_a_reconcile: bool
) -> None:
    for clock_at, given in ((1e9, worth_a_reconcile), (None, False)):
        watched = Watched(application(), numbers_seconds=1e9)
        watched.is_reconciled(1000.0, pulse(1000.0))
        watched.turn_ends(1000.0, pulse(1000.0), clock_at=clock_at)
        watched.due.look(pulse(1000.0), 1000.0, pulse(1000.0))
        assert watched.is_reconciled(look_at, pulse(1060.0)) is (given or look_at < 1000.0)


def test_looks_stand_for_the_last_reconcile_until_one_finds_something_else() -> None:
    watched = Watched(application())
    until = watched.due.unchanged_until
    watched.is_reconciled(1000.0, pulse(1000.0, lag=1e6))
    assert until(KEY) is None, "no reconcile has ended"
    watched.turn_ends(1001.0, pulse(1000.0, lag=1e6), clock_at=1060.0)
    assert until(KEY) is None, "nobody has looked since"
    for t, lag, expected in ((1005.0, 1e6, 1005.0), (1010.0, 2e6, 1010.0), (1015.0, 2.0, 1010.0)):
        watched.is_reconciled(t, pulse(t, lag=lag))
        assert until(KEY) == expected
    watched.is_reconciled(1020.0, pulse(1020.0, lag=1e6))
    assert until(KEY) == 1010.0, "what was found between is not undone"
    watched.turn_ends(1021.0, pulse(1020.0, lag=1e6), clock_at=1060.0)
    assert until(KEY) is None
    watched.is_reconciled(1090.0, pulse(1090.0, lag=1e6))
    assert until(KEY) is None, "nobody knows of the time in between"


def test_a_reconcile_that_reads_something_else_than_the_last_look_is_stood_for_by_none() -> None:
    watched = Watched(application())
    watched.is_reconciled(1000.0, pulse(1000.0, lag=1e6))
    watched.turn_ends(1070.0, pulse(1000.0, lag=1e6), clock_at=1100.0)
    assert watched.is_reconciled(1071.0, pulse(1071.0, lag=1e6))
    assert watched.due.unchanged_until(KEY) is None


def test_a_look_that_found_something_else_while_a_reconcile_was_under_way_is_not_forgotten() -> None:
    """The reconcile has read a value above its threshold, and so does the next look, but not the one between."""
    watched = Watched(application())
    high, low = pulse(1000.0, lag=1e6), pulse(1005.0, lag=2.0)
    watched.is_reconciled(990.0, pulse(990.0, lag=2.0))
    watched.turn_ends(991.0, pulse(990.0, lag=2.0), clock_at=None)
    assert watched.is_reconciled(1000.0, high)
    watched.due.read(KEY, high[KEY], 1001.0, high[KEY])
    assert watched.is_reconciled(1005.0, low)
    watched.due.reconciled(KEY, clock_at=1060.0)
    assert watched.is_reconciled(1010.0, pulse(1010.0, lag=1e6))
    assert watched.due.unchanged_until(KEY) is None


def test_what_a_reconcile_has_read_while_others_waited_counts_as_reconciled() -> None:
    """Something else had it reconciled, before its own: what is as it was before that is news again."""
    watched = Watched(application())
    watched.is_reconciled(990.0, pulse(990.0, lag=2.0))
    high = pulse(1000.0, lag=1e6)
    assert watched.due.look(high, 1000.0, high) == [KEY]
    watched.turn_ends(1001.0, high, clock_at=None)
    assert watched.is_reconciled(1005.0, pulse(1005.0, lag=2.0))
    assert not watched.is_reconciled(1010.0, pulse(1010.0, lag=2.0))


def test_an_application_that_has_to_wait_stays_due() -> None:
    due = Watched().due
    assert due.look(pulse(1000.0), 1000.0, {}) == [KEY]
    assert due.look(pulse(1005.0), 1005.0, {}) == [KEY]
    due.forget(KEY)
    due.queued([KEY], pulse(1005.0), 1005.0, {})
    assert due.look(pulse(1010.0), 1010.0, {}) == []


def test_what_changed_comes_before_what_only_grew_old() -> None:
    other = Key("team", "a")
    due = Watched().due
    due.watch(other, FAR)
    scrapes = {**pulse(1000.0), other: next(iter(pulse(1000.0).values()))}
    due.queued(due.look(scrapes, 1000.0, scrapes), scrapes, 1000.0, scrapes)
    scrapes = {other: pulse(1030.0, lag=5000.0)[KEY], KEY: driver(1030.0, attempt=2)}
    assert due.look(scrapes, 1030.0, scrapes) == [KEY, other]


class Recorded(NoPrometheus):
    """A poller that only notes whom it is told of."""

    def __init__(self) -> None:
        self.keys: set[Key] = set()

    def watch(self, key: Key, application: SparkApplication) -> None:
        self.keys.add(key)

    def forget(self, key: Key) -> None:
        self.keys.discard(key)

    def poll(self, now: float) -> list[Key]:
        return sorted(self.keys)


def test_each_application_is_read_from_where_it_says() -> None:
    prometheus, drivers = Recorded(), Recorded()
    chosen = ChosenPoller(prometheus, drivers)
    direct, usual = application(metrics={"source": "Driver"}), application()
    chosen.watch(KEY, direct)
    chosen.watch(Key("team", "b"), usual)
    assert (drivers.keys, prometheus.keys) == ({KEY}, {Key("team", "b")})
    assert (chosen.metrics(KEY), chosen.metrics(Key("team", "b"))) == (drivers, prometheus)
    found = {source: poller.poll(1.0) for source, poller in chosen.pollers.items()}
    assert found == {"Prometheus": [Key("team", "b")], "Driver": [KEY]}
    chosen.watch(KEY, usual)
    assert (drivers.keys, chosen.metrics(KEY)) == (set(), prometheus)
    chosen.forget(KEY)
    chosen.forget(KEY)
    assert prometheus.keys == {Key("team", "b")}


@pytest.mark.parametrize(("read_at", "worth_a_reconcile"), [(1060.0, False), (1060.5, True)])
def test_a_reconcile_that_found_readings_stale_is_made_up_for_when_they_are_fresh_again(
    read_at: float, worth_a_reconcile: bool
) -> None:
    watched = Watched()
    assert watched.is_reconciled(1000.0, pulse(1000.0))
    watched.due.read(KEY, pulse(1000.0)[KEY], read_at, pulse(1000.0)[KEY])
    assert watched.is_reconciled(1061.0, pulse(1061.0)) is worth_a_reconcile
