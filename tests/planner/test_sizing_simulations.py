"""Grants over a whole backlog: queries whose cost is steady, jumps, drifts, has a cliff, grows faster than their
records, is skewed, was recorded, or varies by chance.

A simulated query takes `cost(records, done)` seconds for a batch after `done` records. What the sizer comes to is
held against the best fixed size, found by search among those whose batches take about the target. All batches count,
from the first on.

`tests/data/progress.json` has how long the batches of two real queries took (`triggerExecution` of the progress in
Spark's event log): a keyed aggregation and an interval join of `make bench-backlog`, plain, once in batches of one
size and once in one batch.
"""

import json
import math
import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate_contract import BatchControl
from headgate_spark.planner.sizing import EXTRAPOLATED, OVERRUN, BatchSizer

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


def backlog(target: float, targets: int = BATCHES) -> int:
    return int(RATE * target * targets)


def clear(cost: Cost, target: float, total: int | None = None) -> list[tuple[int, float]]:
    """Clear a backlog by the sizer's grants; returns records and seconds of each batch."""
    sizer, total, done = BatchSizer(), total or backlog(target), 0
    batches = []
    while done < total:
        grant = sizer.grant(target, UNBOUNDED)
        records = min(grant.records, total - done)
        seconds = cost(records, done)
        done += records
        sizer.ended(grant, records, seconds, cut=done < total)
        batches.append((records, seconds))
    return batches


def clear_by(size: int, cost: Cost, total: int) -> list[float]:
    """Return the seconds that each batch of a fixed size takes for the backlog."""
    return [cost(min(size, total - done), done) for done in range(0, total, size)]


def best_seconds(cost: Cost, target: float, total: int | None = None) -> float:
    """Return the least seconds of all fixed sizes, a tenth apart, whose batches take the target at most."""
    total, least = total or backlog(target), math.inf
    for size in (int(total / BATCHES * 1.1**-power) for power in range(-2, 45)):
        taken = 0.0
        for done in range(0, total, size):
            seconds = cost(min(size, total - done), done)
            taken += seconds
            if seconds > 1.1 * target or taken >= least:  # nothing that is left can make it the best
                break
        else:
            least = taken
    assert least < math.inf, "no size takes the target at most"
    return least


def overruns(batches: list[tuple[int, float]], target: float) -> int:
    return sum(seconds > OVERRUN * target for _, seconds in batches)


def turns(batches: list[tuple[int, float]]) -> float:
    """Return in which part of the later batches sizes change by more than a fifth."""
    sizes = [records for records, _ in batches[20:-1]]
    return sum(abs(math.log(one / other)) > 0.2 for one, other in pairwise(sizes)) / len(sizes)


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


def stepping(target: float, fixed: float, times: float) -> Cost:
    """Everything costs so many times as much in the second half of the backlog."""
    at, plain = backlog(target) // 2, steady(target, fixed)
    return lambda records, done: plain(records, done) * (times if done >= at else 1.0)


def growing(target: float, fixed: float, power: float) -> Cost:
    """Work that grows faster than the records do, without a cliff: sorting, collections, keys that are in the way."""
    return lambda records, _: target * (fixed + (records / (RATE * target)) ** power)


@given(target=targets, fixed=fixed_parts)
def test_a_steady_query_takes_its_target_from_the_fourth_full_batch_on_but_for_one_look_below(
    target: float, fixed: float
):
    seconds = [taken for _, taken in clear(steady(target, fixed), target)]
    begun = next(number for number, taken in enumerate(seconds) if taken >= target / 2)
    later = seconds[begun + 4 : -2]
    assert max(later) <= 1.05 * target
    assert sum(taken < 0.95 * target for taken in later) <= 5


@given(target=targets, fixed=fixed_parts, times=st.floats(1.2, 8.0))
def test_after_a_jump_of_the_cost_one_batch_is_too_long_and_the_next_is_not(
    target: float, fixed: float, times: float
):
    seconds = [taken for _, taken in clear(stepping(target, fixed, times), target)]
    settled = seconds[-len(seconds) // 2 :]
    too_long = [taken for taken in settled if taken > 1.1 * max(target, 2 * times * fixed * target)]
    assert len(too_long) <= 1
    assert max(seconds[10:]) <= 1.1 * times * target


@given(target=targets, fixed=fixed_parts, times=st.floats(1.2, 8.0))
def test_a_jump_of_the_cost_costs_a_tenth_at_most_and_sizes_settle_again(
    target: float, fixed: float, times: float
):
    """Where the fixed cost still leaves half of the target for records."""
    assume(times * fixed <= 0.5)
    cost = stepping(target, fixed, times)
    batches = clear(cost, target)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, target) / 0.9
    assert turns(batches) <= 0.1


