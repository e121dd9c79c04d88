"""Looks at what takes long are few, and it is noticed soon all the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support import waiting

LOOK = 0.005
"""Seconds that one takes."""


@pytest.mark.parametrize(("takes", "looks"), [(0.1, 10), (5.0, 170), (60.0, 460)])
def test_the_longer_a_wait_lasts_the_rarer_are_looks(
    takes: float, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def has_happened() -> bool:
        nonlocal now, asked
        asked += 1
        now += LOOK
        return now >= takes

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    assert waiting.wait_until(has_happened, "it")
    assert asked <= looks
    assert now - takes <= max(waiting.PAUSE_SECONDS, waiting.LATE * takes) + LOOK
    with pytest.raises(AssertionError, match="waited 1 s in vain: more"):
        waiting.wait_until(lambda: sleep(LOOK), "more", 1)
