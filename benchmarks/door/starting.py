"""How a job is started through the door: as anybody would, with the jar and the property among its properties."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import psutil
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.local.child import Child
from benchmarks.local.drivers import START_SECONDS, Place, plain, publish
from headgate_contract import ControlDocument
from headgate_spark.engine.shim import jar_path

JARS = "spark.jars"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def by_door(
    place: Place,
    script: str,
    arguments: Sequence[str],
    properties: Mapping[str, str],
    document: ControlDocument,
    *,
    agent: Path | None = None,
) -> Child:
    """Start a job with the jar, and the property that names a control document; an `agent` notes its questions."""
    publish(place, document)
    door = {
        JARS: ",".join(filter(None, [properties.get(JARS, ""), str(jar_path())])),
        "spark.headgate.control": str(place.control.resolve()),
        "spark.headgate.metrics.port": "0",
        "spark.headgate.metrics.address": "127.0.0.1",
    }
    if agent is not None:
        door[JAVA_OPTIONS] = f"-javaagent:{agent}={questions_of(place).resolve()}"
    return plain(place, script, arguments, {**properties, **door})


def questions_of(place: Place) -> Path:
    """Return where the agent writes."""
    return place.directory / "questions.tsv"


def metrics(place: Place) -> list[Sample]:
    """Return what the planner's process of a job serves."""
    found = re.findall(r"metrics are served\s+port=(\d+)", place.log.read_text(errors="replace"))
    with urlopen(f"http://127.0.0.1:{found[-1]}/metrics", timeout=60) as page:
        families = text_string_to_metric_families(page.read().decode())
        return [sample for family in families for sample in family.samples]


@dataclass(frozen=True)
class Processes:
    """Those of a driver that count: the JVM, and the planner's process where there is one."""

    jvm: psutil.Process
    planner: psutil.Process | None


def cpu_seconds(process: psutil.Process | None) -> float:
    """Return the processor time that a process has taken so far; of none, 0."""
    times = None if process is None else process.cpu_times()
    return 0.0 if times is None else times.user + times.system


def processes(child: Child, *, governed: bool) -> Processes:
    """Return the processes of a job, as soon as they are there."""

    def found() -> Processes | None:
        jvm = planner = None
        for process in child.tree():
            with suppress(psutil.NoSuchProcess):
                words = " ".join(process.cmdline())
                if process.name() == "java" and "org.apache.spark.deploy.SparkSubmit" in words:
                    jvm = process
                elif "headgate_spark.runtime.main" in words and "java" not in process.name():
                    planner = process
        return None if jvm is None or (governed and planner is None) else Processes(jvm, planner)

    return child.wait_for("the processes of a driver", found, START_SECONDS)
