"""Which driver a series comes from.

A PodMonitor gives each series the namespace and the name of its pod, and the name of a driver pod says which
application it is and which attempt: `<application>-driver-<attempt>`. So series of an attempt before are never
taken for the present one's, however long Prometheus goes on to answer with them.

One pod may be scraped twice: two PodMonitors select it, or an annotation does as well. Such targets differ in
how they were found (job, instance, endpoint, container), and the one scraped last is used. Targets of one pod
whose other labels contradict each other, say in the cluster, are two drivers, of which none can be preferred.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.adapters.kubernetes.key import Key
from headgate.adapters.prometheus.answer import AnyLabels, Labels, Sample
from headgate.adapters.prometheus.options import LabelNames

_DRIVER = "-driver-"
_HOW_IT_WAS_FOUND = frozenset({"job", "instance", "endpoint", "container"})


class Pod(NamedTuple):
    """A driver pod."""

    namespace: str
    name: str

    @property
    def attempt(self) -> int | None:
        """The attempt that its name tells; `None` for a pod that is no driver."""
        number = self.name.rpartition(_DRIVER)[2]
        return int(number) if _DRIVER in self.name and number.isascii() and number.isdigit() else None

    @property
    def key(self) -> Key:
        """The application that its name tells."""
        return Key(self.namespace, self.name.rpartition(_DRIVER)[0])


@dataclass(frozen=True, slots=True)
class Target:
    """Where the series of a driver come from, and when they were scraped last."""

    key: Key
    attempt: int
    at: float
    """Unix time, by the operator's clock."""
    job: str
    instance: str
    endpoint: str

    def serves(self, labels: Labels) -> bool:
        """Return whether a series of this pod comes from this target."""
        return (
            labels.instance == self.instance and labels.job == self.job and labels.endpoint == self.endpoint
        )


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets that Prometheus has of all drivers."""

    by_pod: Mapping[Pod, Target] = field(default_factory=dict)
    contradictions: Mapping[Pod, str] = field(default_factory=dict)
    """Pods of which there are two, and what tells them apart, in words."""
    unplaced: frozenset[str] = frozenset()
    """Applications of which there are series without the labels that say which pod they come from."""
    evaluated_at: float | None = None
    """Unix time of the query by the server's clock; `None` where there was no series."""


def targets(
    samples: Iterable[Sample[AnyLabels]], watched: Container[Key], names: LabelNames, now: float
) -> Targets:
    """Return the targets of watched applications, from the times at which they were scraped.

    Ages are differences on the server's clock, so it does not matter whether the operator's agrees with it.
    """
    found: dict[Pod, list[tuple[Target, AnyLabels]]] = {}
    unplaced = set()
    evaluated_at = None
    for sample in samples:
        if sample.value is None:
            continue
        evaluated_at, labels = sample.value[0], sample.metric
        pod = Pod(labels.get(names.namespace, ""), labels.get(names.pod, ""))
        if not pod.namespace or not pod.name:
            unplaced.add(labels.get("application", ""))
        elif (attempt := pod.attempt) is not None and (key := pod.key) in watched:
            age = max(0.0, evaluated_at - float(sample.value[1]))
            target = _target(key, attempt, now - age, labels)
            found.setdefault(pod, []).append((target, labels))
    contradictions = {pod: why for pod, ones in found.items() if len(ones) > 1 and (why := _conflict(ones))}
    newest = {pod: _newest(ones) for pod, ones in found.items() if pod not in contradictions}
    return Targets(newest, contradictions, frozenset(unplaced), evaluated_at)


def _target(key: Key, attempt: int, at: float, labels: AnyLabels) -> Target:
    job, instance, endpoint = (labels.get(name, "") for name in ("job", "instance", "endpoint"))
    return Target(key, attempt, at, job, instance, endpoint)


def _newest(ones: list[tuple[Target, AnyLabels]]) -> Target:
    return max((target for target, _ in ones), key=lambda one: (one.at, one.job, one.instance, one.endpoint))


def _conflict(ones: list[tuple[Target, AnyLabels]]) -> str | None:
    """Return what tells two drivers of one name apart; `None` if it is one driver, scraped twice.

    A label that only one of the targets has tells how it was found, not what it is.
    """
    names = sorted({name for _, labels in ones for name in labels} - _HOW_IT_WAS_FOUND)
    values = {name: {labels[name] for _, labels in ones if name in labels} for name in names}
    different = (f"{name}: {', '.join(sorted(values[name]))}" for name in names if len(values[name]) > 1)
    return "; ".join(different) or None
