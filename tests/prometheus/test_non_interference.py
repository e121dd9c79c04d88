"""What one tenant serves, exports and asks changes nothing of what is decided for another.

Two worlds go in lockstep, each with pollers and loops of its own: in one there is nobody but Alice, in the other
there is Mallory too, whose pages, series and expressions are drawn. After each tick Alice's verdicts and documents
are those of the world without Mallory, or those that it had within the two ticks before.
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest

from headgate.adapters.address import Address, Located
from headgate.adapters.metrics.driver_poller import DriverPoller
from headgate.adapters.metrics.poller import ChosenPoller
from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.poller import PrometheusPoller
from headgate.key import Key
from headgate.reconcile.ports import Outage
from headgate_contract import metrics as names
from support.driver_page import DriverPage
from support.fake_prometheus import Answer, fake_prometheus
from support.looping import START, Loop, application, query, source

TICKS, TICK = 24, 5.0
NUMBERS = ["0", "1", "-1", "+Inf", "-Inf", "NaN", "1e308", "9007199254740993", "1.7e9", "1" * 400]
VALUES = [*NUMBERS, "1_0", ""]
READ_AS_WHOLE = [
    names.CONTROL_GENERATION.name,
    names.EXECUTORS.name,
    f'{names.QUERY_STARTED.name}{{query="delays"}}',
    f'{names.QUERY_ACTIVE.name}{{query="delays"}}',
]
METRICS = [metric.name for metric in names.ALL]
TEXTS = ["q", "delays", "", "x" * 3000, '\\"\\n\\\\', "\\ud800", "\N{SNOWMAN}" * 300, "\x1b[2J", "flights"]
ALICE_BY_PROMETHEUS, ALICE_DIRECTLY = Key("alice", "flights"), Key("alice", "direct")
MALLORY_DIRECTLY = [Key("mallory", f"m{number}") for number in range(3)]
MALLORY_BY_PROMETHEUS = Key("mallory", "series")
TRICKLES = b"HTTP/1.0 200 OK\r\nX: "
"""How an answer begins whose rest comes a byte at a time."""

BACKLOG = {"watermarkLag": "5m", "pendingRecords": 1000}
ALICE = [query(sources=[source(backlog={**BACKLOG, "query": "alice"})])]
MALLORY = [
    query(name=f"q{q}", sources=[source(name=f"s{s}", backlog={"query": f"m{q}x{s}"}) for s in range(30)])
    for q in range(20)
]


@dataclass(frozen=True)
class Moment:
    """What Alice's driver says at one tick, and whether her expression holds."""

    lag: float
    pending: float
    holds: bool


def alice(chance: random.Random) -> list[Moment]:
    """She falls behind and catches up, for some ticks each."""
    found = [Moment(36e3, 9e6, holds=False)] * 4 + [Moment(1.0, 0.0, holds=False)] * 4
    while len(found) < TICKS:
        now = Moment(
            chance.choice([1.0, 400.0, 36e3]), chance.choice([0.0, 10.0, 9e6]), chance.random() < 0.3
        )
        found += [now] * chance.randint(4, 8)
    return found[:TICKS]


def page(chance: random.Random) -> bytes:
    """An answer of a driver of Mallory's, with its header."""
    is_clean = chance.random() < 0.7
    lines = "".join(line(chance, is_clean=is_clean) for _ in range(chance.choice([1, 5, 40, 400])))
    body = {
        "lines": lines.encode("utf-8", "replace"),
        "garbage": chance.randbytes(2000),
        "much": b"a 1\n" * 500_000,
        "sources": "".join(f'{METRICS[9]}{{query="q",source="s{n}"}} 1\n' for n in range(7900)).encode(),
        "cut": lines.encode("utf-8", "replace")[:-4],
    }[chance.choice(["lines"] * 6 + ["garbage", "much", "sources", "cut"])]
    header = {
        "plain": b"HTTP/1.0 200 OK\r\n\r\n",
        "wrong length": b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
        "parts": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        "refusal": b"HTTP/1.0 500 \r\n\r\n",
        "none": b"",
    }[chance.choice(["plain"] * 8 + ["wrong length", "parts", "refusal", "none"])]
    return header + body


def line(chance: random.Random, *, is_clean: bool) -> str:
    """A line of a page; one that is clean can be parsed, whatever it says."""
    value = chance.choice(NUMBERS if is_clean else VALUES)
    if chance.random() < 0.3:
        return f"{chance.choice(READ_AS_WHOLE)} {value}\n"
    labels = [f'{name}="{chance.choice(TEXTS)}"' for name in ("query", "source", "cause", "reason")]
    some = ",".join(chance.sample(labels, chance.randint(0, 4)))
    return (
        f"{chance.choice(METRICS)}{{{some}}} {value}{'' if is_clean else chance.choice(['', ' 1', ' x'])}\n"
    )


