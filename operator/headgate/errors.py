"""The errors that Headgate raises on purpose.

One root, so that an edge can tell a refusal (say it in one sentence, end with its exit code) from a defect
(let it crash with its traceback). A child says whether waiting helps: the command line ends either way, the
operator tries a `TransientError` again and turns any other into the condition `Stalled`.
"""

from typing import ClassVar


class HeadgateError(Exception):
    """What went wrong, naming the object and the remedy; the text is what the user sees."""

    exit_code: ClassVar[int] = 1


class UsageError(HeadgateError):
    """The command itself cannot be carried out as given: no such file, nothing to read, bad options."""

    exit_code: ClassVar[int] = 2


class InvalidInputError(HeadgateError):
    """A resource, observation or document that was read is refused; only a change of it helps."""


class TransientError(HeadgateError):
    """Something outside did not answer as expected; the same call may succeed later."""
