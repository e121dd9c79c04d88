"""Decide: from what was seen to what shall be done, without doing any of it.

The judgements themselves are `headgate.decision`'s; this brings them together for one application: a verdict
for each query, from these what the driver is told and what it is to run with, and the next step of its life.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headgate.api.application import SparkApplication
from headgate.api.duration import in_seconds
from headgate.decision.backlog_conf import BacklogConf, Choice, ConfReason
from headgate.decision.driver import IN_A_CLUSTER, Desired, Start, Step, StepReason, Words
from headgate.decision.lifecycle import next_step
from headgate.decision.memory import Memory as Latches
from headgate.decision.verdict import Verdict
from headgate.decision.verdict import decide as verdict_on
from headgate.reconcile.backlog_conf import chosen, sentence
from headgate.reconcile.document import next_document
from headgate.reconcile.launch import Launch, launch_of
from headgate.reconcile.memory import Kept
from headgate.reconcile.observe import Seen
from headgate.reconcile.policy import query_policies, restart_policy
from headgate_contract import ControlDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is to be done now. Carrying it out twice does no more than once."""

    verdicts: Mapping[str, Verdict]
    """By query of the resource."""
    document: ControlDocument
    """What the driver should be told; it may have been already."""
    launch: Launch
    """What the driver should run with."""
    publishes: bool
    """Whether the driver, or the one that is started now, has another document, or none."""
    step: Step
    """The driver's next step."""
    choice: Choice | None
    """Whether it is to run with the properties of a backlog, and why; `None` where that makes no difference."""
    grace_period_seconds: float
    """How long a stop waits for the running batch."""
    kept: Kept
    """What is to be written down first."""


def decide(  # noqa: PLR0913  what there is, and what only a caller can know
    application: SparkApplication,
    seen: Seen,
    kept: Kept,
    *,
    jitter: float,
    tried: ControlDocument | None = None,
    words: Words = IN_A_CLUSTER,
) -> Plan:
    """Return the plan. `jitter` is a fresh random number in 0..1, for the pause before a restart; `tried` is the
    document that was to be published last, unless that is known to have arrived."""
    judged = _judge(application, seen, kept, kept.latches)
    choice = chosen(application, seen, _verdicts(judged), conf=kept.backlog_conf, history=kept.history)
    conf = BacklogConf() if choice is None else choice.conf
    launch = launch_of(application, in_backlog=conf.in_force)
    desired = _desired(application, seen, launch, words)
    step = next_step(seen.driver, desired, kept.history, now=seen.now, jitter=jitter, obstacle=seen.obstacle)
    keeps_votes = _still_to_be_heard(kept, judged)
    if isinstance(step.action, Start) and step.action.attempt != kept.history.attempt:
        other = launch_of(application, in_backlog=not conf.in_force)
        is_for_verdict = (
            conf.restarted_attempt == kept.history.attempt
            and kept.history.revision == other.revision != launch.revision
        )
        keeps_votes = frozenset(judged) if is_for_verdict else frozenset()
        if not is_for_verdict:  # what was true before says nothing of the new attempt
            judged = _judge(application, seen, kept, {})
    verdicts = _verdicts(judged)
    document = next_document(
        application,
        _as_published(verdicts, choice, seen.published),
        published=seen.published,
        last_generation=kept.generation,
        tried=tried,
        reported=seen.reported_generation,
        live={(name, source) for name in keeps_votes for source in judged[name][1].live_sources},
    )
    has_reader = seen.living_driver is not None or isinstance(step.action, Start)
    publishes = has_reader and document != seen.published
    return Plan(
        verdicts=verdicts,
        document=document,
        publishes=publishes,
        launch=launch,
        step=_with_choice(step, choice, seen),
        choice=choice,
        grace_period_seconds=desired.grace_period_seconds,
        kept=replace(
            kept,
            history=step.history,
            latches={name: latches for name, (_, latches) in judged.items()},
            generation=document.generation if has_reader else kept.generation,
            backlog_conf=conf,
            keeps_votes=keeps_votes,
        ),
    )


Judged = Mapping[str, tuple[Verdict, Latches]]


def _judge(application: SparkApplication, seen: Seen, kept: Kept, latches: Mapping[str, Latches]) -> Judged:
    return {
        name: verdict_on(
            seen.observations[name],
            policy,
            latches.get(name, Latches()),
            restarted_for_verdict=name in kept.keeps_votes,
        )
        for name, policy in query_policies(application).items()
    }


def _still_to_be_heard(kept: Kept, judged: Judged) -> frozenset[str]:
    """Return the queries whose votes are still those of the driver before: their new run has not begun yet."""
    return frozenset(
        name
        for name, (_, latches) in judged.items()
        if name in kept.keeps_votes and latches.attempt == kept.latches.get(name, Latches()).attempt
    )


def _verdicts(judged: Judged) -> Mapping[str, Verdict]:
    return {name: verdict for name, (verdict, _) in judged.items()}


def _as_published(
    verdicts: Mapping[str, Verdict], choice: Choice | None, published: ControlDocument | None
) -> Mapping[str, Verdict]:
    """Return the verdicts as the driver is told them: one that stops for a backlog does not hear that it begins.

    Told first, it would plan the one batch that spans the backlog, without the properties that it is stopped for.
    """
    if choice is None or choice.reason is not ConfReason.RESTARTING or not choice.conf.in_force:
        return verdicts
    before = {} if published is None else published.queries
    known = {name for name, query in before.items() if query.backlog}
    return {
        name: verdict
        if name in known
        else replace(verdict, published_backlog=False, governed_as_backlog=False)
        for name, verdict in verdicts.items()
    }


def _with_choice(step: Step, choice: Choice | None, seen: Seen) -> Step:
    """Return the step with the earlier of the two times at which there is something to do.

    Where a verdict restarts the driver, and no change of the resource, it says so.
    """
    if choice is None:
        return step
    is_for_verdict = step.reason is StepReason.REVISION_CHANGED and choice.reason is ConfReason.RESTARTING
    message = sentence(choice, seen) if is_for_verdict else step.message
    times = [time for time in (step.until, choice.until) if time is not None]
    return replace(step, message=message, until=min(times, default=None))


def _desired(application: SparkApplication, seen: Seen, launch: Launch, words: Words) -> Desired:
    spec = application.spec
    return Desired(
        revision=launch.revision,
        suspended=spec.suspend,
        words=words,
        restart=restart_policy(spec.restart),
        grace_period_seconds=spec.stop.grace_period.total_seconds(),
        ttl_seconds=in_seconds(spec.ttl_after_finished),
        deletion_asked_at=seen.deletion_asked_at,
    )
