"""`make audit`: ask which holes are known in locked libraries, and what mends them. It needs a network, and minutes;
`make lint` asks by `known.py` whether there are any.

pip-audit asks the database of PyPI (`--service osv`: of OSV) about each version, and installs nothing. Exit code 0:
no hole is known; 1: one is; 3: the database could not be asked about all of them, so what is told is not all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from locks.lockfile import HERE, OF_SETUP, OTHER_SPARKS
from locks.make import APART, tool

LOCKS: Final = (*OF_SETUP, OTHER_SPARKS, *APART)
ACCEPTED: Final[Mapping[str, str]] = {}
"""Holes that do no harm here, by their number, and why; each is told all the same."""
BESIDE: Final = (
    "not looked at: Debian's packages and Spark's jars in the images (let a scanner read them: each image has a bill "
    "of materials), Go modules and jars that only tests use"
)
SECONDS: Final = 900
UNKNOWN: Final = 3


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m locks.audit", description="Ask for known holes.")
    parser.add_argument(
        "--service", choices=("pypi", "osv"), default="pypi", help="whose database; default pypi"
    )
    parser.add_argument(
        "locks", nargs="*", choices=[*LOCKS, []], metavar="LOCK", help=f"of {', '.join(LOCKS)}"
    )
    options = parser.parse_args()
    codes = [audit(lock, options.service) for lock in options.locks or LOCKS]
    print(BESIDE)
    return 1 if 1 in codes else max(codes)


def audit(lock: str, service: str) -> int:
    """Ask about one lock and print the answer; returns the exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "answer.json"
        command = [str(tool("pip-audit")), "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
        command += ["--vulnerability-service", service, "--format", "json", "--output", str(out)]
        command += ["--requirement", str(HERE / f"{lock}.txt")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if not out.exists():
            reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
            print(f"{lock}.txt: NOT LOOKED AT, the database could not be asked: {reason}", file=sys.stderr)
            return UNKNOWN
        answer = json.loads(out.read_text(encoding="utf-8"))
    return told(lock, answer)


def told(lock: str, answer: Mapping[str, Any]) -> int:
    """Print what pip-audit has found; returns the exit code."""
    skipped = [each for each in answer["dependencies"] if "skip_reason" in each]
    found = list(holes(answer))
    asked = len(answer["dependencies"]) - len(skipped)
    print(f"{lock}.txt: {asked} libraries looked at, {len(found)} holes known")
    for number, said in found:
        print(f"  {said}" + (f"; accepted: {ACCEPTED[number]}" if number in ACCEPTED else ""))
    for each in skipped:
        print(f"  NOT LOOKED AT: {each['name']}: {each['skip_reason']}", file=sys.stderr)
    if any(number not in ACCEPTED for number, _ in found):
        return 1
    return UNKNOWN if skipped else 0


def holes(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the number of each hole, and a line on it."""
    for library in answer["dependencies"]:
        for hole in library.get("vulns", []):
            mended = ", ".join(hole["fix_versions"]) or "no version yet"
            names = ", ".join([hole["id"], *hole["aliases"]])
            yield hole["id"], f"{library['name']} {library['version']}: {names}; mended in {mended}"


if __name__ == "__main__":
    sys.exit(main())
