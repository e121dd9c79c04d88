"""What becomes of a job whose planner cannot be started, dies or hangs: never a loss, never a wait without end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest
from laws.cover import audit_checkpoints
from pyspark.sql import SparkSession

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_contract.receiving import write
from headgate_spark.engine.governor import verbs
from headgate_spark.engine.questions import Questions
from headgate_spark.engine.shim import jar_path
from support.governed import driver_in
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, send
from support.kinds import Java, Query, committed, planned, planned_at, rows
from support.spark import ScriptedPlanner
from support.waiting import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
WAIT_SECONDS = 240.0
TOKEN = "of the tests"
GAVE_UP = "Headgate governs no query of this driver from now on: "
HOLDS = "Headgate holds source"


@dataclass
class Job:
    """A job in Java with one query of one topic."""

    kind: Java
    broker: Broker
    query: Query
    sent: int = field(default=0)
    sources: dict[str, SourceControl] = field(default_factory=dict)
    """What the control document says of them."""

    def start(self, **properties: str) -> None:
        """Start it, with more properties than the one; `_` is for `.` after `spark.headgate.`."""
        control = self.kind.folder / "control.json"
        queries = {self.query.name: QueryControl(interval_seconds=0.2, sources=self.sources)}
        control.write_text(write(ControlDocument(generation=1, queries=queries)))
        more = {f"spark.headgate.{name.replace('_', '.')}": value for name, value in properties.items()}
        self.kind.start(
            [self.query], {"spark.headgate.control": str(control), "spark.headgate.metrics.port": "0"} | more
        )

    def send(self, count: int = 10) -> None:
        """Let records come."""
        numbers = range(self.sent, self.sent + count)
        records = [Record(0, START_MS + number, str(number).encode()) for number in numbers]
        send(self.broker.bootstrap, self.query.topics[0], records)
        self.sent += count

    def await_all(self) -> None:
        """Wait until it has written what was sent."""
        self._until(lambda: len(self._values()) >= self.sent, f"{self.sent} rows")

    def await_batches(self, count: int) -> None:
        """Wait until it has planned so many batches."""
        self._until(lambda: len(planned(self.kind, self.query)) >= count, f"{count} batches")

    def await_log(self, text: str, times: int = 1) -> None:
        """Wait until it has said something, so many times."""
        self._until(lambda: self.kind.log.count(text) >= times, text)

    def await_end(self) -> int:
        """Return its exit code."""
        return self.kind.await_end()

    def has_all_once(self) -> bool:
        """Whether each record was written, and none twice."""
        return sorted(map(int, self._values())) == list(range(self.sent))

    def planner(self) -> psutil.Process:
        """Return the planner's process."""
        jvm = self.kind.jvm()

        def found() -> psutil.Process | None:
            for child in jvm.children():
                with suppress(psutil.NoSuchProcess):  # it has died, and nobody has taken note yet
                    if "headgate_spark" in " ".join(child.cmdline()):
                        return child
            return None

        return wait_until(found, "the planner's process", seen=lambda: self.kind.log[-3000:])

    def _values(self) -> list[str]:
        return [value for _, value in rows(self.kind, self.query)]

    def _until(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, what, WAIT_SECONDS, seen=lambda: self.kind.log[-4000:])


@pytest.fixture
def job(kafka: Broker, tmp_path: Path) -> Iterator[Job]:
    with a_job(kafka, tmp_path) as made:
        yield made


@contextmanager
def a_job(kafka: Broker, folder: Path, trigger: str = "1 hour") -> Iterator[Job]:
    with Java(folder, kafka.bootstrap) as kind:
        made = Job(kind, kafka, Query("copy", (kafka.topic(),), 0, folder, trigger))
        made.send()
        yield made


