"""Every kind of job that Spark has, started as its users start it, with one property or without.

A job gets a table of queries, a line each (`Query`), and no kind knows what governs it: the property is among Spark's
own, and the jar among the job's.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
import pyarrow.parquet as pq
import pyspark
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from headgate_spark.engine.shim import jar_path
from support.driver import CONF, ENVIRONMENT
from support.kafka_connector import connector_jars
from support.servers import free_port
from support.waiting import wait_until

JOBS = Path(__file__).parents[1] / "data" / "door"
SPARK = Path(pyspark.__file__).parent
UNCOMPACTED = {
    "spark.sql.streaming.fileSink.log.compactInterval": "100000",  # its log tells of each batch by itself
    "spark.sql.streaming.minBatchesToRetain": "100000",
    "spark.log.level": "WARN",
}
END_SECONDS = 120.0
USERS = ("ada", "grace")
"""Of Spark Connect."""


@dataclass(frozen=True)
class Query:
    """One query of a job."""

    name: str
    topics: tuple[str, ...]
    millis_per_record: int
    folder: Path
    trigger: str = "1 hour"

    @property
    def checkpoint(self) -> Path:
        """Where it keeps its place."""
        return self.folder / "checkpoints" / self.name

    @property
    def out(self) -> Path:
        """Where its rows go."""
        return self.folder / "out" / self.name

    @property
    def line(self) -> str:
        """Its line of the table that a job reads."""
        work = f"java_method('java.lang.Thread', 'sleep', {self.millis_per_record}L)"
        work = work if self.millis_per_record else "''"
        places = (str(self.checkpoint), str(self.out))
        return "\t".join([self.name, ",".join(self.topics), work, *places, self.trigger])


class Kind(ABC):
    """A job of one kind, in a folder of its own."""

    def __init__(self, folder: Path, broker: str) -> None:
        """`broker` is where Kafka is."""
        self.folder = folder
        self.broker = broker
        self.java_options = ""
        self.more: dict[str, str] = {}
        """Of Spark's properties, whatever else is to be set."""
        self.variables: dict[str, str] = {}
        """The same of its environment."""
        self._processes: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)

    # What a kind is --------------------------------------------------------------------------

    @abstractmethod
    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start the queries."""

    ends_by_itself = False
    """Whether its queries end when all is read that there was."""

    def named(self, query: str) -> str:
        """How Spark calls the query."""
        return query

    def checkpoint(self, query: Query) -> Path:
        """Where a query keeps its place."""
        return query.checkpoint

    def out(self, query: Query) -> Path:
        """Where the rows of a query go."""
        return query.out

    # What they have in common ----------------------------------------------------------------

    @property
    def queries_file(self) -> Path:
        """The table that the job reads."""
        return self.folder / "queries.tsv"

    @property
    def log(self) -> str:
        """What it has written so far."""
        return (self.folder / "job.log").read_text(errors="replace")

    def metrics(self) -> list[Sample]:
        """Return what its planner tells."""
        port = re.findall(r"metrics are served port=(\d+)", self.log)[-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
            families = text_string_to_metric_families(page.read().decode())
            return [sample for family in families for sample in family.samples]

    def start(self, queries: Sequence[Query], properties: Mapping[str, str]) -> None:
        """Start the job; `properties` that name Headgate bring its jar along."""
        self.queries_file.write_text("".join(query.line + "\n" for query in queries))
        jars = [*connector_jars(), *([jar_path()] if properties else [])]
        jvm = {"spark.jars": ",".join(map(str, jars))}
        if self.java_options:
            jvm["spark.driver.extraJavaOptions"] = self.java_options
        self.begin(queries, CONF | UNCOMPACTED | jvm | properties | self.more)

    def jvm(self) -> psutil.Process:
        """Return the JVM that Spark's driver is in."""
        return wait_until(self._find_jvm, "the driver's JVM", seen=lambda: self.log[-3000:])

    def stop(self) -> None:
        """Tell the driver's JVM to end, as `kubectl delete pod` and a service manager do, and wait for it."""
        jvm = self.jvm()
        jvm.terminate()
        wait_until(lambda: _has_ended(jvm), "the end of the driver's JVM", seen=lambda: self.log[-3000:])

    @property
    def has_failed(self) -> bool:
        """Whether a program of it has ended with an error."""
        return any(process.poll() not in (None, 0) for process in self._processes)

    def await_end(self, number: int = 0) -> int:
        """Return the exit code of one of its programs, the first one, once it has ended."""
        return self._processes[number].wait(END_SECONDS)

    def __enter__(self) -> Self:
        """Whatever is left of it when the block ends is ended."""
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End whatever is left of it."""
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
            process.kill()
            process.wait(END_SECONDS)
        self._processes.clear()

    def popen(
        self, *command: Any, conf: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Start a program of it; with `conf` it is one that takes Spark's properties."""
        first, *rest = command
        properties = [word for item in (conf or {}).items() for word in ("--conf", "=".join(item))]
        environment = self.environment() | options.pop("environment", {})
        with (self.folder / "job.log").open("ab") as log:
            process = subprocess.Popen(
                [str(first), *properties, *map(str, rest)],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                **options,
            )
        self._processes.append(process)
        return process

    def environment(self) -> dict[str, str]:
        """Return that of all its programs."""
        return os.environ | ENVIRONMENT | {
            "SPARK_HOME": str(SPARK),
            "PYSPARK_PYTHON": sys.executable,
            "QUERIES": str(self.queries_file),
            "BROKER": self.broker,
        } | self.variables  # fmt: skip

    def _find_jvm(self) -> psutil.Process | None:
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                found = psutil.Process(process.pid)
                for each in (found, *found.children(recursive=True)):
                    if each.name() == "java" and "org.apache.spark.deploy.SparkSubmit" in each.cmdline():
                        return each
        return None


