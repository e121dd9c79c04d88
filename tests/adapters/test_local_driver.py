"""The subprocess adapter against real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.adapters.local import driver as local_driver
from headgate.adapters.local import processes
from headgate.adapters.local.driver import LocalDrivers, local_conf, require_script, script_path
from headgate.adapters.local.state_dir import StateDir, StateDirInUseError
from headgate.adapters.metrics.scrape import DriverScrape
from headgate.decision.driver import SeenDriver
from headgate.errors import InvalidInputError
from headgate.reconcile.launch import Launch, launch_of
from headgate.reconcile.ports import Outage, OutageReason
from support.looping import application
from support.waiting import wait_until

pytestmark = pytest.mark.processes

GRACE = 120.0
FAKE_DRIVER = (sys.executable, str(Path(__file__).parents[1] / "support" / "fake_driver.py"))


class Place:
    """A folder with a job in it, and the drivers that run it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = StateDir(root / "state")
        self.files.root.mkdir()
        self.job()
        self.drivers = LocalDrivers(self.files, root, FAKE_DRIVER)

    def job(self, **behaviour: Any) -> None:
        (self.root / "job.json").write_text(json.dumps(behaviour))

    def launch(self, **main: Any) -> Launch:
        return launch_of(application(main={"file": "job.json", **main}), in_backlog=False)

    def start(self, attempt: int = 1) -> None:
        self.drivers.start(self.launch(), attempt, time.time())

    def started(self, attempt: int = 1) -> SeenDriver:
        self.start(attempt)
        return wait_until(lambda: (seen := self.seen()).is_ready and seen, "the driver is ready")

    def seen(self) -> SeenDriver:
        driver = self.drivers.observe(time.time())
        assert driver is not None
        return driver

    def ended(self) -> SeenDriver:
        return wait_until(lambda: (seen := self.seen()).exit and seen, "the driver has ended")

    @property
    def log(self) -> str:
        return self.files.log.read_text()

    @property
    def pid(self) -> int:
        assert self.drivers.pid is not None
        return self.drivers.pid


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.drivers.kill()


def test_a_driver_is_started_announces_itself_and_ends_with_its_code(place: Place) -> None:
    assert place.drivers.observe(time.time()) is None
    may_end = place.root / "may-end"
    place.job(runsSeconds=0, stopsAfter=str(may_end))
    driver = place.started()
    assert (driver.attempt, driver.revision, driver.exit) == (1, place.launch().revision, None)
    may_end.touch()
    ended = place.ended().exit
    assert ended is not None
    assert ended.code == 0


def test_the_driver_gets_its_arguments_one_by_one(place: Place) -> None:
    launch = launch_of(
        application(
            main={"file": "job.json", "arguments": ["--out", "a b", "$HOME", "--conf"]},
            sparkConf={"spark.x": "1=2 3"},
        ),
        in_backlog=False,
    )
    place.drivers.start(launch, 1, time.time())
    # A line may be read while it is being written: only one that has its end counts.
    conf = re.compile(r"^conf (.*)\n", re.MULTILINE)
    wait_until(lambda: conf.search(place.log), "the driver printed its arguments")
    printed = dict(line.split(" ", 1) for line in place.log.splitlines() if line.startswith(("arg", "conf")))
    assert json.loads(printed["arguments"]) == ["--out", "a b", "$HOME", "--conf"]
    assert "spark.x=1=2 3" in json.loads(printed["conf"])


def test_asking_twice_for_an_attempt_starts_one_driver(place: Place) -> None:
    place.started()
    pid = place.pid
    place.start(attempt=1)
    assert place.pid == pid


def test_a_stop_lets_the_driver_end_at_a_batch_boundary(place: Place) -> None:
    place.started()
    place.drivers.stop(GRACE)
    place.drivers.stop(GRACE)
    ended = place.ended().exit
    assert ended is not None
    assert ended.code == 0
    assert "stopped at a batch boundary" in place.log


def test_a_kill_ends_a_driver_that_ignores_the_stop_with_all_that_it_started(place: Place) -> None:
    place.job(ignoresStop=True, leavesChild=True)
    place.started()
    wait_until(lambda: "child" in place.log, "the driver has a child")
    child = int(place.log.split("child ")[1].split()[0])
    place.drivers.stop(GRACE)
    assert place.seen().exit is None
    place.drivers.kill()
    ended = place.ended().exit
    assert ended is not None
    assert ended.code == 128 + signal.SIGKILL
    assert processes.start_mark(child) is None


