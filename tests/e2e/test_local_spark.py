"""`headgate local` with the real runtime and real Spark: a job that knows nothing of Headgate."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.driver import CONF, ENVIRONMENT, ids_in, recording
from support.local_runs import Line, LocalRun, command, local_run
from support.waiting import wait_until

pytestmark = pytest.mark.spark

JOB = Path(__file__).parent / "jobs" / "copies.py"
START = 1.7e9
STEP_SECONDS = 0.001
ROWS = 15_000
BACKLOG = 10_000
"""So many of them are there at once."""
WAIT_SECONDS = 240.0


def declare(folder: Path, *, rows: int, backlog: int, names: tuple[str, ...], **batch: Any) -> None:
    """Write recordings and a resource: `backlog` of the `rows` are there at once, the rest after `live`."""
    for name in names:
        recording(folder / name, rows, start=START, step=STEP_SECONDS)
    cut = datetime.fromtimestamp(START + backlog * STEP_SECONDS, UTC).isoformat()
    resource = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "copies"},
        "spec": {
            "main": {"file": str(JOB), "arguments": [str(folder), cut, *names]},
            "sparkConf": CONF,
            "restart": {"backoff": "100ms"},
            "queries": [
                {
                    "name": f"copy-{name}",
                    "checkpoint": {"interval": "200ms", "intervalDuringBacklog": "5s"},
                    "live": {"mode": "RealTime"},
                    "batch": batch,
                    "sources": [{"name": name, "backlog": {"pendingRecords": 5_000}}],
                }
                for name in names
            ],
        },
    }
    (folder / "app.yaml").write_text(yaml.safe_dump(resource))


@contextmanager
def running(folder: Path, *options: str) -> Iterator[LocalRun]:
    with local_run(folder, "copies", "--tick", "0.2", *options, environment=ENVIRONMENT) as run:
        yield run


def every_query(sample: Line, accept: Any) -> bool:
    return bool(sample["queries"]) and all(accept(query) for query in sample["queries"].values())


def processed(query: Line) -> float:
    return sum(source.get("processedRecords", 0) for source in query["sources"].values())


def stop(run: LocalRun) -> None:
    run.interrupt()
    assert run.wait() == 0, str(run)


def test_two_queries_clear_their_backlog_then_run_live_and_stop_cleanly(tmp_path: Path) -> None:
    batches = {"initialRecords": 2_000, "maxRecords": 2_000}  # so many that the backlog is seen on the way
    declare(tmp_path, rows=54_000, backlog=50_000, names=("left", "right"), **batches)
    with running(tmp_path) as run:
        for query in ("copy-left", "copy-right"):
            run.wait_for_sample(
                lambda s, query=query: s["queries"].get(query, {}).get("reason") == "PendingRecords",
                f"{query} in backlog",
                WAIT_SECONDS,
            )
        cleared = run.wait_for_sample(
            lambda s: every_query(s, lambda q: not q["backlog"] and processed(q) >= 50_000),
            "both backlogs cleared",
            WAIT_SECONDS,
        )
        (tmp_path / "live").touch()
        live = run.wait_for_sample(
            lambda s: every_query(s, lambda q: processed(q) == 54_000), "all of it read", WAIT_SECONDS
        )
        assert every_query(live, lambda q: q["intervalSeconds"] == 0.2)
        refused = {query["realTimeRefused"] for query in live["queries"].values()}
        assert all("real-time mode" in why for why in refused), refused
        assert cleared["attempt"] == live["attempt"] == 1
        stop(run)
        assert run.reasons.count("BacklogLeft") == 2
    for name in ("left", "right"):
        assert sorted(ids_in(tmp_path / f"copied-{name}")) == list(range(54_000))


def test_a_killed_driver_goes_on_and_a_second_run_is_refused_its_checkpoint(tmp_path: Path) -> None:
    declare(tmp_path, rows=ROWS, backlog=BACKLOG, names=("left",), initialRecords=1_000, maxRecords=1_000)
    with running(tmp_path) as run:
        before = run.wait_for_sample(
            lambda s: every_query(s, lambda q: q.get("batches", 0) >= 2), "two batches", WAIT_SECONDS
        )
        os.kill(before["pid"], signal.SIGKILL)  # the keeper: what it leaves behind may read the whole backlog
        run.wait_for_sample(lambda s: s["attempt"] == 2, "the second attempt", WAIT_SECONDS)
        (tmp_path / "live").touch()
        run.wait_for_sample(
            lambda s: s["attempt"] == 2 and every_query(s, lambda q: q.get("batches", 0) >= 1),
            "a batch of the second attempt",
            WAIT_SECONDS,
        )
        wait_until(
            lambda: len(ids_in(tmp_path / "copied-left")) >= ROWS,
            "all of it copied",
            WAIT_SECONDS,
            seen=run.__str__,
        )
        refused_beside(run)
        stop(run)
        assert run.samples[-1]["attempt"] == 2, "the first one runs on"
    assert sorted(ids_in(tmp_path / "copied-left")) == list(range(ROWS))
    with (tmp_path / "checkpoint-left.headgate" / "lock").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the next run would be refused


def refused_beside(run: LocalRun) -> None:
    """Start the same job once more, with a state folder of its own: it is told who holds the checkpoint."""
    second = subprocess.run(
        command("--state-dir", str(run.folder / "second")),
        cwd=run.folder,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
        env=os.environ | ENVIRONMENT,
    )
    assert second.returncode == 75, second.stderr
    told = f"is in use by the run with pid {holder_pid(run)} on host {socket.gethostname()};"
    assert told in " ".join(second.stderr.split())


def holder_pid(run: LocalRun) -> str:
    """The process that runs the job: its shell, which the loop keeps, holds nothing."""
    return str(json.loads((run.state_dir / "announce.json").read_text())["pid"])
