"""The API server's store is put back to a backup while a driver runs: it is told again what is declared.

What was told meanwhile is forgotten by the cluster and not by the driver, which takes nothing earlier.
"""

from __future__ import annotations

import asyncio
import copy
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Manifest
from headgate.adapters.kubernetes.history import StoreHistory, StoreWasPutBack
from headgate.adapters.kubernetes.names import CONTROL
from headgate.errors import ApiUnavailable, TransientError
from headgate.handlers.namespaces import Barrier, Namespaces
from headgate.handlers.resync import Resync
from headgate.handlers.watches import Watches
from headgate.key import key_of
from headgate.metrics import OperatorMetrics
from headgate_contract.codec import LARGEST_WHOLE
from headgate_contract.receiving import Inbox
from support.examples import examples
from support.fake_cluster import Watched
from support.looping import query
from support.operating import KEY, Operation


def with_interval(seconds: int) -> dict[str, Any]:
    return {"queries": [query(checkpoint={"interval": f"{seconds}s", "intervalDuringBacklog": "2m"})]}


async def _nothing_is_missing(_scope: str | None) -> str:
    return ""


class World:
    """An operator, a driver that reads what it is told, and backups of what the API server has stored."""

    def __init__(self) -> None:
        self.o = Operation()
        self.o.run(**with_interval(5))
        self.declared = 5
        self.inbox = Inbox()
        self.driver_reads()
        self.o.reconciles(2)
        self.backup()

    def driver_reads(self) -> None:
        self.inbox = self.inbox.receive(self.o.pod["metadata"]["annotations"][CONTROL])
        assert self.inbox.document is not None
        self.o.measurements.metrics(KEY).acknowledges(self.inbox.document.generation)

    def edit(self, seconds: int) -> None:
        self.o.declare(**with_interval(seconds))
        self.declared = seconds

    def backup(self) -> None:
        cluster = self.o.cluster
        self.kept = copy.deepcopy(cluster.objects), cluster._version, self.declared

    def restore(self) -> None:
        """Objects and versions are those of the backup; watches tell nothing of it, nor of what came before it."""
        objects, version, self.declared = self.kept
        self.o.cluster.objects, self.o.cluster._version = copy.deepcopy(objects), version
        self.o.cluster.events.clear()
        self.o.heard = 0

    def reconcile(self) -> None:
        with suppress(TransientError):
            self.o.reconcile()
        self.begin_anew_if_put_back()

    def compare(self) -> float:
        """The operator lists what is there, as it does every few minutes.

        Returns 0 where nothing is listed that it does not know of.
        """
        controller, metrics = self.o.controller, OperatorMetrics()
        barrier = Barrier(Namespaces(), lambda _key: None)
        watches = Watches(controller, barrier.add)
        for kind, versions in watches.versions.items():
            for uid, known in controller.cache.objects(kind).items():
                versions.heard({"uid": uid, "resourceVersion": str(known.version)})
        resync = Resync(
            self.o.cluster,
            controller.cache,
            watches,
            metrics,
            300.0,
            barrier,
            _nothing_is_missing,
            controller.history,
        )
        asyncio.run(resync.compare((None,)))
        behind = watches.behind(math.inf)
        self.begin_anew_if_put_back()
        return behind

    def begin_anew_if_put_back(self) -> None:
        if self.o.controller.history.contradiction is not None:
            self.o.restart()

    def watches_begin_anew(self) -> None:
        """The API server has, and each watch then lists what is there first (`continuous_watch` of Kopf)."""
        cluster = self.o.cluster
        for kind in (APPLICATIONS, PODS):
            there = asyncio.run(cluster.list(kind))
            cluster.events += [Watched(kind, False, one) for one in there]

    def comes_to_rest(self) -> None:
        """Minutes pass. A watch that has not told by then what was listed ends the process (`handlers/health.py`)."""
        self.watches_begin_anew()
        self.compare()
        self.reconciles()
        if self.compare() > 0:
            self.o.restart()
            self.reconciles()

    def reconciles(self) -> None:
        for _ in range(4):
            self.reconcile()
            self.driver_reads()

    def is_told_what_is_declared(self) -> bool:
        assert self.inbox.document is not None
        interval = self.inbox.document.queries["delays"].interval_seconds
        return self.inbox.refusal is None and interval == self.declared


def test_an_edit_of_which_no_watch_tells_after_a_restore_is_found_by_listing() -> None:
    world = World()
    world.edit(9)
    world.backup()
    world.restore()
    assert world.compare() > 0
    world.comes_to_rest()
    assert world.is_told_what_is_declared()


def test_an_edit_in_a_version_that_there_was_before_a_restore_is_followed() -> None:
    """The store gives the version of the edit that is lost to another one."""
    world = World()
    world.edit(9)
    world.o.restart()
    world.restore()
    world.edit(30)
    world.reconcile()
    world.comes_to_rest()
    assert world.is_told_what_is_declared()


