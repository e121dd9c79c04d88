"""An application as the API server has it, read with care: the object may be older or newer than this command."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from headgate.adapters.kubernetes.names import MANAGER
from headgate.api.annotations import SourceId, paused_sources
from headgate.api.duration import in_seconds
from headgate.api.status import ConditionStatus, SparkApplicationStatus
from headgate.decision.driver import State


class ClusterApplication:
    """One object, and its status as far as this version can read it."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        self.manifest = manifest
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")
        self.annotations: Mapping[str, str] = metadata.get("annotations") or {}
        self.generation: int | None = metadata.get("generation")
        """Counts the changes of `spec`."""
        self._spec: Mapping[str, Any] = manifest.get("spec") or {}
        self.is_suspended = self._spec.get("suspend") is True
        self.metrics_source: str = (self._spec.get("metrics") or {}).get("source", "Prometheus")
        """Who is asked for its metrics: `Prometheus` or `Driver`."""
        self.spark_version: str | None = self._spec.get("sparkVersion")
        """Which Spark `spec` expects."""
        self.status = SparkApplicationStatus()
        self.unreadable: str | None = None
        """What in the status this version does not know; the status is then empty."""
        try:
            self.status = SparkApplicationStatus.model_validate_json(json.dumps(manifest.get("status") or {}))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            self.unreadable = f"status.{'.'.join(map(str, first['loc']))}: {first['msg']}"
        self.state = self.status.state
        """Where the driver is in its life."""

    @property
    def is_seen(self) -> bool:
        """Whether the status speaks of `spec` as it is now."""
        observed = self.status.observed_generation
        return self.generation is not None and observed is not None and observed >= self.generation

    @property
    def created_at(self) -> datetime | None:
        text = self.manifest["metadata"].get("creationTimestamp")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def status_written_at(self) -> datetime | None:
        """When the operator wrote the status last, as the API server noted it."""
        entries = self.manifest["metadata"].get("managedFields") or ()
        times = (
            entry["time"]
            for entry in entries
            if entry.get("subresource") == "status" and entry.get("manager") == MANAGER and "time" in entry
        )
        return max(map(datetime.fromisoformat, times), default=None)

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(query["name"] for query in self._spec.get("queries") or ())

    @property
    def sources(self) -> tuple[SourceId, ...]:
        return tuple((query, source["name"]) for query, source in self._sources())

    @property
    def paused_by_declaration(self) -> frozenset[SourceId]:
        paused = ((query, source) for query, source in self._sources() if source.get("paused") is True)
        return frozenset((query, source["name"]) for query, source in paused)

    @property
    def paused_by_annotation(self) -> frozenset[SourceId]:
        return paused_sources(self.annotations)

    def _sources(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for query in self._spec.get("queries") or ():
            for source in query.get("sources") or ():
                yield query["name"], source


_TRANSITIONS: Final = frozenset({State.PENDING, State.STARTING, State.STOPPING})


def worst_first(applications: Iterable[ClusterApplication]) -> list[ClusterApplication]:
    """Return the applications in the order in which they deserve a look.

    Of those in one place the largest lag comes first, and what is not known counts as nothing.
    """

    def urgency(application: ClusterApplication) -> tuple[int, float, str, str]:
        lags = (in_seconds(query.watermark_lag) or 0.0 for query in application.status.queries)
        return _place(application), -max(lags, default=0.0), application.namespace, application.name

    return sorted(applications, key=urgency)


def _place(application: ClusterApplication) -> int:
    """Return the place of the first of these that is so; what is none of them is at rest: suspended or completed."""
    state, queries = application.state, application.status.queries
    is_running = state is State.RUNNING
    in_backlog = is_running and any(query.backlog for query in queries)
    checks = (
        state is State.FAILED
        or application.status.says("Stalled", ConditionStatus.TRUE),  # waits for a person
        state is State.BACKING_OFF,  # its driver ended in failure and is tried again
        application.unreadable is not None,
        state is None,  # no operator has written a status
        in_backlog and any(query.eta == "never" for query in queries),
        is_running and application.status.says("MetricsAvailable", ConditionStatus.FALSE),
        in_backlog,
        state in _TRANSITIONS,
        is_running,
    )
    return checks.index(True) if True in checks else len(checks)
