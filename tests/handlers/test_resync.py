"""What the watches tell, compared with what is listed: when everything is known, what was missed, what is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.api.labels import APPLICATION, DRIVER, ROLE
from headgate.errors import ApiUnavailable
from headgate.handlers.resync import Resync
from headgate.handlers.roster import Roster
from headgate.handlers.watches import Watches


def metadata(uid: str, version: int = 1) -> dict[str, Any]:
    return {"uid": uid, "resourceVersion": str(version)}


def application(name: str, version: int = 1) -> Manifest:
    return {"metadata": {"namespace": "team", "name": name, **metadata(f"uid-of-{name}", version)}}


def pod(name: str, of: str, version: int = 1) -> Manifest:
    labels = {APPLICATION: of, ROLE: DRIVER}
    return {
        "metadata": {
            "namespace": "team",
            "name": name,
            "labels": labels,
            **metadata(f"uid-of-{name}", version),
        }
    }


def test_a_roster_is_synced_once_all_that_is_listed_was_heard_of() -> None:
    roster = Roster()
    assert not roster.is_synced
    roster.heard(metadata("a"))
    roster.expect([metadata("a"), metadata("b")], at=10)
    assert not roster.is_synced
    roster.heard(metadata("b"))
    assert roster.is_synced


def test_a_roster_is_synced_where_there_is_nothing() -> None:
    roster = Roster()
    roster.expect([], at=10)

    assert roster.is_synced


@pytest.mark.parametrize(("heard", "is_synced"), [(4, False), (5, True), (6, True)])
def test_an_older_version_than_the_listed_one_is_not_enough(heard: int, is_synced: bool) -> None:
    roster = Roster()
    roster.expect([metadata("a", 5)], at=10)
    roster.heard(metadata("a", heard))

    assert roster.is_synced is is_synced


def test_what_has_gone_again_is_not_waited_for() -> None:
    roster = Roster()
    roster.expect([metadata("a"), metadata("b")], at=10)
    roster.gone(metadata("a"))
    roster.expect([metadata("b")], at=11)
    roster.heard(metadata("b"))

    assert roster.is_synced


def test_a_watch_is_behind_from_the_first_listing_that_it_does_not_follow() -> None:
    roster = Roster()
    roster.heard(metadata("a", 1))
    roster.expect([metadata("a", 2)], at=10)
    roster.expect([metadata("a", 3)], at=310)
    assert roster.behind(400) == 390
    roster.heard(metadata("a", 3))
    assert roster.behind(400) == 0


@dataclass
class FakeApi:
    """Lists what a test has put there. `on_list` happens while a listing is on its way."""

    objects: dict[Kind, list[Manifest]] = field(default_factory=lambda: {APPLICATIONS: [], PODS: []})
    is_down: bool = False
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    rests: list[float] = field(default_factory=list)
    on_list: Any = None

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        metadata_only: bool = False,
        rest: float = 0.0,
    ) -> list[Manifest]:
        assert metadata_only
        self.rests.append(rest)
        self.asked.append((kind.plural, namespace, labels))
        if self.is_down:
            raise ApiUnavailable("API server: connection refused")
        answer = list(self.objects[kind])
        if self.on_list is not None:
            self.on_list()
        return answer


@dataclass
class World:
    """A resync over a real cache and a fake API server, and what it told."""

    api: FakeApi = field(default_factory=FakeApi)
    cache: Cache = field(default_factory=Cache)
    queued: list[Key | None] = field(default_factory=list)
    gone: list[Key] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    namespaces: Sequence[str] = ()
    watches: Watches = field(init=False)
    resync: Resync = field(init=False)

    def __post_init__(self) -> None:
        self.watches = Watches(self, self.queued.append, gone=self.gone.append)
        self.resync = Resync(
            self.api, self.cache, self.watches, self._Counter(self.missed), 300, self.namespaces
        )

    @dataclass
    class _Counter:
        counted: list[str]

        def missed(self, resource: str) -> None:
            self.counted.append(resource)

    def application_seen(self, manifest: Manifest) -> Key:
        return self.cache.put_application(manifest)

    def application_gone(self, manifest: Manifest) -> Key:
        return self.cache.drop_application(manifest)

    def pod_seen(self, manifest: Manifest) -> Key | None:
        return self.cache.put_pod(manifest)

    def pod_gone(self, manifest: Manifest) -> Key | None:
        return self.cache.drop_pod(manifest)

    def compares(self) -> None:
        self.queued.clear()
        asyncio.run(self.resync.compare())

    def keys(self) -> Collection[Key]:
        return tuple(self.cache.keys())


def test_what_vanished_while_a_watch_was_away_is_found_and_queued() -> None:
    world = World()
    for name in ("flights", "orders"):
        world.watches.application(None, application(name))
        world.watches.pod(None, pod(f"{name}-driver-1", of=name))
    world.api.objects = {APPLICATIONS: [application("orders")], PODS: [pod("orders-driver-1", of="orders")]}
    world.compares()

    assert world.keys() == (Key("team", "orders"),)
    assert world.queued == [Key("team", "flights")] * 2
    assert world.gone == [Key("team", "flights")]
    assert world.missed == ["sparkapplications", "pods"]


def test_a_pod_that_only_our_own_write_knows_of_is_found_gone_too() -> None:
    world = World()
    world.watches.application(None, application("flights"))
    world.cache.put_pod(pod("flights-driver-1", of="flights"))  # the answer to its creation
    world.api.objects[APPLICATIONS] = [application("flights")]
    world.compares()

    assert world.cache.pods(Key("team", "flights")) == ()
    assert world.missed == ["pods"]


def test_what_came_while_the_listing_was_on_its_way_is_not_gone() -> None:
    world = World()
    world.api.on_list = lambda: world.watches.application("ADDED", application("late"))
    world.compares()

    assert world.keys() == (Key("team", "late"),)
    assert world.missed == []


def test_what_went_while_the_listing_was_on_its_way_was_not_missed() -> None:
    world = World()
    world.watches.application("ADDED", application("flights"))
    world.api.on_list = lambda: world.watches.application("DELETED", application("flights", 2))
    world.compares()

    assert world.missed == []


def test_a_listing_that_fails_changes_nothing() -> None:
    world = World()
    world.watches.application(None, application("flights"))
    world.api.is_down = True
    world.compares()

    assert world.keys() == (Key("team", "flights"),)
    assert not world.watches.are_synced


def test_only_the_served_namespaces_are_listed_and_only_driver_pods() -> None:
    world = World(namespaces=("team-a", "team-b"))
    world.compares()

    assert world.api.asked == [
        ("sparkapplications", "team-a", None),
        ("sparkapplications", "team-b", None),
        ("pods", "team-a", DRIVER_SELECTOR),
        ("pods", "team-b", DRIVER_SELECTOR),
    ]


def test_once_all_was_heard_of_a_comparison_takes_its_time() -> None:
    world = World()
    world.compares()
    world.resync.synced.set()
    world.compares()

    assert world.api.rests == [0, 0, 4, 4]


def test_it_is_synced_when_the_watches_have_told_what_is_there() -> None:
    world = World()
    world.api.objects = {
        APPLICATIONS: [application("flights")],
        PODS: [pod("flights-driver-1", of="flights")],
    }

    async def run() -> None:
        comparing = asyncio.create_task(world.resync.run())
        async with asyncio.timeout(240):
            while len(world.api.asked) < 4:  # the first comparison has ended, and found them unheard of
                assert not world.resync.synced.is_set()
                await asyncio.sleep(0)
            world.watches.application(None, application("flights"))
            assert not world.resync.synced.is_set()
            world.watches.pod(None, pod("flights-driver-1", of="flights"))
            await world.resync.synced.wait()
        comparing.cancel()

    asyncio.run(run())


def test_a_deletion_that_a_watch_tells_is_handed_on() -> None:
    world = World()
    world.watches.application("ADDED", application("flights"))
    world.watches.pod("ADDED", pod("flights-driver-1", of="flights"))
    world.queued.clear()
    world.watches.pod("DELETED", pod("flights-driver-1", of="flights", version=2))
    world.watches.application("DELETED", application("flights", version=3))

    assert world.queued == [Key("team", "flights")] * 2
    assert world.keys() == ()


@dataclass
class Clock:
    """Time that passes only where somebody sleeps or lists, and ends the run at `end`."""

    end: float
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.end:
            raise asyncio.CancelledError

    def passes(self, seconds: float) -> None:
        self.now += seconds


def test_most_of_the_time_until_all_was_heard_of_is_left_for_hearing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, world = Clock(end=200), World()
    monkeypatch.setattr("headgate.handlers.resync.time", clock)
    monkeypatch.setattr("headgate.handlers.resync.asyncio", clock)
    world.api.objects[APPLICATIONS] = [application("unheard-of")]
    world.api.on_list = lambda: clock.passes(2)  # both kinds: four seconds a comparison

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(world.resync.run())

    assert len(world.api.asked) / 2 == 10
