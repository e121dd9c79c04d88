"""What one process remembers of an application between two reconciles, beyond what is in the cluster.

All of it can be lost: a process that starts has none of it, reads the memory from the status, and goes on.

It is kept packed: for ten thousand applications the models of their specs and statuses would be a gigabyte. Judging
a resource, which takes longer than unpacking it, is done once.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from pydantic import ValidationError

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.executor_pods import ExecutorLook
from headgate.adapters.kubernetes.manifests import script_path
from headgate.adapters.kubernetes.names import FINALIZER
from headgate.adapters.kubernetes.packing import (
    json_bytes,
    packed_json,
    packed_value,
    unpacked_json,
    unpacked_value,
)
from headgate.adapters.kubernetes.properties import LARGEST_CONF, DriverDefaults
from headgate.adapters.kubernetes.refusals import Trouble
from headgate.api.application import Metadata, SparkApplication, Stop, application_schema
from headgate.api.finding import Finding, Severity
from headgate.api.schema import Schema, without_empty, without_filled_in
from headgate.api.validation import too_large, validate_given
from headgate.decision.lifecycle import RELEASE_SECONDS
from headgate.reconcile.memory import LoopMemory
from headgate_contract import ControlDocument
from headgate_contract.foreign import scrubbed


@dataclass(frozen=True, slots=True)
class RefusedSpec:
    """A resource that the API server let through, and that cannot be acted on.

    `message` quotes what is in it, but for what looks like a secret.
    """

    message: str

    @property
    def digest(self) -> str:
        """What tells it from another one."""
        return digest_of(self.message).hex()


Declared = SparkApplication | RefusedSpec
Mark = tuple[int, bytes]
"""Generation, and digest of the annotations."""


@dataclass(slots=True)
class ApplicationRecord:
    """One application, by its uid: one of the same name that is created later starts with nothing."""

    uid: str
    refusal: Trouble | None = None
    """Why the API server does not take the driver's objects."""
    untold: Trouble | None = None
    """Why the API server does not take the control document of the driver that runs."""
    executors: ExecutorLook = field(default_factory=ExecutorLook)
    """What was seen of its executors, while there are too few."""
    watched: Mark | None = None
    """The mark of what the metrics are read for."""
    status: bytes | None = None
    """Digest of the application's status, with the memory in it, as it was read or written last."""
    is_surprised: bool = False
    """Whether the reconcile under way has learned what it was not decided on."""
    leaving_since: float | None = None
    """Unix time of the first reconcile that has found it deleted; `None`: it is not, as far as is known."""
    mark: Mark | None = None
    """Generation and annotations of what was declared last: what is told apart by it is judged anew."""
    _memory: bytes | None = None
    _staged: bytes | None = None
    _declared: RefusedSpec | bytes | None = None
    _judged_by: Schema | None = None
    """What the API server knows of a resource, as far as it was known then."""
    _acted_on: tuple[int | None, bytes] | None = None

    @property
    def memory(self) -> LoopMemory | None:
        """What the last reconcile remembered; `None`: it has to be read from the cluster."""
        memory: LoopMemory | None = None if self._memory is None else unpacked_value(self._memory)
        return memory

    @property
    def staged(self) -> ControlDocument | None:
        """The control document of a driver that is not there yet."""
        staged: ControlDocument | None = None if self._staged is None else unpacked_value(self._staged)
        return staged

    def remember(self, memory: LoopMemory, staged: ControlDocument | None) -> None:
        """Keep what the next reconcile begins with; where this one had no document to stage, the one before stays."""
        self._memory = packed_value(memory)
        if staged is not None:
            self._staged = packed_value(staged)

    def doubt(self) -> None:
        """Read the memory anew before the next reconcile: the cluster has another one than was thought."""
        self._memory = None

    def declared(
        self, manifest: Manifest, defaults: DriverDefaults, published: Schema | None = None
    ) -> Declared:
        """Return what the resource declares; judged again only where its spec has changed, or where it was refused
        and the API server is known to have another schema than then (`published`).

        To judge a large one takes a quarter of a second. Annotations are free text, for which nothing is refused.
        """
        metadata = manifest["metadata"]
        before = self.mark
        self.mark = mark = (metadata["generation"], digest_of(metadata.get("annotations")))
        is_refused_by_another = isinstance(self._declared, RefusedSpec) and self._judged_by is not published
        if self._declared is None or before is None or mark[0] != before[0] or is_refused_by_another:
            shown = {name: value for name, value in manifest.items() if name != "status"}
            self._judged_by = published
            if findings := too_large(shown):
                self._declared = refused = _refused(findings)
                return refused
            given = without_empty(shown, application_schema())
            if published is not None:
                given = without_filled_in(given, application_schema(), published)
            declared = _parsed(given, defaults)
            self._declared = declared if isinstance(declared, RefusedSpec) else packed_json(given)
            return declared
        if isinstance(self._declared, RefusedSpec):
            return self._declared
        if mark != before:
            given = unpacked_json(self._declared)
            given["metadata"] = {**given["metadata"], "annotations": metadata.get("annotations") or {}}
            self._declared = packed_json(given)
        return _unpacked(self._declared)

    def acts_on(self, application: SparkApplication) -> None:
        """Remember that a reconcile was carried out which went by what was declared last."""
        if isinstance(self._declared, bytes):
            self._acted_on = (application.metadata.generation, self._declared)

    def acted_on(self, application: SparkApplication) -> SparkApplication | None:
        """Return what the reconcile before went by: `application` itself where nothing has changed since."""
        if self._acted_on is None:
            return None
        generation, packed = self._acted_on
        return application if generation == application.metadata.generation else _unpacked(packed)


