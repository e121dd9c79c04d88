"""Condition `ExecutorsMissing`: whether the job has had fewer executors than it is to have for a minute, and why.

With some of them a query goes on, slower: that is told, and the application is ready. With none it stands still, and
it is not. What keeps executors away is known from their pods where there are some, and from the driver where the API
server takes none.
"""

from typing import Final, NamedTuple

from headgate.api.status import Condition
from headgate.decision.driver import State
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.reconcile.answers import FALSE, TRUE, Untimed, not_known
from headgate.reconcile.decide import Plan
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Problem

EXECUTORS_MISSING: Final = "ExecutorsMissing"
"""The condition, the reason of `Ready` and `Stalled` where there is none at all, and of the event."""
ALL_REGISTERED: Final = "AllRegistered"
EXECUTORS_AWAITED: Final = "ExecutorsAwaited"
"""Fewer than are asked for have registered, for less than a minute."""
NOT_REGISTERED: Final = "NotRegistered"
"""Fewer than are asked for have registered, and nothing tells why."""
EXECUTORS_REFUSED: Final = "ExecutorsRefused"
"""The API server takes no more of them."""


class Shortage(NamedTuple):
    """Fewer executors than there are to be."""

    running: int
    wanted: int
    since: float
    """Unix time."""

    @property
    def text(self) -> str:
        return f"{self.running} of {self.wanted} executors have registered"


def executors_missing(seen: Seen, plan: Plan, memory: LoopMemory) -> Untimed | None:
    """Return the condition; `None` for a job that has no executors, or as many as Spark likes."""
    wanted = plan.document.executor_instances
    if wanted is None:
        return None
    shortage = _shortage(seen, plan, memory)
    if shortage is not None and seen.now >= shortage.since + PATIENCE_SECONDS:
        before = None if seen.has_seen_executors else _missing_before(plan, memory)
        if before is None or before.reason == NOT_REGISTERED:  # else a process before this one has seen them
            why = _hindrance(seen)
            before = Untimed(EXECUTORS_MISSING, TRUE, why.reason, f"{shortage.text}: {why.message}")
        return before
    if shortage is not None:
        return Untimed(EXECUTORS_MISSING, FALSE, EXECUTORS_AWAITED, shortage.text)
    if seen.metrics is not None and seen.metrics.executors is not None:
        message = f"{seen.metrics.executors} executors have registered, and {wanted} are asked for"
        return Untimed(EXECUTORS_MISSING, FALSE, ALL_REGISTERED, message)
    if seen.living_driver is not None and (told := _missing_before(plan, memory)) is not None:
        return told
    return not_known(EXECUTORS_MISSING)


def why_none(seen: Seen, plan: Plan, memory: LoopMemory) -> str | None:
    """Return why the job has had no executor at all for a minute; `None`: it has some, or it is not known."""
    shortage, said = _shortage(seen, plan, memory), executors_missing(seen, plan, memory)
    is_so = shortage is not None and shortage.running == 0 and said is not None and said.status is TRUE
    return said.message if is_so and said is not None else None


def first_awaited(seen: Seen, plan: Plan, memory: LoopMemory) -> str | None:
    """Return that the first executor is on its way; `None`: there are some, or it takes longer than a minute.

    Nor where the attempt was ready before: the last one that is lost comes again within seconds, as a rule.
    """
    shortage = _shortage(seen, plan, memory)
    if shortage is None or shortage.running > 0 or seen.now >= shortage.since + PATIENCE_SECONDS:
        return None
    return None if _of_attempt("Ready", plan, memory) is not None else shortage.text


def executors_short_since(seen: Seen, plan: Plan, memory: LoopMemory) -> float | None:
    """Return since when there are fewer than there are to be (Unix time), to be remembered; `None`: there are not."""
    shortage = _shortage(seen, plan, memory)
    if shortage is not None:
        return shortage.since
    is_unknown = seen.metrics is None or seen.metrics.executors is None
    return memory.executors_short_since if is_unknown and seen.living_driver is not None else None


def patience_ends_at(seen: Seen, memory: LoopMemory) -> float | None:
    """Return the Unix time from which that is worth telling; `None`: there are enough, or that time has come."""
    since = memory.executors_short_since
    return None if since is None or seen.now >= since + PATIENCE_SECONDS else since + PATIENCE_SECONDS


def is_short(memory: LoopMemory, now: float) -> bool:
    """Return whether it is worth looking what keeps executors away."""
    since = memory.executors_short_since
    return since is not None and now >= since + PATIENCE_SECONDS


def _shortage(seen: Seen, plan: Plan, memory: LoopMemory) -> Shortage | None:
    """Return how many there are, where they are fewer than there are to be."""
    wanted = plan.document.executor_instances
    running = None if seen.metrics is None else seen.metrics.executors
    if wanted is None or running is None or running >= wanted or plan.step.state is not State.RUNNING:
        return None
    since = memory.executors_short_since
    if since is None and _missing_before(plan, memory) is not None:  # by the process before
        since = seen.now - PATIENCE_SECONDS
    return Shortage(running, wanted, seen.now if since is None else min(since, seen.now))


def _missing_before(plan: Plan, memory: LoopMemory) -> Untimed | None:
    """Return the condition as it was told of this attempt, if it was that some are missing."""
    told = _of_attempt(EXECUTORS_MISSING, plan, memory)
    return None if told is None else Untimed(told.type, told.status, told.reason, told.message)


def _of_attempt(kind: str, plan: Plan, memory: LoopMemory) -> Condition | None:
    """Return a condition of this attempt as it was told last, where it was true."""
    before = memory.status
    if before is None or before.attempt != plan.step.history.attempt:
        return None
    return before.condition(kind) if before.says(kind, TRUE) else None


def _hindrance(seen: Seen) -> Problem:
    refused = None if seen.metrics is None else seen.metrics.executors_refused
    if seen.hindrance is not None:
        return seen.hindrance
    if refused is not None:
        message = f"the API server takes no more ({refused}); raise the quota, or see to what it names"
        return Problem(EXECUTORS_REFUSED, message)
    message = "nothing says why; read the driver's log, and look at the pods that status.selector selects"
    return Problem(NOT_REGISTERED, message)
