"""What a script is asked for, part by part, while it runs: `streams.py` and `restarts.py`.

A file `DIR/<n>.queries` asks for as many queries as is written in it; `DIR/<n>.done` appears when all have ended.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path


def options() -> argparse.ArgumentParser:
    """Return the options that both have."""
    parser = argparse.ArgumentParser(description="Start queries and end them, as many as are asked for.")
    for option in ("bootstrap", "topic"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--place", type=Path, required=True, help="where files ask for queries")
    parser.add_argument("--names", type=int, required=True, help="how many names the queries have")
    return parser


def parts(place: Path) -> Iterator[tuple[Iterator[int], Path]]:
    """Yield for each part the numbers of its queries, and the file that says that it is done."""
    numbers = itertools.count()
    for turn in itertools.count(1):
        asked = place / f"{turn}.queries"
        while not asked.exists():
            time.sleep(0.05)
        yield itertools.islice(numbers, int(asked.read_text())), asked.with_suffix(".done")
