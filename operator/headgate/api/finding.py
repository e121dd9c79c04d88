"""What is said about a resource: where, what is wrong, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headgate_contract.foreign import printable

Location = tuple[str | int, ...]
"""Way from the top of an object to a value in it: keys of objects, indexes of lists."""


class Severity(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One sentence about one place.

    `path` is empty where the file as a whole is meant; `rule` is the id of the rule that was broken, if one was.
    """

    severity: Severity
    message: str
    location: Location = ()
    path: str = ""
    line: int | None = None
    rule: str | None = None

    def text(self, file: str) -> str:
        """Return the finding in the form that editors and CI logs understand: `file:line: error: path: message`.

        It is one line, whatever a resource has for names.
        """
        place = f"{file}:{self.line}" if self.line else file
        subject = f"{self.path}: " if self.path else ""
        return printable(f"{place}: {self.severity}: {subject}{self.message}")


def path_of(location: Location, content: Any) -> str:
    """Write `location` for people, items of lists by name: `spec.queries[delays].checkpoint.interval`."""
    path, value = "", content
    for step in location:
        try:
            value = value[step]
        except (LookupError, TypeError):
            value = None
        if isinstance(step, int):
            name = value.get("name", value.get("type")) if isinstance(value, Mapping) else None
            path += f"[{name if isinstance(name, str) and name else step}]"
        elif not step.isidentifier():  # a Spark property, whose name has dots of its own
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
