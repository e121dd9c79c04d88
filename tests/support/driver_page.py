"""What drivers say at a scrape, as text; with labels that a PodMonitor would add, for targets without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate_contract import metrics as names
from headgate_contract.metrics import Metric


@dataclass
class DriverPage:
    """The page of one driver; a test changes it as it likes."""

    application: str = "flights"
    target: Mapping[str, str] = field(default_factory=dict)
    """Labels of its target, where the target is none of its own."""
    values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.set(names.DRIVER_STOPPING, 0)

    def set(self, metric: Metric, value: float | None, **labels: str) -> None:
        """Say a value; `None`: say nothing."""
        key = (metric.name, tuple(labels.items()))
        self.values.pop(key, None)
        if value is not None:
            self.values[key] = value

    def query(self, query: str = "delays", *, started_at: float = 1000.0) -> None:
        """Say that a query runs, with what belongs to that."""
        self.set(names.QUERY_ACTIVE, 1, query=query)
        self.set(names.QUERY_STARTED, started_at, query=query)
        self.set(names.QUERY_INTERVAL, 5, query=query)
        self.set(names.QUERY_THROUGHPUT, 50_000, query=query)

    def source(
        self,
        source: str = "flights",
        *,
        query: str = "delays",
        lag: float | None = 2.0,
        pending: float | None = 10.0,
        phase: float | None = 0.0,
    ) -> None:
        """Say how a source stands, with what belongs to that."""
        labels = {"query": query, "source": source}
        self.set(names.SOURCE_INFO, 1, **labels, read_limit="offsets")
        self.set(names.SOURCE_WATERMARK_LAG, lag, **labels)
        self.set(names.SOURCE_PENDING, pending, **labels)
        self.set(names.SOURCE_PHASE, phase, **labels)
        self.set(names.SOURCE_PAUSED, 0, **labels)
        self.set(names.SOURCE_FINISHED, 0, **labels)
        self.set(names.SOURCE_PROCESSED, 0, **labels)

    @property
    def text(self) -> str:
        """The page."""
        return "".join(
            f"{name}{{{_labels({'application': self.application, **self.target, **dict(labels)})}}} {value!r}\n"
            for (name, labels), value in self.values.items()
        )


def driver_page(
    application: str = "flights", attempt: int = 1, namespace: str = "team", **target: str
) -> DriverPage:
    """The page of a driver with one query of one source, labelled as a PodMonitor would."""
    pod = f"{application}-driver-{attempt}"
    page = DriverPage(application, {"namespace": namespace, "pod": pod, **target})
    page.query()
    page.source()
    return page


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())
