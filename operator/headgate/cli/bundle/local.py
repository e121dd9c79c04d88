"""What is gathered of a run of `headgate local`: the files in its state folder, and the end of its driver's log."""

import json
from pathlib import Path

from headgate.adapters.local.state_dir import StateDir
from headgate.cli.bundle import MOST_BYTES, Bundle


def gather(folder: Path, bundle: Bundle) -> None:
    """Put the files of the folder into the bundle. Raises `UsageError` where there is no such folder."""
    files = StateDir.of_run(folder)
    for file in (files.control, files.status, files.memory, files.driver, files.announcement):
        _add(file, bundle)
    for log in sorted(folder.glob(f"{files.log.name}*")):
        _add(log, bundle)


def _add(file: Path, bundle: Bundle) -> None:
    try:
        with file.open("rb") as opened:
            if (before := file.stat().st_size - MOST_BYTES) > 0:
                opened.seek(before)
                opened.readline(MOST_BYTES)  # the rest of a line, in which nobody can tell what a secret is
            text = opened.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        bundle.unread.append(f"{file.name}: {error.strerror}")
        return
    try:
        bundle.documents[file.name] = json.loads(text)
    except (ValueError, RecursionError):
        bundle.texts[file.name] = text
