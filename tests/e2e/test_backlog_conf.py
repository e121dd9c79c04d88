"""`duringBacklog.sparkConf` with real drivers: restarts at the end of a batch, into the properties and out of them.

The loop is that of `headgate local` with all of its parts. Its clock is the test's, so that what takes half an hour
is over in half a minute; the job ends a batch when the test lets it, so that nothing depends on what is quick.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headgate.adapters.local.state_dir import StateDir
from headgate.api.application import SparkApplication
from headgate.api.validation import validate
from headgate.decision.backlog_conf import ConfReason
from headgate.decision.conf_choice import COOL_DOWN_SECONDS, MINIMUM_UPTIME_SECONDS
from headgate.decision.driver import State
from headgate.factory.local import local_application
from headgate.reconcile.loop import Outcome, recall, reconcile
from support.driver import CONF, ENVIRONMENT, recording
from support.local_runs import kill_driver
from support.waiting import wait_until

pytestmark = pytest.mark.spark

JOB = Path(__file__).parent / "jobs" / "rationed.py"
START, STEP_SECONDS = 1.7e9, 1e-5
ROWS, BACKLOG, BATCH = 7_000, 4_000, 1_000
"""All of it, what of that is there at once, and what one batch takes."""
ROWS_PER_FILE = 100
"""Of the files that are written while in backlog; otherwise Spark writes a batch of this size to one file."""
SCRAPE_SECONDS = 150.0
"""How far the clock is put forward between two looks at the driver; four of them may fail before that matters."""
WAIT_SECONDS = 240.0


def declared(folder: Path) -> SparkApplication:
    cut = datetime.fromtimestamp(START + BACKLOG * STEP_SECONDS, UTC).isoformat()
    query = {
        "name": "rationed",
        "checkpoint": {"interval": "200ms", "intervalDuringBacklog": "1h"},
        "batch": {"initialRecords": BATCH, "maxRecords": BATCH},
        "backlog": {"reentry": {"dwell": "1s"}},
        "sources": [{"name": "source", "backlog": {"pendingRecords": BATCH // 2}}],
    }
    content = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "rationed"},
        "spec": {
            "main": {"file": str(JOB), "arguments": [str(folder), cut]},
            "sparkConf": CONF,
            "duringBacklog": {"sparkConf": {"spark.sql.files.maxRecordsPerFile": str(ROWS_PER_FILE)}},
            "stop": {"gracePeriod": "10m"},
            "metrics": {"staleAfter": "10m"},
            "queries": [query],
        },
    }
    accepted, findings = validate(content)
    assert accepted is not None, findings
    return accepted


class Run:
    """`headgate local`, driven by hand, with a clock that can be put forward."""

    def __init__(self, folder: Path) -> None:
        self.application = declared(folder)
        self.signs = folder / "signs"
        self.signs.mkdir()
        self.state = StateDir(folder / "state")
        self.state.root.mkdir()
        self.ports = local_application(self.state, folder, self._complains).ports
        self.memory = recall(self.ports, self._complains)
        self.told: list[str] = []
        self._ahead = 0.0

    def reconcile(self) -> Outcome:
        """Reconcile once."""
        outcome = reconcile(self.application, self.ports, self.memory, self._now, jitter=0.5)
        self.memory = outcome.memory
        self.told += [event.reason for event in outcome.events]
        return outcome

    def reconcile_until(self, accept: Callable[[Outcome], object], what: str) -> Outcome:
        """Reconcile until an outcome is accepted."""

        def accepted() -> Outcome | None:
            outcome = self.reconcile()
            return outcome if accept(outcome) else None

        return wait_until(accepted, what, WAIT_SECONDS, seen=self.__str__)

    def reconcile_until_reason(self, reason: ConfReason) -> Outcome:
        """Reconcile until its choice has this reason."""
        return self.reconcile_until(lambda o: o.plan.choice and o.plan.choice.reason is reason, reason)

    def reconcile_until_begun(self, batch: int) -> Path:
        """Reconcile until the job has written a batch, which then waits; returns the sign."""
        sign = self.signs / f"begun-{batch}"
        self.reconcile_until(lambda _: sign.exists(), f"batch {batch}")
        return sign

    def passes(self, seconds: float) -> None:
        """Put the clock forward, with looks at the driver on the way."""
        end = self._ahead + seconds
        while self._ahead < end:
            self._ahead = min(end, self._ahead + SCRAPE_SECONDS)
            self.reconcile()

    def lets_go(self, batch: int | None = None) -> None:
        """Let a batch end; without one, all that are to come."""
        (self.signs / ("go" if batch is None else f"go-{batch}")).touch()

    def waits_for_the_end_of_the_driver(self) -> None:
        """Look at the driver until it has ended, without a reconcile that would start the next one."""

        def ended() -> bool:
            driver = self.ports.drivers.observe(self._now)
            return driver is None or driver.exit is not None

        wait_until(ended, "the end of the driver", WAIT_SECONDS, seen=self.__str__)

    def suspend(self) -> None:
        """Set `spec.suspend`."""
        spec = self.application.spec.model_copy(update={"suspend": True})
        self.application = self.application.model_copy(update={"spec": spec})

    @property
    def _now(self) -> float:
        return time.time() + self._ahead

    @property
    def log(self) -> str:
        """What the drivers have printed."""
        return self.state.log.read_text() if self.state.log.exists() else ""

    def _complains(self, complaint: str) -> None:
        raise AssertionError(complaint)

    def __str__(self) -> str:
        return f"told {self.told}\ndriver {self.log[-3000:]}"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    recording(tmp_path / "source", ROWS, start=START, step=STEP_SECONDS)
    run = Run(tmp_path)
    try:
        yield run
    finally:
        kill_driver(run.state.root)


def heard_in_backlog(outcome: Outcome) -> bool:
    """Whether the verdict and the speed of the query are known, so that a restart can be judged by them."""
    found = outcome.seen.query("rationed")
    is_in_backlog = outcome.plan.verdicts["rationed"].backlog
    return is_in_backlog and found is not None and found.throughput is not None


def runs_out_its_time(run: Run, seconds: float, since: Path) -> None:
    """Keep a batch for so long, from the moment at which it had written its records."""
    end = since.stat().st_mtime + seconds
    run.reconcile_until(lambda _: time.time() > end, "the end of a slow batch")


def files_of(folder: Path) -> dict[int, set[int]]:
    """Return by batch how many rows its files have."""
    return {
        int(batch.name.removeprefix("batch=")): {
            pq.read_metadata(file).num_rows for file in batch.glob("*.parquet")
        }
        for batch in (folder / "out").iterdir()
    }


def ids_of(folder: Path) -> list[int]:
    files = (folder / "out").glob("batch=*/*.parquet")
    return sorted(value for file in files for value in pq.ParquetFile(file).read()["id"].to_pylist())


def enters_backlog(run: Run) -> None:
    """The first driver clears a part of the backlog, and is restarted for the rest at the end of a batch."""
    run.lets_go(batch=0)
    run.reconcile_until_begun(batch=1)
    run.reconcile_until(heard_in_backlog, "a backlog of known speed")
    run.reconcile_until_reason(ConfReason.MINIMUM_UPTIME)
    run.passes(MINIMUM_UPTIME_SECONDS)
    run.reconcile_until_reason(ConfReason.RESTARTING)
    run.reconcile_until(lambda _: "stopping at the next batch boundary" in run.log, "a driver that stops")
    assert run.reconcile().plan.step.state is State.STOPPING, "its batch has not ended"
    run.lets_go(batch=1)


def finds_no_gain(run: Run) -> None:
    """The second driver has the properties, and is no faster: a batch is kept for longer than the first one took."""
    begun = run.reconcile_until_begun(batch=2)
    trial = run.memory.kept.backlog_conf.trial
    assert trial is not None
    runs_out_its_time(run, BATCH / trial.before["rationed"], since=begun)
    run.lets_go(batch=2)
    run.reconcile_until_begun(batch=3)
    run.reconcile_until(heard_in_backlog, "a backlog of known speed")
    run.passes(MINIMUM_UPTIME_SECONDS)
    run.reconcile_until_reason(ConfReason.INEFFECTIVE_RESTART)
    assert run.memory.kept.backlog_conf.in_force, "until this backlog is over"


def leaves_backlog(run: Run) -> None:
    """The backlog ends, and after the cool-down the driver is asked to go back to its usual properties."""
    run.lets_go(batch=3)
    run.reconcile_until(lambda o: not o.plan.verdicts["rationed"].backlog, "the end of the backlog")
    run.passes(COOL_DOWN_SECONDS)
    outcome = run.reconcile_until_reason(ConfReason.RESTARTING)
    assert outcome.plan.step.state is State.STOPPING, "or the next reconcile might start another driver"


def falls_behind_again(run: Run, live: Path) -> None:
    """The rest arrives while no driver runs; the third one is not restarted for it, however long it takes."""
    run.waits_for_the_end_of_the_driver()
    live.touch()
    os.utime(live, (START, START))  # so all of it has arrived
    run.reconcile_until_begun(batch=4)
    run.reconcile_until(lambda o: o.plan.verdicts["rationed"].backlog, "a second backlog")
    run.passes(COOL_DOWN_SECONDS + MINIMUM_UPTIME_SECONDS)
    outcome = run.reconcile_until_reason(ConfReason.INEFFECTIVE_RESTART)
    assert (outcome.plan.step.state, outcome.plan.step.history.attempt) == (State.RUNNING, 3)


def stops(run: Run) -> None:
    """All is read, and a person suspends the application."""
    run.lets_go()
    run.reconcile_until(lambda o: not o.plan.verdicts["rationed"].backlog, "the end of the second backlog")
    run.suspend()
    run.reconcile_until(lambda o: o.plan.step.state is State.SUSPENDED, "a suspension")


def test_a_backlog_that_lasts_has_its_properties_and_what_did_not_help_is_not_repeated(
    run: Run, tmp_path: Path
) -> None:
    enters_backlog(run)
    finds_no_gain(run)
    leaves_backlog(run)
    falls_behind_again(run, tmp_path / "live")
    stops(run)
    assert run.told.count("Restarting") == 2
    assert run.told.count("IneffectiveRestart") == 2, "once in each backlog"
    usual, in_backlog = {BATCH}, {ROWS_PER_FILE}
    files = files_of(tmp_path)
    assert [files[batch] for batch in range(5)] == [usual, usual, in_backlog, in_backlog, usual]
    assert ids_of(tmp_path) == list(range(ROWS))
