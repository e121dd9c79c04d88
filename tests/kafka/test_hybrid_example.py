"""The example of a snapshot and its change log: it is valid, and it comes to the right balances."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from headgate.api.load import load_application
from headgate.reconcile.document import next_document
from support.command_line import Headgate
from support.driver import Driver, driver
from support.kafka import Broker, client_settings
from support.kafka_connector import connector_jars
from support.kafka_groups import offsets
from support.kafka_records import Record, send
from support.waiting import wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "hybrid"
ACCOUNTS = 500


def test_the_example_is_valid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ended = Headgate(monkeypatch, capsys)("validate", EXAMPLE / "accounts.yaml")
    assert ended.code == 0, ended.err


def write_snapshot(folder: Path) -> None:
    accounts = pa.array(range(ACCOUNTS), pa.int64())
    versions, balances = pa.array([1] * ACCOUNTS, pa.int64()), pa.array([100.0] * ACCOUNTS, pa.float64())
    folder.mkdir()
    pq.write_table(
        pa.table({"account": accounts, "version": versions, "balance": balances}), folder / "part-0.parquet"
    )


def change(account: int, version: int, balance: float) -> Record:
    value = {"account": account, "version": version, "balance": balance}
    return Record(0, 1_700_000_000_000 + version, json.dumps(value).encode())


def balances(kafka: Broker) -> dict[int, float]:
    """Return the last balance of each account in the topic of results."""
    reader = Consumer({**client_settings(kafka.bootstrap), "group.id": "test", "enable.auto.commit": False})
    reader.assign([TopicPartition("account-balances", 0, 0)])
    end = kafka.latest("account-balances")[0]
    found = [json.loads(message.value()) for message in reader.consume(end, 20)]
    reader.close()
    return {row["account"]: row["balance"] for row in found}


@pytest.mark.spark
def test_the_example_comes_to_the_balance_of_the_newest_version(kafka: Broker, tmp_path: Path) -> None:
    kafka.topic("account-changes")
    kafka.topic("account-balances")
    write_snapshot(tmp_path / "snapshot")
    application = load_application(EXAMPLE / "accounts.yaml")
    document = next_document(application, {}, published=None, last_generation=0)
    arguments = (EXAMPLE / "accounts.py", tmp_path / "snapshot", kafka.bootstrap, tmp_path / "checkpoint")
    conf = {"spark.jars": ",".join(map(str, connector_jars()))}
    with driver(tmp_path / "run", *arguments, control=document.queries, conf=conf) as running:
        await_phase(running, 0)
        send(kafka.bootstrap, "account-changes", [change(3, 3, 30.0), change(3, 2, 20.0), change(7, 2, 70.0)])
        expected = dict.fromkeys(range(ACCOUNTS), 100.0) | {3: 30.0, 7: 70.0}
        wait_until(lambda: balances(kafka) == expected, "the balances after the changes")
        wait_until(lambda: offsets(kafka, "accounts-balances") == {0: 3}, "the published position")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


def await_phase(running: Driver, phase: float) -> None:
    running.wait_for_metric("headgate_source_phase", lambda value: value == phase, source="account-changes")
