"""A loop over fake ports that a test drives by hand, and resources to drive it with."""

from __future__ import annotations

from typing import Any

from headgate.api.application import SparkApplication
from headgate.api.validation import validate
from headgate.reconcile.loop import Outcome, recall, reconcile
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.ports import WritePolicy
from headgate_contract import metrics as names
from headgate_contract.metrics import Metric
from support.fakes import FakeWorld

START = 1_700_000_000.0


def application(generation: int = 1, **spec: Any) -> SparkApplication:
    """One query `delays` with the source `flights`; keywords replace members of `spec`."""
    content = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "flights", "generation": generation},
        "spec": {
            "main": {"file": "job.py"},
            "queries": [query()],
            **spec,
        },
    }
    accepted, findings = validate(content)
    assert accepted is not None, findings
    return accepted


def query(**members: Any) -> dict[str, Any]:
    """The declaration of the query `delays`; keywords replace its members."""
    return {
        "name": "delays",
        "checkpoint": {"interval": "5s", "intervalDuringBacklog": "2m"},
        "sources": [source()],
        **members,
    }


def source(**members: Any) -> dict[str, Any]:
    """The declaration of the source `flights`; keywords replace its members."""
    return {"name": "flights", "backlog": {"watermarkLag": "5m", "pendingRecords": 1_000_000}, **members}


class Loop:
    """Reconciles, a second each time. `restart` forgets everything that is not in the store."""

    def __init__(
        self,
        world: FakeWorld | None = None,
        declared: SparkApplication | None = None,
        write_policy: WritePolicy | None = None,
    ) -> None:
        self.world = world or FakeWorld(write_policy=write_policy or WritePolicy())
        self.application = declared or application()
        self.now = START
        self.complaints: list[str] = []
        self.memory: LoopMemory = recall(self.world.ports, self.complaints.append)

    def declare(self, **spec: Any) -> None:
        """A person changes the resource, which is counted."""
        self.application = application((self.application.metadata.generation or 0) + 1, **spec)

    def reconcile(self, seconds: float = 1.0) -> Outcome:
        self.now += seconds
        outcome = reconcile(self.application, self.world.ports, self.memory, self.now, jitter=0.5)
        self.memory = outcome.memory
        return outcome

    def restart(self) -> None:
        self.memory = recall(self.world.ports, self.complaints.append)

    def run_until_running(self) -> Outcome:
        """Start the driver and let it report; it acknowledges whatever is published."""
        self.reconcile()
        self.world.drivers.becomes_ready()
        return self.acknowledged_reconcile()

    def acknowledged_reconcile(self, seconds: float = 1.0) -> Outcome:
        if (published := self.world.controls.published()) is not None:
            self.world.metrics.acknowledges(published.generation)
        return self.reconcile(seconds)


def says(
    loop: Loop, metric: Metric, source: str, query: str = "delays", value: float = 1.0, **detail: str
) -> None:
    """The driver reports one more series, which names something."""
    labels = {"application": "flights", "query": query, "source": source, **detail}
    loop.world.metrics.values.append((metric.name, labels, value))


def is_read_by(loop: Loop, source: str, read_limit: str) -> None:
    """The driver reports the read limit of a source of the query `delays`."""
    says(loop, names.SOURCE_INFO, source, read_limit=read_limit)
