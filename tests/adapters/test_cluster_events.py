"""Events: one object for what is said again, within an hour."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from headgate.adapters.kubernetes.events import COMBINED, MOST_ALIKE, EventRecorder, Outbox
from headgate.adapters.kubernetes.manifests import Owner
from headgate.errors import ApiUnavailable
from headgate.key import Key
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


def test_of_one_topic_it_is_counted_up_and_the_newest_message_stands() -> None:
    one, other = replace(EVENT, topic=(1, None)), replace(EVENT, topic=(1, "None"))
    cluster = told(one, other, replace(later(60, one), message="attempt 12 ended"))
    first, second = cluster.objects.values()
    assert (first["count"], first["message"]) == (2, "attempt 12 ended")
    assert (second["count"], second["message"]) == (1, "attempt 1 ended"), "of another topic"


def test_a_topic_may_be_all_that_a_reason_has() -> None:
    assert (
        len(told(*(replace(EVENT, topic=(), message=f"word-{number}") for number in range(3))).objects) == 1
    )


def test_other_words_are_another_event() -> None:
    assert len(told(EVENT, replace(EVENT, message="attempt 1 ended with exit code 1")).objects) == 2


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


class Told:
    """A recorder that remembers, and does not answer at all for some reasons."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def tell(self, about: Owner, event: Event) -> None:
        self.reasons.append(event.reason)
        if event.reason == "Lost":
            raise ApiUnavailable("no answer")


def reason(text: str) -> Event:
    return replace(EVENT, reason=text)


def test_events_leave_the_outbox_in_order_and_one_that_fails_holds_up_nobody() -> None:
    async def send() -> list[str]:
        told = Told()
        outbox = Outbox(told, pace_seconds=0)
        sending = asyncio.create_task(outbox.run())
        for text in ("First", "Lost", "Last"):
            await outbox.tell(ABOUT, reason(text))
        assert told.reasons == []  # whoever tells does not wait for the API server
        async with asyncio.timeout(240):
            while len(told.reasons) < 3:
                await asyncio.sleep(0)
        sending.cancel()
        return told.reasons

    assert asyncio.run(send()) == ["First", "Lost", "Last"]


def test_what_waits_is_sent_at_the_end_and_what_finds_the_outbox_full_is_lost() -> None:
    async def send() -> list[str]:
        told = Told()
        outbox = Outbox(told, most=2)
        for text in ("First", "Second", "Third"):
            await outbox.tell(ABOUT, reason(text))
        await outbox.flush(10)
        await outbox.tell(ABOUT, reason("Fourth"))
        await outbox.flush(10)
        return told.reasons

    assert asyncio.run(send()) == ["First", "Second", "Fourth"]


def test_a_failure_is_told_before_ten_thousand_applications_whose_metrics_are_gone_and_is_not_lost() -> None:
    async def send() -> list[str]:
        told = Told()
        outbox = Outbox(told, most=2, most_minor=3)
        for _ in range(10_000):
            await outbox.tell(ABOUT, replace(reason("QueryTimeout"), is_minor=True))
        await outbox.tell(ABOUT, reason("RetriesExhausted"))
        await outbox.flush(10)
        return told.reasons

    assert asyncio.run(send()) == ["RetriesExhausted", *["QueryTimeout"] * 3]


def test_namespaces_take_turns_and_one_that_tells_too_much_loses_its_own() -> None:
    async def send() -> list[str]:
        told = Told()
        outbox = Outbox(told, most=5)
        for number in range(50):
            await outbox.tell(ABOUT, reason(f"Noise{number}"))
        other = Owner(key=Key("quiet", "orders"), uid="2")
        for text in ("Failed", "Started"):
            await outbox.tell(other, reason(text))
        await outbox.flush(10)
        return told.reasons

    assert asyncio.run(send()) == ["Noise0", "Failed", "Noise1", "Started", "Noise2"]


def test_words_that_people_choose_make_no_more_than_a_few_objects() -> None:
    changes = [replace(later(number), message=f"annotation says word-{number}") for number in range(500)]
    cluster = told(*changes)
    events = sorted(cluster.objects.values(), key=lambda event: event["lastTimestamp"])
    assert len(events) == MOST_ALIKE + 1
    assert (events[0]["message"], events[0]["count"]) == ("annotation says word-0", 1)
    assert (events[-1]["message"], events[-1]["count"]) == (
        f"{COMBINED}annotation says word-499",
        500 - MOST_ALIKE,
    )
    told(*(replace(later(3600 + number), message=f"later {number}") for number in range(3)), cluster=cluster)
    assert len(cluster.objects) == MOST_ALIKE + 1 + 3


def test_what_was_said_before_is_still_counted_up_by_itself_and_other_reasons_are_not_affected() -> None:
    changes = [replace(EVENT, message=f"word-{number}") for number in range(20)]
    cluster = told(*changes, changes[0], replace(EVENT, reason="DriverEnded"))
    events = list(cluster.objects.values())
    assert next(event["count"] for event in events if event["message"] == "word-0") == 2
    assert [event["message"] for event in events if event["reason"] == "DriverEnded"] == ["attempt 1 ended"]
