"""A query whose broker is not there, under `headgate local` with real Spark, beside a sibling that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.driver import CONF, ENVIRONMENT
from support.kafka_connector import connector_jars
from support.local_runs import local_run
from support.servers import free_port

pytestmark = pytest.mark.spark

JOB = Path(__file__).parent / "jobs" / "unreachable.py"


def test_it_is_told_with_address_and_remedy_while_its_query_goes_on_trying(tmp_path: Path) -> None:
    servers = f"127.0.0.1:{free_port()}"
    cause = (
        f"query waiting: source orders: {servers} has not answered yet; see that it runs, listens there and can be "
        "reached from the driver, or correct `kafka.bootstrap.servers` in the job"
    )
    resource = {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": "unreachable"},
        "spec": {
            "main": {"file": str(JOB), "arguments": [str(tmp_path), servers]},
            "sparkConf": CONF | {"spark.jars": ",".join(map(str, connector_jars()))},
            "restart": {"policy": "Never"},
            "stop": {"gracePeriod": "1s"},
            "queries": [
                {"name": name, "checkpoint": {"interval": "200ms"}} for name in ("steady", "waiting")
            ],
        },
    }
    (tmp_path / "app.yaml").write_text(yaml.safe_dump(resource))
    with local_run(tmp_path, "unreachable", "--tick", "0.2", environment=ENVIRONMENT) as run:
        run.wait_for_event("SourceOutOfReach")
        read = run.samples[-1]["queries"]["steady"].get("batches", 0)
        run.wait_for_sample(lambda s: s["queries"]["steady"].get("batches", 0) > read + 1, "the sibling")
        told = [line["message"] for line in run.lines if line["type"] == "event"]
        assert told.count(cause) == 1
        assert "StreamingQueryFailed" not in run.reasons, "it goes on trying"
        assert "UnknownName" not in run.reasons
        (status,) = [line["status"] for line in run.lines if line["type"] == "status"][-1:]
        assert status["queries"][1]["sources"][0]["outOfReach"] == cause
        assert cause in (run.state_dir / "driver.log").read_text()
