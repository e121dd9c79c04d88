"""The control document as a file that somebody else replaces.

A stat every 50 ms costs a few thousandths of a core, and a replacement is seen well within the time that the kubelet
took to make it (a fifth of a second). Only stat, never inotify: the file may be a projected Kubernetes volume, whose
links are swapped, or a network file system.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from headgate_contract import ControlDocument, Inbox, Refusal, RefusalReason
from headgate_contract.receiving import Taken

log = structlog.get_logger("headgate")

POLL_SECONDS = 0.05


def control_path(said: str) -> Path:
    """Return where a control document is that is named by its path, or by a `file:` URL. Raises ValueError."""
    path = re.sub(r"^file:(//)?(?=/(?!/))", "", said)
    if re.match(r"file:|[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise ValueError(f"{said} is no file of this machine: give the path of one")
    return Path(path)


def names(said: str, followed: Path | None) -> bool:
    """Tell whether the control document that is followed, if one is, is named so."""
    try:
        return followed is not None and control_path(said).absolute() == followed.absolute()
    except ValueError:
        return False


class ControlFileWatch:
    """Watches one path and hands on what changes."""

    def __init__(
        self,
        path: Path,
        *,
        on_taken: Callable[[Taken], None] = lambda _: None,
        on_document: Callable[[ControlDocument], None],
        on_refusal: Callable[[Refusal, bool], None],
        on_look: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_taken` is told of each text that is taken, `on_document` of one that says something else.

        `on_refusal` is told too whether there is something that cannot be acted by, and nothing in force.
        `on_look` is called after each look at the file, whatever it has found.
        """
        self._path = path
        self._on_taken = on_taken
        self._on_document = on_document
        self._on_refusal = on_refusal
        self._on_look = on_look
        self._inbox = Inbox()
        self._signature: tuple[int, ...] | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        """Read the file once, then watch it on a daemon thread."""
        self.poll()
        if self._signature is None:
            message = f"{self._path} is not there; until it is, the job runs as it says itself"
            self._on_refusal(Refusal(RefusalReason.MISSING, message), False)
        threading.Thread(target=self._run, name="headgate-control", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def poll(self) -> None:
        """Take in the file if it is another than last time."""
        signature = self._stat()
        if signature == self._signature:
            return
        found = self._read()
        # What could not be read may be readable the next time, though it looks the same.
        self._signature = () if isinstance(found, Refusal) else signature
        before = self._inbox
        self._inbox = before.receive(found)
        if self._inbox.taken is not None and self._inbox.taken is not before.taken:
            self._on_taken(self._inbox.taken)
        if self._inbox.document is not None and self._inbox.document != before.document:
            self._on_document(self._inbox.document)
        if self._inbox.refusal is not None and self._inbox is not before:
            self._on_refusal(self._inbox.refusal, self._inbox.unread is not None)

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.poll()
                self._on_look()
            except Exception:  # the watching must outlive whatever acting on one document raises
                log.exception("control document could not be acted on", path=str(self._path))

    def _stat(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:  # there may be one: its folder may not be searched, its file system is away
            return (error.errno or 0,)
        # The mode as well: a file that may not be read yet is looked at again once its rights have changed.
        return found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode

    def _read(self) -> str | Refusal | None:
        try:
            with open(self._path, encoding="utf-8-sig", errors="replace", opener=_file) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            stays = "" if self._inbox.document is None else "; what was in force stays so"
            return Refusal(RefusalReason.UNREADABLE, f"{self._path} cannot be read: {error.strerror}{stays}")


def _file(path: str, flags: int) -> int:
    """Open a file and nothing else: a pipe would keep its reader waiting for whoever may write to it."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file")
