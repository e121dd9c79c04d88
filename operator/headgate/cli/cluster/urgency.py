"""Which application a person should look at first.

A list of named checks; the first that holds gives the place. Within one place the largest lag comes first, and what
is not known counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from headgate.api.status import ConditionStatus
from headgate.cli.cluster.application import ClusterApplication
from headgate.decision.driver import State


def is_stalled(application: ClusterApplication) -> bool:
    """Whether nothing will happen before a person does something."""
    return application.state is State.FAILED or _is(application, "Stalled", ConditionStatus.TRUE)


def keeps_failing(application: ClusterApplication) -> bool:
    """Whether its driver ended in failure and is tried again."""
    return application.state is State.BACKING_OFF


def is_unreadable(application: ClusterApplication) -> bool:
    """Whether its status is written in a form that this version does not know."""
    return application.unreadable is not None


def is_unseen(application: ClusterApplication) -> bool:
    """Whether no operator has written a status."""
    return application.state is None


def never_catches_up(application: ClusterApplication) -> bool:
    """Whether a query gets further behind."""
    return is_in_backlog(application) and any(query.eta == "never" for query in application.status.queries)


def runs_blind(application: ClusterApplication) -> bool:
    """Whether it runs and its metrics are missing."""
    return is_running(application) and _is(application, "MetricsAvailable", ConditionStatus.FALSE)


def is_in_backlog(application: ClusterApplication) -> bool:
    """Whether it runs and a query is in backlog."""
    return is_running(application) and any(query.backlog for query in application.status.queries)


def is_on_its_way(application: ClusterApplication) -> bool:
    """Whether it starts or stops."""
    return application.state in _TRANSITIONS


def is_running(application: ClusterApplication) -> bool:
    """Whether its driver runs."""
    return application.state is State.RUNNING


_TRANSITIONS: Final = frozenset({State.PENDING, State.STARTING, State.STOPPING})
_WORST_FIRST: Final[tuple[Callable[[ClusterApplication], bool], ...]] = (
    is_stalled,
    keeps_failing,
    is_unreadable,
    is_unseen,
    never_catches_up,
    runs_blind,
    is_in_backlog,
    is_on_its_way,
    is_running,
)
"""What is none of these is at rest: suspended or completed."""


def worst_first(applications: Iterable[ClusterApplication]) -> list[ClusterApplication]:
    """Return the applications in the order in which they deserve a look."""
    return sorted(applications, key=lambda each: (_place(each), -_lag(each), each.namespace, each.name))


def _place(application: ClusterApplication) -> int:
    places = (place for place, check in enumerate(_WORST_FIRST) if check(application))
    return next(places, len(_WORST_FIRST))


def _lag(application: ClusterApplication) -> float:
    lags = (query.watermark_lag for query in application.status.queries)
    return max((lag.total_seconds() for lag in lags if lag is not None), default=0.0)


def _is(application: ClusterApplication, type_: str, answer: ConditionStatus) -> bool:
    condition = application.condition(type_)
    return condition is not None and condition.status is answer