class Java(Kind):
    """A class in a jar, by `spark-submit`."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start it."""
        submit = SPARK / "bin" / "spark-submit"
        self.popen(submit, "--class", "Job", java_jar(), self.queries_file, self.broker, conf=conf)


class Scala(Kind):
    """An object in a jar, by `spark-submit`."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start it."""
        submit = SPARK / "bin" / "spark-submit"
        self.popen(submit, "--class", "JobInScala", scala_jar(), self.queries_file, self.broker, conf=conf)


class Classic(Kind):
    """A script of PySpark, by `spark-submit`."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start it."""
        submit = SPARK / "bin" / "spark-submit"
        self.popen(submit, JOBS / "job.py", self.queries_file, self.broker, conf=conf)


class Connect(Kind):
    """A server of Spark Connect, and two clients at once."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start the server, then the clients, each with every other query."""
        self._port = port = free_port()
        served = {
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
        }
        words = [word for item in (conf | served).items() for word in ("--conf", "=".join(item))]
        folders = {"SPARK_LOG_DIR": str(self.folder), "SPARK_PID_DIR": str(self.folder)}
        self.popen(SPARK / "sbin" / "start-connect-server.sh", "--wait", *words, environment=folders)
        wait_until(lambda: _listens(port), "the server of Spark Connect", seen=lambda: self.log[-3000:])
        for number, user in enumerate(USERS):
            self.client(user, queries[number::2])

    def client(self, user: str, queries: Sequence[Query]) -> None:
        """Start a client that starts queries."""
        part = self.folder / f"queries-of-{user}.tsv"
        part.write_text("".join(query.line + "\n" for query in queries))
        self.connected(user, JOBS / "job.py", part, self.broker)

    def connected(self, user: str, script: Path, *arguments: Any) -> None:
        """Start a script that finds the server."""
        remote = {"SPARK_REMOTE": f"sc://127.0.0.1:{self._port}/;user_id={user}"}
        self.popen(sys.executable, script, *arguments, environment=remote)

    def end_clients(self) -> None:
        """End all clients, as somebody who closes a lid does."""
        for process in self._processes[1:]:
            process.kill()
            process.wait(END_SECONDS)
        del self._processes[1:]


class Pipeline(Kind):
    """A declarative pipeline, by `spark-pipelines run`."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start it: its tables are where `spark-pipelines` has them.

        Its properties are in a file. It starts a JVM for the server in another one for itself, hands over properties
        in groups of ten, and in Spark 4.3 the last group alone comes through.
        """
        (self.folder / "transformations").mkdir(exist_ok=True)
        shutil.copy(JOBS / "pipeline.py", self.folder / "transformations")
        (self.folder / "spark-pipeline.yml").write_text(
            f"name: cells\nstorage: file://{self.folder}/storage\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        )
        own = {name: value for name, value in conf.items() if name != "spark.master"}
        own["spark.sql.catalogImplementation"] = (
            "hive"  # else the next run does not know the tables of this one
        )
        lines = [f"{name} {value}\n" for name, value in own.items()]
        (self.folder / "spark-defaults.conf").write_text("".join(lines))
        self.popen(
            SPARK / "bin" / "spark-pipelines", "run", "--remote", conf["spark.master"],
            environment={"SPARK_CONF_DIR": str(self.folder)},
        )  # fmt: skip

    ends_by_itself = True

    def checkpoint(self, query: Query) -> Path:
        """Return the one of the table's flow."""
        found = list(self.folder.glob(f"storage/_checkpoints/**/{query.name}/*/offsets"))
        return found[0].parent if found else query.checkpoint

    def out(self, query: Query) -> Path:
        """Return the table's folder."""
        return self.folder / "spark-warehouse" / query.name

    def named(self, query: str) -> str:
        """Spark calls a flow by the full name of its table."""
        return f"spark_catalog.default.{query}"


class Shell(Kind):
    """A session in `spark-shell`: Scala, line by line."""

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Enter the lines; the session lives until it is told to end."""
        shell = self.popen(SPARK / "bin" / "spark-shell", conf=conf, stdin=subprocess.PIPE)
        assert shell.stdin is not None
        shell.stdin.write((JOBS / "shell.scala").read_bytes())
        shell.stdin.flush()


class Notebook(Kind):
    """A kernel of Jupyter, which is sent cell after cell."""

    _manager: Any = None

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start the kernel, and run the cells."""
        from jupyter_client.manager import KernelManager

        words = [word for item in conf.items() for word in ("--conf", f'"{"=".join(item)}"')]
        arguments = {"PYSPARK_SUBMIT_ARGS": " ".join([*words, "pyspark-shell"])}
        self._manager = KernelManager(kernel_name="python3")
        with (self.folder / "job.log").open("ab") as log:
            self._manager.start_kernel(
                env=self.environment() | arguments, cwd=str(self.folder), stdout=log, stderr=log
            )
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=END_SECONDS)
        for cell in (JOBS / "cells.py").read_text().split("# %%")[1:]:
            self.run(cell)

    def run(self, cell: str) -> str:
        """Run a cell, and return what it has printed."""
        said: list[str] = []

        def hear(message: Mapping[str, Any]) -> None:
            said.append(str(message["content"].get("text", "")))

        reply = self._client.execute_interactive(cell, timeout=END_SECONDS, output_hook=hear)
        assert reply["content"]["status"] == "ok", "".join(reply["content"].get("traceback", []))
        return "".join(said)

    def kill(self) -> None:
        """End the kernel."""
        if self._manager is not None:
            self._client.stop_channels()
            self._manager.shutdown_kernel(now=True)
            self._manager = None
        super().kill()

    def _find_jvm(self) -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess):
            kernel = psutil.Process(self._manager.provisioner.pid)
            return next((each for each in kernel.children(recursive=True) if each.name() == "java"), None)
        return None


