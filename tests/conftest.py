"""What holds for every test, and the servers that tests of several folders share.

`make test` runs several workers side by side. Tests that share something for a session (a Spark driver and a broker,
a control plane, nodes) are one piece of work, so that it is started once. Each other file is a piece, so that what
its module makes is made once; of two files that start drivers for minutes each test is one. The longest pieces are
handed out first, and then whatever is left to whoever is free, so that all workers end at about the same time.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from laws.cover import audit_checkpoints
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from support import plain_logs
from support.cluster import Cluster
from support.control_plane import control_plane_in
from support.kafka import Broker, kafka_in
from support.one_screen import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]

# Workers and drivers are many, and import much: each would compile it all again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
COMPILED = str(Path(__file__).parent / "data" / "workers")
if COMPILED not in os.environ.get("PYTHONPATH", ""):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (COMPILED, os.environ.get("PYTHONPATH"))))

# An API server may then hold five times what it needs. By Go's default it is twice, and a quarter of the processor
# time that it takes to start goes into collecting.
os.environ.setdefault("GOGC", "400")

gc.disable()  # until all tests are collected

# Whoever imports NumPy, as Spark's Python workers do, else has a thread for each processor that waits by looking.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says how busy the machine is, and nothing about the code. Each run of `make test` tries
# the same examples, so that a failure is of the change; `explore` looks for ones that nobody has thought of, and
# `quick` tries few of them.
settings.register_profile(
    "headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("explore", settings.get_profile("headgate"), derandomize=False, max_examples=1000)
settings.register_profile("quick", settings.get_profile("headgate"), max_examples=10, stateful_step_count=15)
settings.load_profile("headgate")
plain_logs.configure()

NODES, SPARK, KAFKA = "nodes", "a Spark driver", "a Spark driver and a broker"
CONTROL_PLANE, ADMISSION = "a control plane", "an API server that admits or refuses"
PROMETHEUS = "a Prometheus, and a control plane"
ARTEFACTS = "a build of what a release hands out"
DOOR = "a driver of each kind of job, and a broker"
SHARED = {
    **dict.fromkeys(("chart", "gitops", "operator", "operator_process"), CONTROL_PLANE),
    **dict.fromkeys(("cli", "prometheus"), PROMETHEUS),
    **dict.fromkeys(("backfill", "spark"), SPARK),
    **dict.fromkeys(("kafka", "backfill/test_kafka.py", "runtime/test_topics.py"), KAFKA),
    "api": ADMISSION,
    "cluster": NODES,
    "door": DOOR,
    "release": ARTEFACTS,
}
"""What the tests of a folder, or of one file of it, share; each other file is a piece of its own."""
PROGRAMS = {"control_plane", "with_controllers", "kubernetes"}
"""Fixtures that run programs built with Go; a test that has one of them is marked by that."""
APART = ("test_launch.py", "test_launch_mid_batch.py")
"""Files whose tests start drivers of their own and together take minutes: each test is a piece."""
LONGEST = (
    DOOR,
    KAFKA,
    SPARK,
    CONTROL_PLANE,
    NODES,
    PROMETHEUS,
    "test_executors.py",
    "test_fence_races.py",
    "test_local_spark.py",
    "test_hybrid.py",
    "test_memory_failures.py",
    "test_task_memory.py",
    "test_planner_process.py",
    "test_planner_failures.py",
    "test_a_jvm_that_was_killed_by_hand_again_and_again_makes_no_batch_smaller",
    "test_backlog_conf.py",
    ARTEFACTS,
    ADMISSION,
    "test_own_settings.py",
    "test_sizing_simulations.py",
    "test_every_field.py",
)
LONG_SECONDS = 30
"""What `LONGEST` has takes more than that, the longest first; the end of a run tells."""


class LongestFirst(LoadScopeScheduling):
    """Hands the longest piece that is left to a worker that has nothing more to do."""

    def _split_scope(self, nodeid: str) -> str:
        return _piece(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_rank), last=False)
        super()._assign_work_unit(node)


def _piece(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    if os.environ.get("HEADGATE_TEST_QUICK"):  # nothing is shared there but what a module makes
        return file
    _, folder, name = file.split("/", 2)
    alone = nodeid if name in APART else file
    return SHARED.get(f"{folder}/{name}") or SHARED.get(folder, alone)


def _rank(piece: str) -> int:
    name = piece.rpartition("::")[2].rpartition("/")[2]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs programs by the fixtures that it has."""
    for item in items:
        if isinstance(item, pytest.Function) and not PROGRAMS.isdisjoint(item.fixturenames):
            item.add_marker("programs")


@pytest.hookimpl(optionalhook=True)
def pytest_collection_finish() -> None:
    """Have Python's collector not look again and again at all tests: they stay until the end."""
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst:
    """Say which worker runs a test, where there are workers; without the plugin (`-p no:xdist`) nobody asks."""
    return LongestFirst(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell how long each worker was at work, which should be about the same, and what took it longest."""
    workers: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and hasattr(report, "worker_id"):
                workers[report.worker_id] += report.duration
                pieces[_piece(report.nodeid)] += report.duration
    for worker, worked in sorted(workers.items()):
        terminalreporter.write_line(f"{worker} was at work for {worked:.0f} s")
    for piece, took in pieces.most_common():
        if took >= LONG_SECONDS:
            terminalreporter.write_line(f"{took:6.0f} s  {piece}")


@pytest.fixture
def logs_change() -> None:
    """For a test that has topics deleted or created anew: its offsets may go back."""


@pytest.fixture
def logs_are_forged() -> None:
    """For a test that writes entries of a checkpoint itself: nothing is to be said of them."""


@pytest.fixture(autouse=True)
def covered_checkpoints(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the checkpoints of each test with Spark say was read, was read once and in its order (`laws.cover`).

    It looks where such a test has its files, which costs a walk through one folder, and leaves all others alone.
    """
    has_spark = request.node.get_closest_marker("spark") is not None
    if not has_spark or "tmp_path" not in request.fixturenames or "logs_are_forged" in request.fixturenames:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    yield
    audit_checkpoints(folder, logs_may_change="logs_change" in request.fixturenames)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server with our CRD; without controllers, so that only tests change objects."""
    with control_plane_in(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def with_controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real API server with our CRD, kube-controller-manager and kube-scheduler, but no node."""
    with control_plane_in(tmp_path_factory.mktemp("with-controllers"), controllers=True) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: Cluster) -> str:
    """A namespace of `control_plane` for one test."""
    return control_plane.namespace()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; each test makes topics of its own. Who stops a broker starts another with `kafka_in`."""
    with kafka_in(tmp_path_factory.mktemp("kafka") / "broker") as broker:
        yield broker
