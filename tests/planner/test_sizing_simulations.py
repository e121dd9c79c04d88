"""Grants over a whole backlog: queries whose cost is steady, jumps, drifts, has a cliff, or varies by chance.

A simulated query takes `cost(records, done)` seconds for a batch after `done` records. What the sizer comes to is
held against the best fixed size, found by search among those whose batches take about the target.
"""

import math
import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl
from headgate_spark.planner.sizing import OVERRUN, BatchSizer

Cost = Callable[[int, int], float]
Cliff = Callable[[float, float, float, float], Cost]

RATE = 400_000
"""Records per second without the fixed cost."""
UNBOUNDED = BatchControl(max_records=10**12)
BATCHES = 90
"""Targets that the backlog is worth."""
TARGET = 120.0
targets = st.sampled_from([0.5, 10.0, 120.0])
fixed_parts = st.floats(0.0, 0.25)
"""Of the target."""


def backlog(target: float) -> int:
    return int(RATE * target * BATCHES)


def clear(cost: Cost, target: float) -> list[tuple[int, float]]:
    """Clear a backlog by the sizer's grants; returns records and seconds of each batch."""
    sizer, total, done = BatchSizer(), backlog(target), 0
    batches = []
    while done < total:
        grant = sizer.grant(target, UNBOUNDED)
        records = min(grant.records, total - done)
        seconds = cost(records, done)
        done += records
        sizer.ended(grant, records, seconds, cut=done < total)
        batches.append((records, seconds))
    return batches


def clear_by(size: int, cost: Cost, target: float) -> tuple[float, float]:
    """Return the seconds that a fixed size takes for the backlog, and for its longest batch."""
    total = backlog(target)
    batches = [cost(min(size, total - done), done) for done in range(0, total, size)]
    return sum(batches), max(batches)


def best_seconds(cost: Cost, target: float) -> float:
    """Return the least seconds of all fixed sizes, a tenth apart, whose batches take the target at most."""
    sizes = (int(RATE * target * 1.1**-power) for power in range(-2, 30))
    taken = (clear_by(size, cost, target) for size in sizes)
    return min(seconds for seconds, longest in taken if longest <= 1.1 * target)


def steady(target: float, fixed: float) -> Cost:
    return lambda records, _: fixed * target + records / RATE


def rising(target: float, fixed: float, part: float, steepness: float) -> Cost:
    """A cliff beyond which each further record costs more: what does not fit goes to disk."""
    knee = RATE * target * part
    return lambda records, _: fixed * target + (records + steepness * max(0.0, records - knee)) / RATE


def jumping(target: float, fixed: float, part: float, steepness: float) -> Cost:
    """A cliff beyond which all records cost more: a cache that is useless once it is too small."""
    knee = RATE * target * part
    return lambda records, _: fixed * target + records * (steepness if records > knee else 1.0) / RATE


@given(target=targets, fixed=fixed_parts)
def test_a_steady_query_takes_its_target_from_the_fourth_full_batch_on(target: float, fixed: float):
    seconds = [taken for _, taken in clear(steady(target, fixed), target)]
    begun = next(number for number, taken in enumerate(seconds) if taken >= target / 2)
    assert seconds[begun + 4 : -2] == pytest.approx([target] * len(seconds[begun + 4 : -2]), rel=0.05)