def script(path: Path, text: str) -> str:
    """Return an interpreter that is a script of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def too_old(folder: Path) -> str:
    """Return a Python that takes itself for one of version 3.8."""
    claim = "import sys; sys.version_info = (3, 8, 20); sys.version = '3.8.20 (main)';"
    return script(folder / "python3.8", f'exec {sys.executable} -c "{claim} $3" "$4"')


def dying(folder: Path) -> str:
    """Return a Python that ends at once."""
    return script(folder / "dying", f"echo started >> {folder}/starts; exit 7")


def hanging(folder: Path) -> str:
    """Return a Python that says nothing, and does not end."""
    return script(folder / "hanging", "exec sleep 1000")


IMPATIENT = "-Dheadgate.planner.startSeconds=3"


def test_a_job_whose_planner_hangs_at_its_start_runs_as_it_would_without_it(job: Job, tmp_path: Path):
    """What protects another query changes nothing."""
    job.kind.java_options = IMPATIENT
    more = {"interval": "1s", "paused": "false", "queries_copy_eu_sources_anything_after": "that"}
    job.start(python=hanging(tmp_path), **more)
    job.await_all()
    assert job.has_all_once()
    assert "the planner's process has not answered within 3 s" in job.kind.log
    assert "Exception" not in job.kind.log


def without_python(folder: Path) -> str:
    """Return a path with all programs of ours but each Python."""
    folder.mkdir()
    for place in os.get_exec_path():
        for program in Path(place).glob("*"):
            if not program.name.startswith("python") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def another_version(root: Path) -> Path:
    """Write a jar with the same classes of another version, and have it find the runtime."""
    jar, runtime = root / "headgate_spark" / "jars" / "another.jar", jar_path().parents[1]
    jar.parent.mkdir(parents=True)
    for part in runtime.iterdir():
        if part.name != jar.parent.name:
            (jar.parents[1] / part.name).symlink_to(part)
    with ZipFile(jar_path()) as ours, ZipFile(jar, "w") as theirs:
        for name in ours.namelist():
            is_manifest = name == "META-INF/MANIFEST.MF"
            theirs.writestr(name, b"Manifest-Version: 1.0\r\n\r\n" if is_manifest else ours.read(name))
    return jar


def two_versions(used: Path, other: Path) -> str:
    """What the log says of them."""
    return (
        f"Headgate's jar is on the class path in two versions: {used} is used, and {other} is not; take one"
    )


def test_a_job_without_a_python_goes_on_if_told_so_and_a_second_jar_that_comes_first_is_the_one_that_counts(
    job: Job, tmp_path: Path
):
    another = another_version(tmp_path / "another")
    job.kind.more = {"spark.jars": ",".join(map(str, (another, jar_path(), *connector_jars())))}
    job.kind.variables = {"PATH": without_python(tmp_path / "bin"), "PYSPARK_PYTHON": ""}
    job.start(onFailure="continue", rateLimit_recordsPerSecond="50000")
    job.await_all()
    assert job.has_all_once()
    job.await_log(GAVE_UP + "the planner's process cannot be started (Cannot run program ")
    assert job.kind.log.count(GAVE_UP) == 1
    assert (
        "if PATH has none, install one, or name a Python 3.9 or newer in spark.headgate.python"
        in job.kind.log
    )
    assert two_versions(another, jar_path()) in job.kind.log
    assert job.kind.log.count("in two versions") == 1
    assert "Exception" not in job.kind.log.replace("IOException", "")


def test_a_job_that_wants_to_be_governed_or_fail_fails_after_three_starts(job: Job, tmp_path: Path):
    job.start(python=dying(tmp_path), onFailure="fail")
    assert job.await_end() != 0
    reason = "the planner's process has ended 3 times before it could be asked"
    assert GAVE_UP + reason in job.kind.log
    assert f"Headgate cannot govern this query: {reason}" in job.kind.log
    assert (tmp_path / "starts").read_text().count("started") == 3
    assert rows(job.kind, job.query) == []


@pytest.mark.parametrize(
    ("python", "reason"),
    [
        (too_old, "it needs Python 3.9 or newer, and "),
        (hanging, "the planner's process has not answered within 3 s"),
    ],
)
def test_a_query_that_the_control_document_protects_ends_where_its_planner_cannot_be_started(
    job: Job, tmp_path: Path, python: Callable[[Path], str], reason: str
):
    """What else protects one: `spark/test_other_spark.py`."""
    job.kind.java_options = IMPATIENT if python is hanging else ""
    job.sources = {"anything": SourceControl(paused=True)}
    job.start(python=python(tmp_path))
    assert job.await_end() != 0
    assert f"Headgate cannot govern this query: {reason}" in job.kind.log
    assert "it ends, since nobody would keep its rate limit, alignment, `after` or pause" in job.kind.log
    assert rows(job.kind, job.query) == []


@pytest.mark.parametrize(("said", "goes_on"), [("continue", True), ("", False)])
def test_patience_with_a_planner_that_hangs_has_an_end(
    kafka: Broker, tmp_path: Path, said: str, goes_on: bool
):
    """What the query then does is as where there is no planner; it is not asked again."""
    with a_job(kafka, tmp_path, "2 seconds") as job:
        job.kind.java_options = (
            "-Dheadgate.planner.patienceMillis=4000 -Dheadgate.planner.callBudgetMillis=1000"
        )
        job.start(**({"onFailure": said} if said else {}), rateLimit_recordsPerCheckpoint="1000")
        job.await_all()
        planner = job.planner()
        planner.suspend()
        job.send()
        if goes_on:
            job.await_all()
            assert job.has_all_once()
            assert "The query goes on as it would without Headgate" in job.kind.log
        else:
            job.await_log("The query ends rather than stall in silence")
        planner.resume()
        if not goes_on:
            assert job.await_end() != 0


def elsewhere(folder: Path, port: int) -> str:
    """Return the file that tells of a planner which somebody else has started, as `headgate-run` does."""
    file = folder / "address.json"
    file.write_text(json.dumps({"port": port, "token": TOKEN}))
    return str(file)


def test_a_planner_of_somebody_else_that_does_not_answer_lets_no_query_run_ungoverned(
    job: Job, tmp_path: Path
):
    job.kind.java_options = "-Dheadgate.planner.patienceMillis=1000"
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    job.start(planner_address=elsewhere(tmp_path, port))
    assert job.await_end() != 0
    assert "Headgate cannot govern this query: the planner's process cannot be started" in job.kind.log
    assert rows(job.kind, job.query) == []


def test_a_planner_of_somebody_else_that_comes_late_is_waited_for(job: Job, tmp_path: Path):
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    job.start(planner_address=elsewhere(tmp_path, listening.getsockname()[1]))
    job.await_log("could not be asked, and is asked again")
    listening.listen()
    questions = Questions(
        verbs(ScriptedPlanner("all")) | {"attached": lambda _driver: None}, TOKEN, listening
    )
    questions.start()
    try:
        job.await_all()
        assert job.has_all_once()
        assert GAVE_UP not in job.kind.log
    finally:
        questions.close()


@pytest.fixture(scope="module")
def governed(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job that goes on after each test of it. What opens a notebook is not taken for its planner's Python."""
    folder = tmp_path_factory.mktemp("governed")
    with a_job(kafka, folder) as made:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYSPARK_DRIVER_PYTHON", "/usr/local/bin/jupyter")
            made.start()
        made.await_all()
        yield made
        assert made.has_all_once()
        assert GAVE_UP not in made.kind.log
        made.kind.kill()
        assert audit_checkpoints(folder) > 0


