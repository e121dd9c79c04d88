"""What one process remembers of an application between two turns, beyond what is in the cluster.

All of it can be lost: a process that starts has none of it, reads the memory from the status, and goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.manifests import script_path
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.api.application import SparkApplication
from headgate.api.finding import Severity
from headgate.api.validation import validate
from headgate.decision.driver import Obstacle
from headgate.reconcile.memory import LoopMemory
from headgate_contract import ControlDocument


@dataclass(frozen=True, slots=True)
class RefusedSpec:
    """A resource that the API server let through, and that cannot be acted on."""

    message: str


Declared = SparkApplication | RefusedSpec


@dataclass(slots=True)
class Record:
    """One application, by its uid: one of the same name that is created later starts with nothing."""

    uid: str
    memory: LoopMemory | None = None
    staged: ControlDocument | None = None
    """The control document of a driver that is not there yet."""
    refusal: Obstacle | None = None
    """Why the API server does not take the driver's objects."""
    watched: SparkApplication | None = None
    """What the metrics are read for."""
    acted_on: SparkApplication | None = None
    """What the last turn that was carried out went by."""
    status: Mapping[str, Any] | None = None
    """The application's status, with the memory in it, as it was read or written last."""
    is_surprised: bool = False
    """Whether the turn under way has learned what it was not decided on."""
    _declared: Declared | None = None
    _declared_by: tuple[Any, ...] = ()

    def doubt(self) -> None:
        """Read the memory anew before the next turn: the cluster has another one than was thought."""
        self.memory = None

    def declared(self, manifest: Manifest, defaults: DriverDefaults) -> Declared:
        """Return what the resource declares; parsed again only where it has changed."""
        metadata = manifest["metadata"]
        mark = (metadata["generation"], metadata.get("annotations"))
        if self._declared is None or mark != self._declared_by:
            self._declared, self._declared_by = _parsed(manifest, defaults), mark
        return self._declared


def _parsed(manifest: Manifest, defaults: DriverDefaults) -> Declared:
    shown = {name: value for name, value in manifest.items() if name != "status"}
    application, findings = validate(shown)
    if application is None:
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        return RefusedSpec("; ".join(f"{error.path}: {error.message}" for error in errors))
    message = _impossible_here(application, defaults)
    return application if message is None else RefusedSpec(message)


def _impossible_here(application: SparkApplication, defaults: DriverDefaults) -> str | None:
    """Return what a cluster needs and the resource does not say."""
    spec = application.spec
    if spec.image is None and defaults.image is None:
        return "spec.image: is not set, and the operator has no default image; name the image of the job"
    path = script_path(spec.main.file)
    if not path.startswith("/"):
        return (
            f"spec.main.file: {spec.main.file} is not a file of the image; name it as local:///opt/app/job.py"
        )
    return None


def stand_in(manifest: Manifest) -> SparkApplication:
    """Return an application of which nothing is known but its name: enough to stop its driver."""
    metadata: Mapping[str, Any] = manifest["metadata"]
    shown = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {name: metadata[name] for name in ("name", "namespace", "generation", "uid")},
        "spec": {"main": {"file": "/"}, "suspend": True},
    }
    return SparkApplication.model_validate(shown)
