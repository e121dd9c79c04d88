"""What `headgate support-bundle` puts together for people who do not have the cluster, without what is secret in it.

Everything is gathered first and redacted then: what is hidden in one place is hidden wherever it turns up.
"""

import io
import json
import os
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headgate.adapters.local.state_dir import StateDir
from headgate.cli.bundle.redaction import Redaction
from headgate.errors import HeadgateError, UsageError

FOLDER: Final = "headgate-support"
"""All files of the archive are in it."""
MOST_BYTES: Final = 512 * 1024
"""The most of one log or file: its end."""
UNREAD: Final = "unread.txt"
"""The file that says what is missing, and why."""


@dataclass
class Bundle:
    """The files of one archive, as they were found."""

    documents: dict[str, Any] = field(default_factory=dict)
    """What is JSON, by path."""
    texts: dict[str, str] = field(default_factory=dict)
    """Logs and the like, by path."""
    unread: list[str] = field(default_factory=list)
    """What was not found, and why."""

    def read(self, what: str, look: Callable[[], None]) -> None:
        """Call `look`, which adds files; where it may not look, or finds nobody, that is told in the archive."""
        try:
            look()
        except HeadgateError as error:
            self.unread.append(f"{what}: {error}")

    def take_run(self, folder: Path) -> None:
        """Take the files of a run of `headgate local`, and the end of its driver's log.

        Raises `UsageError` where there is no such folder.
        """
        files = StateDir.of_run(folder)
        for file in (files.control, files.status, files.memory, files.driver, files.announcement):
            self._take(file)
        for log in sorted(folder.glob(f"{files.log.name}*")):
            self._take(log)

    def _take(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                if (before := file.stat().st_size - MOST_BYTES) > 0:
                    opened.seek(before)
                    opened.readline(MOST_BYTES)  # in the rest of a line nobody can tell what a secret is
                text = opened.read(MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            self.unread.append(f"{file.name}: {error.strerror}")
            return
        try:
            self.documents[file.name] = json.loads(text)
        except (ValueError, RecursionError):
            self.texts[file.name] = text

    def write(self, path: Path) -> int:
        """Write the archive, for nobody but its owner to read; returns how many files are in it.

        Raises `UsageError` where there is such a file already, or none can be written.
        """
        redaction = Redaction()
        for document in self.documents.values():
            redaction.learn(document)
        files = {
            name: json.dumps(redaction.document(found), indent=2, sort_keys=True) + "\n"
            for name, found in self.documents.items()
        }
        files |= {name: redaction.text(found) for name, found in self.texts.items()}
        if self.unread:
            files[UNREAD] = redaction.text("\n".join(self.unread) + "\n")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
                for name, text in sorted(files.items()):
                    content = text.encode("utf-8", "replace")
                    entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                    entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
                    archive.addfile(entry, io.BytesIO(content))
        except FileExistsError:
            raise UsageError(f"{path}: is there already; give another name with --output") from None
        except OSError as error:
            with suppress(OSError):  # half an archive helps nobody, and is in the way of the next
                path.unlink()
            raise UsageError(f"{path}: {error.strerror}; give another place with --output") from None
        return len(files)
