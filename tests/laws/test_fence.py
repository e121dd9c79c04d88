"""The fence on a checkpoint, in every order of two drivers' steps, and in made-up ones of three.

What docs/guarantees.md promises of two drivers is held here, each promise by one test, and for each promise there is
one that takes the fence away, or the time that it needs, and finds the promise broken.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from headgate_spark.engine.fence import Create, Epoch, Owner, epochs_among
from support.fence_model import (
    Driver,
    Sink,
    Store,
    World,
    Write,
    check_cover,
    check_nothing_left,
    check_one_holder,
    check_one_range,
    check_order,
    every_order,
    run,
)

STEPS = 12
SEEDS = 1_000
BOTH_ENDS = ((0, 1), (1, 0))
"""After the steps that are tried in every order: who comes to an end first."""


def until(driver: Driver, step: Callable[[object], bool]) -> None:
    """Have a driver go on until it is about to take such a step."""
    while not step(driver.next):
        driver.step()


def in_mid_batch(store: Store, *, quick: bool = True, **newer: object) -> World:
    """Return a world in which one driver is in its first batch, and another one comes that takes larger batches."""
    world = World(store, writes_are_quick=quick)
    older = world.driver("older")
    until(older, lambda step: isinstance(step, Sink))
    world.driver("newer", per_batch=3, **newer)
    return world


def about_to_plan(store: Store, *, quick: bool = True, **newer: object) -> World:
    """The same, in which the first driver has looked and is about to write its second entry of the offset log."""
    world = in_mid_batch(store, quick=quick, **newer)
    until(world.drivers[0], lambda step: isinstance(step, Write) and step.batch == 1)
    return world


def every_end(make: Callable[[], World], check: Callable[[World], None], steps: int = STEPS) -> int:
    """Check the end of every order of steps; return how many there were."""
    tried = 0
    for order in every_order(steps, 2):
        for last in BOTH_ENDS:
            world = make()
            run(world, order, last=last)
            check(world)
            tried += 1
    return tried


def is_broken(make: Callable[[], World], check: Callable[[World], None], steps: int = STEPS) -> bool:
    """Tell whether there is an order of steps that breaks a law."""
    try:
        every_end(make, check, steps)
    except AssertionError:
        return True
    return False


def check_all(world: World) -> None:
    check_cover(world)
    check_order(world, "older", "newer")
    check_nothing_left(world)


def check_newer_goes_on(world: World) -> None:
    """What the older one does never ends the newer one."""
    assert world.drivers[1].end == "ended"


@pytest.mark.parametrize("begun", [in_mid_batch, about_to_plan])
def test_on_a_store_with_put_if_absent_the_older_never_commits_after_the_newer(
    begun: Callable[..., World],
) -> None:
    """However long a driver stands still between its look and what it writes."""
    assert every_end(lambda: begun(Store(), quick=False), check_all) == 2 * 2**STEPS


@pytest.mark.parametrize("begun", [in_mid_batch, about_to_plan])
def test_where_writes_are_quick_it_needs_no_put_if_absent(begun: Callable[..., World]) -> None:
    assert every_end(lambda: begun(Store(put_if_absent=False)), check_all) == 2 * 2**STEPS


def about_to_plan_what_is_deleted() -> World:
    """The same, in which the newer one plans that batch and more, and deletes all entries but the last ones."""
    world = World(Store(retains=1), writes_are_quick=False, clocks_go_on=True)
    older = world.driver("older")
    until(older, lambda step: isinstance(step, Write) and step.batch == 1)
    world.driver("newer", per_batch=3, batches=4)
    return world


def test_a_driver_that_plans_a_batch_again_whose_entry_is_deleted_does_not_run_it() -> None:
    """However long it stands still before it writes: put-if-absent does not keep off what was there."""
    every_end(about_to_plan_what_is_deleted, check_one_range)


@pytest.mark.parametrize("put_if_absent", [True, False])
def test_where_writes_are_quick_the_newer_is_never_disturbed(put_if_absent: bool) -> None:
    every_end(lambda: in_mid_batch(Store(put_if_absent)), check_newer_goes_on)


def test_of_two_that_come_at_once_one_goes_on() -> None:
    def make() -> World:
        world = World()
        world.store.beside[Epoch(7, "dead").name] = Owner(application="dead", host="h").text()
        for name in ("older", "newer"):
            world.driver(name, dead=frozenset({"dead"}))
        return world

    def check(world: World) -> None:
        check_cover(world)
        check_nothing_left(world)
        assert "ended" in [each.end for each in world.drivers]

    every_end(make, check)


# What would be without it ----------------------------------------------------------------------------


def test_without_a_look_before_each_commit_a_store_without_put_if_absent_loses_records() -> None:
    def make() -> World:
        world = in_mid_batch(Store(put_if_absent=False))
        world.drivers[0].looks = False
        return world

    assert is_broken(make, check_cover)


def test_without_put_if_absent_a_driver_that_stands_still_before_it_writes_loses_records() -> None:
    assert is_broken(lambda: about_to_plan(Store(put_if_absent=False), quick=False), check_cover)


def test_without_a_fence_the_newer_is_ended_by_the_older() -> None:
    def make() -> World:
        world = in_mid_batch(Store(), is_fenced=False)
        world.drivers[0].looks = False
        return world

    assert is_broken(make, check_newer_goes_on)


def test_without_a_look_after_it_has_planned_a_batch_is_run_twice_with_two_ranges() -> None:
    def make() -> World:
        world = about_to_plan_what_is_deleted()
        world.drivers[0].looks_after = False
        return world

    assert is_broken(make, check_one_range)


# How long it takes -----------------------------------------------------------------------------------


def test_a_driver_that_commits_while_it_is_looked_at_is_left_alone() -> None:
    world = in_mid_batch(Store(), take_over_seconds=30.0)
    older, newer = world.drivers
    for _ in range(8):
        newer.step()
    while newer.end is None:
        older.step() if not older.is_over else None
        newer.step()
    assert newer.end == "refused"
    run(world, ())
    assert [commit.driver for commit in world.commits] == ["older", "older"]


def test_a_driver_that_does_nothing_for_the_stated_time_is_shut_out() -> None:
    world = in_mid_batch(Store(), take_over_seconds=30.0)
    older, newer = world.drivers
    while not newer.is_over:
        newer.step()
    run(world, ())
    assert (older.end, newer.end) == ("fenced", "ended")


def test_one_that_is_known_to_be_dead_is_not_waited_for() -> None:
    world = in_mid_batch(Store(), take_over_seconds=1e9, dead=frozenset({"older"}))
    world.drivers[0].dies()
    run(world, ())
    assert [(commit.driver, commit.batch) for commit in world.commits] == [
        ("newer", 0),
        ("newer", 1),
        ("newer", 2),
    ]
    assert not epochs_among(world.store.beside)


# Made-up histories -----------------------------------------------------------------------------------


def made_up(seed: int, put_if_absent: bool) -> World:
    """Three drivers that come, die, stand still and leave, as the seed has it."""
    drawn = random.Random(seed)
    world = World(Store(put_if_absent), writes_are_quick=not put_if_absent)
    for name in ("first", "second", "third"):
        world.driver(
            name,
            per_batch=drawn.randint(1, 4),
            batches=drawn.randint(1, 4),
            take_over_seconds=drawn.choice([0.0, 2.0]),
            clock=lambda: drawn.randint(0, 3),
        )
    for _ in range(drawn.randint(20, 120)):
        driver = drawn.choice(world.drivers)
        for _ in range(drawn.choice([1, 1, 1, 5, 20])):
            if not driver.is_over:
                driver.step()
                check_one_holder(world)
        if drawn.random() < 0.01:
            driver.dies()
    for driver in drawn.sample(world.drivers, 3):
        while not driver.is_over:
            driver.step()
            check_one_holder(world)
    return world


@pytest.mark.parametrize("put_if_absent", [True, False])
def test_made_up_histories_of_three_drivers(put_if_absent: bool) -> None:
    ends = set()
    for seed in range(SEEDS // 2):
        world = made_up(seed, put_if_absent)
        try:
            check_cover(world)
            check_nothing_left(world)
        except AssertionError as error:
            raise AssertionError(f"made_up({seed}, {put_if_absent}): {error}") from error
        ends.update(each.end for each in world.drivers)
    assert ends >= {"ended", "fenced", "refused", "dead"}, "what was drawn tries less than it should"


# What a file says ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"pid": -1, "host": 5}', '{"pid": 1e400}', "\0" * 40]
)
def test_a_file_that_cannot_be_understood_is_of_a_driver_that_cannot_be_told(text: str) -> None:
    owner = Owner.parse(text)
    assert owner == Owner()
    assert owner.words == "a driver that cannot be told"


def test_a_file_tells_who_it_is() -> None:
    owner = Owner(
        application="shop/orders", host="node-3", pid=4711, since=1764076500.4, attempt=3, lineage="shop/x"
    )
    assert Owner.parse(owner.text()) == owner
    assert owner.words == (
        "the driver of application shop/orders on host node-3, pid 4711 since 2025-11-25T13:15:00Z"
    )


@pytest.mark.parametrize(
    ("older", "newer", "succeeded"),
    [
        (("a", 1), ("a", 2), True),
        (("a", 2), ("a", 2), False),
        (("a", 3), ("a", 2), False),
        (("a", 1), ("b", 2), False),
        (("", 1), ("", 2), False),
        (("a", None), ("a", 2), False),
    ],
)
def test_a_later_start_of_the_same_lineage_follows_one_that_has_ended(
    older: tuple[str, int | None], newer: tuple[str, int | None], succeeded: bool
) -> None:
    owners = [Owner(lineage=lineage, attempt=attempt) for lineage, attempt in (older, newer)]
    assert owners[0].is_succeeded_by(owners[1]) is succeeded


@pytest.mark.parametrize(
    "name", ["epoch.1", "epoch..a", "epoch.1.xyz", "epoch.-1.a", ".epoch.1.a.17", "epoch.1.a.crc"]
)
def test_what_else_lies_there_is_no_epoch(name: str) -> None:
    assert epochs_among([name]) == []


def test_of_two_that_see_each_others_claim_the_lower_withdraws() -> None:
    """Otherwise each shuts the other one out, and nobody goes on."""
    world = World()
    for name, at in (("lower", 1), ("higher", 2)):
        driver = world.driver(name, clock=lambda at=at: at)
        while not isinstance(driver.next, Create):
            driver.step()
    for _ in range(2):  # both have created theirs, and then looked again
        for driver in world.drivers:
            driver.step()
    assert len(world.store.beside) == 2
    while not all(driver.is_over for driver in world.drivers):
        for driver in world.drivers:
            if not driver.is_over:
                driver.step()
    assert "ended" in [driver.end for driver in world.drivers]
    assert world.taken[0] == "higher"
    check_cover(world)
