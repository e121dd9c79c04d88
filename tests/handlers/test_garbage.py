"""What stays in memory is kept from the garbage collector."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from headgate.handlers import service
from headgate.handlers.service import set_aside


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.unfreeze()
    yield
    assert gc.get_threshold() == thresholds
    gc.freeze()  # all tests, as before


def test_what_has_survived_is_frozen_and_garbage_is_not() -> None:
    class Circle:
        """One that only the collector can take away."""

    def there() -> int:
        return sum(isinstance(found, Circle) for found in gc.get_objects())

    circle = Circle()
    circle.itself = circle  # type: ignore[attr-defined]
    del circle

    async def once() -> None:
        setting_aside = asyncio.create_task(set_aside())
        await asyncio.sleep(0)
        setting_aside.cancel()

    asyncio.run(once())
    assert gc.get_freeze_count()
    gc.unfreeze()
    assert not there()


@pytest.mark.parametrize(("busy", "looks"), [(3, 4), (10**6, service.MOMENTS)])
def test_old_objects_are_looked_at_when_nothing_is_under_way_or_all_the_same(
    monkeypatch: pytest.MonkeyPatch, busy: int, looks: int
) -> None:
    monkeypatch.setattr(service, "FREEZE_SECONDS", 0)
    monkeypatch.setattr(service, "MOMENT_SECONDS", 0)
    done: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: done.append("collected"))

    def is_idle() -> bool:
        done.append("asked")
        return done.count("asked") > busy

    async def twice() -> None:
        setting_aside = asyncio.create_task(set_aside(is_idle))
        while done.count("collected") < 2:
            await asyncio.sleep(0)
        setting_aside.cancel()

    asyncio.run(twice())
    assert done == ["collected", *["asked"] * looks, "collected"]
