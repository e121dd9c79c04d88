"""The auction stream that the Nexmark queries read: persons who join, auctions that they open, and bids on these.

After the published generator (Tucker et al., "NEXMark: A Benchmark for Queries over Data Streams", and its form in
Apache Beam): all kinds of events are in one stream, an event is known by its number, and sellers, auctions and
bidders are chosen among the recent ones, one in a hundred of them far more often than all others. Different here:
event times are even, nothing is mentioned before it is there, and records have no padding. Made by
`recording.prepare`, from a fixed seed, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.backlog.scenario import Bench, of_scale
from benchmarks.local.recording import MICROS, ROWS_PER_FILE, SEED, Recording, prepare

PERSONS, AUCTIONS, BIDS = 1, 3, 46
"""Of each epoch, in this order."""
EPOCH = PERSONS + AUCTIONS + BIDS
KINDS = ("person", "auction", "bid")
RECENT_PERSONS, RECENT_AUCTIONS = 1000, 100
"""How many of the last ones are chosen from."""
HOT_EVERY = 100
HOT_PERSONS, HOT_AUCTIONS = 0.75, 0.5
"""How often the hot one is chosen, and not any of the recent ones."""
CATEGORIES = (10, 15)
"""The first one, and the one after the last."""
PRICE_DIGITS = 6
"""A price is from one to a million, in hundredths; its logarithm is evenly distributed."""
LONGEST_SECONDS = 60
"""The longest that an auction is open."""
CITY_OF = {
    "AZ": "Phoenix",
    "CA": "San Francisco",
    "ID": "Boise",
    "OR": "Portland",
    "WA": "Seattle",
    "WY": "Cheyenne",
}
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class AuctionBench(Bench):
    """What a scenario is given to measure with, where every recording is an auction stream."""

    def recording(self, whole: Recording, share: float = 1.0) -> Path:
        """Return the directory of an auction stream at this scale, or of a `share` of it, written if need be."""
        scaled = of_scale(whole, self.scale * share)
        return prepare(scaled, self.data / f"{scaled.backlog_rows}", tables)


def tables(recording: Recording) -> Iterator[pa.Table]:
    """Yield the events of a recording, as many as it has rows, a file's at a time."""
    random = np.random.default_rng(SEED)
    for start in range(0, recording.rows, ROWS_PER_FILE):
        end = min(start + ROWS_PER_FILE, recording.rows)
        yield events(np.arange(start, end), recording.event_times(start, end), random)


def events(numbers: Numbers, times: Numbers, random: np.random.Generator) -> pa.Table:
    """Return events by their numbers, ascending from 0, and times, in microseconds since 1970.

    Every kind has columns of its own; they are null in all others. `id` is that of a person or an auction, and each
    counts from 0. A reference is the `id` of an earlier event, or of the same epoch.
    """
    place = numbers % EPOCH
    kinds = np.digitize(place, (PERSONS, PERSONS + AUCTIONS))
    person, auction, bid = (kinds == kind for kind in range(len(KINDS)))
    persons = numbers // EPOCH * PERSONS + np.minimum(place + 1, PERSONS)
    auctions = numbers // EPOCH * AUCTIONS + np.clip(place + 1 - PERSONS, 0, AUCTIONS)
    states = random.integers(0, len(CITY_OF), len(numbers))
    lasting = random.integers(1, LONGEST_SECONDS + 1, len(numbers)) * MICROS
    prices = 100 * 10 ** (PRICE_DIGITS * random.random(len(numbers)))
    columns = {
        "kind": pa.array(np.array(KINDS)[kinds]),
        "id": of(person | auction, np.where(person, persons, auctions) - 1),
        "name": pc.binary_join_element_wise("person", of(person, persons - 1).cast(pa.string()), " "),
        "city": pa.array(np.array(list(CITY_OF.values()))[states], mask=~person),
        "state": pa.array(np.array(list(CITY_OF))[states], mask=~person),
        "seller": of(auction, chosen(random, persons, RECENT_PERSONS, HOT_PERSONS)),
        "category": of(auction, random.integers(*CATEGORIES, len(numbers))),
        "expires": timestamps(times + lasting, auction),
        "auction": of(bid, chosen(random, auctions, RECENT_AUCTIONS, HOT_AUCTIONS)),
        "bidder": of(bid, chosen(random, persons, RECENT_PERSONS, HOT_PERSONS)),
        "price": of(bid, prices.astype(np.int64)),
        "event_time": timestamps(times, person | auction | bid),
    }
    return pa.table(columns)


def chosen(random: np.random.Generator, there: Numbers, recent: int, hot: float) -> Numbers:
    """Return for each event one of as many as are `there`: the hot one, or any of the `recent` last ones."""
    last = there - 1
    any_recent = last - (random.random(len(there)) * np.minimum(there, recent)).astype(np.int64)
    return np.where(random.random(len(there)) < hot, last // HOT_EVERY * HOT_EVERY, any_recent)


def of(kind: npt.NDArray[np.bool_], values: Numbers) -> pa.Array:
    """Return a column of some kinds of events; it is null in the others."""
    return pa.array(values, pa.int64(), mask=~kind)


def timestamps(micros: Numbers, kind: npt.NDArray[np.bool_]) -> pa.Array:
    """Return a column of times of some kinds of events."""
    return of(kind, micros).cast(pa.timestamp("us", tz="UTC"))
