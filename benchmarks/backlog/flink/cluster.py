"""A Flink cluster on the loopback address: a job manager, one task manager, and the gateway that takes SQL.

Three Java processes over one class path, started by their main classes with a configuration that has everything
Flink's scripts would have computed (`settings`). They end with the `with` block, each by its own id.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.backlog.flink import settings
from benchmarks.backlog.flink.gateway import Finished, Jobs, Session, job_of
from benchmarks.backlog.flink.settings import JAVA, SLOTS, Ports, TaskManagerMemory
from benchmarks.backlog.memory import COLLECTOR
from support.maven import jars, pinned
from support.servers import Server, answers, free_port

LOCKS = Path(__file__).parent
LOCK = "flink"
JOB_SECONDS = 900.0
"""Several times what the slowest job takes on two cores."""
MAIN_CLASSES = {
    "jobmanager": "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "taskmanager": "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
    "gateway": "org.apache.flink.table.gateway.SqlGateway",
}
HEAP = ("-Xmx1g",)
"""Of the processes that handle no records."""
LOGGING = """\
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=Console
appender.console.type=Console
appender.console.name=Console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c{1} %m%n
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs; one job at a time."""

    gateway: str
    jobs: Jobs
    processes: Sequence[psutil.Process] = ()

    def cpu_seconds(self) -> float:
        """Return the processor time that its processes have taken so far."""
        times = [process.cpu_times() for process in self.processes]
        return sum(each.user + each.system for each in times)

    def run(self, job_settings: Mapping[str, str], statements: Sequence[str]) -> Finished:
        """Execute statements, the last of which starts a job, and wait for its end. Raises `FlinkError`."""
        with self._defined(job_settings, statements) as (session, insert):
            handed_over = time.time()
            done = self.jobs.wait(job_of(session.execute(insert)), JOB_SECONDS)
            return replace(done, handed_over=handed_over)

    def save(
        self, job_settings: Mapping[str, str], statements: Sequence[str], records: int, folder: Path
    ) -> Path:
        """Start a job, and stop it with a savepoint once it has read so many records; returns the savepoint, which is
        in `folder`. Raises `FlinkError`.
        """
        with self._defined(job_settings, statements) as (session, insert):
            job = job_of(session.execute(insert))
            self.jobs.wait_until_read(job, records, JOB_SECONDS)
            return self.jobs.stop(job, folder, JOB_SECONDS)

    @contextmanager
    def running(self, job_settings: Mapping[str, str], statements: Sequence[str]) -> Iterator[str]:
        """Start a job that goes on until the cluster ends, and return its id. Raises `FlinkError`."""
        with self._defined(job_settings, statements) as (session, insert):
            yield job_of(session.execute(insert))

    @contextmanager
    def _defined(
        self, job_settings: Mapping[str, str], statements: Sequence[str]
    ) -> Iterator[tuple[Session, str]]:
        *tables, insert = statements
        with Session(self.gateway, job_settings) as session:
            for statement in tables:
                session.execute(statement)
            yield session, insert


@contextmanager
def cluster_in(folder: Path, memory: TaskManagerMemory) -> Iterator[Cluster]:
    """Run a cluster whose files are in `folder`. Raises `JarsMissingError` where Flink cannot be had."""
    class_path = str(jars(LOCK, LOCKS)[0].parent / "*")
    ports = Ports(free_port(), free_port(), free_port())
    conf = configured(folder.resolve(), settings.configuration(memory, ports, folder.resolve()))
    jobs, gateway = Jobs(f"http://127.0.0.1:{ports.rest}"), f"http://127.0.0.1:{ports.gateway}"
    is_ready = {
        "jobmanager": lambda: answers(f"{jobs.address}/overview"),
        "taskmanager": lambda: jobs.slots() == SLOTS,
        "gateway": lambda: answers(f"{gateway}/v2/info"),
    }
    processes = []
    with ExitStack() as started:
        for name in MAIN_CLASSES:
            server = process(name, command(name, memory, class_path, conf), conf)
            started.callback(server.stop)
            server.start()
            server.wait_until(is_ready[name])
            processes.append(psutil.Process(server.pid))
        yield Cluster(gateway, jobs, processes)


def configured(folder: Path, configuration: Mapping[str, str]) -> Path:
    """Clear the folder of a cluster and write its configuration; returns where that is."""
    shutil.rmtree(folder, ignore_errors=True)
    conf = folder / "conf"
    for directory in (conf, folder / "tmp", folder / "checkpoints"):
        directory.mkdir(parents=True)
    (conf / "config.yaml").write_text(settings.text(configuration), encoding="utf-8")
    (conf / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
    return conf


def command(name: str, memory: TaskManagerMemory, class_path: str, conf: Path) -> list[str]:
    """Return what starts one process of a cluster, which is named as in `MAIN_CLASSES`."""
    logging = f"-Dlog4j2.configurationFile={conf / 'log4j2.properties'}"
    sizes = memory.java if name == "taskmanager" else HEAP
    arguments = [] if name == "gateway" else ["--configDir", str(conf)]
    java = ["java", COLLECTOR, *JAVA, logging, *sizes, "-cp", class_path]
    return [*java, MAIN_CLASSES[name], *arguments]


def process(name: str, command: Sequence[str], conf: Path) -> Server:
    """Return one process of a cluster, its log beside its configuration."""
    return Server(command, conf.parent / f"{name}.log", {**os.environ, "FLINK_CONF_DIR": str(conf)})


def versions() -> dict[str, str]:
    """Return what is measured with, of what the lock file lists."""
    wanted = ("flink-runtime", "flink-sql-connector-kafka")
    return {jar.name: jar.version for jar in pinned(LOCK, LOCKS) if jar.name in wanted}
