"""Whose expressions are asked: laws of fairness, over drawn namespaces."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from headgate.adapters.metrics.prometheus.expressions import admitted, chosen

NAMES = st.sampled_from("abcdef")
GROUPS = st.dictionaries(NAMES, st.lists(st.integers(0, 60), unique=True, min_size=1), min_size=1)


@given(GROUPS, st.integers(1, 40))
def test_there_is_room_for_each_namespace_and_a_small_one_has_all_of_its_own(
    wanted: dict[str, list[int]], room: int
) -> None:
    found = admitted(wanted, room)
    assert found == admitted(dict(reversed(wanted.items())), room)
    assert all(found[name] and set(found[name]) <= set(group) for name, group in wanted.items())
    different = {one for group in found.values() for one in group}
    assert len(different) <= max(room, len(wanted))
    share = room // len(wanted)
    for name, group in wanted.items():
        assert set(found[name]) >= set(group[:share])


@example({"a": [1], "b": [2]}, [], {"a": 5.0, "b": 1.0}, 1)
@given(GROUPS, st.lists(NAMES, max_size=30), st.dictionaries(NAMES, st.floats(0, 100)), st.integers(1, 20))
def test_each_namespace_has_its_turn_before_any_has_two(
    waiting: dict[str, list[int]], under_way: list[str], turn_at: dict[str, float], most: int
) -> None:
    found = chosen(waiting, under_way, turn_at, most)
    assert len(found) <= most
    assert len({one for _, one in found}) == len(found)
    assert all(one in waiting[name] for name, one in found)
    served = [name for name, _ in found]
    idle = [name for name in waiting if name not in under_way]
    taken = {one for _, one in found}
    missed = [name for name in idle if name not in served and not set(waiting[name]) <= taken]
    if missed:
        assert len(found) == most
        assert len(set(served)) == len(served)
        assert max(turn_at.get(name, 0.0) for name in served) <= min(
            turn_at.get(name, 0.0) for name in missed
        )
