"""Two drivers on one checkpoint, again and again: `python -m benchmarks.fence_races --races 1000`.

Each has a JVM of its own; the store is one of ours with put-if-absent, in half of the races by renames and in half by
conditional writes. Prints how many races there were, and for each that broke a law the command that runs it again.
"""

from __future__ import annotations

import argparse
import json
import queue
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.fence_racer import LANES
from support.fence_races import FAULTY, Race, RaceError, Store, racers, run


@dataclass
class Raced:
    """What came of races."""

    ends: Counter[str] = field(default_factory=Counter)
    """How the two drivers ended, and how often."""
    broken: dict[int, str] = field(default_factory=dict)
    """By seed, the law that was broken."""


def raced(
    races: int, first_seed: int, store: Store = FAULTY, draw: Callable[[int], Race] = Race.drawn
) -> Raced:
    """Run races with the same two drivers, in folders that are removed after each.

    Most of a race is waiting, so some run side by side; how long drivers wait for an answer goes for all of those.
    """
    found = Raced()
    drawn = [draw(seed) for seed in range(first_seed, first_seed + races)]
    lanes: queue.SimpleQueue[int] = queue.SimpleQueue()
    for lane in range(LANES):
        lanes.put(lane)
    with tempfile.TemporaryDirectory(prefix="fence-races-") as scratch, racers(Path(scratch), store) as both:

        def raced_alone(race: Race) -> None:
            lane, folder = lanes.get(), Path(scratch) / str(race.seed)
            try:
                end = "/".join(run(race, *both, folder, lane, store))
            except RaceError as error:
                found.broken[race.seed] = f"{race}: {error}"
            else:
                found.ends.update([end])
            finally:
                lanes.put(lane)
                shutil.rmtree(folder, ignore_errors=True)

        for after in sorted({race.take_over_after for race in drawn}):
            with ThreadPoolExecutor(LANES) as pool:
                list(pool.map(raced_alone, [race for race in drawn if race.take_over_after == after]))
    return found


def main() -> None:
    """Run races; exit with 1 where one broke a law."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fence_races", description=__doc__)
    parser.add_argument("--races", type=int, default=1_000, help="how many [1000]")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the others follow [0]")
    options = parser.parse_args()
    began = time.monotonic()
    found = raced(options.races, options.seed)
    for seed, what in found.broken.items():
        print(f"{what}\n  python -m benchmarks.fence_races --races 1 --seed {seed}")
    seconds = round(time.monotonic() - began, 1)
    counts = {"fence_races": options.races, "fence_broken": len(found.broken), "seconds": seconds}
    print(json.dumps(counts | {"ends": dict(found.ends.most_common())}))
    sys.exit(1 if found.broken else 0)


if __name__ == "__main__":
    main()
