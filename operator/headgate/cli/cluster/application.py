"""An application as the API server has it, read with care: the object may be older or newer than this command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from pydantic import ValidationError

from headgate.api.annotations import SourceId, paused_sources
from headgate.api.status import Condition, SparkApplicationStatus
from headgate.decision.driver import State

OPERATOR = "headgate"
"""Field manager of the operator."""


@dataclass(frozen=True, slots=True)
class ClusterApplication:
    """One object, and its status as far as this version can read it."""

    manifest: Mapping[str, Any]
    status: SparkApplicationStatus
    unreadable: str | None = None
    """What in the status this version does not know; the status is then empty."""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Read an object of the API."""
        try:
            status = SparkApplicationStatus.model_validate_json(json.dumps(manifest.get("status") or {}))
            return cls(manifest, status)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            return cls(manifest, SparkApplicationStatus(), f"status.{place}: {first['msg']}")

    @property
    def name(self) -> str:
        """Name of the application."""
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """Namespace of the application."""
        namespace: str = self.manifest["metadata"].get("namespace", "")
        return namespace

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the object."""
        annotations: Mapping[str, str] = self.manifest["metadata"].get("annotations") or {}
        return annotations

    @property
    def generation(self) -> int | None:
        """Counts the changes of `spec`."""
        generation: int | None = self.manifest["metadata"].get("generation")
        return generation

    @property
    def is_suspended(self) -> bool:
        """Whether `spec` asks for no driver."""
        return self._spec.get("suspend") is True

    @property
    def metrics_source(self) -> str:
        """Who is asked for its metrics: `Prometheus` or `Driver`."""
        source: str = (self._spec.get("metrics") or {}).get("source", "Prometheus")
        return source

    @property
    def spark_version(self) -> str | None:
        """Which Spark `spec` expects."""
        version: str | None = self._spec.get("sparkVersion")
        return version

    @property
    def is_seen(self) -> bool:
        """Whether the status speaks of `spec` as it is now."""
        observed = self.status.observed_generation
        return self.generation is not None and observed is not None and observed >= self.generation

    @property
    def state(self) -> State | None:
        """Where the driver is in its life."""
        return self.status.state

    @property
    def created_at(self) -> datetime | None:
        """When the object was made."""
        text = self.manifest["metadata"].get("creationTimestamp")
        return None if text is None else datetime.fromisoformat(text)

    @property
    def status_written_at(self) -> datetime | None:
        """When the operator wrote the status last, as the API server noted it."""
        entries = self.manifest["metadata"].get("managedFields") or ()
        times = (
            entry["time"]
            for entry in entries
            if entry.get("subresource") == "status" and entry.get("manager") == OPERATOR and "time" in entry
        )
        return max(map(datetime.fromisoformat, times), default=None)

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type."""
        return next((condition for condition in self.status.conditions if condition.type == type_), None)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries that the resource lists."""
        return tuple(query["name"] for query in self._queries)

    @property
    def sources(self) -> tuple[SourceId, ...]:
        """Sources that the resource lists, with their queries."""
        return tuple((query["name"], source["name"]) for query, source in self._sources())

    @property
    def paused_by_declaration(self) -> frozenset[SourceId]:
        """Sources that `spec` pauses."""
        return frozenset(
            (query["name"], source["name"])
            for query, source in self._sources()
            if source.get("paused") is True
        )

    @property
    def paused_by_annotation(self) -> frozenset[SourceId]:
        """Sources that the annotation pauses."""
        return paused_sources(self.annotations)

    @property
    def _spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.manifest.get("spec") or {}
        return spec

    @property
    def _queries(self) -> list[Mapping[str, Any]]:
        return self._spec.get("queries") or []

    def _sources(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        for query in self._queries:
            for source in query.get("sources") or []:
                yield query, source
