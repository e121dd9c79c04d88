"""What holds of every query that is planned, whatever Spark and the calls to the planner do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from support.event_logs import Log, event_time
from support.governed_by_script import BASE, Trigger


def every_source_is_read(triggers: Sequence[Trigger]) -> None:
    """A batch reads each source that has something. For a query without limits, of the triggers without a fault."""
    for trigger in triggers:
        if trigger.read and not trigger.faults:
            left_out = {name for name, n in trigger.pending.items() if n} - trigger.read.keys()
            assert not left_out, (
                f"the batch at {trigger.at:.1f} read {dict(trigger.read)} and left out {left_out}"
            )


def rates_hold(triggers: Sequence[Trigger], rate: float, burst: float) -> None:
    """No window of time has more records of a source than `rate * W + burst + 1`."""
    names = {name for trigger in triggers for name in trigger.read}
    for name in names:
        tokens, at = burst + 1, triggers[0].at
        for trigger in triggers:
            tokens = min(burst + 1, tokens + rate * (trigger.at - at)) - trigger.read.get(name, 0)
            at = trigger.at
            assert tokens >= -1e-6, f"{name} was read faster than {rate}/s at {at:.1f}"


def no_token_is_lost(triggers: Sequence[Trigger], rate: float) -> None:
    """A source that is limited by its rate alone is read at that rate. Of triggers without a fault."""
    seconds = triggers[-1].at - triggers[0].at
    for name in triggers[0].pending:
        read = sum(trigger.read.get(name, 0) for trigger in triggers)
        assert read >= 0.95 * rate * seconds - rate, f"{name}: {read} records in {seconds:.0f} s at {rate}/s"


def what_is_booked_was_read(planned: Mapping[str, int], triggers: Sequence[Trigger]) -> None:
    """The planner counts as planned what Spark has read, and nothing else."""
    read = {name: sum(trigger.read.get(name, 0) for trigger in triggers) for name in planned}
    assert planned == read


def commits_are_apart(triggers: Sequence[Trigger], interval: float) -> None:
    """Batches come an interval apart. For a query that is always behind its interval."""
    at = [trigger.at for trigger in triggers if trigger.read]
    assert all(after - before >= interval - 2 * BASE for before, after in pairwise(at)), at


def none_is_past_the_limit(
    triggers: Sequence[Trigger], logs: Mapping[str, Log], drift_ms: int, position: Mapping[str, int]
) -> None:
    """No record is later than the slowest member has come by the end of its batch, and the drift.

    Where the answer of a member is lost, others may have had theirs already: then by the end of the batch that it was
    to have. Of a trigger in which the planner heard nothing of a member, nobody can say what that was.
    """
    at = dict(position)
    for trigger in triggers:
        before, at = at, {name: at[name] + trigger.read.get(name, 0) for name in at}
        reached = [time for name, log in logs.items() for time in log[before[name] : at[name]]]
        planned = {**at, **trigger.lost}
        floor = min(
            time for name, log in logs.items() if (time := event_time(log, planned[name])) is not None
        )
        assert trigger.unheard or not reached or max(reached) <= floor + drift_ms, (
            f"at {trigger.at:.1f} {max(reached) - floor} ms ahead: {dict(trigger.read)}"
        )


@dataclass
class RateLaw:
    """The reference: what is planned in a window of constant settings is at most rate * W + burst + 1."""

    rate: float | None = None
    burst: float = 0.0
    level: float = 0.0
    at: float = 0.0

    def check(self, rate: float | None, burst: float, planned: int, now: float) -> None:
        if (rate, burst) != (self.rate, self.burst):
            self.rate, self.burst, self.level, self.at = rate, burst, 0.0, now
        if rate is None:
            return
        self.level = max(0.0, self.level - rate * max(0.0, now - self.at)) + planned
        self.at = max(self.at, now)
        assert self.level <= burst * (1 + 1e-9) + 1
