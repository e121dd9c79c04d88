"""A query that fails under `headgate local`, with real Spark: beside a sibling that goes on, and with its job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from support.driver import CONF, ENVIRONMENT
from support.local_runs import local_run

pytestmark = pytest.mark.spark

JOB = Path(__file__).parent / "jobs" / "failing.py"
CAUSE = "query refused: ValueError: the sink has no room for batch 0"


def declare(folder: Path, mode: str) -> None:
    resource = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "failing"},
        "spec": {
            "main": {"file": str(JOB), "arguments": [str(folder), mode]},
            "sparkConf": CONF,
            "restart": {"policy": "Never"},
            "queries": [
                {"name": name, "checkpoint": {"interval": "200ms"}} for name in ("steady", "refused")
            ],
        },
    }
    (folder / "app.yaml").write_text(yaml.safe_dump(resource))


def test_it_is_told_by_its_name_with_the_cause_while_its_sibling_goes_on(tmp_path: Path) -> None:
    declare(tmp_path, "go on")
    with local_run(tmp_path, "failing", "--tick", "0.2", environment=ENVIRONMENT) as run:
        run.wait_for_event("StreamingQueryFailed")
        failed_at = run.samples[-1]["queries"]["steady"].get("batches", 0)
        run.wait_for_sample(lambda s: s["queries"]["steady"].get("batches", 0) > failed_at + 1, "the sibling")
        run.interrupt()
        assert run.wait() == 0, str(run)
        told = [line["message"] for line in run.lines if line["type"] == "event"]
        status = next(
            line["status"]
            for line in run.lines
            if line["type"] == "status" and "failure" in line["status"]["queries"][1]
        )
        assert CAUSE in told
        assert "UnknownName" not in run.reasons, "it was about to be started, and then in the job"
        assert status["state"] == "Running"
        assert status["queries"][1]["failure"] == CAUSE
        assert CAUSE in (run.state_dir / "driver.log").read_text()


def test_what_ends_the_job_is_in_its_status(tmp_path: Path) -> None:
    declare(tmp_path, "end")
    with local_run(tmp_path, "failing", "--tick", "0.2", environment=ENVIRONMENT) as run:
        assert run.wait() == 1, str(run)
        assert f"attempt 1 ended with exit code 1 ({CAUSE})" in run.errors
        status = json.loads((run.state_dir / "status.json").read_text())
    (stalled,) = (one for one in status["conditions"] if one["type"] == "Stalled")
    assert stalled["message"].startswith(f"attempt 1 ended with exit code 1 ({CAUSE})")