KINDS: Mapping[str, type[Kind]] = {
    "java": Java,
    "scala": Scala,
    "classic": Classic,
    "connect": Connect,
    "pipeline": Pipeline,
    "shell": Shell,
    "notebook": Notebook,
}


# What a query has done ------------------------------------------------------------------------


def planned(kind: Kind, query: Query) -> list[int]:
    """Return the batches that a query has planned."""
    return _batches(kind.checkpoint(query) / "offsets")


def committed(kind: Kind, query: Query) -> list[int]:
    """Return the batches that a query has committed."""
    return _batches(kind.checkpoint(query) / "commits")


def planned_at(kind: Kind, query: Query, batch: int) -> float:
    """Return when a batch was planned, in seconds since 1970."""
    log = (kind.checkpoint(query) / "offsets" / str(batch)).read_text()
    return float(json.loads(log.splitlines()[1])["batchTimestampMs"]) / 1000


def read_by(kind: Kind, query: Query, batch: int) -> int:
    """Return how far a query of one partition has read by the end of a batch that it has planned."""
    log = (kind.checkpoint(query) / "offsets" / str(batch)).read_text()
    [offsets] = json.loads(log.splitlines()[2]).values()
    return int(offsets["0"])


def batches(kind: Kind, query: Query) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Give topic and value of each row of each batch that a query has written for good."""
    out = kind.out(query)
    for log in (out / "_spark_metadata").glob("[0-9]*"):
        paths = [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]]
        yield int(log.name), [row for path in paths for row in _rows_of(out / Path(path).name)]


def rows(kind: Kind, query: Query) -> list[tuple[str, str]]:
    """Return topic and value of all rows that a query has written for good."""
    return [row for _, batch in batches(kind, query) for row in batch]


def _has_ended(process: psutil.Process) -> bool:
    """Also where whoever has started it has not taken note of its end."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


@functools.cache
def _rows_of(file: Path) -> list[tuple[str, str]]:
    """A file that a sink's log names does not change any more."""
    return [
        (row["topic"], row["value"]) for row in pq.read_table(file, columns=["topic", "value"]).to_pylist()
    ]


def _batches(log: Path) -> list[int]:
    return sorted(int(file.name) for file in log.glob("[0-9]*"))


@functools.cache
def _classes() -> Path:
    """A folder for what is compiled, until the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-door-"))
    import atexit

    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def java_jar() -> Path:
    """The jar of all jobs in Java."""
    classes, jar = _classes() / "java", _classes() / "job.jar"
    _run("javac", "-cp", f"{SPARK}/jars/*", "-d", classes, *JOBS.glob("*.java"))
    _run("jar", "--create", "--file", jar, "-C", classes, ".")
    return jar


@functools.cache
def scala_jar() -> Path:
    """The jar of all jobs in Scala, made by the compiler that Spark carries."""
    jar = _classes() / "scala-job.jar"
    compiler = ("java", "-cp", f"{SPARK}/jars/*", "scala.tools.nsc.Main", "-usejavacp")
    _run(*compiler, "-d", jar, *JOBS.glob("*InScala.scala"))
    return jar


def _run(*command: Any) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _listens(port: int) -> bool:
    return any(
        each.laddr.port == port and each.status == psutil.CONN_LISTEN
        for each in psutil.net_connections("tcp")
    )
