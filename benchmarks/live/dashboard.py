"""What the dashboard of applications shows of an outage: `python -m benchmarks.live.dashboard`, a quarter of an hour.

Two queries read two topics under a control document, and a real Prometheus scrapes their driver. The driver is
stopped for some minutes and started again. `docs/images/dashboard.json` keeps what the dashboard's expressions
find of it, and `make generate` draws that.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from docs.dashboard import RECORDED, ROWS, STEP

from benchmarks.kafka.scenario import JOBS, properties
from benchmarks.live.demo.runs import Traffic
from benchmarks.live.traffic import Sender
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place, by_document, metrics
from charts.generate.dashboards.panels import filled_in
from headgate_contract import BacklogControl, ControlDocument, QueryControl, RateControl, SourceControl
from support.kafka import Broker, kafka_in
from support.prometheus import Prometheus, prometheus

TARGET: Final = Path("build/dashboard")
LIVE_SECONDS, OUTAGE_SECONDS, AFTER_SECONDS = 180, 180, 360
START_SECONDS: Final = 180.0
PER_SECOND: Final = {"orders": 2_000, "payments": 500}
PARTITIONS: Final = 4
LIMIT_PER_SECOND: Final = 6_000.0
"""Of `orders`: what its database bears, so that the backlog takes some minutes."""
CHOSEN: Final = {
    "namespace": "shop",
    "application": "orders",
    "query": ".*",
    "__rate_interval": "1m",
}
SCRAPE_INTERVAL: Final = "5s"


def document() -> ControlDocument:
    """Return what the driver is told: five seconds a batch when live, half a minute in a backlog."""
    backlog = BacklogControl(watermark_lag_seconds=60, pending_records=50_000)
    limit = RateControl(records_per_second=LIMIT_PER_SECOND)
    limits = {"orders": {"rate_limit": limit, "rate_limit_during_backlog": limit}}
    queries = {
        topic: QueryControl(
            interval_seconds=5,
            interval_during_backlog_seconds=30,
            sources={topic: SourceControl(backlog=backlog, **limits.get(topic, {}))},
        )
        for topic in PER_SECOND
    }
    return ControlDocument(generation=1, queries=queries)


@contextmanager
def driver(place: Place, broker: Broker) -> Iterator[Child]:
    """Run the job of both queries, and return it once it serves its metrics."""
    arguments = [f"--bootstrap={broker.bootstrap}", f"--checkpoint={place.checkpoint}"]
    arguments += [f"--query={topic}={topic}" for topic in PER_SECOND]
    place.announcement.unlink(missing_ok=True)
    script = str((JOBS / "live.py").resolve())
    with by_document(place, script, arguments, properties(place.directory / "events"), document()) as child:
        child.wait_for("metrics", lambda: serves(place), START_SECONDS)
        yield child


def serves(place: Place) -> bool | None:
    """Tell whether the driver says something of both queries; `None`: not yet."""
    try:
        told = {sample.labels["query"] for sample in metrics(place) if "query" in sample.labels}
    except OSError:
        return None
    return True if told >= PER_SECOND.keys() else None


def scraping(place: Place) -> dict[str, Any]:
    """Return a configuration by which Prometheus scrapes the driver that runs now, labelled as in a cluster."""
    port = json.loads(place.announcement.read_text(encoding="utf-8"))["metricsPort"]
    pod = f"{CHOSEN['application']}-{port}"
    labels = {"namespace": CHOSEN["namespace"], "application": CHOSEN["application"], "pod": pod}
    target = {"targets": [f"127.0.0.1:{port}"], "labels": labels}
    return {
        "global": {"scrape_interval": SCRAPE_INTERVAL},
        "scrape_configs": [
            {
                "job_name": "drivers",
                "static_configs": [target],
                "metric_relabel_configs": [{"action": "labeldrop", "regex": "instance|job"}],
            }
        ],
    }


def outage(broker: Broker, place: Place) -> dict[str, Any]:
    """Run the job through an outage; returns what the dashboard shows of it."""
    with ExitStack() as running:
        for topic, per_second in PER_SECOND.items():
            broker.topic(topic, partitions=PARTITIONS)
            traffic = Traffic(Sender(broker.bootstrap, topic, PARTITIONS))
            traffic.per_second = per_second
            running.enter_context(traffic)
        with driver(place, broker) as child:
            server = running.enter_context(prometheus(TARGET / "prometheus", config=scraping(place)))
            began = time.time()
            watch(child, LIVE_SECONDS)
        time.sleep(OUTAGE_SECONDS)
        with driver(place, broker) as child:
            server.reload(scraping(place))
            watch(child, AFTER_SECONDS)
            return {"seconds": round(time.time() - began), "panels": panels(server, began, time.time())}


def watch(child: Child, seconds: float) -> None:
    """Let a driver run for so long; raises where it ends before."""
    end = time.time() + seconds
    child.wait_for("the end of a stretch", lambda: True if time.time() >= end else None, seconds + 5, 1)


def panels(server: Prometheus, began: float, ended: float) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each panel: its name, and points of seconds since the beginning and values."""
    found: dict[str, list[dict[str, Any]]] = {}
    for panel in (panel for row in ROWS for panel in row.panels):
        lines = found[panel.title] = []
        for line in panel.lines:
            for series in server.query_range(filled_in(line.expression, CHOSEN), began, ended, STEP):
                points = [(round(at - began), float(f"{value:.4g}")) for at, value in series.points]
                lines.append({"legend": named(line.legend, series.labels), "points": points})
    return found


def named(legend: str, labels: Mapping[str, str]) -> str:
    """Return the name of a line."""
    for name, value in labels.items():
        legend = legend.replace("{{" + name + "}}", value)
    return legend


def main() -> None:
    """Record an outage."""
    with kafka_in((TARGET / "broker").resolve()) as broker:
        recorded = outage(broker, Place(TARGET / "run").cleared())
    RECORDED.write_text(json.dumps(recorded) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