def digest_of(document: object) -> bytes:
    """Return what tells one JSON document from another."""
    return hashlib.blake2b(msgspec.json.encode(document, order="deterministic"), digest_size=16).digest()


def _unpacked(packed: bytes) -> SparkApplication:
    return SparkApplication.model_validate_json(json_bytes(packed), by_alias=True, by_name=False)


def _parsed(given: Manifest, defaults: DriverDefaults) -> Declared:
    application, findings = validate_given(given)
    if application is None:
        return _refused(findings)
    message = _impossible_here(application, defaults)
    return application if message is None else RefusedSpec(scrubbed(message))


def _refused(findings: Iterable[Finding]) -> RefusedSpec:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    return RefusedSpec(scrubbed("; ".join(f"{error.path}: {error.message}" for error in errors)))


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
    set_there = {**spec.spark_conf, **spec.during_backlog.spark_conf}
    if (size := len(msgspec.json.encode(set_there))) > LARGEST_CONF:
        return (
            f"spec.sparkConf: has {size} bytes with duringBacklog.sparkConf, and a driver takes {LARGEST_CONF} at "
            "most; put what is long into files of the image"
        )
    return None


def minimal_application(manifest: Manifest) -> SparkApplication:
    """Return an application of which little is known but its name: enough to stop its driver.

    Whatever the name is: one that a definition of another version has let through has to go as well.
    """
    metadata: Mapping[str, Any] = manifest["metadata"]
    shown = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {"name": "any"},
        "spec": {"main": {"file": "/"}, "suspend": True, "stop": _stop(manifest)},
    }
    named = Metadata.model_construct(
        **{name: metadata[name] for name in ("name", "namespace", "generation", "uid")}
    )
    return SparkApplication.model_validate(shown).model_copy(update={"metadata": named})


def is_to_stop(manifest: Manifest) -> bool:
    """Return whether a driver is to stop, whatever else is declared: it is deleted or suspended."""
    spec = manifest.get("spec")
    is_suspended = isinstance(spec, Mapping) and spec.get("suspend") is True
    return is_suspended or "deletionTimestamp" in manifest["metadata"]


def _stop(manifest: Manifest) -> dict[str, Any]:
    """Return the grace period that a driver is to have, where that can be read."""
    try:
        declared = {"gracePeriod": manifest["spec"]["stop"]["gracePeriod"]}
        Stop.model_validate(declared)
    except (KeyError, TypeError, ValidationError):
        return {}
    return declared


def is_overdue(manifest: Manifest, leaving_since: float | None, now: float) -> bool:
    """Return whether the application is deleted, and waits for its driver longer than it was to do.

    The wait counts from when somebody was there to end its driver, `leaving_since`.
    """
    if leaving_since is None or FINALIZER not in manifest["metadata"].get("finalizers", ()):
        return False
    grace_seconds = Stop.model_validate(_stop(manifest)).grace_period.total_seconds()
    return now >= leaving_since + grace_seconds + RELEASE_SECONDS
