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

from collections.abc import Callable
from dataclasses import replace

from headgate.decision.backlog_conf import BacklogConf, Choice, ConfInputs, ConfReason, Trial

MINIMUM_UPTIME_SECONDS = 300.0
"""Two batches of the usual `intervalDuringBacklog`, and as long as Flink's autoscaler lets a job settle."""
COOL_DOWN_SECONDS = 900.0
"""Seconds between two restarts: three times the minimum uptime, so that a flipping verdict seldom costs any."""


def choose(conf: BacklogConf, moment: ConfInputs) -> Choice:
    """Return what the driver is to run with from `moment` on, after what `conf` says was before."""
    for update in UPDATES:
        conf = update(conf, moment)
    return next(choice for check in CHECKS if (choice := check(conf, moment)))


# What is learned ----------------------------------------------------------------------------------


def verdict_is_heard(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """A verdict that has changed is dated; one that is not heard stays as it was."""
    if moment.backlog is None or moment.backlog == conf.backlog:
        return conf
    return replace(conf, backlog=moment.backlog, since=moment.now)


def clock_was_set_back(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """What a clock has dated far in the future counts from now, so that it puts nothing off for good."""
    if conf.since > moment.now + MINIMUM_UPTIME_SECONDS:
        conf = replace(conf, since=moment.now)
    if conf.restarted_at is not None and conf.restarted_at > moment.now + COOL_DOWN_SECONDS:
        conf = replace(conf, restarted_at=moment.now)
    return conf


def driver_is_dated(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """A driver runs since it was first seen to: its node dates its start as well, by a clock that may be wrong."""
    driver = moment.driver
    if driver is None or not driver.is_ready:
        return conf
    if driver.attempt == conf.ready_attempt and conf.ready_since <= moment.now:
        return conf
    return replace(conf, ready_attempt=driver.attempt, ready_since=moment.now)


def person_has_seen_to_it(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """Who suspends the application, or changes what its driver starts with, wants it to be tried again."""
    if moment.suspended:
        return replace(conf, trial=None, restarted_attempt=None)
    if conf.trial is not None and conf.trial.revision != moment.revision:
        return replace(conf, trial=None)
    return conf


def driver_shows_what_it_runs(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """A driver that the memory has forgotten is adopted, not restarted."""
    driver = moment.driver
    if driver is None or driver.is_ending or driver.revision not in (moment.revision, moment.plain_revision):
        return conf
    return replace(conf, in_force=driver.revision == moment.revision)


def trial_is_measured(conf: BacklogConf, moment: ConfInputs) -> BacklogConf:
    """What the restart has changed is known once all that was measured before, and is still behind, is so again."""
    trial, driver = conf.trial, moment.driver
    if trial is None or trial.after or driver is None or driver.revision != trial.revision:
        return conf
    if moment.backlog is not True or moment.now < _tried_at(conf, moment):
        return conf
    after = {query: moment.throughput[query] for query in trial.before.keys() & moment.throughput.keys()}
    known = {query: rate for query, rate in after.items() if rate is not None}
    return replace(conf, trial=replace(trial, after=known)) if known.keys() == after.keys() else conf


UPDATES: tuple[Callable[[BacklogConf, ConfInputs], BacklogConf], ...] = (
    clock_was_set_back,
    driver_is_dated,
    verdict_is_heard,
    person_has_seen_to_it,
    driver_shows_what_it_runs,
    trial_is_measured,
)


# What is chosen -----------------------------------------------------------------------------------


def next_driver_starts_anyway(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """A start for another reason takes the verdict with it."""
    if not moment.may_choose_freely:
        return None
    if conf.backlog is None:
        return _as_it_is(conf)
    in_force = conf.backlog and not _did_not_help(conf)
    return _as_it_is(_having_left(replace(conf, in_force=in_force)))


def driver_is_ending(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """What is under way is not called off: the next driver starts soon enough."""
    driver = moment.driver
    if driver is None or not driver.is_ending:
        return None
    if driver.revision == (moment.plain_revision if conf.in_force else moment.revision):
        return Choice(conf=conf, reason=ConfReason.RESTARTING)
    return _as_it_is(conf)


def driver_runs_as_asked(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """Nothing is to be changed; a trial may be waiting to be measured."""
    if conf.backlog not in (None, conf.in_force):
        return None
    trial, driver = conf.trial, moment.driver
    if not conf.in_force or driver is None or trial is None or trial.after or not trial.before:
        return _as_it_is(conf)
    due = _tried_at(conf, moment)
    return replace(_as_it_is(conf), until=due if due > moment.now else None)


def verdict_is_not_heard(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """Missing data never restarts a driver."""
    return Choice(conf=conf, reason=ConfReason.NOT_HEARD) if moment.backlog is None else None


def restart_did_not_help(conf: BacklogConf, _moment: ConfInputs) -> Choice | None:
    """What was tried and has not helped is not tried again."""
    return _as_it_is(conf) if conf.backlog and _did_not_help(conf) else None


def one_batch_spans_the_backlog(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """The batch begins when the backlog does; a driver that could not be restarted by then reads it to its end."""
    if not (conf.backlog and moment.spans_backlog):
        return None
    is_in_time = moment.now <= conf.since and not driver_is_young(conf, moment)
    if is_in_time and not restarted_lately(conf, moment):
        return None
    return Choice(conf=conf, reason=ConfReason.BATCH_SPANS_BACKLOG)


def driver_is_young(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """It has to run for long enough under this verdict; where one batch spans the backlog, under any."""
    if moment.driver is None:
        return None
    due = _tried_at(conf, moment)
    if conf.backlog and moment.spans_backlog:
        due = _ready_since(conf, moment) + MINIMUM_UPTIME_SECONDS
    return Choice(conf=conf, reason=ConfReason.MINIMUM_UPTIME, until=due) if moment.now < due else None


def restarted_lately(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """Two restarts for a verdict are some time apart, whichever way they go."""
    if conf.restarted_at is None:
        return None
    due = conf.restarted_at + COOL_DOWN_SECONDS
    return Choice(conf=conf, reason=ConfReason.COOL_DOWN, until=due) if moment.now < due else None


def driver_is_restarted(conf: BacklogConf, moment: ConfInputs) -> Choice | None:
    """The driver stops at the end of its batch, and what it did in backlog is kept to compare."""
    driver = moment.driver
    if driver is None:
        return None
    conf = replace(
        conf,
        in_force=conf.backlog is True,
        restarted_at=moment.now,
        restarted_attempt=driver.attempt,
        trial=_trial(conf, moment) if conf.backlog else conf.trial,
    )
    return Choice(conf=_having_left(conf), reason=ConfReason.RESTARTING)


CHECKS: tuple[Callable[[BacklogConf, ConfInputs], Choice | None], ...] = (  # the first to answer decides
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


def _ready_since(conf: BacklogConf, moment: ConfInputs) -> float:
    """Return since when the driver runs; one that does not report yet has not begun to."""
    is_known = moment.driver is not None and moment.driver.attempt == conf.ready_attempt
    return conf.ready_since if is_known else moment.now


def _tried_at(conf: BacklogConf, moment: ConfInputs) -> float:
    """Return when the driver has run for the minimum uptime under the verdict as it now is."""
    return max(conf.since, _ready_since(conf, moment)) + MINIMUM_UPTIME_SECONDS


def _trial(conf: BacklogConf, moment: ConfInputs) -> Trial:
    """Return a trial that begins, with what was measured in this backlog; before it, batches were others."""
    if moment.now < _tried_at(conf, moment):
        return Trial(revision=moment.revision, before={})
    before = {query: rate for query, rate in moment.throughput.items() if rate}
    return Trial(revision=moment.revision, before=before)


def _having_left(conf: BacklogConf) -> BacklogConf:
    """Return it without a trial that is over, unless it tells that the properties do not help."""
    return conf if conf.in_force or _did_not_help(conf) else replace(conf, trial=None)
