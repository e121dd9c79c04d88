"""A driver and what may be done with it: the values of the lifecycle (`lifecycle.py`).

Times are seconds on one clock, that of whoever observes.
"""

from __future__ import annotations  # as text: the codec reads them

from dataclasses import dataclass, field, replace
from enum import StrEnum

from headgate.decision.backoff import RestartPolicy


class State(StrEnum):
    """Where an application's driver stands."""

    PENDING = "Pending"
    """A driver is asked for, and not to be seen yet."""
    STARTING = "Starting"
    """It is to be seen, and does not report yet."""
    RUNNING = "Running"
    STOPPING = "Stopping"
    SUSPENDED = "Suspended"
    BACKING_OFF = "BackingOff"
    COMPLETED = "Completed"
    FAILED = "Failed"

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs, and nothing starts before a person does something."""
        return self in {State.SUSPENDED, State.COMPLETED, State.FAILED}


class StepReason(StrEnum):
    """Why a step is taken."""

    STARTED = "Started"
    """No driver lives, and one is wanted."""
    WAITING_FOR_DRIVER = "WaitingForDriver"
    """The driver has started, and does not report yet."""
    RUNNING = "Running"
    """The driver is as it should be."""
    SUSPENDED = "Suspended"
    """`spec.suspend` is set."""
    REVISION_CHANGED = "RevisionChanged"
    """The driver runs a revision of the resource that cannot be changed live."""
    STOP_REQUESTED = "StopRequested"
    """The driver was asked to stop and has not ended yet."""
    GRACE_PERIOD_EXPIRED = "GracePeriodExpired"
    """The driver was asked to stop and did not end within `stop.gracePeriod`; its batch repeats later."""
    REPLACED = "Replaced"
    """A driver of an attempt before the current one is still alive."""
    BACKING_OFF = "BackingOff"
    """The driver ended, and is started again after a pause."""
    COMPLETED = "Completed"
    """The driver ended with exit code 0, and the policy does not start it again."""
    DRIVER_FAILED = "DriverFailed"
    """The driver failed, and the policy does not start it again."""
    RETRIES_EXHAUSTED = "RetriesExhausted"
    """The driver failed once more than `restart.maxRetries` allows."""
    CHECKPOINT_IN_USE = "CheckpointInUse"
    """Another driver or application has the checkpoint; it is tried again, for that one may be about to end."""
    BATCH_TOO_LARGE = "BatchTooLarge"
    """One batch failed again and again for want of memory; it is planned, and cannot be made smaller."""
    INVALID_SETUP = "InvalidSetup"
    """The driver cannot govern its job with what is installed or set where it starts."""
    DISRUPTED = "Disrupted"
    """Somebody else ends the driver: its node is drained, or its pod was deleted. It comes back."""
    DRIVER_LOST = "DriverLost"
    """The driver was turned away before it ran, and is taken away so that it can be started again."""
    NODE_UNREACHABLE = "NodeUnreachable"
    """The driver should have ended by now, and its node does not say that it has."""
    UNSCHEDULABLE = "Unschedulable"
    """No node has room for the driver."""
    IMAGE_PULL_FAILED = "ImagePullFailed"
    """The driver's image cannot be had."""
    CONTAINER_CONFIG_ERROR = "ContainerConfigError"
    """The driver's container cannot be made as it is described."""
    CONTAINER_CREATING = "ContainerCreating"
    """The driver's container has been in the making for minutes."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """The namespace's quota has no room for the driver."""
    SERVICE_ACCOUNT_MISSING = "ServiceAccountMissing"
    """The driver's service account does not exist."""
    CONTROL_REFUSED = "ControlRefused"
    """The driver runs with what it was told before: what is to be told to it now is not taken."""
    START_REFUSED = "StartRefused"
    """The driver may not be created, for a reason that the message gives."""
    PREDECESSOR_REMAINS = "PredecessorRemains"
    """A pod has to go first: a driver of an application of the same name, or one whose labels were changed."""
    POD_HELD = "PodHeld"
    """A driver from before has ended, and somebody else's finalizer keeps its pod."""
    DELETED = "Deleted"
    """The resource is being deleted: its driver stops first."""
    EXPIRED = "Expired"
    """The application ended longer ago than `ttlAfterFinished`, and is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a driver ended."""

    at: float
    code: int | None = None
    """`None`: nobody knows, for instance when its node is gone."""
    note: str | None = None
    """What else is known of it, for people: the last words of the job, or who ended it."""
    is_disruption: bool = False
    """Whether it was ended from outside: its node went down, or its pod was deleted."""
    oom_killed: bool = False
    """Whether the kernel killed all of it for want of memory, so that nothing of it could note that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What keeps a driver from starting, or from ending, and is for somebody else to remove."""

    reason: StepReason
    message: str
    """What it is, and the remedy."""
    since: float
    forbids_start: bool = False
    """Whether nothing is to be tried while it stands, because trying could do harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDriver:
    """The newest driver that is to be seen, alive or dead."""

    attempt: int
    started_at: float
    revision: str | None = None
    """What it runs; `None`: it does not say, and what was asked for is taken."""
    is_ready: bool = False
    """Whether it reports."""
    is_leaving: bool = False
    """Whether it has been asked to end, by whomever."""
    is_lost: bool = False
    """Whether it was turned away before it ran: nothing of it will ever run, but it is still in the way."""
    obstacle: Obstacle | None = None
    """What it waits for."""
    untold: Obstacle | None = None
    """Why it cannot be given the change."""
    exit: Exit | None = None
    """`None` as long as any part of it may still write to a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Parts of messages that depend on where a driver runs; in a cluster unless whoever runs the loop says otherwise.

    There a person edits a resource, and executors have memory of their own. On one machine they have pressed Ctrl-C,
    type the command again, and have one process.
    """

    stopping: str = "the application is suspended: stopping its driver"
    """While the driver of an application that is suspended has not ended."""
    stopped: str = "the application is suspended; set spec.suspend to false to start it"
    """Once it has."""
    try_again: str = "suspend and resume to try again"
    """What starts an application that has failed for good."""
    comes_back: str = ". It is tried again after a pause"
    """Ends a sentence on what keeps a driver from starting; empty where nobody tries again."""
    memory_setting: str = "executor.memory"
    """What gives tasks more memory."""


IN_A_CLUSTER = Words()


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """What the resource asks for."""

    revision: str
    """Names all that only a restart can change; a running driver of another revision is replaced."""
    suspended: bool = False
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    words: Words = IN_A_CLUSTER
    """What messages say that is not the same everywhere."""
    grace_period_seconds: float = 120.0
    """How long a stop waits for the running batch; 0: whoever asks wants no orderly end."""
    ttl_seconds: float | None = None
    """How long a completed or failed application is kept; `None`: for good."""
    deletion_asked_at: float | None = None
    """When somebody asked for the resource to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What must survive a restart of whoever asks. Kept before the step is carried out."""

    attempt: int = 0
    """The attempt asked for last; 0: none yet."""
    revision: str | None = None
    """What that attempt was asked to run."""
    started_at: float | None = None
    """When its driver was first seen; `None`: it has not been. Its node dates its start by another clock."""
    stop_asked_at: float | None = None
    hindered_since: float | None = None
    """When something in its way was first seen that is dated in the future; `None`: its own date holds."""
    ended: bool = False
    """Whether its end is booked in what follows."""
    ended_at: float | None = None
    """When that was booked."""
    exit_code: int | None = None
    exit_note: str | None = None
    disrupted: bool = False
    """Whether it was ended from outside, or nobody saw it end."""
    planned: bool = False
    """Whether its end counts for nothing: it was asked to stop, or the resource has changed since."""
    oom_killed: bool = False
    """Whether all of it was killed for want of memory."""
    follows_oom_kill: bool = False
    """Whether that is how the attempt before it ended, and what it runs has not changed since."""
    failures: int = 0
    """Failures in a row."""
    disruptions: int = 0
    """Disruptions in a row: they are no failures, but each is followed by a longer pause than the last."""
    retry_at: float | None = None
    locked_out_since: float | None = None
    """Since when each attempt has found its checkpoint in use; `None`: the last one did not."""

    def __post_init__(self) -> None:
        for name in ("attempt", "failures", "disruptions"):
            if (count := getattr(self, name)) < 0:
                raise ValueError(f"{name}: expected at least 0, got {count}")

    def forgiven(self) -> History:
        """Return it where its end counts no more, nor what came before: a person has seen to it, or asked for it."""
        return replace(self, planned=True, failures=0, disruptions=0, retry_at=None, locked_out_since=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a driver, once nothing is left of the one before; asked twice for an attempt, start one."""

    attempt: int
    revision: str
    follows_oom_kill: bool = False
    """Whether all of the attempt before it was killed for want of memory: the driver holds it against its batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Ask the driver to stop at the next batch boundary; asking again changes nothing."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End the driver at once."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do nothing for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Do nothing more until the resource changes; what is left of the driver stays, for its logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Let go of the resource, whose deletion waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the resource: it has been kept for as long as it asked for."""


Action = Start | Stop | Kill | Wait | Finish | Release | Remove


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next. Keep `history` first, then carry out `action`."""

    state: State
    action: Action
    reason: StepReason
    message: str
    history: History
    until: float | None = None
    """When there is something to do even if nothing is heard before."""
    needs_help: bool = False
    """Whether it goes on only once somebody has done something."""