def test_a_planner_that_is_killed_ten_times_is_started_again_and_nothing_is_lost_or_doubled(governed: Job):
    for _ in range(10):
        planner = governed.planner()
        planner.kill()
        planner.wait(60)
        governed.send()
        governed.await_all()
    assert governed.has_all_once()


def test_a_planner_that_stands_still_holds_its_queries_which_then_go_on(governed: Job):
    planner = governed.planner()
    planner.suspend()
    before, held = rows(governed.kind, governed.query), governed.kind.log.count(HOLDS)
    governed.send()
    governed.await_log(HOLDS, held + 1)
    assert rows(governed.kind, governed.query) == before
    planner.resume()
    governed.await_all()
    assert governed.has_all_once()
    assert governed.planner().pid == planner.pid


def test_a_planner_that_hangs_is_replaced_and_a_stop_outlives_the_one_that_was_asked_for_it(job: Job):
    """The next one is asked, and waits for the end of the batch that runs."""
    job.kind.java_options = "-Dheadgate.planner.hangsMillis=2000 -Dheadgate.planner.callBudgetMillis=1000"
    job.query = replace(job.query, millis_per_record=500)
    job.start()
    job.await_all()
    planner = job.planner()
    planner.suspend()
    job.send()
    job.await_all()
    assert job.has_all_once()
    assert job.planner().pid != planner.pid
    assert not planner.is_running()

    batches = len(planned(job.kind, job.query))
    job.send()
    job.await_batches(batches + 1)
    planner, jvm = job.planner(), job.kind.jvm()
    jvm.terminate()
    job.await_log("stopping at the next batch boundary")
    planner.suspend()
    job.await_log("Headgate asks the next planner to stop")
    assert job.await_end() == 128 + signal.SIGTERM
    assert planned(job.kind, job.query) == committed(job.kind, job.query)
    assert job.has_all_once()