@given(target=targets, fixed=fixed_parts, times=st.floats(0.2, 5.0))
def test_a_query_that_gets_slower_or_faster_bit_by_bit_stays_near_its_target(
    target: float, fixed: float, times: float
):
    total = backlog(target)

    def cost(records: int, done: int) -> float:
        return fixed * target + records / RATE * (1 + (times - 1) * done / total)

    batches = clear(cost, target)
    assert sum(taken for _, taken in batches) <= best_seconds(cost, target) / 0.9
    assert turns(batches) <= 0.25, "five times as many records are a fifth more eight times"
    seconds = [taken for _, taken in batches[8:-1]]
    assert max(seconds) <= OVERRUN * target
    assert sum(taken > 1.2 * target for taken in seconds) <= 3
    assert sum(taken < 0.8 * target for taken in seconds) <= len(seconds) / 5


@pytest.mark.parametrize("target", [10.0, 120.0])
@pytest.mark.parametrize("fixed", [0.002, 0.02, 0.2])
@pytest.mark.parametrize("power", [1.05, 1.1, 1.2, 1.5, 2.0])
def test_where_work_grows_faster_than_records_nine_tenths_of_the_best_fixed_size_are_reached(
    power: float, fixed: float, target: float
):
    cost = growing(target, fixed, power)
    batches = clear(cost, target)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, target) / 0.9
    assert overruns(batches, target) <= 2
    assert turns(batches) <= 0.1


CLIFFS = [(rising, 5.0), (rising, 20.0), (jumping, 3.0), (jumping, 5.0)]


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("part", [0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
@pytest.mark.parametrize(("cliff", "steepness"), [(rising, 2.0), *CLIFFS])
def test_beside_a_cliff_nine_tenths_of_the_best_fixed_size_are_reached(
    cliff: Cliff, steepness: float, part: float, fixed: float
):
    cost = cliff(TARGET, fixed, part, steepness)
    batches = clear(cost, TARGET)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, TARGET) / (
        0.9 if part > 0.1 else 0.83
    )
    assert overruns(batches, TARGET) <= 4


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.7])
def test_a_cliff_that_makes_all_records_twenty_times_dearer_takes_a_longer_backlog(part: float, fixed: float):
    """A batch beyond it takes up to twenty targets, and two are needed to tell it from chance."""
    cost, total = jumping(TARGET, fixed, part, 20.0), backlog(TARGET, 400)
    batches = clear(cost, TARGET, total)
    least = best_seconds(lambda records, _: cost(records, 0), TARGET) * 400 / BATCHES
    assert sum(seconds for _, seconds in batches) <= least / 0.9
    assert overruns(batches, TARGET) <= 5 + 0.01 * len(batches)


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(("cliff", "steepness"), CLIFFS)
def test_batches_do_not_swing_over_a_cliff_and_back(cliff: Cliff, steepness: float, part: float):
    assert turns(clear(cliff(TARGET, 0.02, part, steepness), TARGET)) <= 0.1


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
        (1.0, 0.3, 10, 0.1),
        (10.0, 0.15, 1, 0.05),
        (10.0, 0.15, 10, 0.05),
        (10.0, 0.3, 1, 0.15),
        (10.0, 0.3, 10, 0.05),
    ],
)
def test_once_a_rate_is_lifted_chance_keeps_batches_small_for_long_in_few_queries(target, sigma, rate, late):
    """`late`: the part that takes longer than 30 s and 15 batches, with a fixed cost of 0.6 s."""
    taken = [batches_until_half(seed, 0.6, sigma, target, rate) for seed in range(60)]
    assert sum(seconds > 30 and batches > 15 for seconds, batches in taken) <= late * len(taken)


CORES = 8


