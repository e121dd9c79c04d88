"""The folder in which one application keeps what must outlive the loop, and the lock on it.

Two loops on one folder would start two drivers. So the folder is locked for as long as the loop lives; the
kernel lets go of the lock when its holder dies, however it dies.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

from headgate.adapters.local.atomic import read_text, why_absent
from headgate.errors import HeadgateError, UsageError
from headgate_contract.exit_codes import ExitCode


class StateDirInUseError(HeadgateError):
    """Another loop runs on this folder."""

    exit_code = ExitCode.CHECKPOINT_IN_USE


class StateDir:
    """Where each file is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.control = root / "control.json"
        """The control document, which the driver polls."""
        self.memory = root / "memory.json"
        """What the loop remembers over its own restarts."""
        self.status = root / "status.json"
        """The status written last."""
        self.driver = root / "driver.json"
        """Which process the driver is."""
        self.announcement = root / "announce.json"
        """What the driver says of itself once it serves metrics."""
        self.exit_code = root / "exit-code"
        """What the driver ended with, written by the process that waited for it."""
        self.log = root / "driver.log"
        """What the driver and the job print."""

    @classmethod
    def beside(cls, resource_file: Path, application: str) -> "StateDir":
        """Return the default place: `.headgate/NAME` in the folder of the resource file."""
        return cls(resource_file.resolve().parent / ".headgate" / application)

    @classmethod
    def of_run(cls, folder: Path) -> "StateDir":
        """Return the folder of a run that has been. Raises `UsageError` where there is none."""
        if (why := why_absent(folder.is_dir, "there is no such folder")) is not None:
            raise UsageError(f"--state-dir {folder}: {why}; headgate local names its own, .headgate/NAME")
        return cls(folder)

    def lock(self) -> IO[str]:
        """Create the folder and lock it until the returned file is closed.

        Raises `StateDirInUseError` that names the holder.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = (self.root / "lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            holder = (read_text(self.root / "lock") or "unknown").strip()
            raise StateDirInUseError(
                f"state folder {self.root} is in use by another headgate local (pid {holder}); "
                "stop that one, or choose another folder with --state-dir"
            ) from None
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        except OSError as error:
            raise self._unusable(error) from error
        return file

    def _unusable(self, error: OSError) -> HeadgateError:
        return HeadgateError(
            f"state folder {self.root}: {error.strerror}; choose another one with --state-dir"
        )
