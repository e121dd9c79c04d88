"""A control group of a test's own: nodes have one each, so that their kubelets leave each other alone.

A kubelet takes every group below its root for its pods', and kills what is in those that it does not know. Version 1
has one hierarchy for each controller, version 2 a single one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from support.waiting import wait_until

MOUNT = Path("/sys/fs/cgroup")
CPUSET = ("cpuset.cpus", "cpuset.mems")
MEMORY = ("memory.max", "memory.limit_in_bytes")


class ControlGroup:
    """One group, by the same name in every hierarchy."""

    def __init__(self, name: str):
        self.name = name
        for folder in self._folders():
            folder.mkdir(parents=True, exist_ok=True)
            _enable(folder)

    def child(self, name: str) -> ControlGroup:
        """Make a group below this one."""
        return ControlGroup(f"{self.name}/{name}")

    def command_to_join(self) -> list[str]:
        """Return what to put before a command, so that it and all that it starts are in this group."""
        files = [str(folder / "cgroup.procs") for folder in self._folders()]
        script = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 1; shift; done; shift; exec "$@"'
        return ["sh", "-c", script, "sh", *files, "--"]

    def limit_memory(self, size: int) -> None:
        """Let its processes have `size` bytes together. Raises `OSError` where groups have no such limit here."""
        files = [folder / file for folder in self._folders() for file in MEMORY if (folder / file).exists()]
        if not files:
            raise FileNotFoundError(f"no limit of memory in the group {self.name}")
        files[0].write_text(str(size))

    def kill(self) -> None:
        """Kill every process of the group and of those below, however fast they start others.

        A container runtime that was killed may have left a group frozen; in version 1 what is frozen does not die.
        """
        wait_until(lambda: not self._killed(), f"the end of every process in the group {self.name}")

    def remove(self) -> None:
        """Remove the group and those below; there must be no process in them."""
        wait_until(self._removed, f"the removal of the group {self.name}")

    def _folders(self) -> list[Path]:
        return [hierarchy / self.name for hierarchy in _hierarchies()]

    def _killed(self) -> list[int]:
        pids = [int(pid) for group in self._groups() for pid in _read(group / "cgroup.procs").split()]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for group in self._groups():
            with suppress(OSError):  # gone meanwhile, or a hierarchy without a freezer
                (group / "freezer.state").write_text("THAWED")
        return pids

    def _removed(self) -> bool:
        for group in self._groups():
            with suppress(OSError):  # busy for a moment after its last process
                group.rmdir()
        return not any(folder.exists() for folder in self._folders())

    def _groups(self) -> Iterator[Path]:
        for folder in self._folders():
            for group, _, _ in os.walk(folder, topdown=False):
                yield Path(group)


def _hierarchies() -> list[Path]:
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return sorted({folder.resolve() for folder in MOUNT.iterdir() if folder.resolve().is_mount()})


def _enable(folder: Path) -> None:
    """Give a new group what it does not get by itself: processors in version 1, controllers in version 2."""
    for file in CPUSET:
        if (folder / file).exists() and not _read(folder / file).strip():
            (folder / file).write_text(_read(folder.parent / file))
    for controller in _read(folder.parent / "cgroup.controllers").split():
        with suppress(OSError):  # one that cannot be handed down, or is busy elsewhere
            (folder.parent / "cgroup.subtree_control").write_text(f"+{controller}")


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # gone meanwhile
        return ""
