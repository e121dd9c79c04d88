"""By which way a change of each setting takes effect, and what then happens.

Four update modes, from cheap to dear: the operator acts on it by itself; the running job goes by it from its next
batch on; executors come or go; the driver is stopped at the end of a batch and started anew. Only what cannot be
changed in a running driver has the last one.

Every field of the resource is declared here, and a test holds the list to the models: a field without one is a
change that nobody has thought through. `changes` applies it to two resources, `explanation` and the reference page
say it of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class UpdateMode(StrEnum):
    """How a change of a setting takes effect, from cheap to dear."""

    OPERATOR = "Operator"
    """The operator acts on it by itself, and the driver is told nothing."""

    LIVE = "Live"
    """The running job goes by it, without a restart."""

    EXECUTORS = "Executors"
    """Executors come or go, and the queries go on."""

    RESTART = "Restart"
    """The driver is stopped at the end of a batch and started anew."""


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """How changes of one setting take effect."""

    update_mode: UpdateMode
    effect: str
    """What follows, as the end of a sentence."""
    undone: str | None = None
    """What follows where it was removed or set to false, if that is something else."""

    def effect_of(self, after: object) -> str:
        """Return what follows when the setting has become `after`; None is "not set"."""
        is_undone = after is None or after is False
        return self.undone if is_undone and self.undone is not None else self.effect


_RESTARTED: Final = UpdateRule(
    UpdateMode.RESTART, "the driver is stopped at the end of its batch and started anew"
)
_IN_BACKLOG: Final = UpdateRule(
    UpdateMode.RESTART,
    "the driver is restarted at the end of its batch if a query is in backlog, otherwise when one enters it",
)
_SCALED: Final = UpdateRule(UpdateMode.EXECUTORS, "executors are added or removed, and the queries go on")
_SCALED_IN_BACKLOG: Final = UpdateRule(
    UpdateMode.EXECUTORS, "executors are added or removed while a query is in backlog, and the queries go on"
)
_PLANNED: Final = UpdateRule(UpdateMode.LIVE, "in force when the next batch is planned")
_SIZED: Final = UpdateRule(UpdateMode.LIVE, "the next batch is sized by it")
_JUDGED: Final = UpdateRule(UpdateMode.LIVE, "the verdict goes by it from the next look at the metrics")
_STOPPED: Final = UpdateRule(UpdateMode.LIVE, "holds for the next stop")
_PAUSED: Final = UpdateRule(UpdateMode.LIVE, "nothing more is planned from it", "it is read again")
_PUBLISHED: Final = UpdateRule(
    UpdateMode.LIVE,
    "committed positions go to this consumer group from the next commit on",
    "they are no longer published",
)
_LISTED: Final = UpdateRule(
    UpdateMode.LIVE, "governed from its next batch on", "no longer governed: it runs as the job wrote it"
)
_LISTED_SOURCE: Final = UpdateRule(
    UpdateMode.LIVE, "governed from the next batch on", "no longer governed, apart from the size of batches"
)
_NOTED: Final = UpdateRule(
    UpdateMode.OPERATOR, "compared with what the driver reports: the image decides which Spark runs"
)
_SUSPENDED: Final = UpdateRule(
    UpdateMode.OPERATOR, "the driver is stopped at the end of its batch", "the driver is started"
)
_RETRIED: Final = UpdateRule(UpdateMode.OPERATOR, "holds for the next end of the driver")
_KEPT: Final = UpdateRule(UpdateMode.OPERATOR, "counts from when the application finished", "it is kept")
_READ: Final = UpdateRule(UpdateMode.OPERATOR, "holds from the next look at the metrics")

POD_TEMPLATE: Final = "podTemplate"
_TABLE: Final = (
    (_NOTED, "spec: sparkVersion"),
    (_RESTARTED, "spec: image sparkConf"),
    (_RESTARTED, "spec.main: file arguments"),
    (_RESTARTED, f"spec.driver: cores memory scratch {POD_TEMPLATE}"),
    (_RESTARTED, f"spec.executor: cores memory scratch {POD_TEMPLATE}"),
    (_SCALED, "spec.executor: instances"),
    (_RETRIED, "spec.restart: policy maxRetries backoff maxBackoff resetAfter"),
    (_STOPPED, "spec.stop: gracePeriod"),
    (_SUSPENDED, "spec: suspend"),
    (_KEPT, "spec: ttlAfterFinished"),
    (_READ, "spec.metrics: source staleAfter onOutage"),
    (_SCALED_IN_BACKLOG, "spec.duringBacklog.executor: instances"),
    (_IN_BACKLOG, "spec.duringBacklog: sparkConf"),
    (_LISTED, "spec: queries"),
    (_LISTED, "spec.queries: name"),
    (_PLANNED, "spec.queries.checkpoint: interval intervalDuringBacklog minPause"),
    (_SIZED, "spec.queries.batch: targetDuration initialRecords maxGrowth maxRecords"),
    (_JUDGED, "spec.queries.backlog.reentry: above pendingRecordsAbove dwell policy"),
    (_PLANNED, "spec.queries.live: mode batch"),
    (_LISTED_SOURCE, "spec.queries: sources"),
    (_LISTED_SOURCE, "spec.queries.sources: name"),
    (_JUDGED, "spec.queries.sources.backlog: watermarkLag pendingRecords query"),
    (_PLANNED, "spec.queries.sources.backlog: snapshot"),
    (_PLANNED, "spec.queries.sources.rateLimit: recordsPerSecond recordsPerCheckpoint maxBurst"),
    (_PLANNED, "spec.queries.sources.rateLimit.duringBacklog: recordsPerSecond recordsPerCheckpoint"),
    (_PLANNED, "spec.queries.sources.alignment: group maxDrift updateInterval idleAfter"),
    (_PLANNED, "spec.queries.sources.eventTime: column format maxFuture"),
    (_PLANNED, "spec.queries.sources: after"),
    (_PAUSED, "spec.queries.sources: paused"),
    (_PUBLISHED, "spec.queries.sources.kafka: publishGroup"),
)
"""Which fields of an object change in which way."""

SETTINGS: Final[Mapping[str, UpdateRule]] = MappingProxyType(
    {
        f"{owner}.{field}": rule
        for rule, row in _TABLE
        for owner, fields in [row.split(": ")]
        for field in fields.split()
    }
)
"""By path, without the brackets of lists. A list of queries or sources stands for an item that comes or goes."""


def setting_at(path: str) -> UpdateRule:
    """Return how a change at `path` takes effect: of the setting there, or of all below it at once (the dearest).

    `path` is one of the resource, with or without brackets; raises ValueError for one that the resource does not
    have.
    """
    bare = path.replace("[]", "")
    before, template, _ = bare.partition(f".{POD_TEMPLATE}.")  # a template is one, however deep the field
    if found := SETTINGS.get(before + template.rstrip(".")):
        return found
    below = (setting for path, setting in SETTINGS.items() if path.startswith(f"{bare}."))
    return max(below, key=lambda setting: tuple(UpdateMode).index(setting.update_mode))


def update_mode_of(path: str) -> UpdateMode:
    """Return the update mode at `path`, such as `spec.executor.instances`; of an object, the dearest below it."""
    return setting_at(path).update_mode
