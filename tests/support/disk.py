"""What a power cut leaves of files: what a disk was asked to keep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Disk:
    """Follows what is kept: the text of files, and the names in folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._texts: dict[int, str] = {}
        """By inode."""
        self._names: dict[Path, frozenset[str]] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._keep)

    def _keep(self, opened: int) -> None:
        self._fsync(opened)
        path = Path(f"/proc/self/fd/{opened}").readlink()
        if path.is_dir():
            self._names[path] = frozenset(each.name for each in path.iterdir())
        else:
            self._texts[path.stat().st_ino] = path.read_text()

    def has(self, file: Path) -> str | None:
        """Return what a file holds after a power cut; `None`: there is none of the name."""
        if file.name not in self._names.get(file.parent, ()):
            return None
        return self._texts.get(file.stat().st_ino, "")
