"""An application that is edited from one spec to the next, and what holds after each edit.

The kubelet and the driver do what they are told at once. An edit is judged by the state that a fresh application with
the same spec comes to: how a spec was come by leaves no trace but numbers of attempts and generations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

from headgate.adapters.kubernetes.client import Manifest
from headgate.adapters.kubernetes.names import CONTROL, REVISION
from headgate.adapters.kubernetes.pods import is_ended
from headgate.api.validation import validate
from headgate_contract import ControlDocument, Refusal
from headgate_contract.receiving import read
from support.every_field import Field, whole, with_value
from support.fake_cluster import FakeCluster
from support.operating import KEY, Operation

STEPS_AT_MOST = 60
STEP_SECONDS = 15.0
LEFT_ALONE = 4
"""Looks in which nothing is written any more, with no event between them. The last ones are half an hour apart."""
LINEAGE = re.compile(r'(?<="HEADGATE_LINEAGE", "value": ")[^"]*')
"""It names the uid of the application."""
NUMBERS = re.compile(
    r"(?P<of>\bflights-driver-|\battempt |podNamePrefix=flights-|headgate.dev/attempt\\*\": \\*\"|"
    r"headgate.dev/attempt\\*\":\\*\")\d+"
)
"""Where texts have the number of an attempt."""
OF_THE_WAY = {
    "attempt",
    "observedGeneration",
    "controlGeneration",
    "acknowledgedGeneration",
    "lastTransitionTime",
    "changes",
    "since",
    "memory",
}
"""Members of a status that say when and how often, not what."""


HELD_IN_BACKLOG = frozenset(
    {
        "spec.suspend",
        "spec.queries[].name",
        "spec.queries[].sources[].name",
        "spec.queries[].sources[].paused",
    }
)
"""Fields by which nobody can tell any more whether there is a backlog: the verdict before is held then
(`metrics.onOutage`), and a fresh application has none."""


class LawError(AssertionError):
    """An edit after which a law does not hold; the message says which."""


@dataclass(frozen=True)
class Rested:
    """What an application has come to, without what tells how."""

    status: Mapping[str, Any]
    pods: tuple[Mapping[str, Any], ...]
    """Spec, labels and annotations of each."""
    documents: tuple[Mapping[str, Any], ...]
    """What drivers are told."""
    uids: tuple[str, ...] = ()
    """Of the pods."""

    @property
    def ready(self) -> tuple[str, str]:
        """Reason and message of the condition `Ready`."""
        found = next(one for one in self.status["conditions"] if one["type"] == "Ready")
        return found["reason"], found["message"]

    @property
    def revisions(self) -> list[str]:
        """The hash over what each driver was started with."""
        return [pod["annotations"][REVISION] for pod in self.pods]


@dataclass
class Edited:
    """One application on a cluster in memory, with the operator that serves it."""

    is_behind: bool = False
    """Whether the driver reports a backlog, or that all is read."""
    operator: Operation = field(default_factory=Operation)
    edits: int = 0
    _reported: object = None

    def declare(self, resource: Manifest) -> None:
        """A person applies the resource, and all come to rest."""
        self.operator.cluster.declare(resource)
        self.edits += 1
        self.settle()

    def settle(self) -> None:
        """Let kubelet, driver and operator act until nobody does any more, and see that it stays so."""
        calm = 0
        for _ in range(STEPS_AT_MOST):
            before = len(self.cluster.calls), len(self.cluster.events)
            self.cluster.now = max(
                self.cluster.now + STEP_SECONDS, self.operator.due.get(KEY, 0.0) if calm else 0.0
            )
            self._act()
            is_calm = before == (len(self.cluster.calls), len(self.cluster.events))
            calm = calm + 1 if is_calm else 0
            if calm == LEFT_ALONE:
                return
        raise LawError(f"L6: it does not come to rest: {self.cluster.calls[-12:]}")

    def _act(self) -> None:
        self.operator.reconcile_what_is_due()
        for pod in self.cluster.pods():
            name, metadata = pod["metadata"]["name"], pod["metadata"]
            if "deletionTimestamp" in metadata:
                self.cluster.running.discard(metadata["uid"])
                self.cluster.pod_ends(name, 0)
            elif not is_ended(pod) and metadata["uid"] not in self.cluster.running:
                self.cluster.pod_runs(name)
        alive = {pod["metadata"]["uid"] for pod in self.cluster.pods() if not is_ended(pod)}
        if len(alive | self.cluster.running) > 1:
            raise LawError(f"L7: {len(alive)} drivers at once")
        if alive:
            self._driver_reports()

    def _driver_reports(self) -> None:
        """The driver has what it was told in force; that it says something new is seen when it is asked next."""
        metrics = self.operator.measurements.metrics(KEY)
        documents = [document for document in self.documents() if document is not None]
        metrics.acknowledges(documents[0].generation if documents else 0)
        lag, pending = (36_000.0, 9e6) if self.is_behind else (1.0, 0.0)
        found = {"watermark_lag_seconds": lag, "pending_records": pending}
        metrics.reports("delays", sources={"flights": found, "history": found})
        if sorted(map(repr, metrics.values)) != self._reported:
            self._reported = sorted(map(repr, metrics.values))
            self.operator.due[KEY] = self.cluster.now

    def documents(self) -> list[Any]:
        """Return what each pod is told."""
        found = [read(pod["metadata"]["annotations"][CONTROL]) for pod in self.cluster.pods()]
        if refused := [one for one in found if isinstance(one, Refusal)]:
            raise LawError(f"L5: the driver refuses its document: {refused[0]}")
        return found

    @property
    def cluster(self) -> FakeCluster:
        return self.operator.cluster

    @property
    def pods(self) -> list[str]:
        """Uids of the drivers that live."""
        return [pod["metadata"]["uid"] for pod in self.cluster.pods() if not is_ended(pod)]

    def rested(self) -> Rested:
        """Return what it has come to."""
        pods = [pod for pod in self.cluster.pods() if not is_ended(pod)]
        return Rested(
            status=_numberless(_what(self.operator.status())),
            pods=tuple(_numberless(_shown(pod)) for pod in pods),
            documents=tuple(map(told, self.documents())),
            uids=tuple(pod["metadata"]["uid"] for pod in pods),
        )


def fresh(resource: Manifest, *, is_behind: bool = False) -> Rested:
    """Return what an application comes to that is declared so from the beginning."""
    return _declared(resource, is_behind=is_behind).rested()


def _declared(resource: Manifest, *, is_behind: bool) -> Edited:
    edited = Edited(is_behind)
    edited.declare(resource)
    return edited


def check(resource: Manifest, before: Rested, after: Rested, ideal: Rested) -> None:
    """Raise `LawError` unless an edit to `resource` has led to where a fresh application comes to by itself.

    That is `ideal`. A spec that nobody can act on leaves alone what runs.
    """
    reason, message = after.ready
    _demand(
        is_taken(resource) or reason == "InvalidSpec", f"a spec that rules forbid is acted on: {after.ready}"
    )
    if ideal.ready[0] == "InvalidSpec":
        _demand(reason == "InvalidSpec" and message, f"a spec that is refused is not told of: {after.ready}")
        _demand(not ideal.uids, "a spec that is refused starts a driver")
        _demand(after.uids == before.uids, "a spec that is refused ends or starts a driver")
        _demand(after.documents == before.documents, "a spec that is refused reaches the driver")
        return
    _same("status", after.status, ideal.status)
    _same("what the driver is told", after.documents, ideal.documents)
    _same("revision", after.revisions, ideal.revisions)
    if after.uids == before.uids:
        _same("the start of a driver that was kept", before.revisions, ideal.revisions)
    else:
        _same("pod", after.pods, ideal.pods)


def walk(of: Field, kinds: Sequence[str], *, is_behind: bool = False) -> int:
    """Set one field of an application that has all of them to one value after the other, and back after each.

    `kinds` are names of its values. Returns how many edits that were. Raises `LawError`, with the edit that broke
    it.
    """
    values, begun = of.values(), whole()
    ideal = _fresh_whole(is_behind)
    edited = _AT_THE_WHOLE.pop(is_behind, None) or _declared(begun, is_behind=is_behind)
    before, edits_before = edited.rested(), edited.edits
    for kind in kinds:
        changed = with_value(begun, of.path, values[kind])
        edits = ((changed, fresh(changed, is_behind=is_behind), kind), (begun, ideal, f"back from {kind}"))
        for resource, there, name in edits:
            try:
                edited.declare(resource)
                check(resource, before, after := edited.rested(), there)
            except Exception as error:
                raise LawError(f"{of}: {name}: {error!r}") from error
            before = after
    _AT_THE_WHOLE[is_behind] = edited
    return edited.edits - edits_before


_AT_THE_WHOLE: dict[bool, Edited] = {}
"""By whether it is behind, an application that walks have led back to where they began; the next goes on with it."""


@cache
def _fresh_whole(is_behind: bool) -> Rested:
    return fresh(whole(), is_behind=is_behind)


def _demand(holds: object, otherwise: str) -> None:
    if not holds:
        raise LawError(f"L6: {otherwise}")


def _same(what: str, found: Any, ideal: Any) -> None:
    _demand(
        found == ideal, f"{what} is not that of a fresh application: {'; '.join(differences(found, ideal))}"
    )


def differences(found: Any, ideal: Any, path: str = "") -> list[str]:
    """Return where two documents differ, a line for each place."""
    if isinstance(found, Mapping) and isinstance(ideal, Mapping):
        names = [*found, *(name for name in ideal if name not in found)]
        return [
            line for name in names for line in differences(found.get(name), ideal.get(name), f"{path}.{name}")
        ]
    if isinstance(found, list | tuple) and isinstance(ideal, list | tuple) and len(found) == len(ideal):
        pairs = enumerate(zip(found, ideal, strict=True))
        return [line for at, (one, other) in pairs for line in differences(one, other, f"{path}[{at}]")]
    return [] if found == ideal else [f"{path}: {found!r:.300} is {ideal!r:.300} there"]


def _what(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _what(child) for name, child in value.items() if name not in OF_THE_WAY}
    return [_what(child) for child in value] if isinstance(value, list) else value


def _numberless(value: Any) -> Any:
    return json.loads(NUMBERS.sub(r"\g<of>N", LINEAGE.sub("", json.dumps(value, sort_keys=True))))


def told(document: ControlDocument) -> dict[str, Any]:
    """Return what a driver is told. By which vote a backlog began stays what it was, and is left out."""
    queries = {name: replace(query, reason=None) for name, query in document.queries.items()}
    return asdict(replace(document, generation=0, queries=queries))


def _shown(pod: Manifest) -> Mapping[str, Any]:
    metadata = pod["metadata"]
    annotations = {name: value for name, value in metadata["annotations"].items() if name != CONTROL}
    return {"labels": metadata["labels"], "annotations": annotations, "spec": pod["spec"]}


def is_taken(resource: Manifest) -> bool:
    """Return whether the resource may be declared, by the rules that CRD and operator have in common."""
    return validate(resource)[0] is not None
