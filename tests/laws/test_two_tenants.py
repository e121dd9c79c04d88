"""What one tenant declares, pretends and breaks changes nothing of what another one has, nor when she is looked at.

What he serves and what his expressions say is in `tests/prometheus/test_non_interference.py`.
"""

from __future__ import annotations

import random

import pytest

from support.operating import KEY
from support.tenants import STEPS, TenantError, World, lockstep


@pytest.mark.parametrize("seed", range(6))
def test_alice_has_what_she_has_without_mallory(seed: int) -> None:
    assert lockstep(seed) == STEPS


def test_her_life_has_what_a_neighbour_could_disturb() -> None:
    world = World()
    states, verdicts = [], []
    for number in range(STEPS):
        world.step(number, None)
        if number > 0:
            states.append(world.operator.state(KEY))
            verdicts += [query["backlog"] for query in world.operator.status(KEY).get("queries", ())]

    assert {"Pending", "Running", "BackingOff", "Suspended"} <= set(states)
    assert states[-1] == "Running"
    assert {True, False} <= set(verdicts), "and so are her documents"


def test_the_law_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may write into her namespace disturbs her, and that is seen."""

    def in_her_namespace(world: World, _chance: random.Random) -> None:
        for pod in world.cluster.pods():
            world.cluster.evict(pod)

    monkeypatch.setattr(World, "_misuse", in_her_namespace)

    with pytest.raises(TenantError, match="L9: seed 1, step"):
        lockstep(1)
