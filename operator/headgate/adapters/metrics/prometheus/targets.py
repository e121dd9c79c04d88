"""Which driver a series comes from.

A PodMonitor gives each series the namespace and the name of its pod, and the name of a driver pod says which
application it is and which attempt: `<application>-driver-<attempt>`. So series of an attempt before are never
taken for the present one's, however long Prometheus goes on to answer with them. An application that is made anew
under the same name begins with the same attempt again: what was scraped before the other one was gone is not its own.

One pod may be scraped twice: two PodMonitors select it, or an annotation does as well. Such targets differ in
how they were found (job, instance, endpoint, container), and the one scraped last is used. Targets of one pod
whose other labels contradict each other, say in the cluster, are two drivers, of which none can be preferred.
"""

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from headgate.adapters.metrics.prometheus.answer import AnyLabels, Labels, Sample
from headgate.api.labels import driver_name
from headgate.key import Key

_DRIVER_POD = re.compile(r"(.+)-driver-([1-9][0-9]{0,8})")
"""The name of a driver pod, as `labels.driver_name` writes it; whoever sends series may call a pod as they like."""
LONGEST_CONFLICT = 500
"""Characters of what tells two drivers apart."""
_HOW_IT_WAS_FOUND = frozenset({"job", "instance", "endpoint", "container"})


class Run(NamedTuple):
    """One attempt of an application."""

    key: Key
    attempt: int


class Pod(NamedTuple):
    """A driver pod."""

    namespace: str
    name: str

    @classmethod
    def of(cls, key: Key, attempt: int) -> "Pod":
        return cls(key.namespace, driver_name(key.name, attempt))

    @property
    def run(self) -> Run | None:
        """What its name tells; `None` for a pod that is no driver."""
        found = _DRIVER_POD.fullmatch(self.name)
        return None if found is None else Run(Key(self.namespace, found[1]), int(found[2]))


class Target(msgspec.Struct, frozen=True, gc=False):
    """Where the series of a driver come from, and when they were scraped last.

    A struct of msgspec, as scrapes are: a tick of ten thousand drivers makes one of each.
    """

    run: Run
    at: float
    """Unix time, by the operator's clock."""
    job: str
    instance: str
    endpoint: str
    scraped_at: float = 0.0
    """Unix time, by the server's clock: by this one scrape is told from another."""

    def is_of_the_scrape(self, other: "Target") -> bool:
        """Return whether both mean one scrape of one target, whatever the operator's clock said meanwhile."""
        return (
            self.scraped_at == other.scraped_at
            and self.instance == other.instance
            and self.job == other.job
            and self.endpoint == other.endpoint
        )

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


class TargetLabels(msgspec.Struct, frozen=True, gc=False):
    """What the labels of a target say, which is read once: ten thousand of them come at each tick."""

    pod: Pod
    run: Run | None
    """`None`: the pod is no driver."""
    job: str
    instance: str
    endpoint: str
    application: str
    text: bytes
    """All labels, as JSON."""

    @property
    def all(self) -> AnyLabels:
        return _ANY.decode(self.text)


_ANY = msgspec.json.Decoder(AnyLabels)


def target_labels(text: bytes) -> TargetLabels:
    labels = _ANY.decode(text)
    pod = Pod(labels.get("namespace", ""), labels.get("pod", ""))
    return TargetLabels(
        pod=pod,
        run=pod.run,
        job=labels.get("job", ""),
        instance=labels.get("instance", ""),
        endpoint=labels.get("endpoint", ""),
        application=labels.get("application", ""),
        text=text,
    )


def targets(
    samples: Iterable[Sample[TargetLabels]],
    watched: Container[Key],
    now: float,
    oldest: Mapping[Key, float] = MappingProxyType({}),
) -> Targets:
    """Return the targets of watched applications, from the times at which they were scraped.

    `oldest`: what was scraped before that Unix time is of another application of the same name, and left out.
    Ages are differences on the server's clock, so it does not matter whether the operator's agrees with it.
    """
    found: dict[Pod, Target] = {}
    labels_of: dict[Pod, TargetLabels] = {}
    again: dict[Pod, list[tuple[Target, TargetLabels]]] = {}
    unplaced = set()
    evaluated_at = None
    for sample in samples:
        if sample.value is None or not math.isfinite(scraped_at := sample.number):
            continue
        evaluated_at, labels = sample.value[0], sample.metric
        pod, run = labels.pod, labels.run
        if run is None:
            if not pod.namespace or not pod.name:
                unplaced.add(labels.application)
        elif run.key in watched:
            at = now - max(0.0, evaluated_at - scraped_at)
            if at < oldest.get(run.key, -math.inf):
                continue
            target = Target(run, at, labels.job, labels.instance, labels.endpoint, scraped_at)
            if pod in found:
                again.setdefault(pod, [(found[pod], labels_of[pod])]).append((target, labels))
            found[pod], labels_of[pod] = target, labels
    contradictions = {pod: why for pod, ones in again.items() if (why := _conflict(ones))}
    for pod, ones in again.items():
        if pod in contradictions:
            del found[pod]
        else:
            found[pod] = max(
                (target for target, _ in ones), key=lambda one: (one.at, one.job, one.instance, one.endpoint)
            )
    return Targets(found, contradictions, frozenset(unplaced), evaluated_at)


def _conflict(ones: list[tuple[Target, TargetLabels]]) -> str | None:
    """Return what tells two drivers of one name apart; `None` if it is one driver, scraped twice.

    A label that only one of the targets has tells how it was found, not what it is.
    """
    all_labels = [labels.all for _, labels in ones]
    names = sorted({name for labels in all_labels for name in labels} - _HOW_IT_WAS_FOUND)
    values = {name: {labels[name] for labels in all_labels if name in labels} for name in names}
    different = (f"{name}: {', '.join(sorted(values[name]))}" for name in names if len(values[name]) > 1)
    return "; ".join(different)[:LONGEST_CONFLICT] or None
