"""Writes files of orders, as a shop that has been open for a while has left them: `make_orders.py FOLDER FILES`."""

import json
import random
import sys
from pathlib import Path

ORDERS = 2_000
"""In each file."""


def main() -> None:
    """Write the files after those that are there already."""
    folder, files = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(exist_ok=True)
    first = sum(1 for _ in folder.glob("*.json"))
    chance = random.Random(first)  # noqa: S311 - no secret
    for number in range(first, first + files):
        orders = ({"shop": chance.choice("ABC"), "euros": chance.randint(1, 200)} for _ in range(ORDERS))
        text = "".join(f"{json.dumps(order)}\n" for order in orders)
        (folder / f"{number:05}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
