"""`make lock`: write the locks from `pyproject.toml`. With `--check`: compare, without a network.

    python -m locks.make [--upgrade | --upgrade-package NAME …]

What is pinned stays as it is unless it has to move, or `--upgrade` asks. uv does the resolving, for every system and
every Python that the package runs on; it is in an environment of its own, from `tools.txt`.
So is MkDocs, from `docs.txt`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

from locks.lockfile import HERE, OF_SETUP, OTHER_SPARKS, LockError, Pin, canonical, parse, read, written

ROOT: Final = HERE.parent
BUILDERS: Final = ("hatchling>=1.27", "editables", "setuptools>=77", "wheel")
"""What builds the package; pip would fetch them by itself otherwise, whichever there are."""
APART: Final = {"tools": ("uv", "pip-audit"), "docs": ("mkdocs-material>=9.8,<10",)}
"""What is in no environment that runs anything of ours; by its lock."""
HEADER: Final = "# Written by `make lock`; what each lock is for stands in locks/lockfile.py.\n"
SECONDS: Final = 600


def main() -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m locks.make", description="Write the locks.")
    parser.add_argument("--check", action="store_true", help="only compare, without a network")
    parser.add_argument("--upgrade", action="store_true", help="take the newest of everything")
    parser.add_argument("--upgrade-package", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    try:
        if options.check:
            found = list(faults(project(), {name: read(name) for name in OF_SETUP}, needed()))
            for fault in found:
                print(f"{fault}; run `make lock`", file=sys.stderr)
            return 1 if found else 0
        moves = ["--upgrade"] if options.upgrade else []
        moves += [part for name in options.upgrade_package for part in ("--upgrade-package", name)]
        make(moves)
    except (LockError, subprocess.CalledProcessError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def project() -> Mapping[str, Any]:
    """Return what `pyproject.toml` says of the project."""
    found: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


# Writing ---------------------------------------------------------------------------------------


def make(moves: Sequence[str]) -> None:
    """Resolve everything together, so that all locks agree, and then what of it each lock needs."""
    extras: Mapping[str, Sequence[str]] = project()["optional-dependencies"]
    base: Sequence[str] = project()["dependencies"]
    everything = [*BUILDERS, *base, *(each for needs in extras.values() for each in needs)]
    together = resolve(everything, pinned=read(*OF_SETUP), moves=moves)
    parts = {name: resolve([*base, *extras[name]], within=together) for name in ("operator", "spark", "demo")}
    parts["build"] = resolve(BUILDERS, within=together)
    here = {name for pins in parts.values() for name in pins}
    parts["test"] = {name: pin for name, pin in together.items() if name not in here}
    for lock, wanted in APART.items():
        pinned = read(lock) if (HERE / f"{lock}.txt").exists() else {}
        parts[lock] = resolve(wanted, pinned=pinned, moves=moves)
    for name, pins in parts.items():
        save(name, written(pins))
    others = [pin.version for pin in parse((HERE / f"{OTHER_SPARKS}.txt").read_text(encoding="utf-8"))]
    alone = [resolve([f"pyspark=={version}"], alone=True)["pyspark"].text for version in others]
    save(OTHER_SPARKS, "".join(alone))


def save(lock: str, text: str) -> None:
    """Replace a lock."""
    (HERE / f"{lock}.txt").write_text(HEADER + text, encoding="utf-8")


def resolve(
    wanted: Sequence[str],
    *,
    pinned: Mapping[str, Pin] | None = None,
    within: Mapping[str, Pin] | None = None,
    moves: Sequence[str] = (),
    alone: bool = False,
) -> dict[str, Pin]:
    """Return what `wanted` and all that it needs are pinned to.

    At what `pinned` has where that will do, or else at what `within` has and nothing else; `alone`: without what it
    needs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        asked, held, out = (Path(scratch) / name for name in ("asked.in", "held.txt", "out.txt"))
        asked.write_text("\n".join(wanted), encoding="utf-8")
        held.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in (within or {}).values()))
        out.write_text(written(dict(pinned or {})), encoding="utf-8")
        command = [str(tool("uv")), "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--python-version", project()["requires-python"].removeprefix(">=")]
        command += ["--no-header", "--no-annotate", "--constraint", str(held), "--output-file", str(out)]
        command += [*moves, *(["--no-deps"] if alone else []), str(asked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            raise LockError(f"{', '.join(wanted)}: {done.stderr.strip()}")
        return {pin.name: pin for pin in parse(out.read_text(encoding="utf-8"))}


def tool(name: str, of: str = "tools") -> Path:
    """Return a program of a lock in `APART`, in an environment that is made when the lock has changed."""
    home, lock = ROOT / ".venvs" / of, HERE / f"{of}.txt"
    ready = home / "lock.txt"
    if not ready.exists() or ready.read_bytes() != lock.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, timeout=SECONDS)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
        subprocess.run([*pip, "-r", str(lock)], check=True, timeout=SECONDS)
        ready.write_bytes(lock.read_bytes())
    return home / "bin" / name


# Comparing -------------------------------------------------------------------------------------


def needed() -> dict[str, list[Requirement]]:
    """Return what each installed library needs here, by its name."""
    found = {}
    for each in distributions():
        wanted = [Requirement(text) for text in each.requires or []]
        here = [need for need in wanted if need.marker is None or need.marker.evaluate({"extra": ""})]
        found[canonical(each.metadata["Name"])] = here
    return found


def faults(
    declared: Mapping[str, Any],
    locks: Mapping[str, Mapping[str, Pin]],
    needs: Mapping[str, list[Requirement]],
) -> Iterator[str]:
    """Yield where the locks are not those of the project, or lack something that a library of theirs needs."""
    extras = declared["optional-dependencies"]
    base = declared["dependencies"]
    together = {name: pin for pins in locks.values() for name, pin in pins.items()}
    asked = {"build": BUILDERS, "operator": [*base, *extras["operator"]], "spark": [*base, *extras["spark"]]}
    for lock, wanted in asked.items():
        yield from missing(lock, map(Requirement, wanted), locks[lock])
        for name in locks[lock].keys() & needs.keys():
            yield from missing(lock, needs[name], locks[lock], f", which {name} needs")
    yield from missing("test", map(Requirement, extras["test"]), together)
    for name in together.keys() & needs.keys():
        yield from missing("test", needs[name], together, f", which {name} needs")
    yield from (f"{name} has no digest" for name, pin in sorted(together.items()) if not pin.hashes)


def missing(
    lock: str, wanted: Iterator[Requirement] | list[Requirement], pins: Mapping[str, Pin], why: str = ""
) -> Iterator[str]:
    """Yield what of `wanted` a lock has not, or has at a version that will not do."""
    for need in wanted:
        pin = pins.get(canonical(need.name))
        if pin is None:
            yield f"locks/{lock}.txt lacks {need.name}{why}"
        elif not need.specifier.contains(pin.version, prereleases=True):
            yield f"locks/{lock}.txt has {pin.name} {pin.version}, and not {need}{why}"


if __name__ == "__main__":
    sys.exit(main())
