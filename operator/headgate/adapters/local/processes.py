"""Which processes there are: one by number and start time, or a whole group.

A pid alone names a process only while it lives; after a crash of the loop it may belong to somebody else,
whom we must neither take for our driver nor stop. Pid and start time together are unique. A process that
has ended counts as gone even while nobody has waited for it: orphans in a container without an init stay so.
"""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class _Stat(NamedTuple):
    state: str
    group: int
    start_ticks: str

    @property
    def has_ended(self) -> bool:
        return self.state in "ZX"


def start_mark(pid: int) -> str | None:
    """Return when the living process `pid` started, in a form that can only be compared; else `None`."""
    if not _has_proc():
        ps = ["ps", "-o", "lstart=", "-p", str(pid)]
        return (
            subprocess.run(ps, capture_output=True, text=True, timeout=5, check=False).stdout.strip() or None
        )
    stat = _stat(_PROC / str(pid))
    return None if stat is None or stat.has_ended else stat.start_ticks


def group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    stats = map(_stat, _PROC.glob("[0-9]*"))
    return not _has_proc() or any(one and one.group == group and not one.has_ended for one in stats)


def kill_group(group: int) -> None:
    """End each process of the group at once; nothing happens when there is none left."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def terminate(pid: int) -> None:
    """Ask one process to end; nothing happens when it has."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


def _stat(folder: Path) -> _Stat | None:
    """Read fields 3, 5 and 22 of `proc_pid_stat(5)`; the name in field 2 may contain anything."""
    try:
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return _Stat(state=fields[0], group=int(fields[2]), start_ticks=fields[19])
