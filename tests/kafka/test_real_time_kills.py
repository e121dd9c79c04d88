"""`kill -9` around the switch to real-time mode and back: no record is lost, and each count ends right.

Long, with fifty kills: `python -m benchmarks.live --only kills`.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from headgate_contract import LiveControl, QueryControl, ReentryControl
from support.driver import driver
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, last_counts, send
from support.waiting import wait_until

pytestmark = pytest.mark.spark

SEED, KEYS, RECORDS = 3, 5, 200


def control(*, backlog: bool) -> QueryControl:
    return QueryControl(
        interval_seconds=0.2,
        backlog=backlog,
        live=LiveControl(real_time=True, batch_seconds=5),
        reentry=ReentryControl(dwell_seconds=0),
    )


def test_kills_around_the_switch_lose_nothing_and_a_stop_waits_for_the_end_of_a_batch(
    kafka: Broker, tmp_path: Path
) -> None:
    draw = random.Random(SEED)
    topic, out = kafka.topic(), kafka.topic()
    sent = 0

    def add() -> None:
        nonlocal sent
        now = int(time.time() * 1000)
        send(kafka.bootstrap, topic, (Record(0, now, str(n).encode()) for n in range(sent, sent + RECORDS)))
        sent += RECORDS

    arguments = ("count_kafka.py", kafka.bootstrap, topic, out, tmp_path / "checkpoint")
    conf = {"spark.jars": ",".join(map(str, connector_jars())), "spark.sql.shuffle.partitions": "1"}
    add()
    for number in range(2):
        declared = {"counts": control(backlog=False)}
        with driver(tmp_path / f"kill-{number}", *arguments, control=declared, conf=conf) as killed:
            killed.wait_for_metric("headgate_query_real_time", lambda v: v == 1)
            add()
            if draw.random() < 0.5:  # the way back, at the end of the batch
                killed.control(counts=control(backlog=True))
                killed.wait_for_metric("headgate_query_real_time", lambda v: v == 0)
            add()
            killed.kill_all()
    with driver(
        tmp_path / "then", *arguments, control={"counts": control(backlog=False)}, conf=conf
    ) as running:
        running.wait_for_metric("headgate_query_real_time", lambda v: v == 1)
        add()
        expected = dict(Counter(n % KEYS for n in range(sent)))
        wait_until(lambda: last_counts(kafka, out) == expected, "each count is right")
        running.control(counts=control(backlog=True))  # the way back has begun, and the pod is evicted
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "mid-batch" not in running.log
    add()
    with driver(
        tmp_path / "evicted", *arguments, control={"counts": control(backlog=False)}, conf=conf
    ) as running:
        expected = dict(Counter(n % KEYS for n in range(sent)))
        wait_until(lambda: last_counts(kafka, out) == expected, "what it had read is counted once")
