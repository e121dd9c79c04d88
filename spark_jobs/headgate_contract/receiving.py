"""How a driver takes in control documents: the last good one stays in force.

The text comes from a file that somebody else writes, so it can be cut short, of an older generation, of a version
that this driver does not know, or gone. None of that may move a running query. `Inbox` is a value: `receive` returns
the next one, with the document in force and the refusal, if any, to be logged and counted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from headgate_contract.codec import DecodingError, decode, encode, unknown
from headgate_contract.document import MAJOR_VERSION, MINOR_VERSION, ControlDocument
from headgate_contract.generations import is_later
from headgate_contract.newer import StrEnum, dataclass


class RefusalReason(StrEnum):
    """Why a document was not taken; the label `reason` of the metric that counts them."""

    MISSING = "Missing"
    """There was something and now there is nothing."""
    UNREADABLE = "Unreadable"
    """There is something where it should be, and it cannot be read: its rights are missing, or it is no file."""
    MALFORMED = "Malformed"
    """It is not JSON: cut short, for example."""
    INVALID = "Invalid"
    """It is JSON, but a member is missing, of a wrong type or out of bounds."""
    OLDER_GENERATION = "OlderGeneration"
    """Its generation is earlier than the one in force."""
    NEWER_VERSION = "NewerVersion"
    """Its major version is higher than this driver knows."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One document that was not taken."""

    reason: RefusalReason
    message: str


@dataclass(frozen=True, slots=True)
class Inbox:
    """The document in force, what was found last, and what was wrong with it."""

    document: ControlDocument | None = None
    refusal: Refusal | None = None
    found: str | Refusal | None = None

    @property
    def unread(self) -> Refusal | None:
        """Why the only document that there is cannot be acted by: its limits are not known. `None`: one is in force,
        or there is none."""
        return self.refusal if self.document is None and self.found is not None else None

    def receive(self, found: str | Refusal | None) -> Inbox:
        """Return the inbox after a text was found, something that is none (why), or nothing (`None`).

        The same again changes nothing, so that a bad document is refused, logged and counted once.
        """
        if found == self.found:
            return self
        if found is None:
            return replace(self, found=None, refusal=_missing(self))
        outcome = read(found) if isinstance(found, str) else found
        if isinstance(outcome, Refusal):
            return replace(self, found=found, refusal=outcome)
        if self.document is not None and is_later(self.document.generation, outcome.generation):
            in_force = self.document.generation
            message = f"generation {outcome.generation} is older than {in_force}, which stays in force"
            return replace(self, found=found, refusal=Refusal(RefusalReason.OLDER_GENERATION, message))
        return Inbox(outcome, None, found)


def _missing(inbox: Inbox) -> Refusal:
    if inbox.document is None:
        message = (
            "the document that could not be read is gone; until there is one, the job runs as it says itself"
        )
    else:
        message = f"the document is gone; generation {inbox.document.generation} stays in force"
    return Refusal(RefusalReason.MISSING, message)


def write(document: ControlDocument) -> str:
    """Return the document as one line of JSON."""
    members = {"schemaVersion": f"{MAJOR_VERSION}.{MINOR_VERSION}", **encode(document)}
    return json.dumps(members, separators=(",", ":"), allow_nan=False)


def read(text: str) -> ControlDocument | Refusal:
    """Return the document in `text`, or why it cannot be taken."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Refusal(RefusalReason.MALFORMED, f"not JSON: {error}")
    if not isinstance(members, dict):
        return Refusal(RefusalReason.INVALID, "document: expected an object")
    if (refusal := _version_refusal(members.get("schemaVersion"))) is not None:
        return refusal
    try:
        return decode(ControlDocument, members)
    except DecodingError as error:
        return Refusal(RefusalReason.INVALID, str(error))


def unknown_members(text: str) -> Iterator[str]:
    """Yield what a document that can be taken says in vain, a sentence each: mostly slips of whoever wrote it.

    A document of a newer minor version may have members that this driver does not know.
    """
    members = json.loads(text)
    if not _is_of_newer_form(members.pop("schemaVersion")):
        yield from unknown(ControlDocument, members)


def says_more(text: str) -> bool:
    """Return whether a document that can be taken says what is not known here, as one of a newer form may."""
    members = json.loads(text)
    is_newer = _is_of_newer_form(members.pop("schemaVersion"))
    return is_newer and any(True for _ in unknown(ControlDocument, members))


def _is_of_newer_form(version: str) -> bool:
    _, _, minor = version.partition(".")
    return minor.isdecimal() and int(minor[:6]) > MINOR_VERSION


def _version_refusal(version: object) -> Refusal | None:
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not (major.isascii() and major.isdigit()):
        message = f'schemaVersion: expected a string such as "{MAJOR_VERSION}.{MINOR_VERSION}"'
        return Refusal(RefusalReason.INVALID, message)
    if len(major) > len(str(MAJOR_VERSION)) or int(major) > MAJOR_VERSION:
        message = (
            f"schemaVersion {version}: this driver knows major version {MAJOR_VERSION}; update its Headgate"
        )
        return Refusal(RefusalReason.NEWER_VERSION, message)
    return None