def series(chance: random.Random) -> list[tuple[dict[str, str], str]]:
    """What Prometheus has of Mallory: a scrape of his, and whatever else he brings in."""
    pods = ["series-driver-1", "series-driver-" + "1" * 5000, "series-driver-", "x-driver-99999999999", ""]
    return [
        (
            {
                **target("mallory", chance.choice(pods)),
                "__name__": chance.choice(METRICS),
                "query": chance.choice(TEXTS),
                "source": chance.choice([*TEXTS, str(chance.random())]),
                "cause": chance.choice(TEXTS),
            },
            chance.choice(VALUES),
        )
        for _ in range(chance.choice([0, 5, 300]))
    ]


def target(namespace: str, pod: str) -> dict[str, str]:
    return {"namespace": namespace, "pod": pod, "job": "drivers", "instance": "i", "endpoint": "metrics"}


class World:
    """Pollers, Alice's two loops, and Mallory if he is there."""

    def __init__(self, stack: ExitStack, *, has_mallory: bool) -> None:
        self.has_mallory = has_mallory
        self.now = START
        self.moment = Moment(1.0, 0.0, holds=False)
        self.mallory: list[tuple[dict[str, str], str]] = []
        self.hostile = b""
        self.said = DriverPage()
        prometheus = stack.enter_context(fake_prometheus(self.answer))
        driver = stack.enter_context(fake_prometheus(lambda _: Answer(self.said.text.encode())))
        hostile = stack.enter_context(raw_server(lambda: self.hostile))
        located = {
            ALICE_DIRECTLY: Located(1, Address("127.0.0.1", int(driver.url.rpartition(":")[2]))),
            **{key: Located(1, Address("127.0.0.1", hostile)) for key in MALLORY_DIRECTLY},
        }
        self.chosen = ChosenPoller(
            PrometheusPoller(PrometheusOptions(url=prometheus.url)),
            DriverPoller(located.get, timeout_seconds=1.5),
        )
        stack.callback(self.chosen.close)
        self.loops = {
            ALICE_BY_PROMETHEUS: Loop(declared=application(queries=ALICE)),
            ALICE_DIRECTLY: Loop(declared=application(queries=ALICE, metrics={"source": "Driver"})),
        }
        self.verdicts: dict[Key, list[tuple[bool, str]]] = {key: [] for key in self.loops}
        for key, loop in self.loops.items():
            loop.reconcile()
            loop.world.drivers.becomes_ready()
            self.chosen.watch(key, loop.application)
            self.reconcile(key)
        if has_mallory:
            for key in MALLORY_DIRECTLY:
                self.chosen.watch(key, application(metrics={"source": "Driver"}))
            self.chosen.watch(MALLORY_BY_PROMETHEUS, application(queries=MALLORY))

    def answer(self, asked: Mapping[str, str]) -> Answer:
        """What Prometheus says, evaluated as of the tick."""
        promql = asked["query"]
        mine = target("alice", "flights-driver-1")
        labels = {**mine, "query": "delays", "source": "flights"}
        found: list[tuple[Mapping[str, str], Any]] = []
        if promql.startswith("timestamp("):
            found = [(mine, self.now - 1)] + [(labels, value) for labels, value in self.mallory]
        elif promql == "alice":
            found = [({}, 1)] if self.moment.holds else []
        elif re.fullmatch(r"m[0-9]+x[0-9]+", promql):
            if crc32(promql.encode()) % 7 == 0:
                return Answer(b'{"status":"error","errorType":"bad_data","error":"\x1b[2J"}', 400)
            found = [({}, VALUES[crc32(promql.encode()) % len(VALUES)])]
        else:
            found = [
                (named(labels, metric), value) for metric, value in self.series() if metric.name in promql
            ]
            found += [(labels, value) for labels, value in self.mallory if labels["__name__"] in promql]
        result = [{"metric": metric, "value": [self.now, str(value)]} for metric, value in found]
        data = {"resultType": "vector", "result": result}
        return Answer(json.dumps({"status": "success", "data": data}).encode())

    def series(self) -> list[tuple[Any, float]]:
        document = self.loops[ALICE_BY_PROMETHEUS].world.controls.published()
        return [
            (names.SOURCE_WATERMARK_LAG, self.moment.lag),
            (names.SOURCE_PENDING, self.moment.pending),
            (names.QUERY_STARTED, START),
            (names.CONTROL_GENERATION, 0 if document is None else document.generation),
            (names.DRIVER_STOPPING, 0),
        ]

    def tick(self, moment: Moment, hostile: bytes, mallory: list[tuple[dict[str, str], str]]) -> None:
        self.now += TICK
        self.moment, self.hostile = moment, hostile
        self.mallory = mallory if self.has_mallory else []
        self.said = DriverPage()
        self.said.query(started_at=START)
        self.said.source(lag=moment.lag, pending=moment.pending)
        document = self.loops[ALICE_DIRECTLY].world.controls.published()
        self.said.set(names.CONTROL_GENERATION, 0 if document is None else document.generation)
        due = {key for poller in self.chosen.pollers.values() for key in poller.poll(self.now)}
        for key in self.loops:
            if key in due:
                self.reconcile(key)
            elif self.verdicts[key]:
                self.verdicts[key].append(self.verdicts[key][-1])
        for key in due - self.loops.keys():
            self.chosen.metrics(key).sample(self.now, 1)

    def reconcile(self, key: Key) -> None:
        loop = self.loops[key]
        loop.world.metrics = self.chosen.metrics(key)  # type: ignore[assignment]
        outcome = loop.reconcile(self.now - loop.now)
        self.chosen.reconciled(key, clock_at=outcome.clock_at, again_at=self.now + 1800)
        verdict = outcome.plan.verdicts["delays"]
        self.verdicts[key].append((verdict.backlog, str(verdict.reason)))


