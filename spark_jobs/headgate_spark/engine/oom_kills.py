"""What the kernel has killed for want of memory.

It counts those kills: of each control group in `memory.events` (version 2) or `memory.oom_control` (version 1, since
Linux 4.13), of the whole machine in `/proc/vmstat`. A process that was killed and is in neither count was killed by
somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from headgate_contract.newer import dataclass


@dataclass(frozen=True, slots=True)
class Kills:
    """Counts since the group was made and the machine started. `None`: not counted here, or not to be read."""

    of_group: int | None = None
    of_machine: int | None = None


def is_among(before: Kills, after: Kills) -> bool | None:
    """Tell whether a process that was killed between two counts was so for want of memory.

    Its group's count decides. Without one, that of the machine can only rule it out: it has the kills of everybody.
    """
    if before.of_group is not None and after.of_group is not None:
        return after.of_group > before.of_group
    rose = before.of_machine is None or after.of_machine != before.of_machine
    return None if rose else False


class OomKills:
    """The counts that concern one process, from now on; it must be alive."""

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self._root = root
        self._of_group = next(_counters(pid, root), None)
        self._before = self._count()

    def tell(self) -> bool | None:
        """Tell whether the process, which has been killed since, was so for want of memory; `None`: unknown."""
        return is_among(self._before, self._count())

    def _count(self) -> Kills:
        of_group = None if self._of_group is None else _counted(self._of_group)
        return Kills(of_group, _counted(self._root / "proc" / "vmstat"))


def _counters(pid: int, root: Path) -> Iterator[Path]:
    """Return the files in which the group of a process counts; version 1 first, which has the memory if it has it."""
    groups = [line.split(":", 2) for line in _lines(root / "proc" / str(pid) / "cgroup")]
    for hierarchy, controllers, path in groups:
        if "memory" in controllers.split(","):
            yield from _in_group(root, path, "cgroup", "memory", "memory.oom_control")
        elif hierarchy == "0" and not any("memory" in other.split(",") for _, other, _ in groups):
            yield from _in_group(root, path, "cgroup2", "", "memory.events")


def _in_group(root: Path, group: str, file_system: str, controller: str, name: str) -> Iterator[Path]:
    """Return the file of a group, wherever its hierarchy is mounted (`proc(5)` has the form of a mount)."""
    for line in _lines(root / "proc" / "self" / "mountinfo"):
        mounted, _, about = (part.split() for part in line.partition(" - "))
        if about[0] != file_system or controller not in ("", *about[2].split(",")):
            continue
        if PurePosixPath(group).is_relative_to(mounted[3]):
            below = PurePosixPath(group).relative_to(mounted[3])
            yield root / mounted[4].lstrip("/") / below / name


def _counted(file: Path) -> int | None:
    """Return what a file counts under `oom_kill`."""
    counts = dict(line.split(maxsplit=1) for line in _lines(file))
    return int(counts["oom_kill"]) if "oom_kill" in counts else None


def _lines(file: Path) -> list[str]:
    """Return the lines of a file of the kernel; none where there is no such file, or it may not be read."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
