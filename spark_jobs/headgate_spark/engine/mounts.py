"""Which mount of this machine a local folder is on, as far as the kernel tells it (Linux, `proc(5)`)."""

from __future__ import annotations

import os
from pathlib import Path

OF_CONTAINERS = frozenset({"overlay", "aufs", "tmpfs", "rootfs", "ramfs"})
"""Kinds of file systems that a container has for itself, and that end with it."""


def mount_of(folder: Path) -> str:
    """Return the device of a folder, which each mount of its own has another of; empty: that cannot be told.

    Two containers that each mount a bucket have two, and a lock that the kernel keeps in each of them.
    """
    try:
        return str(folder.stat().st_dev)
    except OSError:
        return ""


def is_left_in_the_container(folder: Path, beside: Path) -> bool:
    """Tell whether what is kept in `beside` ends with this container although what is in `folder` does not, as where
    `folder` is itself the place where a volume is mounted. Both may not be there yet; False also: that cannot be
    told."""
    try:
        own, other = _nearest(folder), _nearest(beside)
        kinds = _kinds()
    except (OSError, ValueError, IndexError):
        return False
    return own != other and kinds.get(other) in OF_CONTAINERS and kinds.get(own) not in OF_CONTAINERS


def _nearest(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return path.stat().st_dev


def _kinds() -> dict[int, str]:
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        head, _, tail = line.partition(" - ")
        major, _, minor = head.split()[2].partition(":")
        found[os.makedev(int(major), int(minor))] = tail.split()[0]
    return found
