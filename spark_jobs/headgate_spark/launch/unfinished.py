"""Runs that end by themselves, and were stopped before.

A script takes the end of such a run (`availableNow`, `once`) for its success: it marks the day as done. So where a
stop has ended the run instead, the script must not go on, and its process must not end as one that has done its work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from headgate_contract.exit_codes import ExitCode
from headgate_spark.engine.run import QueryRun


class Unfinished:
    """What a stop has cut short in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, str] = {}
        self._script = False

    def cut(self, runs: Iterable[QueryRun]) -> None:
        """Note the runs among these that end by themselves: they are about to be stopped."""
        found = {run.run_id: run.name for run in runs if run.ends_by_itself}
        with self._lock:
            self._runs |= found

    def cut_script(self) -> None:
        """Note that the script is ended itself, between two of its runs or before one."""
        self._script = True

    def is_cut(self, run_id: str) -> bool:
        """Return whether a run was stopped before its end."""
        with self._lock:
            return run_id in self._runs

    def __bool__(self) -> bool:
        """Return whether there is something that has not come to its end."""
        with self._lock:
            return self._script or bool(self._runs)

    @property
    def message(self) -> str:
        """What has not come to its end, and what to do."""
        with self._lock:
            queries = ", ".join(sorted(set(self._runs.values())))
        what = f"query {queries}" if queries else "the script"
        return f"{what} was stopped before its end; start it again, and it goes on where it was stopped"

    def end(self) -> SystemExit:
        """Return what ends the script."""
        return SystemExit(int(ExitCode.UNFINISHED))