def test_a_driver_counts_as_alive_while_anything_it_started_lives(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.job(leavesChild=True)
    place.started()
    os.kill(place.pid, signal.SIGKILL)
    wait_until(lambda: processes.start_mark(place.pid) is None, "the Python process has ended")
    assert place.seen().exit is None
    monkeypatch.setattr(local_driver, "LINGER_SECONDS", 0.0)
    ended = place.ended().exit
    assert ended is not None
    assert ended.code == 128 + signal.SIGKILL
    assert not processes.group_is_alive(place.pid)


def test_a_new_loop_finds_the_driver_of_the_one_before(place: Place) -> None:
    before = place.started()
    place.drivers = LocalDrivers(place.files, place.root, FAKE_DRIVER)
    assert place.seen() == before
    place.drivers.stop(GRACE)
    ended = place.ended().exit
    assert ended is not None
    assert ended.code == 0


def test_a_driver_that_ended_while_no_loop_was_there_has_its_exit_code(place: Place) -> None:
    place.job(exitCode=75)
    place.start()
    place.drivers._child.wait(240)  # type: ignore[union-attr]
    place.drivers = LocalDrivers(place.files, place.root, FAKE_DRIVER)
    assert place.seen().exit is not None
    assert place.ended().exit.code == 75  # type: ignore[union-attr]


def test_nobody_knows_the_exit_code_of_a_driver_that_was_killed_with_its_keeper(place: Place) -> None:
    place.started()
    place.drivers.kill()
    place.drivers = LocalDrivers(place.files, place.root, FAKE_DRIVER)
    ended = place.ended().exit
    assert ended is not None
    assert ended.code is None


def test_the_exit_code_of_one_attempt_is_not_that_of_the_next(place: Place) -> None:
    place.job(exitCode=75)
    place.start()
    assert place.ended().exit.code == 75  # type: ignore[union-attr]
    place.job()
    place.started(attempt=2)
    place.drivers.kill()
    place.drivers = LocalDrivers(place.files, place.root, FAKE_DRIVER)
    ended = place.ended().exit
    assert ended is not None
    assert ended.code is None


def test_a_stranger_with_the_same_pid_is_not_taken_for_the_driver(place: Place) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        record = {"attempt": 3, "revision": "x", "pid": stranger.pid, "startMark": "1", "startedAt": 1.0}
        place.files.driver.write_text(json.dumps(record))
        place.drivers = LocalDrivers(place.files, place.root, FAKE_DRIVER)
        assert place.seen().exit is not None
        place.drivers.kill()
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n", timeout=240)


def test_a_driver_that_is_not_recorded_never_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: object) -> None:
        raise RuntimeError("the loop dies here")

    monkeypatch.setattr(place.drivers, "_write", crash)
    with pytest.raises(RuntimeError):
        place.start()
    child = place.drivers._child
    assert child is not None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(240) != 0
    assert "arguments" not in place.log


def test_a_script_that_is_missing_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"spec.main.file.*nowhere.py.*relative path starts at"):
        require_script("nowhere.py", tmp_path)
    with pytest.raises(
        InvalidInputError, match=r"spec.main.file: .*xxx: File name too long; a relative path"
    ):
        require_script(300 * "x", tmp_path)


@pytest.mark.parametrize("scheme", ["", "local://", "file://"])
def test_a_script_may_be_given_as_a_path_or_a_local_address(scheme: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").touch()
    assert script_path(f"{scheme}{tmp_path}/job.py", Path("/elsewhere")) == tmp_path / "job.py"
    assert script_path("job.py", tmp_path) == tmp_path / "job.py"


def test_a_script_that_lies_in_an_object_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"s3a://lake/job.py is not on this machine"):
        script_path("s3a://lake/job.py", tmp_path)


@pytest.mark.parametrize(
    ("executor", "conf", "master"),
    [
        ({"instances": 1, "cores": 1}, {}, "local[1]"),
        ({"instances": 500, "cores": 2}, {}, f"local[{os.cpu_count()}]"),
        ({"instances": 1, "cores": 1}, {"spark.master": "local[7]"}, "local[7]"),
    ],
)
def test_the_executors_cores_become_threads_as_far_as_there_are_any(
    executor: dict[str, int], conf: dict[str, str], master: str
) -> None:
    launch = launch_of(application(executor=executor, sparkConf=conf), in_backlog=False)
    assert local_conf(launch)["spark.master"] == master
    assert local_conf(launch)["spark.driver.memory"] == "1g"