@given(target=targets, fixed=fixed_parts, times=st.floats(1.2, 8.0))
def test_after_a_jump_of_the_cost_one_batch_is_too_long_and_the_next_is_not(
    target: float, fixed: float, times: float
):
    at = backlog(target) // 2
    plain = steady(target, fixed)
    seconds = [
        taken
        for _, taken in clear(
            lambda records, done: plain(records, done) * (times if done >= at else 1.0), target
        )
    ]
    settled = seconds[-len(seconds) // 2 :]
    too_long = [taken for taken in settled if taken > 1.1 * max(target, 2 * times * fixed * target)]
    assert len(too_long) <= 1
    assert max(seconds[10:]) <= 1.1 * times * target


@given(target=targets, fixed=fixed_parts, times=st.floats(0.2, 5.0))
def test_a_query_that_gets_slower_or_faster_bit_by_bit_stays_near_its_target(
    target: float, fixed: float, times: float
):
    total = backlog(target)

    def cost(records: int, done: int) -> float:
        return fixed * target + records / RATE * (1 + (times - 1) * done / total)

    seconds = [taken for _, taken in clear(cost, target)][8:-1]
    assert all(0.8 * target <= taken <= 1.2 * target for taken in seconds)


CLIFFS = [(rising, 5.0), (rising, 20.0), (jumping, 3.0), (jumping, 5.0)]


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(("cliff", "steepness"), CLIFFS)
def test_beside_a_cliff_nine_tenths_of_the_best_fixed_size_are_reached(
    cliff: Cliff, steepness: float, part: float, fixed: float
):
    cost = cliff(TARGET, fixed, part, steepness)
    batches = clear(cost, TARGET)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, TARGET) / 0.9
    assert sum(seconds > OVERRUN * TARGET for _, seconds in batches) <= 3


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(("cliff", "steepness"), CLIFFS)
def test_batches_do_not_swing_over_a_cliff_and_back(cliff: Cliff, steepness: float, part: float):
    sizes = [records for records, _ in clear(cliff(TARGET, 0.02, part, steepness), TARGET)[15:-1]]
    turns = sum(abs(math.log(one / other)) > 0.2 for one, other in pairwise(sizes))
    assert turns <= len(sizes) / 10


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("times", [0.5, 2.0])
def test_a_cliff_that_comes_nearer_or_moves_away_is_followed(times: float, part: float, fixed: float):
    """The sizer may beat every fixed size here, since the best size moves."""
    total = backlog(TARGET)

    def cost(records: int, done: int) -> float:
        return rising(TARGET, fixed, part * times ** (done / total), 5.0)(records, done)

    assert sum(seconds for _, seconds in clear(cost, TARGET)) <= best_seconds(cost, TARGET) / 0.9


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_after_a_cliff_has_gone_batches_grow_to_their_target_again(part: float):
    at = backlog(TARGET) // 3
    plain, cliff = steady(TARGET, 0.2), rising(TARGET, 0.2, part, 5.0)
    batches = clear(lambda records, done: (plain if done >= at else cliff)(records, done), TARGET)
    assert batches[-3][1] == pytest.approx(TARGET, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fixed", [0.02, 0.2])
def test_chance_costs_a_tenth_at_most(fixed: float, seed: int):
    target = 10.0
    plain = steady(target, fixed)

    def cost(records: int, done: int) -> float:
        return plain(records, done) * random.Random(f"{seed} {done}").lognormvariate(0, 0.2)

    batches = clear(cost, target)
    assert sum(seconds for _, seconds in batches) <= best_seconds(plain, target) / 0.9
    assert max(seconds for _, seconds in batches[6:]) <= 1.5 * OVERRUN * target


@pytest.mark.parametrize("number", [1, 3, 7, 12])
def test_one_batch_that_waited_for_a_broker_is_made_up_for_within_five(number: int):
    target, taken = 10.0, iter(range(10**6))
    plain = steady(target, 0.1)
    seconds = [s for _, s in clear(lambda n, done: plain(n, done) + 60 * (next(taken) == number), target)]
    assert seconds[number] >= 60
    assert seconds[number + 5 : -2] == pytest.approx([target] * len(seconds[number + 5 : -2]), rel=0.05)


def test_more_keys_than_records_make_batches_cheaper_and_larger():
    """Each key is written once a batch, so the cost is concave: the more, the cheaper each."""
    target, keys = 120.0, RATE * 36.0

    def cost(records: int, _: int) -> float:
        return 2.4 + 0.2 * records / RATE + 3 * keys * (1 - math.exp(-records / keys)) / RATE

    batches = clear(cost, target)
    assert batches[-2][1] == pytest.approx(target, rel=0.05)


def batches_until_half(seed: int, fixed: float, sigma: float, target: float, rate: int) -> tuple[float, int]:
    """Return seconds and batches from lifting a rate limit until a batch has half of the records it could have.

    Limited to `rate` records per second for 20 s, from a cold start. One batch in twenty is 2.5 times slower.
    """
    chance, sizer, now, number = random.Random(seed), BatchSizer(), 0.0, 0

    def cost(records: int) -> float:
        varied = chance.lognormvariate(0, sigma) * (2.5 if chance.random() < 0.05 else 1.0)
        return (fixed + records / 60_000) * varied

    while now < 20:
        grant = sizer.grant(target, UNBOUNDED)
        records = min(grant.records, round(rate * max(target, fixed)) or 1)
        seconds = cost(records) * (5.0 if now == 0 else 1.0)
        sizer.ended(grant, records, seconds, cut=True)
        now += max(seconds, target)
    enough = 60_000 * max(target - fixed, fixed) / 2
    now, records = 0.0, 0
    while records < enough and now < 300:
        grant = sizer.grant(target, UNBOUNDED)
        records, seconds = grant.records, cost(grant.records)
        sizer.ended(grant, records, seconds, cut=True)
        now, number = now + seconds, number + 1
    return now, number


@pytest.mark.parametrize(
    ("target", "sigma", "rate", "late"),
    [
        (0.5, 0.15, 1, 0.1),
        (0.5, 0.15, 10, 0.1),
        (0.5, 0.3, 1, 0.75),
        (0.5, 0.3, 10, 0.75),
        (1.0, 0.15, 1, 0.05),
        (1.0, 0.15, 10, 0.1),
        (1.0, 0.3, 1, 0.05),
        (1.0, 0.3, 10, 0.2),
        (10.0, 0.15, 1, 0.05),
        (10.0, 0.15, 10, 0.05),
        (10.0, 0.3, 1, 0.05),
        (10.0, 0.3, 10, 0.05),
    ],
)
def test_once_a_rate_is_lifted_chance_keeps_batches_small_for_long_in_few_queries(target, sigma, rate, late):
    """`late`: the part that takes longer than 30 s and 15 batches, with a fixed cost of 0.6 s."""
    taken = [batches_until_half(seed, 0.6, sigma, target, rate) for seed in range(60)]
    assert sum(seconds > 30 and batches > 15 for seconds, batches in taken) <= late * len(taken)
