"""What a reconcile wants written, as values, in the order in which it is carried out.

Each can be carried out twice, or by a process that does not know that it is not in charge any more, without harm: it
names the very object that it means, and the application's status carries the version that the reconcile was decided
on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.adapters.kubernetes.client import Manifest


@dataclass(frozen=True, slots=True)
class HoldApplication:
    """Put our finalizer on the application, so that it cannot go before its driver has stopped."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write status and memory in one."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PublishControl:
    """Put the control document on a driver pod."""

    pod: str
    uid: str
    document: str


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Create a driver's pod."""

    pod: Manifest


@dataclass(frozen=True, slots=True)
class EndPod:
    """Delete a pod: ask the kubelet to end it within `grace_seconds`; `None`: within its own grace period.

    One that has ended goes at once.
    """

    pod: str
    uid: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ReleaseApplication:
    """Take our finalizer off."""


@dataclass(frozen=True, slots=True)
class RemoveApplication:
    """Delete the application."""


Write = (
    HoldApplication
    | WriteStatus
    | PublishControl
    | CreateDriver
    | EndPod
    | ReleaseApplication
    | RemoveApplication
)