@given(
    target=st.sampled_from([10.0, 120.0]),
    fixed=fixed_parts,
    largest=st.floats(0.2, 0.6),
    seed=st.integers(0, 99),
)
def test_a_hot_key_whose_part_changes_is_followed(target: float, fixed: float, largest: float, seed: int):
    """A batch takes as long as the task with the most records. The part of the hottest key differs from one stretch
    of the backlog, of three targets, to the next."""
    chance, stretch, total = (
        random.Random(seed),
        int(3 * target * RATE / CORES),
        backlog(target, BATCHES // 3),
    )
    parts = [chance.uniform(1 / CORES, largest) for _ in range(0, total, stretch)]

    def cost(records: int, done: int) -> float:
        return fixed * target + CORES * parts[done // stretch] * records / RATE

    batches = clear(cost, target, total)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, target, total) / 0.9
    assert max(seconds for _, seconds in batches) <= EXTRAPOLATED * CORES * largest * 1.1 * target


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("part", [0.05, 0.2, 0.4])
def test_a_hot_key_whose_values_are_kept_in_a_list_makes_batches_smaller(part: float, fixed: float):
    """The list is written again for what comes to it: the task of that key does work as the square of its records."""
    target = 10.0

    def cost(records: int, _: int) -> float:
        hot = part * records
        others = (1 - part) * records / (CORES - 1)
        return fixed * target + CORES / RATE * max(others, hot * (1 + hot / (0.1 * target * RATE)))

    batches = clear(cost, target)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, target) / 0.9
    assert overruns(batches, target) <= 3
    assert turns(batches) <= 0.1


@pytest.mark.parametrize("fixed", [0.02, 0.2])
@pytest.mark.parametrize("heap", [0.3, 3.0])
@pytest.mark.parametrize("keys", [0.01, 0.3, 100.0])
def test_state_writes_that_are_combined_and_a_heap_that_fills_are_told_by_durations(
    keys: float, heap: float, fixed: float
):
    """`keys` and `heap` in records of a target: a key is written once a batch, and the more there is on the heap, the
    more collecting it takes. With 100 there are as many keys as records in each batch."""
    known = keys * TARGET * RATE

    def cost(records: int, _: int) -> float:
        writes = known * (1 - math.exp(-records / known))
        return fixed * TARGET + (0.4 * records + 0.6 * writes) / RATE * (1 + writes / (heap * TARGET * RATE))

    total = backlog(TARGET)
    batches = clear(cost, TARGET, total)
    assert sum(seconds for _, seconds in batches) <= best_seconds(cost, TARGET, total) / 0.9
    assert overruns(batches, TARGET) <= 2


@cache
def recorded(query: str) -> Callable[[int, int], float]:
    """Return how long the batch with a number would have taken with so many records: by the line through the batches
    of one size and the one of everything, times what the batch with this number differed from the others."""
    path = Path(__file__).parent.parent / "data" / "progress.json"
    seen = json.loads(path.read_text())[query]
    typical, whole = median(seen["milliseconds"]), seen["whole"]
    per_record = (whole["milliseconds"] - typical) / (whole["records"] - seen["records"])
    differed = [one / typical for one in seen["milliseconds"]]
    return lambda number, records: (
        (typical + per_record * (records - seen["records"])) / 1000 * differed[number % len(differed)]
    )


@pytest.mark.parametrize("begin", range(0, 150, 10))
@pytest.mark.parametrize(
    ("query", "target"),
    [("aggregation", 2.0), ("aggregation", 10.0), ("aggregation", 60.0), ("join", 10.0), ("join", 60.0)],
)
def test_recorded_batches_cost_a_tenth_at_most_and_few_of_them_are_too_long(
    query: str, target: float, begin: int
):
    """The JVM is warm except in those that begin with the first batch."""
    taken = recorded(query)

    def numbered() -> Cost:
        numbers = iter(range(begin, 10**6))
        return lambda records, _: taken(next(numbers), records)

    per_target = next(size for size in range(1000, 10**9, 1000) if taken(100, size + 1000) > target)
    total = BATCHES * per_target
    batches = clear(numbered(), target, total)
    sizes = (int(per_target * 1.1**-power) for power in range(-2, 20))
    cleared = (clear_by(size, numbered(), total) for size in sizes)
    best = min(sum(seconds) for seconds in cleared if median(seconds) <= target)
    assert sum(seconds for _, seconds in batches) <= best / 0.9
    assert overruns(batches, target) <= 0.05 * len(batches) + 1
