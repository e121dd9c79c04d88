"""What happens again is one Event that is counted up, though its message has another number each time."""

from __future__ import annotations

from headgate.reconcile.ports import Outage, OutageReason
from support.operating import KEY, Operation


def told(o: Operation, reason: str) -> list[tuple[int, str]]:
    """Return how often each Event of a reason was told, and its newest message."""
    found = [
        one for one in o.cluster.objects.values() if one.get("kind") == "Event" and one["reason"] == reason
    ]
    return [(one["count"], one["message"]) for one in found]


def fails(o: Operation, *codes: int) -> None:
    """The driver ends with these exit codes, attempt by attempt, and is started again."""
    for code in codes:
        driver = max(o.names)
        o.cluster.pod_ends(driver, code)
        o.reconcile()
        o.reconcile(seconds=120.0)
        o.reconcile()
        o.cluster.pod_runs(max(o.names))
        o.reconcile()


def test_attempts_that_end_alike_are_told_as_one_and_those_that_do_not_as_others() -> None:
    o = Operation()
    o.run(restart={"maxRetries": 9})
    fails(o, 1, 1, 3, 1)
    backing_off = "attempt {} ended with exit code {}; the next one starts after a pause"
    assert told(o, "BackingOff") == [(3, backing_off.format(4, 1)), (1, backing_off.format(3, 3))]
    assert told(o, "Running") == [(5, "attempt 5 runs")]


def test_settings_that_are_told_again_and_again_are_one_event() -> None:
    o = Operation()
    o.run()
    for seconds in (6, 7, 8):
        o.declare(queries=[{"name": "delays", "checkpoint": {"interval": f"{seconds}s"}}])
        o.reconcile()
        o.acknowledge()
        o.reconcile()
    [(count, message)] = told(o, "ControlPublished")
    assert (count, message.rpartition(" ")[2]) == (3, str(o.document.generation))


def test_metrics_that_are_gone_for_one_reason_are_one_event_whichever_pod_has_none() -> None:
    o = Operation()
    o.run()
    for number in (1, 2):
        o.measurements.metrics(KEY).outage = Outage(
            OutageReason.NO_SERIES, f"no series of flights-driver-{number}"
        )
        o.reconcile(seconds=120.0)
        o.measurements.metrics(KEY).outage = None
        o.reconcile(seconds=120.0)
    assert told(o, "NoSeries") == [(2, "no series of flights-driver-2")]
