"""A publisher of positions on a clock of its own, and a cluster in memory that it publishes to."""

import json
import threading

from structlog.testing import capture_logs

from headgate_spark.kafka.publishing import Publisher

OPTIONS = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}


class FakeGroups:
    """A cluster with consumer groups in memory."""

    def __init__(self):
        self.offsets = {}
        self.metadata = {}
        self.writes = []
        self.consumers = {}
        self.broken = None
        self.written_by = None
        self.closed = 0

    def close(self):
        self.closed += 1

    def members(self, group):
        return self.consumers.get(group, 0)

    def marks(self, group):
        if self.broken is not None:
            raise self.broken
        return self.metadata.get(group, {})

    def commit(self, group, offsets, mark):
        self.written_by = threading.current_thread().name
        if self.broken is not None:
            raise self.broken
        if self.members(group):
            raise RuntimeError("UnknownMemberIdException")
        self.writes.append(dict(offsets))
        self.offsets.setdefault(group, {}).update(offsets)
        self.metadata.setdefault(group, {}).update(dict.fromkeys(offsets, mark))


class Setup:
    """A publisher on a clock of its own, without a thread."""

    def __init__(self):
        self.now = 0.0
        self.cluster = FakeGroups()
        self.connections = []
        self.publisher = Publisher(self.connect, lambda: "flights", clock=lambda: self.now)
        self.publisher._start = lambda: None

    def connect(self, options):
        self.connections.append(options)
        return self.cluster

    def commit(self, offsets, *, query="delays", source="orders", group="lag", options=OPTIONS):
        offset = json.dumps(offsets)
        self.publisher.committed(query=query, source=source, group=group, options=options, offset=offset)

    def publish(self, after=0.0):
        self.now += after
        with capture_logs() as logs:
            self.publisher.publish()
        return [(entry["log_level"], entry.get("problem") or entry["event"]) for entry in logs]
