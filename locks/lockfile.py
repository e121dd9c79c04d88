"""The locks: for each library a version, and the SHA-256 of every file that it was released as.

    build.txt       what builds the package, and wheels of others that have none
    operator.txt    the operator and the commands: what its image holds
    spark.txt       the runtime and Spark: what the image of jobs holds
    demo.txt        the data of the demo
    test.txt        what tests and checks need beside those four
    pyspark.txt     the other versions of Spark that an image may have
    tools.txt       what makes the locks and asks for known holes; not in `.venv`
    docs.txt        what makes a site of the pages; not in `.venv`

Pip reads them with `--require-hashes` and then takes no file that is not listed, and no library that is not pinned,
whatever an index says. `make lock` writes them. Only the standard library: images are built by this too.

    python -m locks.lockfile spark                           a lock, to standard output
    python -m locks.lockfile --spark 4.1.4 spark             the same with another Spark
    python -m locks.lockfile spark pyspark py4j              these libraries of it alone
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
OF_SETUP: Final = ("build", "operator", "spark", "demo", "test")
"""What `make setup` installs."""
OTHER_SPARKS: Final = "pyspark"


class LockError(Exception):
    """A lock has not what is asked for; the message says where to put it."""


@dataclass(frozen=True)
class Pin:
    """One library of a lock."""

    name: str
    """As a lock spells it: in small letters, words joined by `-`."""
    version: str
    marker: str
    """Where it is installed, as PEP 508 has it; empty: everywhere."""
    hashes: tuple[str, ...]
    """`sha256:` and the digest of each file."""

    @property
    def text(self) -> str:
        """What stands in a lock."""
        head = f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")
        return " \\\n".join([head, *(f"    --hash={found}" for found in self.hashes)]) + "\n"


def canonical(name: str) -> str:
    """Return the name as locks spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str) -> list[Pin]:
    """Read a lock; raises LockError where a line is of no known form."""
    found = []
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for entry in re.split(r"\n(?! )", "\n".join(lines)):
        head, *hashes = (part.strip().removesuffix("\\").strip() for part in entry.split("\n"))
        pin, _, marker = (part.strip() for part in head.partition(";"))
        name, _, version = pin.partition("==")
        if not version or " " in version or not all(line.startswith("--hash=sha256:") for line in hashes):
            raise LockError(f"not a pinned library with its digests: {head!r}; `make lock` writes locks")
        digests = tuple(line.removeprefix("--hash=") for line in hashes)
        found.append(Pin(canonical(name), version, marker, digests))
    return found


def read(*names: str, folder: Path = HERE) -> dict[str, Pin]:
    """Return what these locks pin together, by name; raises LockError where two do not agree."""
    found: dict[str, Pin] = {}
    for lock in names:
        for pin in parse((folder / f"{lock}.txt").read_text(encoding="utf-8")):
            if (other := found.setdefault(pin.name, pin)).text != pin.text:
                raise LockError(
                    f"{lock}.txt has {pin.name} {pin.version}, another {other.version}: make lock"
                )
    return found


def written(pins: dict[str, Pin]) -> str:
    """Return the text of a lock, but for its first line."""
    return "".join(pins[name].text for name in sorted(pins))


def with_spark(version: str, pins: dict[str, Pin], folder: Path = HERE) -> dict[str, Pin]:
    """Return a lock with another Spark; raises LockError where that one is not pinned."""
    others = parse((folder / f"{OTHER_SPARKS}.txt").read_text(encoding="utf-8"))
    known = {pin.version: pin for pin in [pins["pyspark"], *others]}
    if version not in known:
        raise LockError(
            f"pyspark {version} is not pinned, but {', '.join(sorted(known))} are: "
            f"add pyspark=={version} to locks/{OTHER_SPARKS}.txt and run `make lock`"
        )
    return pins | {"pyspark": known[version]}


def main() -> int:
    """Print a lock, or some of it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m locks.lockfile", description="Print a lock.")
    parser.add_argument("--spark", metavar="VERSION", help="with this Spark")
    parser.add_argument("lock", choices=(*OF_SETUP, "tools", "docs"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="libraries; default: all")
    options = parser.parse_args()
    try:
        pins = read(options.lock)
        if options.spark is not None:
            pins = with_spark(options.spark, pins)
        sys.stdout.write(written(chosen(options.names, pins) if options.names else pins))
    except LockError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


def chosen(names: list[str], pins: dict[str, Pin]) -> dict[str, Pin]:
    """Return what a lock has of these libraries; raises LockError where it lacks one."""
    if lacking := [name for name in names if canonical(name) not in pins]:
        raise LockError(f"not in the lock: {', '.join(lacking)}")
    return {canonical(name): pins[canonical(name)] for name in names}


if __name__ == "__main__":
    sys.exit(main())
