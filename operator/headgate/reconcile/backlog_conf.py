"""`duringBacklog.sparkConf` of one application: whether its driver is to run with it, and how that is told.

The choice is `headgate.decision.conf_choice`'s. This tells it the moment, as the loop sees it, and puts the choice
in a sentence for condition `BacklogSparkConf` and for events. Called by `decide`, `conditions` and `events`.
"""

from collections.abc import Mapping
from typing import Final

from headgate.api.application import SparkApplication
from headgate.decision.backlog_conf import (
    LEAST_GAIN,
    BacklogConf,
    Choice,
    ConfInputs,
    ConfReason,
    LivingDriver,
)
from headgate.decision.conf_choice import COOL_DOWN_SECONDS, MINIMUM_UPTIME_SECONDS, choose
from headgate.decision.driver import History
from headgate.decision.verdict import Verdict
from headgate.decision.voters import Reason
from headgate.reconcile.answers import FALSE, TRUE, Untimed
from headgate.reconcile.launch import launch_of
from headgate.reconcile.observe import Seen
from headgate.reconcile.policy import query_policies
from headgate.reconcile.times import duration_text, rate_text

BACKLOG_SPARK_CONF: Final = "BacklogSparkConf"
"""The condition: whether the driver is to run with `duringBacklog.sparkConf`."""

WORTH_AN_EVENT: Final = frozenset({ConfReason.RESTARTING, ConfReason.INEFFECTIVE_RESTART})
"""What a person wants to be told of when it comes to be so."""

PROPERTIES: Final = "duringBacklog.sparkConf"
WHAT_LIFTS_IT: Final = "until what the driver starts with is changed, or spec.suspend is set and unset"


def chosen(
    application: SparkApplication,
    seen: Seen,
    verdicts: Mapping[str, Verdict],
    *,
    conf: BacklogConf,
    history: History,
) -> Choice | None:
    """Return what the driver is to run with; `None` where a backlog makes no difference to that.

    `conf` is what was chosen before, `history` that of the driver before its next step.
    """
    launch = launch_of(application, in_backlog=True)
    plain = launch_of(application, in_backlog=False)
    if launch == plain:
        return None
    policies = query_policies(application)
    moment = ConfInputs(
        now=seen.now,
        backlog=_heard(verdicts),
        throughput={
            name: None if (query := seen.query(name)) is None else query.throughput
            for name, verdict in verdicts.items()
            if verdict.backlog
        },
        spans_backlog=any(
            verdict.backlog and policies[name].one_batch_spans_backlog for name, verdict in verdicts.items()
        ),
        revision=launch.revision,
        plain_revision=plain.revision,
        driver=_living_driver(application, seen, history),
        suspended=application.spec.suspend,
    )
    return choose(conf, moment)


def _heard(verdicts: Mapping[str, Verdict]) -> bool | None:
    """Return whether a query is in backlog by a vote that is heard now; `None` where no vote could tell."""
    if any(verdict.backlog and verdict.reason is not Reason.UNKNOWN for verdict in verdicts.values()):
        return True
    for verdict in verdicts.values():
        by_metrics = [  # the phase is known without them
            vote
            for source in verdict.sources.values()
            for reason, vote in source.votes.items()
            if reason is not Reason.PHASE
        ]
        if verdict.backlog or (by_metrics and all(vote is None for vote in by_metrics)):
            return None
    return False


def _living_driver(application: SparkApplication, seen: Seen, history: History) -> LivingDriver | None:
    driver = seen.living_driver
    if driver is None:
        return None
    is_newest = driver.attempt >= history.attempt
    stop_is_asked = driver.attempt == history.attempt and history.stop_asked_at is not None
    is_unwanted = application.spec.suspend or seen.deletion_asked_at is not None
    return LivingDriver(
        attempt=driver.attempt,
        is_ready=driver.is_ready or seen.metrics is not None,
        revision=driver.revision or (history.revision if driver.attempt == history.attempt else None),
        is_ending=stop_is_asked or is_unwanted or driver.is_leaving or not is_newest,
    )


def answer(choice: Choice | None, seen: Seen) -> Untimed | None:
    """Return the condition; `None` where a backlog makes no difference to what the driver runs with."""
    if choice is None:
        return None
    status = TRUE if choice.conf.in_force else FALSE
    return Untimed(BACKLOG_SPARK_CONF, status, choice.reason, sentence(choice, seen))


def sentence(choice: Choice, seen: Seen) -> str:  # noqa: PLR0911  one for each reason
    """Return the choice for people, with what would make it another."""
    conf = choice.conf
    uptime, cool_down = duration_text(MINIMUM_UPTIME_SECONDS), duration_text(COOL_DOWN_SECONDS)
    match choice.reason:
        case ConfReason.NO_BACKLOG | ConfReason.IN_FORCE:
            who = "the next driver starts" if seen.living_driver is None else "the driver runs"
            return f"{who} {_with(in_force=conf.in_force)}"
        case ConfReason.RESTARTING:
            attempt = "the driver" if conf.restarted_attempt is None else f"attempt {conf.restarted_attempt}"
            return (
                f"{attempt} stops at the end of its batch; the next one runs {_with(in_force=conf.in_force)}"
            )
        case ConfReason.NOT_HEARD:
            return (
                f"the driver goes on {_with(in_force=conf.in_force)}: nobody knows whether there is a backlog"
            )
        case ConfReason.MINIMUM_UPTIME:
            verdict = "in backlog" if conf.backlog else "without a backlog"
            return f"{_to_come(conf)} once it has run for {uptime} {verdict}"
        case ConfReason.COOL_DOWN:
            return f"{_to_come(conf)}, but not within {cool_down} of the last restart for a verdict"
        case ConfReason.BATCH_SPANS_BACKLOG:
            return (
                f"one batch spans the backlog, and has begun without {PROPERTIES}: a restart would repeat it. Put "
                "what it needs into sparkConf, or set an intervalDuringBacklog above 0s"
            )
        case ConfReason.INEFFECTIVE_RESTART:
            tried = f"the restart into {PROPERTIES} did not help{_comparison(conf)}"
            return f"{tried}; it is not repeated {WHAT_LIFTS_IT}"


def _with(*, in_force: bool) -> str:
    return f"with {PROPERTIES}" if in_force else f"without {PROPERTIES}"


def _to_come(conf: BacklogConf) -> str:
    return f"the driver is restarted {_with(in_force=not conf.in_force)}"


def _comparison(conf: BacklogConf) -> str:
    if conf.trial is None:
        return ""
    rates = [
        f"{query} {rate_text(conf.trial.before[query])} before and {rate_text(after)} with it"
        for query, after in sorted(conf.trial.after.items())
    ]
    return f" ({', '.join(rates)}; a gain of {LEAST_GAIN:.0%} was needed)"
