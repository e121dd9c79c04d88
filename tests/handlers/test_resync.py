"""What the watches tell, compared with what is listed: when everything is known, what was missed, what is dead."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headgate.adapters.kubernetes.cache import Cache
from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.api.labels import APPLICATION, DRIVER, ROLE
from headgate.errors import ApiRefused, ApiUnavailable, TransientError
from headgate.handlers.namespaces import Barrier, Namespaces
from headgate.handlers.resync import Resync
from headgate.handlers.watches import KnownVersions, Watches
from headgate.key import Key
from headgate.metrics import OperatorMetrics


def metadata(uid: str, version: int = 1) -> dict[str, Any]:
    return {"uid": uid, "resourceVersion": str(version)}


def application(name: str, version: int = 1, namespace: str = "team") -> Manifest:
    return {"metadata": {"namespace": namespace, "name": name, **metadata(f"uid-of-{name}", version)}}


def pod(name: str, of: str, version: int = 1, namespace: str = "team") -> Manifest:
    labels = {APPLICATION: of, ROLE: DRIVER}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": labels,
            **metadata(f"uid-of-{name}", version),
        }
    }


def test_a_roster_is_synced_once_all_that_is_listed_was_heard_of() -> None:
    known = KnownVersions()
    assert not known.is_synced()
    known.heard(metadata("a"))
    known.expect([metadata("a"), metadata("b")], at=10)
    assert not known.is_synced()
    known.heard(metadata("b"))
    assert known.is_synced()


def test_a_roster_is_synced_where_there_is_nothing() -> None:
    known = KnownVersions()
    known.expect([], at=10)

    assert known.is_synced()


@pytest.mark.parametrize(("heard", "is_synced"), [(4, False), (5, True), (6, True)])
def test_an_older_version_than_the_listed_one_is_not_enough(heard: int, is_synced: bool) -> None:
    known = KnownVersions()
    known.expect([metadata("a", 5)], at=10)
    known.heard(metadata("a", heard))

    assert known.is_synced() is is_synced


def test_what_has_gone_again_is_not_waited_for() -> None:
    known = KnownVersions()
    known.expect([metadata("a"), metadata("b")], at=10)
    known.gone(metadata("a"))
    known.expect([metadata("b")], at=11)
    known.heard(metadata("b"))

    assert known.is_synced()


def test_a_watch_is_behind_from_the_first_listing_that_it_does_not_follow() -> None:
    known = KnownVersions()
    known.heard(metadata("a", 1))
    known.expect([metadata("a", 2)], at=10)
    known.expect([metadata("a", 3)], at=310)
    assert known.behind(400) == 390
    known.heard(metadata("a", 3))
    assert known.behind(400) == 0


@dataclass
class FakeApi:
    """Lists what a test has put there. `on_list` happens while a listing is on its way."""

    objects: dict[Kind, list[Manifest]] = field(default_factory=lambda: {APPLICATIONS: [], PODS: []})
    is_down: bool = False
    broken: dict[str | None, TransientError] = field(default_factory=dict)
    """Namespaces of which no listing succeeds, and how it fails."""
    lacking: set[str | None] = field(default_factory=set)
    """Namespaces to which there are no rights."""
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
        if namespace in self.broken:
            raise self.broken[namespace]
        answer = [one for one in self.objects[kind] if namespace in (None, one["metadata"]["namespace"])]
        if self.on_list is not None:
            self.on_list()
        return answer

    async def missing(self, scope: str | None) -> str:
        return f"missing rights: in namespace {scope}" if scope in self.lacking else ""


@dataclass
class World:
    """A resync over a real cache and a fake API server, and what it told."""

    api: FakeApi = field(default_factory=FakeApi)
    cache: Cache = field(default_factory=Cache)
    queued: list[Key | None] = field(default_factory=list)
    gone: list[Key] = field(default_factory=list)
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)
    namespaces: Sequence[str] = ()
    watches: Watches = field(init=False)
    resync: Resync = field(init=False)

    def __post_init__(self) -> None:
        barrier = Barrier(Namespaces(self.namespaces), self.queued.append)
        if not self.namespaces:
            barrier.open(None)
        self.watches = Watches(self, barrier.add, gone=self.gone.append)
        self.resync = Resync(self.api, self.cache, self.watches, self.metrics, 300, barrier, self.api.missing)

    @property
    def missed(self) -> dict[str, float]:
        (family,) = self.metrics.missed.collect()
        counts = [one for one in family.samples if one.name.endswith("_total")]
        return {one.labels["resource"]: one.value for one in counts if one.value}

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
        asyncio.run(self.resync.compare(self.resync.namespaces.scopes))

    def keys(self) -> Collection[Key]:
        return tuple(self.cache.keys())


def test_what_vanished_while_a_watch_was_away_is_found_and_queued() -> None:
    world = World()
    for name in ("flights", "orders"):
        world.watches.take(APPLICATIONS, None, application(name))
        world.watches.take(PODS, None, pod(f"{name}-driver-1", of=name))
    world.api.objects = {APPLICATIONS: [application("orders")], PODS: [pod("orders-driver-1", of="orders")]}
    world.compares()

    assert world.keys() == (Key("team", "orders"),)
    assert world.queued == [Key("team", "flights")] * 2
    assert world.gone == [Key("team", "flights")]
    assert world.missed == {"sparkapplications": 1, "pods": 1}


def test_a_pod_that_only_our_own_write_knows_of_is_found_gone_too() -> None:
    world = World()
    world.watches.take(APPLICATIONS, None, application("flights"))
    world.cache.put_pod(pod("flights-driver-1", of="flights"))  # the answer to its creation
    world.api.objects[APPLICATIONS] = [application("flights")]
    world.compares()

    assert world.cache.pods(Key("team", "flights")) == ()
    assert world.missed == {"pods": 1}


def test_what_came_while_the_listing_was_on_its_way_is_not_gone() -> None:
    world = World()
    world.api.on_list = lambda: world.watches.take(APPLICATIONS, "ADDED", application("late"))
    world.compares()

    assert world.keys() == (Key("team", "late"),)
    assert world.missed == {}


def test_what_went_while_the_listing_was_on_its_way_was_not_missed() -> None:
    world = World()
    world.watches.take(APPLICATIONS, "ADDED", application("flights"))
    world.api.on_list = lambda: world.watches.take(APPLICATIONS, "DELETED", application("flights", 2))
    world.compares()

    assert world.missed == {}


def test_what_went_while_the_listing_was_on_its_way_is_not_waited_for() -> None:
    """It would be until the next comparison, minutes later, and the operator be restarted for a dead watch."""
    world = World()
    flights, driver = application("flights"), pod("flights-driver-1", of="flights")
    world.watches.take(APPLICATIONS, "ADDED", flights)
    world.watches.take(PODS, "ADDED", driver)
    world.api.objects = {APPLICATIONS: [flights], PODS: [driver]}

    def gone() -> None:
        world.watches.take(PODS, "DELETED", pod("flights-driver-1", of="flights", version=2))
        world.watches.take(APPLICATIONS, "DELETED", application("flights", 3))

    world.api.on_list = gone
    world.compares()

    assert world.watches.behind(math.inf) == 0.0
    assert world.watches.are_synced()


def test_a_listing_that_fails_changes_nothing() -> None:
    world = World()
    world.watches.take(APPLICATIONS, None, application("flights"))
    world.api.is_down = True
    world.compares()

    assert world.keys() == (Key("team", "flights"),)
    assert not world.watches.are_synced()


def test_only_the_served_namespaces_are_listed_and_only_driver_pods() -> None:
    world = World(namespaces=("team-a", "team-b"))
    world.compares()

    assert world.api.asked == [
        ("sparkapplications", "team-a", None),
        ("pods", "team-a", DRIVER_SELECTOR),
        ("sparkapplications", "team-b", None),
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
            world.watches.take(APPLICATIONS, None, application("flights"))
            assert not world.resync.synced.is_set()
            world.watches.take(PODS, None, pod("flights-driver-1", of="flights"))
            await world.resync.synced.wait()
        comparing.cancel()

    asyncio.run(run())


def test_a_deletion_that_a_watch_tells_is_handed_on() -> None:
    world = World()
    world.watches.take(APPLICATIONS, "ADDED", application("flights"))
    world.watches.take(PODS, "ADDED", pod("flights-driver-1", of="flights"))
    world.queued.clear()
    world.watches.take(PODS, "DELETED", pod("flights-driver-1", of="flights", version=2))
    world.watches.take(APPLICATIONS, "DELETED", application("flights", version=3))

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


REFUSED = ApiRefused("GET sparkapplications in team-b: 403", "403")
AWAY = ApiUnavailable("GET sparkapplications in team-b: 500")


def two_teams() -> World:
    """Two namespaces with an application each, which the watches have told of."""
    world = World(namespaces=("team-a", "team-b"))
    for namespace in world.namespaces:
        there = application(f"of-{namespace}", namespace=namespace)
        world.api.objects[APPLICATIONS].append(there)
        world.watches.take(APPLICATIONS, None, there)
    return world


@pytest.mark.parametrize("error", [REFUSED, AWAY])
def test_what_vanished_is_found_although_another_namespace_cannot_be_listed(error: TransientError) -> None:
    world = two_teams()
    world.api.broken["team-b"] = error
    world.api.objects[APPLICATIONS].clear()
    world.compares()

    assert world.gone == [Key("team-a", "of-team-a")]
    assert world.keys() == (Key("team-b", "of-team-b"),)
    assert not world.resync.namespaces.is_served("team-b")
    assert world.resync.namespaces.is_served("team-a")


def test_a_server_that_answers_for_no_namespace_says_nothing_of_any() -> None:
    world = two_teams()
    world.api.is_down = True
    world.compares()

    assert world.resync.namespaces.unserved() == 0


def test_a_watch_that_may_not_be_held_any_more_is_not_behind() -> None:
    world = two_teams()
    world.api.objects[APPLICATIONS] = [
        application(f"of-{name}", version=2, namespace=name) for name in world.namespaces
    ]
    world.compares()
    now = max(one.since for one in world.watches.versions[APPLICATIONS]._awaited.values()) + 100
    assert world.watches.behind(now) >= 100
    world.watches.take(APPLICATIONS, "MODIFIED", application("of-team-a", version=2, namespace="team-a"))
    world.api.lacking.add("team-b")
    world.compares()

    assert world.watches.behind(now) == 0


async def until_listed(world: World, number: int) -> None:
    while len(world.api.asked) < number:
        await asyncio.sleep(0)


@pytest.mark.parametrize(("all_again", "outstanding_again"), [(300, 0.001), (0.001, 10)])
def test_nothing_is_begun_in_a_namespace_that_is_granted_late_before_its_drivers_are_heard_of(
    monkeypatch: pytest.MonkeyPatch, all_again: float, outstanding_again: float
) -> None:
    monkeypatch.setattr("headgate.handlers.resync.AGAIN_SECONDS", outstanding_again)
    world = World(namespaces=("team-a", "team-b"))
    world.resync.seconds = all_again
    early = application("early", namespace="team-a")
    late = application("late", namespace="team-b")
    driver = pod("late-driver-1", of="late", namespace="team-b")
    world.api.objects = {APPLICATIONS: [early, late], PODS: [driver]}
    world.api.lacking.add("team-b")

    async def run() -> None:
        comparing = asyncio.create_task(world.resync.run())
        async with asyncio.timeout(240):
            world.watches.take(APPLICATIONS, None, early)
            await world.resync.synced.wait()
            assert world.queued == [Key("team-a", "early")]
            world.api.lacking.clear()
            world.watches.take(APPLICATIONS, None, late)
            await until_listed(world, len(world.api.asked) + 6)  # three comparisons of it
            assert world.queued == [Key("team-a", "early")]
            world.watches.take(PODS, None, driver)
            while len(world.queued) == 1:
                await asyncio.sleep(0)
        comparing.cancel()

    asyncio.run(run())
    assert world.queued == [Key("team-a", "early"), Key("team-b", "late")]
    assert world.resync.namespaces.unserved() == 0
    assert ("sparkapplications", "team-a", None) in world.api.asked


def test_where_nothing_is_served_nothing_counts_as_heard_of() -> None:
    world = World(namespaces=("team-a",))
    world.api.lacking.add("team-a")

    async def run() -> None:
        comparing = asyncio.create_task(world.resync.run())
        async with asyncio.timeout(240):
            while world.resync.namespaces.unserved() == 0:
                await asyncio.sleep(0)
            assert not world.resync.synced.is_set()
            world.api.lacking.clear()
            await world.resync.synced.wait()
        comparing.cancel()

    asyncio.run(run())
