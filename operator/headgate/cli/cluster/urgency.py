"""Which application a person should look at first.

A list of checks; the first that holds gives the place. Within one place the largest lag comes first, and what
is not known counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.api.status import ConditionStatus
from headgate.cli.cluster.application import ClusterApplication
from headgate.decision.driver import State

_TRANSITIONS: Final = frozenset({State.PENDING, State.STARTING, State.STOPPING})


def worst_first(applications: Iterable[ClusterApplication]) -> list[ClusterApplication]:
    """Return the applications in the order in which they deserve a look."""
    return sorted(applications, key=lambda each: (_place(each), -_lag(each), each.namespace, each.name))


def _place(application: ClusterApplication) -> int:
    """Return the place of the first of these that is so; what is none of them is at rest: suspended or completed."""
    state, queries = application.state, application.status.queries
    is_running = state is State.RUNNING
    in_backlog = is_running and any(query.backlog for query in queries)
    checks = (
        state is State.FAILED or _is(application, "Stalled", ConditionStatus.TRUE),  # waits for a person
        state is State.BACKING_OFF,  # its driver ended in failure and is tried again
        application.unreadable is not None,
        state is None,  # no operator has written a status
        in_backlog and any(query.eta == "never" for query in queries),
        is_running and _is(application, "MetricsAvailable", ConditionStatus.FALSE),
        in_backlog,
        state in _TRANSITIONS,
        is_running,
    )
    return checks.index(True) if True in checks else len(checks)


def _lag(application: ClusterApplication) -> float:
    lags = (query.watermark_lag for query in application.status.queries)
    return max((lag.total_seconds() for lag in lags if lag is not None), default=0.0)


def _is(application: ClusterApplication, type_: str, answer: ConditionStatus) -> bool:
    condition = application.status.condition(type_)
    return condition is not None and condition.status is answer
