"""Programs from Debian's packages, unpacked into `build/debian` without being installed.

The packages and those of their dependencies that the machine lacks are fetched with apt and unpacked side by side, so
that nothing on the machine changes; their libraries are found by LD_LIBRARY_PATH. Apt's lists are kept here as well:
the machine's own are locked while anything else on it asks apt.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from support.go_tools import ROOT
from support.requirements import missing

PACKAGES = ("containernetworking-plugins", "iproute2", "mmdebstrap", "nftables", "runc")
UNPACKED = ROOT / "build" / "debian"
APT_SECONDS = 600
_unpacking = Lock()


@dataclass(frozen=True)
class Debian:
    """Where the programs are: the unpacked packages, then the machine itself."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which the programs are found, and find their libraries."""
        folders = [self.root / part for part in ("usr/sbin", "usr/bin", "sbin", "bin")]
        libraries = [*self.root.glob("usr/lib/*-linux-*"), *self.root.glob("lib/*-linux-*")]
        path = [*map(str, folders), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
        return {**os.environ, "PATH": ":".join(path), "LD_LIBRARY_PATH": ":".join(map(str, libraries))}

    def program(self, name: str) -> Path:
        """Return the path of a program."""
        found = shutil.which(name, path=self.environment["PATH"])
        assert found is not None, f"{name} is in none of {', '.join(PACKAGES)}"
        return Path(found)

    @property
    def cni_plugins(self) -> Path:
        """Folder of the programs that give pods their network."""
        ours = self.root / "usr" / "lib" / "cni"
        return ours if ours.exists() else Path("/usr/lib/cni")


@cache
def debian() -> Debian:
    """Return the programs of `PACKAGES`, fetched and unpacked if they are not there."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        missing(
            "a node needs programs of Debian's packages, and apt-get is missing; run it on Debian or Ubuntu"
        )
    with _unpacking:
        _keep_unpacked("\n".join(PACKAGES))
    return Debian(UNPACKED)


def _keep_unpacked(wanted: str) -> None:
    made_from = UNPACKED / ".made-from"
    if made_from.exists() and made_from.read_text() == wanted:
        return
    shutil.rmtree(UNPACKED, ignore_errors=True)
    for folder in ("apt/lists/partial", "apt/cache/archives/partial", "archives"):
        (UNPACKED / folder).mkdir(parents=True)
    _unpack(_lacking())
    made_from.write_text(wanted)


def _lacking() -> list[str]:
    """Return the packages that an installation would add to this machine."""
    _apt("update", "--quiet=2")
    simulated = _apt("install", "--simulate", "--no-install-recommends", *PACKAGES)
    return re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)


def _unpack(packages: Sequence[str]) -> None:
    archives = UNPACKED / "archives"
    if packages:
        _apt("download", *packages, folder=archives)
    for archive in archives.glob("*.deb"):
        subprocess.run(["dpkg", "--extract", archive, UNPACKED], check=True)


def _apt(command: str, *arguments: str, folder: Path = ROOT) -> str:
    ours = [
        f"--option=Dir::State::Lists={UNPACKED / 'apt' / 'lists'}",
        f"--option=Dir::Cache={UNPACKED / 'apt' / 'cache'}",
        # Apt drops its rights while it fetches, and could not write to a folder that is ours.
        "--option=APT::Sandbox::User=root",
    ]
    done = subprocess.run(
        ["apt-get", *ours, command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=APT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"apt-get {command} failed:\n{done.stderr}"
    return done.stdout
