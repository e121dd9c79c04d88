"""Events: one object for what is said again, within an hour."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from headgate.adapters.kubernetes.events import EventRecorder
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.kubernetes.manifests import Owner
from headgate.reconcile.ports import Event
from support.fake_cluster import FakeCluster

ABOUT = Owner(key=Key("team", "flights"), uid="1")
EVENT = Event(at=1_700_000_000.0, reason="BackingOff", message="attempt 1 ended", is_warning=True)


def told(*events: Event, cluster: FakeCluster | None = None) -> FakeCluster:
    cluster = cluster or FakeCluster()
    recorder = EventRecorder(cluster, "me")  # type: ignore[arg-type]

    async def tell() -> None:
        for event in events:
            await recorder.tell(ABOUT, event)

    asyncio.run(tell())
    return cluster


def later(seconds: float, event: Event = EVENT) -> Event:
    return replace(event, at=event.at + seconds)


def test_an_event_names_the_application_and_who_says_it() -> None:
    (event,) = told(EVENT).objects.values()
    assert event["involvedObject"] == {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "name": "flights",
        "namespace": "team",
        "uid": "1",
    }
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "BackingOff", 1)
    assert (event["reportingComponent"], event["reportingInstance"]) == ("headgate", "me")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"


def test_what_is_said_again_is_counted_up() -> None:
    cluster = told(EVENT, later(60), later(120))
    (event,) = cluster.objects.values()
    assert (event["count"], event["lastTimestamp"]) == (3, "2023-11-14T22:15:20Z")


def test_other_words_are_another_event() -> None:
    assert len(told(EVENT, replace(EVENT, message="attempt 2 ended")).objects) == 2


def test_after_an_hour_it_is_said_anew() -> None:
    cluster = told(EVENT)
    cluster.objects.clear()  # the API server has forgotten it
    told(later(3600), cluster=cluster)
    (event,) = cluster.objects.values()
    assert event["count"] == 1


def test_an_event_that_the_api_server_has_forgotten_early_is_said_anew() -> None:
    cluster = FakeCluster()
    recorder = EventRecorder(cluster, "me")  # type: ignore[arg-type]
    asyncio.run(recorder.tell(ABOUT, EVENT))
    cluster.objects.clear()
    asyncio.run(recorder.tell(ABOUT, later(60)))
    assert len(cluster.objects) == 1


def test_another_process_goes_on_counting() -> None:
    cluster = told(later(60), cluster=told(EVENT))
    (event,) = cluster.objects.values()
    assert event["count"] == 2
