"""An answer of Prometheus to a source's own expression, on its way to a vote."""

from __future__ import annotations

from headgate.decision.voters import Reason
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import Answered, DriverMetrics
from support.looping import Loop, application, query, source

DECLARED = application(queries=[query(sources=[source(backlog={"query": "up == 0"})])])


def answer(value: float, at: float) -> DriverMetrics:
    return DriverMetrics(answers={("delays", "flights"): Answered(value, at)})


def vote(outcome: Outcome) -> bool | None:
    return outcome.plan.verdicts["delays"].sources["flights"].votes[Reason.QUERY]


def test_an_answer_votes_where_the_driver_is_not_heard() -> None:
    loop = Loop(declared=DECLARED)
    loop.run_until_running()
    for value, expected in [(1.0, True), (0.0, False), (-0.5, True)]:
        known = answer(value, loop.now + 1)
        loop.world.metrics.outage = Outage(OutageReason.NO_SERIES, "not scraped", known)
        outcome = loop.reconcile()
        assert (vote(outcome), outcome.seen.metrics) == (expected, None)


def test_an_answer_that_is_stale_is_unknown_and_keeps_the_backlog() -> None:
    loop = Loop(declared=DECLARED)
    loop.run_until_running()
    known = answer(1.0, loop.now)
    loop.world.metrics.outage = Outage(OutageReason.NO_SERIES, "not scraped", known)
    assert vote(loop.reconcile(60.0)) is True
    outcome = loop.reconcile(0.1)
    assert vote(outcome) is None
    assert outcome.plan.verdicts["delays"].backlog is True
    assert outcome.plan.verdicts["delays"].reason is Reason.UNKNOWN


def test_an_outage_that_does_not_say_what_is_known_leaves_what_was() -> None:
    loop = Loop(declared=DECLARED)
    loop.run_until_running()
    loop.world.metrics.outage = Outage(OutageReason.NO_SERIES, "not scraped", answer(1.0, loop.now))
    loop.reconcile()
    loop.world.metrics.outage = Outage(OutageReason.QUERY_TIMEOUT, "slow")
    assert vote(loop.reconcile()) is True
    loop.world.metrics.outage = Outage(
        OutageReason.CONTRADICTORY_SERIES, "two drivers", known=DriverMetrics()
    )
    assert vote(loop.reconcile()) is None