# Metrics ------------------------------------------------------------------------------------------


def test_metrics_are_scraped_from_where_the_driver_announced_them(place: Place) -> None:
    place.job(sources={"flights": {"pending_records": 7}})
    scrape = DriverScrape(place.drivers.locate, timeout_seconds=60)
    outage = scrape.sample(1.0, attempt=1)
    assert isinstance(outage, Outage)
    assert outage.reason is OutageReason.DRIVER_STARTING
    place.started()
    found = scrape.sample(5.0, attempt=1)
    assert not isinstance(found, Outage)
    (query,) = found.queries.values()
    assert (found.at, query.sources["flights"].pending_records) == (5.0, 7.0)


def test_a_driver_that_hangs_is_an_outage_in_time(place: Place) -> None:
    place.started()
    place.job(hangs=60)
    outage = DriverScrape(place.drivers.locate, timeout_seconds=0.2).sample(1.0, attempt=1)
    assert isinstance(outage, Outage)
    assert outage.reason is OutageReason.SCRAPE_TIMEOUT


def test_a_driver_that_is_gone_is_an_outage(place: Place) -> None:
    place.started()
    place.drivers.kill()
    place.ended()
    outage = DriverScrape(place.drivers.locate).sample(1.0, attempt=1)
    assert isinstance(outage, Outage)
    assert outage.reason is OutageReason.CONNECTION_FAILED


DAMAGED_ANNOUNCEMENTS = (
    "{", "[]", "7", "[" * 100_000, "{}", '{"metricsPort": 1e400}', '{"metricsPort": -1}', '{"metricsPort": 65536}',
    '{"metricsPort": "80"}', '{"metricsPort": true}', '{"metricsPort": 80.5}', "\ufffd",
)  # fmt: skip


@pytest.mark.parametrize("announcement", DAMAGED_ANNOUNCEMENTS, ids=lambda text: text[:24])
def test_a_damaged_announcement_is_an_outage_that_says_so(announcement: str, place: Place) -> None:
    place.files.announcement.write_text(announcement)
    outage = place.drivers.locate()
    assert isinstance(outage, Outage)
    assert outage.reason is OutageReason.MALFORMED
    assert str(place.files.announcement) in outage.message


def test_the_last_words_of_a_driver_are_those_of_its_announcement(place: Place) -> None:
    may_end = place.root / "may-end"
    place.job(runsSeconds=0, stopsAfter=str(may_end))
    place.started()
    announced = json.loads(place.files.announcement.read_text())
    place.files.announcement.write_text(json.dumps({**announced, "note": "there was nothing to do"}))
    may_end.touch()
    ended = place.ended()
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.note) == (0, "there was nothing to do")


def test_a_driver_that_has_failed_tells_of_what_by_the_end_of_its_log(place: Place) -> None:
    cause = "query reader: source orders: topic orders does not exist at broker:9092; create it"
    place.job(
        exitCode=1, output=f"StreamingQueryException: [STREAM_FAILED]\nheadgate-run: error: {cause}\nbye"
    )
    place.start()
    ended = place.ended()
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.note) == (1, cause)


# The state folder ---------------------------------------------------------------------------------


def test_a_state_folder_is_locked_and_the_holder_is_named(tmp_path: Path) -> None:
    files = StateDir(tmp_path / "state")
    with files.lock(), pytest.raises(StateDirInUseError, match=f"pid {os.getpid()}") as caught:
        files.lock()
    assert caught.value.exit_code == 75
    with files.lock():
        pass


@pytest.mark.parametrize(
    "record",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"attempt": "x"}',
        '{"attempt": 1, "revision": "r", "pid": 0, "startedAt": 1.0}',
        '{"attempt": -1, "revision": "r", "pid": 4711, "startedAt": 1.0}',
        '{"attempt": 1, "revision": "r", "pid": 4711, "startedAt": 1e400}',
        '{"attempt": 1, "revision": "r", "pid": 1' + "0" * 30 + ', "startedAt": 1.0}',
    ],
)
def test_a_damaged_record_counts_as_none(record: str, tmp_path: Path) -> None:
    state_dir = StateDir(tmp_path)
    state_dir.driver.write_text(record)
    drivers = LocalDrivers(state_dir, tmp_path)
    assert drivers.observe(now=2.0) is None
    drivers.kill()