def named(labels: Mapping[str, str], metric: Any) -> Mapping[str, str]:
    kept = {name: value for name, value in labels.items() if name in (*target("", ""), *metric.labels)}
    return {"__name__": metric.name, **kept}


@contextmanager
def raw_server(answer: Any) -> Iterator[int]:
    """A server that says what it is told, byte for byte, to any number of connections at once."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            connection.recv(65536)
            said = answer()
            connection.sendall(said)
            while said.startswith(TRICKLES) and not over.wait(0.05):
                connection.sendall(b"x")

    def accept(listening: socket.socket) -> None:
        while not over.is_set():
            with suppress(OSError):
                threads.append(threading.Thread(target=serve, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        listening.settimeout(0.05)
        threads.append(threading.Thread(target=accept, args=(listening,)))
        threads[0].start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            over.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("seed", range(3))
def test_alice_is_judged_as_if_mallory_were_not_there(seed: int) -> None:
    chance = random.Random(seed)
    moments = alice(chance)
    with ExitStack() as stack:
        alone, beside = World(stack, has_mallory=False), World(stack, has_mallory=True)
        for number, moment in enumerate(moments):
            hostile = TRICKLES if number == 7 else page(chance)
            theirs = series(chance)
            for world in (alone, beside):
                world.tick(moment, hostile, theirs)
            for key in alone.loops:
                recent = alone.verdicts[key][-3:]
                assert beside.verdicts[key][-1] in recent, (seed, number, key, hostile[:300])
        for world in (alone, beside):
            for _ in range(2):
                world.tick(moments[-1], b"", [])
        for key in alone.loops:
            assert documents(beside, key) == documents(alone, key)
            assert len({backlog for backlog, _ in alone.verdicts[key]}) == 2


def test_a_namespace_that_brings_more_than_is_read_is_left_out_and_told_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.adapters.metrics.prometheus.client.LARGEST_BYTES", 20_000)
    monkeypatch.setattr(
        "headgate.adapters.metrics.prometheus.fetch.LEFT_OUT_SECONDS", 0.0
    )  # until the next look
    much, alices, mallorys = True, Key("alice", "flights"), Key("mallory", "flights")

    def answer(asked: Mapping[str, str]) -> Answer:
        promql = asked["query"]
        without = re.findall(r'namespace!~"([^"]*)"', promql)
        of = [(one, target(one, "flights-driver-1")) for one in ("alice", "mallory") if one not in without]
        found = [({**labels, "query": "q", "source": "s"}, START - 1) for _, labels in of]
        if promql.startswith("timestamp("):
            found = [(labels, START - 1) for _, labels in of]
        elif names.SOURCE_PENDING.name in promql:
            found = [({"__name__": names.SOURCE_PENDING.name, **labels}, 7) for labels, _ in found]
            if much and "mallory" not in without:
                labels = {**target("mallory", "flights-driver-1"), "__name__": names.SOURCE_PENDING.name}
                found += [({**labels, "query": "q", "source": f"s{n}"}, 1) for n in range(200)]
        else:
            found = []
        result = [{"metric": labels, "value": [START, str(value)]} for labels, value in found]
        data = {"resultType": "vector", "result": result}
        return Answer(json.dumps({"status": "success", "data": data}).encode())

    def said(key: Key) -> tuple[float | None, str]:
        found = poller.metrics(key).sample(now, 1)
        known = found.known if isinstance(found, Outage) else found
        assert known is not None
        pending = [s.pending_records for q in known.queries.values() for s in q.sources.values()]
        return next(iter(pending), None), found.message if isinstance(found, Outage) else ""

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        for key in (alices, mallorys):
            poller.watch(key, application())
        for now in (START, START + 5):
            poller.poll(now)
            assert said(alices) == (7, "")
            pending, message = said(mallorys)
            assert pending is None
            assert message.startswith("Prometheus has so many series of drivers of namespace mallory that")
        much = False
        poller.poll(now + 5)
        assert (said(alices), said(mallorys)) == ((7, ""), (7, ""))
        poller.close()


def documents(world: World, key: Key) -> list[str]:
    return [str(document) for document in world.loops[key].world.controls.documents]
