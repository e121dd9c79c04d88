"""How a driver takes in control documents: the last good one stays in force.

The text comes from a file that somebody else writes, so it can be cut short, of an older generation, of a version
that this driver does not know, or gone. None of that may move a running query. `Inbox` is a value: `receive` returns
the next one, with the document in force and the refusal, if any, to be logged and counted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from headgate_contract.codec import DecodingError, UnknownMember, decode, encode, unknown
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
class Taken:
    """A document that can be taken, and what else its text says."""

    document: ControlDocument
    members: Mapping[str, Any]
    """As they stand in the text, without its version."""
    is_newer: bool
    """Its form is newer than the one that is known here, and may have members that are not."""

    @property
    def unknown(self) -> Iterator[UnknownMember]:
        """What it says in vain: members that are not known here."""
        return unknown(ControlDocument, self.members)

    @property
    def says_more(self) -> bool:
        """Whether it says what only its newer form has."""
        return self.is_newer and next(self.unknown, None) is not None


@dataclass(frozen=True, slots=True)
class Inbox:
    """The document in force, what was found last, and what was wrong with it."""

    taken: Taken | None = None
    refusal: Refusal | None = None
    found: str | Refusal | None = None

    @property
    def document(self) -> ControlDocument | None:
        return None if self.taken is None else self.taken.document

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
        outcome = take(found) if isinstance(found, str) else found
        if isinstance(outcome, Refusal):
            return replace(self, found=found, refusal=outcome)
        generation = outcome.document.generation
        if self.document is not None and is_later(self.document.generation, generation):
            in_force = self.document.generation
            message = f"generation {generation} is older than {in_force}, which stays in force"
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
    outcome = take(text)
    return outcome if isinstance(outcome, Refusal) else outcome.document


def take(text: str) -> Taken | Refusal:
    """Return the document in `text` with what else that says, or why it cannot be taken."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Refusal(RefusalReason.MALFORMED, f"not JSON: {error}")
    if not isinstance(members, dict):
        return Refusal(RefusalReason.INVALID, "document: expected an object")
    version = members.pop("schemaVersion", None)
    if (refusal := _version_refusal(version)) is not None:
        return refusal
    try:
        document = decode(ControlDocument, members)
    except DecodingError as error:
        return Refusal(RefusalReason.INVALID, str(error))
    minor = version.partition(".")[2]
    return Taken(document, members, minor.isdecimal() and int(minor[:6]) > MINOR_VERSION)


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
