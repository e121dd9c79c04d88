"""The size from which on larger batches make each record dearer, batch by batch."""

import math
from collections.abc import Callable

import pytest

from headgate_spark.planner.ceiling import PATIENCE, Ceiling
from headgate_spark.planner.throughput import Sample


def a_ceiling(*batches: tuple[int, float]) -> Ceiling:
    """A ceiling that has seen full batches of so many records and seconds."""
    ceiling = Ceiling()
    for records, seconds in batches:
        ceiling.measure(Sample(records, seconds), by_grant=False)
    return ceiling


def sizes(
    ceiling: Ceiling, seconds: Callable[[int], float], batches: int, first: float = math.inf
) -> list[int]:
    """Take as many records as the ceiling allows, so many times; never more than `first`."""
    taken = []
    for _ in range(batches):
        taken.append(math.ceil(min(ceiling.records, first, 4 * max(taken, default=10**5))))
        ceiling.measure(Sample(taken[-1], seconds(taken[-1])))
    return taken


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [(1000, 9.0)],
        [(1000, 1.0), (4000, 4.0), (16_000, 16.0)],
        [(1000, 1.0), (4000, 4.2)],
        [(1000, 1.0), (4000, 3.5), (16_000, 11.0)],
    ],
    ids=["none", "one", "linear", "a little slower", "still gaining"],
)
def test_nothing_bounds_batches_that_have_met_no_cliff(batches):
    assert a_ceiling(*batches).records == math.inf


VARIED = [(100, 0.5), (100, 0.9), (100, 0.4), (100, 0.7), (200, 0.5), (200, 0.8)]
"""Batches whose duration is chance rather than records."""


def test_a_batch_as_slow_as_others_were_by_chance_shows_no_cliff():
    assert a_ceiling(*VARIED, (400, 1.1)).records == math.inf
    assert a_ceiling((100, 0.6), (200, 0.6), (400, 2.4)).records < math.inf


def test_batches_that_vary_do_not_hide_a_steep_cliff():
    assert a_ceiling(*VARIED, (800, 16.0)).records < 800


def test_after_a_dear_batch_a_size_between_is_tried():
    assert a_ceiling((1000, 1.0), (4000, 16.0)).records == 2000


def test_one_dear_batch_may_have_been_chance_so_its_size_is_tried_at_once():
    seen = [(1000, 1.0), (4000, 16.0), (2000, 2.0)]
    assert a_ceiling(*seen).records == 4000
    assert a_ceiling(*seen, (4000, 4.0)).records == math.inf
    assert a_ceiling((1000, 1.0), (1100, 9.0), (1000, 1.0)).records == 1100


def test_a_larger_batch_that_was_a_little_slower_is_taken_back_once_its_batches_tell():
    seen = [(1000, 1.0), (4000, 4.25)]
    assert a_ceiling(*seen).records == math.inf
    assert a_ceiling(*seen, *[(4000, 4.25)] * 5).records < 4000


def test_below_a_size_that_is_kept_to_smaller_ones_are_tried_once():
    ceiling = Ceiling()
    taken = sizes(ceiling, lambda n: 1 + n / 1000, 60, first=1600)
    assert taken[:4] == [1600, 1600, 1600, 400]
    assert set(taken[8:]) == {1600}


def test_a_quicker_size_below_is_kept_to():
    taken = sizes(Ceiling(), lambda n: n / 1000 * (3.0 if n > 300 else 1.0), 40, first=1000)
    assert set(taken[-20:]) <= set(range(200, 301)) | {round(1.2 * n) for n in range(200, 301)}


def test_nothing_is_tried_below_a_size_of_which_smaller_ones_foretold_what_it_takes():
    taken = sizes(a_ceiling((100, 1.1), (400, 1.4)), lambda n: 1 + n / 1000, 40, first=1600)
    assert set(taken) == {1600}


def test_smaller_sizes_are_tried_where_the_size_that_is_kept_to_gets_slower():
    ceiling = a_ceiling((100, 1.1), (400, 1.4))
    sizes(ceiling, lambda n: 1 + n / 1000, 20, first=1600)
    assert min(sizes(ceiling, lambda n: 2 + n / 500, 30, first=1600)) == 400


def test_two_dear_batches_are_a_cliff_and_the_size_below_it_is_kept_to():
    ceiling = a_ceiling((1000, 1.0), (4000, 16.0), (2000, 8.0))
    taken = sizes(ceiling, lambda n: n / 1000 * (4.0 if n > 1500 else 1.0), 30)
    assert set(taken[5:]) == {1415}


def test_a_dear_size_is_tried_again_after_so_long_that_tries_cost_a_fiftieth():
    ceiling = a_ceiling((1000, 1.0), (4000, 16.0), (2000, 8.0))
    taken = sizes(ceiling, lambda n: n / 1000 * (4.0 if n > 1500 else 1.0), 400)
    tries = [size for size in taken[10:] if size > 1500]
    assert tries
    assert sum(3 * size for size in tries) <= 1.1 * sum(taken) / PATIENCE


def test_a_cliff_that_has_gone_bounds_no_longer():
    ceiling = a_ceiling((1000, 1.0), (4000, 16.0), (2000, 8.0))
    assert max(sizes(ceiling, lambda n: n / 1000, 300)) > 100_000


@pytest.mark.parametrize("best", [1, 2, 3, 4, 5, 7])
def test_the_search_ends_among_sizes_of_a_few_records(best: int):
    ceiling = a_ceiling((1, 1.0), (16, 144.0), (8, 72.0))
    taken = sizes(ceiling, lambda n: n * (9.0 if n > best else 1.0), 80)
    assert taken[10:].count(best) >= 60


def test_batches_that_something_else_keeps_small_make_the_cliff_forgotten():
    ceiling = a_ceiling((1000, 1.0), (4000, 16.0), (2000, 8.0), *[(100, 0.1)] * 7)
    assert ceiling.records < math.inf
    ceiling.measure(Sample(100, 0.1))
    assert ceiling.records == math.inf
