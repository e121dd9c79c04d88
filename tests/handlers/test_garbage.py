"""What stays in memory is kept from the garbage collector."""

from __future__ import annotations

import asyncio
import gc

from headgate.handlers.garbage import set_aside


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

    frozen = gc.get_freeze_count()
    try:
        asyncio.run(once())
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()
    assert not there()