@pytest.mark.parametrize("restarts", [True, False])
def test_after_a_restore_the_driver_is_told_again_and_can_be_told_more(restarts: bool) -> None:
    world = World()
    for seconds in range(6, 14):
        world.edit(seconds)
        world.comes_to_rest()
    world.restore()
    if restarts:
        world.o.restart()
    world.comes_to_rest()
    assert world.is_told_what_is_declared()
    world.edit(30)
    world.comes_to_rest()
    assert world.is_told_what_is_declared()
    assert world.o.condition("Reconciling")["status"] == "False"


def test_it_is_reconciling_until_the_driver_has_taken_what_it_is_told_again() -> None:
    world = World()
    world.edit(9)
    world.comes_to_rest()
    world.restore()
    world.o.restart()
    world.reconcile()
    assert world.o.condition("Reconciling")["status"] == "True"
    world.reconcile()
    assert world.o.condition("Reconciling")["status"] == "True"
    world.driver_reads()
    world.reconcile()
    assert world.o.condition("Reconciling")["status"] == "False"


def test_a_write_that_finds_an_earlier_version_shows_that_the_store_was_put_back() -> None:
    world = World()
    for seconds in (9, 10):
        world.edit(seconds)
        world.comes_to_rest()
    before = world.o.controller
    world.restore()
    world.o.measurements.metrics(KEY).acknowledges(77)  # something to be told, and to be written down before
    world.reconcile()
    assert world.o.controller is not before


def test_only_what_contradicts_itself_is_told_of() -> None:
    async def told(read: list[Manifest]) -> str | None:
        history = StoreHistory()
        history.compare(read, {"a": 5, "b": 7}, frozenset({"c"}))
        if history.contradiction is not None:
            with pytest.raises(StoreWasPutBack):
                await history.until_put_back()
        return history.contradiction

    def one(uid: str, version: int) -> Manifest:
        return {
            "metadata": {"uid": uid, "resourceVersion": str(version), "namespace": "team", "name": "flights"}
        }

    for fine in ([], [one("a", 5)], [one("a", 6), one("b", 7)], [one("d", 1)]):
        assert asyncio.run(told(fine)) is None
    assert "was in version 7 and is in version 6 again" in (
        asyncio.run(told([one("a", 5), one("b", 6)])) or ""
    )
    assert asyncio.run(told([one("c", 900)])) == "flights was gone and is there again"


def test_an_application_that_was_deleted_since_is_served_again() -> None:
    world = World()
    world.o.cluster.remove(KEY)
    for _ in range(4):
        world.reconcile()
        for pod in world.o.cluster.pods():
            world.o.cluster.vanish(pod["metadata"]["name"])
    assert not world.o.controller.keys()
    world.restore()
    world.comes_to_rest()
    assert list(world.o.controller.keys()) == [KEY]


def test_a_generation_near_the_largest_is_followed_by_one_that_the_driver_takes() -> None:
    world = World()
    pod = world.o.pod
    document = pod["metadata"]["annotations"][CONTROL]
    largest = document.replace(f'"generation":{world.o.document.generation}', f'"generation":{LARGEST_WHOLE}')
    assert largest != document
    world.o.cluster.edit(
        PODS, key_of(pod), lambda one: one["metadata"]["annotations"].update({CONTROL: largest})
    )
    world.driver_reads()
    world.edit(9)
    world.comes_to_rest()
    assert world.is_told_what_is_declared()


class Restores(RuleBasedStateMachine):
    """Backups, restores, edits, lost answers and restarts in any order."""

    @initialize()
    def begin(self) -> None:
        self.world = World()

    @rule(seconds=st.integers(1, 60))
    def edit(self, seconds: int) -> None:
        self.world.edit(seconds)

    @rule()
    def backup(self) -> None:
        self.world.backup()

    @rule()
    def restore(self) -> None:
        self.world.restore()

    @rule()
    def driver_reads(self) -> None:
        self.world.driver_reads()

    @rule()
    def operator_restarts(self) -> None:
        self.world.o.restart()

    @rule()
    def watches_begin_anew(self) -> None:
        self.world.watches_begin_anew()

    @rule()
    def compare(self) -> None:
        self.world.compare()

    @rule(at=st.integers(0, 3), is_lost=st.booleans())
    def reconcile(self, at: int, is_lost: bool) -> None:
        """The write number `at` fails, or its answer is lost; a reconcile rarely has so many."""
        left, cluster = at, self.world.o.cluster

        def fail(call: str) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise ApiUnavailable(call)

        setattr(cluster, "after" if is_lost else "before", fail)
        self.world.reconcile()
        cluster.before = cluster.after = lambda _call: None

    @invariant()
    def there_is_one_driver(self) -> None:
        assert len(self.world.o.cluster.pods()) == 1

    def teardown(self) -> None:
        self.world.comes_to_rest()
        assert self.world.is_told_what_is_declared()
        assert self.world.o.condition("Reconciling")["status"] == "False"


TestRestores = Restores.TestCase
TestRestores.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
