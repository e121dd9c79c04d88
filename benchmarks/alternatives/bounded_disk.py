"""A disk of a fixed size for what drivers write: Spark's local files, and checkpoints with their state.

It is a file system in a file, mounted as long as it is wanted. Logs, of which one reads what became of a driver, are
elsewhere.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.session import turns
from benchmarks.local.drivers import Place

LOOK_SECONDS = 0.5


class NoDiskError(Exception):
    """A disk of its own could not be made; the text has why, and what is missing."""


@dataclass
class Disk:
    """A mounted file system."""

    path: Path
    empty: int = 0
    """Bytes that the file system takes for itself."""
    peak_bytes: int = 0
    """The most that was on it at a look."""
    _ends: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """See how full it is."""
        self.peak_bytes = max(self.peak_bytes, shutil.disk_usage(self.path).used - self.empty)

    def watch(self) -> None:
        """Look every now and then, until it ends."""
        while not self._ends.wait(LOOK_SECONDS):
            self.look()

    @contextmanager
    def watched(self) -> Iterator[Disk]:
        """Watch it on a thread."""
        self.empty = shutil.disk_usage(self.path).used
        thread = threading.Thread(target=self.watch, name="disk")
        thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            thread.join()


@dataclass(frozen=True, kw_only=True)
class OnDisk(Bench):
    """A bench whose drivers have what they write on a disk."""

    disk: Disk

    def place(self, name: str) -> Place:
        """Return a cleared directory for a run, whose checkpoints are on the disk."""
        place, on_disk = super().place(name), self.disk.path / name
        on_disk.mkdir()
        turns(place).symlink_to(on_disk, target_is_directory=True)
        return place

    def local(self, name: str) -> Path:
        """Return where the driver of a run has its local files."""
        return self.disk.path / f"{name}.local"


@contextmanager
def bounded(bench: Bench, size: int) -> Iterator[OnDisk]:
    """Have a bench whose drivers share a disk of so many bytes, which is empty at first and gone at the end.

    Raises NoDiskError.
    """
    with mounted(bench.root.resolve() / "disk", size) as path, Disk(path).watched() as disk:
        given = {each.name: getattr(bench, each.name) for each in fields(bench)}
        yield OnDisk(**given, disk=disk)


@contextmanager
def mounted(at: Path, size: int) -> Iterator[Path]:
    """Mount a new file system of so many bytes at a path. Raises NoDiskError where it cannot be."""
    image = at.with_suffix(".image")
    if at.is_mount():  # of a run that was killed
        run("umount", "--lazy", str(at))
    at.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(size)
    try:
        run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        run("mount", "-o", "loop", str(image), str(at))
        try:
            yield at
        finally:
            run("umount", "--lazy", str(at))
    finally:
        image.unlink()


def run(*command: str) -> None:
    """Run a command. Raises NoDiskError where it is missing or fails."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise NoDiskError(
            f"{command[0]} failed ({said.strip()}): a disk of its own needs root, mkfs.ext4 and a loop device"
        ) from error
