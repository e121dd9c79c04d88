"""What the port of one application tells of its expressions."""

from __future__ import annotations

from headgate.adapters.metrics.prometheus.columns import Scraped
from headgate.adapters.metrics.prometheus.expressions import LEFT_OUT, Answer
from headgate.adapters.metrics.prometheus.port import PrometheusMetrics, Published
from headgate.adapters.metrics.prometheus.targets import Pod, Run, Target, Targets
from headgate.adapters.metrics.watched import watched
from headgate.key import Key
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics
from support.looping import application, query, source

KEY = Key("team", "flights")
POD = Pod.of(KEY, 1)


def sample(answer: Answer, now: float) -> tuple[Outage | None, dict[tuple[str, str], float]]:
    """Why there is no full sample, and what the expression says by the loop's rules."""
    target = Target(Run(KEY, 1), now, "drivers", "10.0.0.1:8090", "metrics")
    published = Published(
        targets=Targets({POD: target}),
        scrapes={POD: Scraped(target, DriverMetrics(attempt=1, at=now))},
        outage=None,
    )
    rule = watched(application(queries=[query(sources=[source(backlog={"query": "up == 0"})])]))
    found = PrometheusMetrics(KEY, rule, published, lambda _: answer, lambda *_: None).sample(now, 1)
    known = found.known if isinstance(found, Outage) else found
    assert known is not None
    answers = known.answers_since(now - rule.stale_after_seconds)
    return found if isinstance(found, Outage) else None, answers


def test_an_expression_that_waits_for_its_turn_votes_on_and_is_told_of() -> None:
    assert sample(Answer(value=1.0, at=1000.0, asked_at=1000.0), 1000.0) == (None, {("delays", "flights"): 1})
    outage, answers = sample(Answer(value=1.0, at=1195.0, asked_at=1000.0), 1200.0)
    assert answers == {("delays", "flights"): 1}
    assert outage is not None
    assert outage.reason is OutageReason.BACKLOG_QUERY_NOT_ASKED
    assert outage.message.startswith("query delays, source flights: backlog.query is asked less often than")


def test_an_expression_that_is_never_asked_is_unknown_and_told_of() -> None:
    outage, answers = sample(LEFT_OUT, 1000.0)
    assert answers == {}
    assert outage is not None
    assert outage.reason is OutageReason.BACKLOG_QUERY_NOT_ASKED
    assert "backlog.query `up == 0`: it is not asked: this namespace has more of them than" in outage.message
