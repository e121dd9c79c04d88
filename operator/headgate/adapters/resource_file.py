"""The declared application, read from a file that a person may edit while it runs.

The last text that was accepted stays in force: an edit that is refused changes nothing but what people are
told. The content is compared, not the time of change, since editors and mounted volumes replace files whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headgate.api.application import KIND, SparkApplication
from headgate.api.finding import Severity
from headgate.api.load import LoadedFile, load_bytes
from headgate.errors import InvalidInputError, UsageError


@dataclass(frozen=True, slots=True)
class Refused:
    """The file has changed to something that cannot be taken."""

    message: str


class ResourceFile:
    """One application of a resource file. `name` picks it where the file holds several.

    `require` raises `InvalidInputError` for what this machine cannot run.
    """

    def __init__(self, path: Path, name: str | None, require: Callable[[SparkApplication], None]) -> None:
        self._path = path
        self._require = require
        self._raw = self._read()
        self._generation = 1
        self.application = self._numbered(self._accepted(name))

    def changed(self) -> SparkApplication | Refused | None:
        """Return the application after an edit, or why the edit is refused; `None` if there was none."""
        try:
            raw = self._read()
        except UsageError:
            return None  # between the two steps in which many editors save
        if raw == self._raw:
            return None
        self._raw = raw
        try:
            application = self._accepted(self.application.name)
        except InvalidInputError as error:
            return Refused(str(error))
        if self._numbered(application) == self.application:
            return None
        self._generation += 1
        self.application = self._numbered(application)
        return self.application

    def _accepted(self, name: str | None) -> SparkApplication:
        application = _chosen(load_bytes(self._raw, str(self._path)), name)
        self._require(application)
        return application

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"{self._path}: {reason}; give the path of a resource file") from None

    def _numbered(self, application: SparkApplication) -> SparkApplication:
        """Count the accepted edits as an API server counts changes of `spec`."""
        metadata = application.metadata.model_copy(update={"generation": self._generation})
        return application.model_copy(update={"metadata": metadata})


def _chosen(loaded: LoadedFile, name: str | None) -> SparkApplication:
    """Return the application; raises `InvalidInputError` with every finding where the file is refused."""
    errors = [f.text(loaded.file) for f in loaded.all_findings if f.severity is Severity.ERROR]
    if errors:
        raise InvalidInputError("\n".join(["the resource is refused:", *errors]))
    applications = [r.application for r in loaded.resources if r.application is not None]
    found = {application.name: application for application in applications}
    if len(found) < len(applications):
        raise InvalidInputError(f"{loaded.file}: holds an application twice; give each a name of its own")
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    raise InvalidInputError(f"{loaded.file}: {_which(sorted(found), name)}")


def _which(names: list[str], name: str | None) -> str:
    if not names:
        return f"holds no {KIND}"
    listed = ", ".join(names)
    if name is None:
        return f"holds several applications; choose one with --name: {listed}"
    return f"holds no application {name}; it holds: {listed}"
