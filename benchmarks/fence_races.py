"""Two drivers on one checkpoint, again and again: `python -m benchmarks.fence_races --races 1000`.

Each has a JVM of its own; the store is one of ours with put-if-absent, in half of the races by renames and in half by
conditional writes. Prints how many races there were, and for each that broke a law the command that runs it again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.fence_races import Race, RaceError, racers, run


def main() -> None:
    """Run races; exit with 1 where one broke a law."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fence_races", description=__doc__)
    parser.add_argument("--races", type=int, default=1_000, help="how many [1000]")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the others follow [0]")
    options = parser.parse_args()
    began, broken = time.monotonic(), 0
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="fence-races-") as scratch, racers(Path(scratch)) as both:
        for seed in range(options.seed, options.seed + options.races):
            folder = Path(scratch) / str(seed)
            race = Race.drawn(seed)
            try:
                ends["/".join(run(race, *both, folder))] += 1
            except RaceError as error:
                broken += 1
                print(
                    f"{race}: {error}\n  python -m benchmarks.fence_races --races 1 --seed {seed}", flush=True
                )
            shutil.rmtree(folder, ignore_errors=True)
    print(
        json.dumps(
            {
                "fence_races": options.races,
                "fence_broken": broken,
                "seed": options.seed,
                "seconds": round(time.monotonic() - began, 1),
                "ends": dict(ends.most_common()),
            }
        )
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
