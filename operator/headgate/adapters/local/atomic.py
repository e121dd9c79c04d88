"""Files that are replaced whole.

Other processes read them at any moment (the driver polls its control document), and this one may be killed at
any moment: a reader must find the old text or the new one, never half of either.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headgate.errors import TransientError


def replace_text(path: Path, text: str) -> None:
    """Make `text` the content of `path`, readable only by its owner.

    Raises `TransientError` when the folder cannot be written; the old content then stays.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise TransientError(
            f"{path} cannot be written: {error.strerror}; see to space and rights of {path.parent}"
        ) from error


def why_absent(is_there: Callable[[], bool], absent: str) -> str | None:
    """Return why a path that a person has named is not there: `absent`, or that nobody may look; `None`: it is."""
    try:
        return None if is_there() else absent
    except OSError as error:
        return error.strerror or str(error)


def read_text(path: Path) -> str | None:
    """Return the content of `path`, with bytes that are no UTF-8 replaced; `None` when there is no file.

    Raises `TransientError` when there is something that cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TransientError(f"{path} cannot be read: {error.strerror}; remove it, or mend it") from error
