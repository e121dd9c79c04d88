"""Whether a hole is known in any locked library, by one question to OSV: what `make lint` asks, in a second or two.

OSV has what PyPI's own database has. Who has no network is told that nobody has looked, and goes on; with
`--required`, as where GitHub tries a commit, that is a failure. `make audit` asks pip-audit, which says more of each
hole. Exit code 0: no hole is known, or nobody could be asked; 1: one is; 3: nobody could be asked, and that was
required.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

from locks.audit import ACCEPTED, LOCKS, UNKNOWN
from locks.lockfile import HERE, parse

DATABASE: Final = "https://api.osv.dev/v1/querybatch"
"""Takes a thousand libraries at once, and answers in their order."""
SECONDS: Final = 8.0
"""Longest wait for all of it, the look-up of the name included, which has no time-out of its own."""

Library = tuple[str, str]
"""Name and version."""


class NotAskedError(Exception):
    """The database has not answered, or not as it should; the message says what there was instead."""


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m locks.known", description="Ask for known holes, once.")
    parser.add_argument("--required", action="store_true", help="fail where the database cannot be asked")
    options = parser.parse_args()
    pins = (pin for lock in LOCKS for pin in parse((HERE / f"{lock}.txt").read_text(encoding="utf-8")))
    libraries = sorted({(pin.name, pin.version) for pin in pins})
    try:
        return told(libraries, asked(libraries))
    except NotAskedError as problem:
        said = f"known holes: NOT LOOKED AT, the database could not be asked: {problem}"
        print(f"{said}; `make audit` where there is a network, and each night", file=sys.stderr)
        return UNKNOWN if options.required else 0


def asked(
    libraries: Sequence[Library], database: str = DATABASE, seconds: float = SECONDS
) -> list[list[str]]:
    """Return the numbers of the holes of each library, in their order. Raises `NotAskedError`."""
    found: list[Any] = [None, f"no answer in {seconds:g} s"]

    def ask() -> None:
        queries = [{"package": {"ecosystem": "PyPI", "name": name}, "version": at} for name, at in libraries]
        body = json.dumps({"queries": queries}).encode()
        request = urllib.request.Request(database, body, {"Content-Type": "application/json"})  # noqa: S310  our own address
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                results = json.load(answer)["results"]
            found[0] = [[hole["id"] for hole in result.get("vulns", [])] for result in results]
        except Exception as problem:  # whatever answers there: a proxy, a page that asks for a login
            found[1] = f"{type(problem).__name__}: {getattr(problem, 'reason', problem)}"

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    holes, problem = found
    if holes is None:
        raise NotAskedError(problem)
    if len(holes) != len(libraries):
        raise NotAskedError(f"it was asked about {len(libraries)} libraries, and answers about {len(holes)}")
    return list(holes)


def told(libraries: Sequence[Library], holes: Sequence[Sequence[str]]) -> int:
    """Print what is known; returns the exit code."""
    known = [(*library, number) for library, each in zip(libraries, holes, strict=True) for number in each]
    print(f"known holes: {len(libraries)} libraries looked at, {len(known)} holes known")
    for name, version, number in known:
        print(
            f"  {name} {version}: {number}"
            + (f"; accepted: {ACCEPTED[number]}" if number in ACCEPTED else "")
        )
    if all(number in ACCEPTED for _, _, number in known):
        return 0
    print(
        "which versions mend them says `make audit`; take one (`make lock UPGRADE=1`), or say in ACCEPTED of "
        "locks/audit.py why a hole does no harm here",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
