"""The declared application, read from a file that a person may edit while it runs.

The last text that was accepted stays in force: an edit that is refused changes nothing but what people are
told. The content is compared, not the time of change, since editors and mounted volumes replace files whole. For that
a file may be away for a moment; one that stays away is told, once, and once more when it is back.
"""

import time
from collections.abc import Callable
from pathlib import Path

from headgate.api.application import SparkApplication
from headgate.api.load import LoadedFile, load_bytes
from headgate.errors import InvalidInputError, UsageError
from headgate.reconcile.ports import Problem

SAVING_SECONDS = 2.0
"""A file may be away for so long: many editors save in two steps."""

RESOURCE_REFUSED = "ResourceRefused"
"""An edit of the resource file is invalid; the one before stays in force."""
RESOURCE_MISSING, RESOURCE_FOUND = "ResourceMissing", "ResourceFound"
"""The resource file cannot be read for a while, and can be again; what was read last is in force meanwhile."""


def folder_of(file: Path) -> Path:
    """Return the folder in which a file lies, by its own links alone. Raises OSError without a working folder.

    Links on the way to it stay what they are: those of a mounted ConfigMap lead to another folder after each change,
    and the one before is gone.
    """
    path = file.absolute()
    while file.exists() and path.is_symlink():  # links in a circle lead to no file
        path = path.parent / path.readlink()
    return path.parent


class ResourceFile:
    """One application of a resource file. `name` picks it where the file holds several.

    `require` raises `InvalidInputError` for what this machine cannot run. A pipe is read once: who opens it again
    waits for another writer.
    """

    def __init__(
        self,
        path: Path,
        name: str | None,
        require: Callable[[SparkApplication], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._require = require
        self._clock = clock
        self._away_since: float | None = None
        self._is_missed = False
        try:
            self._raw = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{_cause(path, error)}; give the path of a resource file") from None
        self._is_pipe = path.is_fifo()
        self._generation = 1
        self.application = self._numbered(self._accepted(name))

    def changed(self) -> SparkApplication | Problem | None:
        """Return the application after an edit, or why the edit is refused, or that the file is away, or back.

        `None`: there is nothing new.
        """
        try:
            raw = self._raw if self._is_pipe else self._path.read_bytes()
        except OSError as error:
            return self._missed(error)
        self._away_since = None
        if self._is_missed:
            self._is_missed = False
            return Problem(RESOURCE_FOUND, f"{self._path}: can be read again")
        if raw == self._raw:
            return None
        self._raw = raw
        try:
            application = self._accepted(self.application.name)
        except InvalidInputError as error:
            text = f"the file was edited, and the resource before stays in force: {error}"
            return Problem(RESOURCE_REFUSED, text)
        if self._numbered(application) == self.application:
            return None
        self._generation += 1
        self.application = self._numbered(application)
        return self.application

    def _missed(self, error: OSError) -> Problem | None:
        """Return that the file is away, once it has been so for longer than a save takes."""
        now = self._clock()
        self._away_since = now if self._away_since is None else self._away_since
        if self._is_missed or now - self._away_since < SAVING_SECONDS:
            return None
        self._is_missed = True
        cause = _cause(self._path, error)
        text = f"{cause}; the resource as it was read last stays in force until the file is back"
        return Problem(RESOURCE_MISSING, text)

    def _accepted(self, name: str | None) -> SparkApplication:
        application = _chosen(load_bytes(self._raw, str(self._path)), name)
        self._require(application)
        return application

    def _numbered(self, application: SparkApplication) -> SparkApplication:
        """Count the accepted edits as an API server counts changes of `spec`."""
        metadata = application.metadata.model_copy(update={"generation": self._generation})
        return application.model_copy(update={"metadata": metadata})


def _cause(path: Path, error: OSError) -> str:
    return f"{path}: {error.strerror or error}"


def _chosen(loaded: LoadedFile, name: str | None) -> SparkApplication:
    """Return the application; raises `InvalidInputError` with every finding where the file is refused."""
    found = {application.name: application for application in loaded.applications}
    if len(found) < len(loaded.resources):
        raise InvalidInputError(f"{loaded.file}: holds an application twice; give each a name of its own")
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    listed = ", ".join(sorted(found))
    if name is None:
        raise InvalidInputError(
            f"{loaded.file}: holds several applications; choose one with --name: {listed}"
        )
    raise InvalidInputError(f"{loaded.file}: holds no application {name}; it holds: {listed}")
