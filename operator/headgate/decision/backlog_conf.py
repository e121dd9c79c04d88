"""What a restart for `duringBacklog.sparkConf` is decided on, and what is remembered of such restarts.

The rules are in `conf_choice.py`. *Properties* are those of a backlog throughout. Times are seconds on one clock,
that of whoever observes.
"""

from __future__ import annotations  # as text: the codec reads them

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LEAST_GAIN = 0.1
"""By how much faster a query has to be; less is within what batches of one query differ by."""


class ConfReason(StrEnum):
    """Why the driver runs with the properties of a backlog, or without; the reason of `BacklogSparkConf`."""

    NO_BACKLOG = "NoBacklog"
    """No query is in backlog, and it runs without them."""
    IN_FORCE = "InForce"
    """A query is in backlog, and it runs with them."""
    RESTARTING = "Restarting"
    """It is stopped at the end of its batch, to run with them, or without them again."""
    NOT_HEARD = "NotHeard"
    """The verdict asks for a restart, and cannot be heard now: missing data restarts nothing."""
    MINIMUM_UPTIME = "MinimumUptime"
    """The verdict asks for a restart, and the driver has not run long enough under it."""
    COOL_DOWN = "CoolDown"
    """The verdict asks for a restart, and the last one for a verdict was too short a time ago."""
    BATCH_SPANS_BACKLOG = "BatchSpansBacklog"
    """One batch spans the backlog, and has begun without them: a restart would repeat it."""
    INEFFECTIVE_RESTART = "IneffectiveRestart"
    """A restart into them did not help, and is not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One restart into the properties of a backlog, and what it changed: records per second, by query."""

    revision: str
    """The revision of the driver that runs with them."""
    before: Mapping[str, float]
    """In backlog without them. Empty: that was not measured, and the restart is not judged."""
    after: Mapping[str, float] = field(default_factory=dict)
    """In backlog with them. Empty: not measured yet."""

    @property
    def helped(self) -> bool | None:
        """Whether a query has become faster by `LEAST_GAIN`; `None`: unknown."""
        measured = self.before.keys() & self.after.keys()
        if not measured:
            return None
        gains = {query: self.after[query] - self.before[query] for query in measured}
        return any(gains[query] >= LEAST_GAIN * self.before[query] for query in measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogConf:
    """What is chosen, and what must be known for the next choice. Kept before the choice is carried out."""

    in_force: bool = False
    """Whether the driver is to run with the properties."""
    backlog: bool | None = None
    """The verdict that was heard last."""
    since: float = 0.0
    """When it was first heard."""
    restarted_at: float | None = None
    """When a driver was last stopped for a verdict."""
    restarted_attempt: int | None = None
    """Which one that was."""
    ready_attempt: int | None = None
    """The driver that was last seen to report."""
    ready_since: float = 0.0
    """When it was first seen to; its start is dated by the clock of its node."""
    trial: Trial | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingDriver:
    """The driver that runs now."""

    attempt: int
    is_ready: bool
    """Whether it reports."""
    revision: str | None = None
    """What it runs; `None`: nobody knows."""
    is_ending: bool = False
    """Whether it ends whatever is chosen here: the choice is made once it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfInputs:
    """What the choice is made on."""

    now: float
    backlog: bool | None
    """Whether a query is in backlog; `None`: nobody can be heard who would know."""
    throughput: Mapping[str, float | None] = field(default_factory=dict)
    """Records per second of each query in backlog; `None`: unknown."""
    spans_backlog: bool = False
    """Whether one batch spans the backlog of a query: a stop would wait for all of it, or repeat it."""
    revision: str
    """Of a driver with the properties."""
    plain_revision: str
    """Of one without."""
    driver: LivingDriver | None = None
    suspended: bool = False

    @property
    def may_choose_freely(self) -> bool:
        """Whether the next driver starts in any case: there is none, or it runs what nobody asks for any more."""
        if self.driver is None:
            return True
        known = (None, self.revision, self.plain_revision)
        return not self.driver.is_ending and self.driver.revision not in known


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the driver is to run with, and why."""

    conf: BacklogConf
    reason: ConfReason
    until: float | None = None
    """When the choice may be another one even if nothing is heard before."""
