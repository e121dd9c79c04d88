"""Whether the driver runs with the Spark properties of a backlog, `duringBacklog.sparkConf`.

They cannot change in a running driver, so each change costs a restart: a batch is waited for, a JVM starts, caches
are cold. That pays in a long backlog, and only if the properties help. So before a driver is restarted for them,
into them or out of them, three things are asked:

- *minimum uptime*: has it run for five minutes under the verdict as it now is? A backlog that is gone by then needed
  no restart, and one that is not has been measured without the properties;
- *cool-down*: were the last fifteen minutes without such a restart? A verdict that flips costs four an hour;
- *ineffective action detection*, as Flink's autoscaler has it: did such a restart help before? It did not where,
  after the same five minutes, no query was at least a tenth faster than before it. Then it is not repeated until
  what the driver starts with has changed, or a person has suspended the application. Unknown is not "no".

A driver that starts for another reason starts with what the verdict asks for, since that costs no restart. A verdict
that cannot be heard restarts nothing.

`headgate.reconcile.backlog_conf` tells the moment, and says the choice in sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from headgate_contract.codec import decode, encode

MINIMUM_UPTIME_SECONDS = 300.0
"""Two batches of the usual `intervalDuringBacklog`, and as long as Flink's autoscaler lets a job settle."""
COOL_DOWN_SECONDS = 900.0
"""Between two restarts. Three times the minimum uptime, so that a flipping verdict mostly leaves the driver alone."""
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
    """Of the driver that runs with them."""
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
    trial: Trial | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a document of JSON types that `from_json` reads back to an equal value."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> BacklogConf:
        """Read a document of `to_json`; raises ValueError with the path of what is wrong."""
        return decode(cls, document)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingDriver:
    """The driver that runs now."""

    attempt: int
    started_at: float
    revision: str | None = None
    """What it runs; `None`: nobody knows."""
    is_ending: bool = False
    """Whether it ends whatever is chosen here: the choice is made once it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
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


def choose(conf: BacklogConf, moment: Moment) -> Choice:
    """Return what the driver is to run with from `moment` on, after what `conf` says was before."""
    for learn in LESSONS:
        conf = learn(conf, moment)
    return next(choice for check in CHECKS if (choice := check(conf, moment)))


# What is learned ----------------------------------------------------------------------------------


def verdict_is_heard(conf: BacklogConf, moment: Moment) -> BacklogConf:
    """A verdict that has changed is dated; one that is not heard stays as it was."""
    if moment.backlog is None or moment.backlog == conf.backlog:
        return conf
    return replace(conf, backlog=moment.backlog, since=moment.now)


def clock_was_set_back(conf: BacklogConf, moment: Moment) -> BacklogConf:
    """What a clock has dated far in the future counts from now, so that it puts nothing off for good."""
    if conf.since > moment.now + MINIMUM_UPTIME_SECONDS:
        conf = replace(conf, since=moment.now)
    if conf.restarted_at is not None and conf.restarted_at > moment.now + COOL_DOWN_SECONDS:
        conf = replace(conf, restarted_at=moment.now)
    return conf


def person_has_seen_to_it(conf: BacklogConf, moment: Moment) -> BacklogConf:
    """Who suspends the application, or changes what its driver starts with, wants it to be tried again."""
    if moment.suspended:
        return replace(conf, trial=None, restarted_attempt=None)
    if conf.trial is not None and conf.trial.revision != moment.revision:
        return replace(conf, trial=None)
    return conf


def driver_shows_what_it_runs(conf: BacklogConf, moment: Moment) -> BacklogConf:
    """A driver that the memory has forgotten is adopted, not restarted."""
    driver = moment.driver
    if driver is None or driver.is_ending or driver.revision not in (moment.revision, moment.plain_revision):
        return conf
    return replace(conf, in_force=driver.revision == moment.revision)


def trial_is_measured(conf: BacklogConf, moment: Moment) -> BacklogConf:
    """What the restart has changed is known once all that was measured before, and is still behind, is so again."""
    trial, driver = conf.trial, moment.driver
    if trial is None or trial.after or driver is None or driver.revision != trial.revision:
        return conf
    if moment.backlog is not True or moment.now < _tried_at(conf, driver):
        return conf
    after = {query: moment.throughput[query] for query in trial.before.keys() & moment.throughput.keys()}
    known = {query: rate for query, rate in after.items() if rate is not None}
    return replace(conf, trial=replace(trial, after=known)) if known.keys() == after.keys() else conf


LESSONS: tuple[Callable[[BacklogConf, Moment], BacklogConf], ...] = (
    clock_was_set_back,
    verdict_is_heard,
    person_has_seen_to_it,
    driver_shows_what_it_runs,
    trial_is_measured,
)


# What is chosen -----------------------------------------------------------------------------------


def next_driver_starts_anyway(conf: BacklogConf, moment: Moment) -> Choice | None:
    """A start for another reason takes the verdict with it."""
    if not moment.may_choose_freely:
        return None
    if conf.backlog is None:
        return _as_it_is(conf)
    in_force = conf.backlog and not _did_not_help(conf)
    return _as_it_is(_having_left(replace(conf, in_force=in_force)))


def driver_is_ending(conf: BacklogConf, moment: Moment) -> Choice | None:
    """What is under way is not called off: the next driver starts soon enough."""
    driver = moment.driver
    if driver is None or not driver.is_ending:
        return None
    if driver.revision == (moment.plain_revision if conf.in_force else moment.revision):
        return Choice(conf=conf, reason=ConfReason.RESTARTING)
    return _as_it_is(conf)


def driver_runs_as_asked(conf: BacklogConf, moment: Moment) -> Choice | None:
    """Nothing is to be changed; a trial may be waiting to be measured."""
    if conf.backlog not in (None, conf.in_force):
        return None
    trial, driver = conf.trial, moment.driver
    if not conf.in_force or driver is None or trial is None or trial.after or not trial.before:
        return _as_it_is(conf)
    due = _tried_at(conf, driver)
    return replace(_as_it_is(conf), until=due if due > moment.now else None)


def verdict_is_not_heard(conf: BacklogConf, moment: Moment) -> Choice | None:
    """Missing data never restarts a driver."""
    return Choice(conf=conf, reason=ConfReason.NOT_HEARD) if moment.backlog is None else None


def restart_did_not_help(conf: BacklogConf, _moment: Moment) -> Choice | None:
    """What was tried and has not helped is not tried again."""
    return _as_it_is(conf) if conf.backlog and _did_not_help(conf) else None


def one_batch_spans_the_backlog(conf: BacklogConf, moment: Moment) -> Choice | None:
    """The batch begins when the backlog does; a driver that could not be restarted by then reads it to its end."""
    if not (conf.backlog and moment.spans_backlog):
        return None
    is_in_time = moment.now <= conf.since and not driver_is_young(conf, moment)
    if is_in_time and not restarted_lately(conf, moment):
        return None
    return Choice(conf=conf, reason=ConfReason.BATCH_SPANS_BACKLOG)


def driver_is_young(conf: BacklogConf, moment: Moment) -> Choice | None:
    """It has to run for long enough under this verdict; where one batch spans the backlog, under any."""
    driver = moment.driver
    if driver is None:
        return None
    if conf.backlog and moment.spans_backlog:
        due = driver.started_at + MINIMUM_UPTIME_SECONDS
    else:
        due = _tried_at(conf, driver)
    return Choice(conf=conf, reason=ConfReason.MINIMUM_UPTIME, until=due) if moment.now < due else None


def restarted_lately(conf: BacklogConf, moment: Moment) -> Choice | None:
    """Two restarts for a verdict are some time apart, whichever way they go."""
    if conf.restarted_at is None:
        return None
    due = conf.restarted_at + COOL_DOWN_SECONDS
    return Choice(conf=conf, reason=ConfReason.COOL_DOWN, until=due) if moment.now < due else None


def driver_is_restarted(conf: BacklogConf, moment: Moment) -> Choice | None:
    """The driver stops at the end of its batch, and what it did in backlog is kept to compare."""
    driver = moment.driver
    if driver is None:
        return None
    conf = replace(
        conf,
        in_force=conf.backlog is True,
        restarted_at=moment.now,
        restarted_attempt=driver.attempt,
        trial=_trial(conf, moment, driver) if conf.backlog else conf.trial,
    )
    return Choice(conf=_having_left(conf), reason=ConfReason.RESTARTING)


CHECKS: tuple[Callable[[BacklogConf, Moment], Choice | None], ...] = (  # the first to answer decides
    next_driver_starts_anyway,
    driver_is_ending,
    driver_runs_as_asked,
    verdict_is_not_heard,
    restart_did_not_help,
    one_batch_spans_the_backlog,
    driver_is_young,
    restarted_lately,
    driver_is_restarted,
)


def _as_it_is(conf: BacklogConf) -> Choice:
    if conf.backlog and _did_not_help(conf):
        return Choice(conf=conf, reason=ConfReason.INEFFECTIVE_RESTART)
    return Choice(conf=conf, reason=ConfReason.IN_FORCE if conf.in_force else ConfReason.NO_BACKLOG)


def _did_not_help(conf: BacklogConf) -> bool:
    return conf.trial is not None and conf.trial.helped is False


def _tried_at(conf: BacklogConf, driver: LivingDriver) -> float:
    """Return when the driver has run for the minimum uptime under the verdict as it now is."""
    return max(conf.since, driver.started_at) + MINIMUM_UPTIME_SECONDS


def _trial(conf: BacklogConf, moment: Moment, driver: LivingDriver) -> Trial:
    """Return a trial that begins, with what was measured in this backlog; before it, batches were others."""
    if moment.now < _tried_at(conf, driver):
        return Trial(revision=moment.revision, before={})
    before = {query: rate for query, rate in moment.throughput.items() if rate}
    return Trial(revision=moment.revision, before=before)


def _having_left(conf: BacklogConf) -> BacklogConf:
    """Return it without a trial that is over, unless it tells that the properties do not help."""
    return conf if conf.in_force or _did_not_help(conf) else replace(conf, trial=None)