def once_only(folder: Path) -> str:
    """Return a Python that can be started once."""
    marker = folder / "started"
    return script(folder / "once", f'test -e {marker} && exit 7; touch {marker}; exec {sys.executable} "$@"')


def test_a_query_whose_planner_is_given_up_goes_on_at_its_own_interval(kafka: Broker, tmp_path: Path):
    """Its trigger was made shorter than that, and stays so.

    The first batch may be overdue, and begin between two points of the trigger's grid; the others begin at one each.
    """
    interval = 5
    with a_job(kafka, tmp_path, f"{interval} seconds") as job:
        job.start(python=once_only(tmp_path))
        job.await_all()
        job.planner().kill()
        job.await_log(GAVE_UP)
        governed = planned(job.kind, job.query)
        for _ in range(3):
            job.send()
            job.await_all()
        assert job.has_all_once()
        later = [batch for batch in planned(job.kind, job.query) if batch not in governed]
        _, second, third = (planned_at(job.kind, job.query, batch) for batch in later)
        assert third - second > interval / 2


def test_a_query_that_is_to_be_governed_or_fail_fails_when_its_planner_is_given_up(job: Job, tmp_path: Path):
    job.start(python=once_only(tmp_path), onFailure="fail")
    job.await_all()
    job.planner().kill()
    assert job.await_end() != 0
    assert "Headgate cannot govern this query: the planner's process has ended 3 times" in job.kind.log


def test_a_port_that_is_taken_and_a_jar_that_is_there_in_two_versions_change_nothing(
    job: Job, tmp_path: Path
):
    """Nor does a temporary folder that the planner's Python cannot use."""
    file = tmp_path / "file"
    file.touch()
    job.kind.variables = {"TMPDIR": str(file / "below")}
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        another = another_version(tmp_path / "another")
        job.kind.more = {
            "spark.driver.extraClassPath": str(jar_path()),
            "spark.jars": ",".join(map(str, (another, *connector_jars()))),
            "spark.sql.extensions": "dev.headgate.spark.Extensions,dev.headgate.spark.Extensions",
        }
        job.start(metrics_port=str(port))
        job.await_log("metrics are served on the next free one")
    job.await_all()
    job.send()
    job.await_all()
    assert job.has_all_once()
    assert job.kind.log.count("source opened") == 1
    assert two_versions(jar_path(), another) in job.kind.log
    assert job.kind.log.count("in two versions") == 1
    os.kill(job.kind.jvm().pid, signal.SIGTERM)
    job.await_end()
    assert "Exception" not in job.kind.log


WHAT_THE_LATER_SAYS = ("CONCURRENT_STREAM_LOG_UPDATE", "Race while writing batch")


def test_of_a_governed_query_and_a_session_without_the_property_that_share_a_checkpoint_one_ends(
    spark: SparkSession, kafka: Broker, tmp_path: Path
):
    """Only one of them has our fence, and Spark refuses an entry that is there."""
    keep = "spark.sql.streaming.fileSink.log.compactInterval"
    query = Query("copy", (kafka.topic(),), 0, tmp_path, "100 milliseconds")
    plain = Job(Java(tmp_path / "plain", kafka.bootstrap), kafka, query)
    plain.send()
    frame = spark.readStream.format("kafka").options(**kafka.options(query.topics[0])).load()
    frame = frame.selectExpr("topic", "CAST(value AS STRING) AS value", "timestamp", "'' AS worked")
    spark.conf.set(keep, "100000")
    with driver_in(spark, is_fenced=True) as driver, plain.kind:
        driver.control(copy=QueryControl(interval_seconds=1))
        with driver.running(frame, query.checkpoint, to=query.out, name="copy") as governed:
            plain.await_all()
            plain.kind.start([query], {})

            def one_has_ended() -> bool:
                plain.send(1)
                return plain.kind.has_failed or not governed.isActive

            wait_until(
                one_has_ended, "the end of one of them", WAIT_SECONDS, seen=lambda: plain.kind.log[-4000:]
            )
            assert governed.isActive == plain.kind.has_failed
            said = plain.kind.log if governed.isActive else str(governed.exception())
            assert any(words in said for words in WHAT_THE_LATER_SAYS)
            plain.send()
            plain.await_all()
    spark.conf.unset(keep)
    assert plain.has_all_once()
    assert audit_checkpoints(tmp_path) > 0
