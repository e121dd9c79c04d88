"""A person at a terminal: what kubectl shows of an application, as text, and what is done to it by kubectl alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from support.cluster import Cluster
from support.waiting import wait_until

T = TypeVar("T")

SECONDS = 180.0
"""A driver starts in twenty on a machine that has nothing else to do."""
JVM_STARTED = """
import pathlib
for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
    name, _, rest = status.read_text().partition("(")[2].rpartition(")")
    if name == "java":
        print(rest.split()[19])
"""


class Said(NamedTuple):
    """A condition, or an Event: `kind` is its status, or its type."""

    kind: str
    reason: str
    message: str


class Life(NamedTuple):
    """What tells one run of a driver from every other: the same pod, the same container, the same JVM."""

    uid: str
    restarts: int
    jvm_started: str
    """In ticks of the kernel since its start."""


class Person:
    """Somebody who looks after one application."""

    def __init__(self, cluster: Cluster, namespace: str, name: str):
        self._cluster = cluster
        self._namespace = namespace
        self._name = name

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl in the namespace."""
        return self._cluster.kubectl("-n", self._namespace, *arguments, **options)

    def columns(self) -> dict[str, str]:
        """Return what `kubectl get hgapp -o wide` shows, by the names of the columns."""
        heads, values = self.kubectl("get", "hgapp", self._name, "-o", "wide").splitlines()
        starts = [(match.group(), match.start()) for match in re.finditer(r"\S+", heads)]
        ends = [start for _, start in starts[1:]] + [None]
        return {name: values[start:end].strip() for (name, start), end in zip(starts, ends, strict=True)}

    def sees(self, **columns: str) -> dict[str, str]:
        """Wait until the columns show this, and return all of them.

        kubectl is asked again where the resource is another one than before.
        """
        wanted, before = {name.upper(): value for name, value in columns.items()}, ""

        def look() -> dict[str, str] | None:
            nonlocal before
            version = self.application()["metadata"]["resourceVersion"]
            if version == before:
                return None
            before = version
            return shown if wanted.items() <= (shown := self.columns()).items() else None

        return self.waits_for(look, f"columns {wanted}")

    def condition(self, kind: str) -> Said:
        """Return a condition."""
        conditions = self.application()["status"]["conditions"]
        (found,) = (condition for condition in conditions if condition["type"] == kind)
        return Said(found["status"], found["reason"], found["message"])

    def reads(self, kind: str, status: str) -> Said:
        """Wait until a condition has a status, and return it."""
        return self.waits_for(
            lambda: said if (said := self.condition(kind)).kind == status else None, f"{kind}={status}"
        )

    def events(self) -> list[Said]:
        """Return the Events of the application, the oldest first."""
        of_it = f"fieldSelector=involvedObject.kind=SparkApplication,involvedObject.name={self._name}"
        found = self._read(f"api/v1/namespaces/{self._namespace}/events?{of_it}")["items"]
        ordered = sorted(found, key=lambda event: event["lastTimestamp"] or event["eventTime"])
        return [Said(event["type"], event["reason"], event["message"]) for event in ordered]

    def hears(self, reason: str, message: str) -> Said:
        """Wait for an Event of that reason whose message matches a pattern, and return it."""
        return self.waits_for(
            lambda: next(
                (e for e in self.events() if e.reason == reason and re.search(message, e.message)), None
            ),
            f"an Event {reason}: {message}",
        )

    def application(self) -> dict[str, Any]:
        """Return the resource."""
        of_ours = f"apis/headgate.dev/v1alpha1/namespaces/{self._namespace}/sparkapplications"
        return self._read(f"{of_ours}/{self._name}")

    def pods(self, role: str) -> list[dict[str, Any]]:
        """Return the pods of its `driver` or of its `executor`s."""
        selector = f"labelSelector=headgate.dev/application={self._name},headgate.dev/role={role}"
        items: list[dict[str, Any]] = self._read(f"api/v1/namespaces/{self._namespace}/pods?{selector}")[
            "items"
        ]
        return items

    def driver(self, attempt: int) -> dict[str, Any]:
        """Return the driver's pod of an attempt once that runs and is ready; there is no other one then."""
        self.sees(state="Running", attempt=str(attempt))
        (pod,) = self.pods("driver")
        assert pod["metadata"]["name"] == f"{self._name}-driver-{attempt}"
        return pod

    def has_executors(self, count: int) -> None:
        """Wait until so many executors run, and no other one is there."""
        self.waits_for(
            lambda: [pod["status"]["phase"] for pod in self.pods("executor")] == ["Running"] * count,
            f"{count} executors",
        )

    def life(self, driver: dict[str, Any]) -> Life:
        """Return which run of a driver this is."""
        name = driver["metadata"]["name"]
        (container,) = self._cluster.get("pod", name, "-n", self._namespace)["status"]["containerStatuses"]
        started = self.kubectl("exec", name, "--", "python3", "-c", JVM_STARTED)
        return Life(driver["metadata"]["uid"], container["restartCount"], started.strip())

    def waits_for(self, ask: Callable[[], T | None], what: str) -> T:
        """Return the first truthy answer; without one in time, fail with all that could tell why."""
        try:
            return wait_until(ask, what, SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._everything()}") from None

    def _read(self, path: str) -> dict[str, Any]:
        """Return what is there, without a process: whoever waits looks again and again."""
        found = self._cluster.read(f"/{path}")
        assert found is not None, f"nothing is at {path}"
        return found

    def _everything(self) -> str:
        """Return all of it, what is read first at the beginning: a long report is cut."""
        application = self.application()
        status = json.dumps(application.get("status"), indent=1)
        events = "\n".join(f"{event.kind} {event.reason}: {event.message}" for event in self.events())
        pods = self.kubectl("get", "pods", "-o", "wide")
        labels = f"headgate.dev/application={self._name},headgate.dev/role=driver"
        logs = self.kubectl("logs", "-l", labels, "--tail=40", "--ignore-errors")
        spec = json.dumps(application["spec"], indent=1)
        return f"{pods}\n{status}\n{events}\n{logs}\n{spec}"
