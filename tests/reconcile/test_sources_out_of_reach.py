"""A source that cannot be asked what it has: the status says which, and why, until it can."""

from __future__ import annotations

from headgate.api.status import SourceStatus
from headgate_contract import metrics as names
from support.looping import Loop, application, query, source

CAUSE = "query delays: source flights: broker:9092 has not answered yet; see that it runs"


def out_of_reach(loop: Loop) -> None:
    """Let the driver say so before its first planning, where nothing else is known of the query's sources."""
    loop.world.metrics.reports()
    labels = {"application": "flights", "query": "delays", "source": "flights", "cause": CAUSE}
    loop.world.metrics.values.append((names.SOURCE_OUT_OF_REACH.name, labels, 1.0))
    loop.acknowledged_reconcile()


def told(loop: Loop) -> SourceStatus:
    (status,) = loop.world.reports.statuses[-1].queries
    return status.sources[0]


def test_it_is_written_and_told_once_with_the_cause_and_taken_back_when_it_answers() -> None:
    loop = Loop()
    loop.run_until_running()
    for _ in range(2):
        out_of_reach(loop)
    assert told(loop).out_of_reach == CAUSE
    events = [event for event in loop.world.reports.events if event.reason == "SourceOutOfReach"]
    assert [(event.message, event.is_warning) for event in events] == [(CAUSE, True)]
    loop.world.metrics.reports(sources={"flights": {"pending_records": 0.0}})
    loop.acknowledged_reconcile()
    assert told(loop).out_of_reach is None


def test_it_stays_told_while_nobody_knows_it_and_is_no_news_after_that() -> None:
    loop = Loop()
    loop.run_until_running()
    out_of_reach(loop)
    loop.world.metrics.hangs()
    loop.reconcile(600)
    assert told(loop).out_of_reach == CAUSE
    loop.world.metrics.answers()
    out_of_reach(loop)
    assert loop.world.reports.reasons.count("SourceOutOfReach") == 1


def test_sources_that_are_not_heard_of_yet_because_of_it_are_not_taken_for_unknown() -> None:
    loop = Loop(declared=application(queries=[query(sources=[source(), source(name="returns")])]))
    loop.run_until_running()
    out_of_reach(loop)
    loop.acknowledged_reconcile(600)
    assert "UnknownName" not in loop.world.reports.reasons
