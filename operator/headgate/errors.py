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


class ApiConflict(TransientError):  # noqa: N818  named after the answer of the API server
    """The object has changed since it was read, or there is one of that name: look again, then decide anew."""


class ApiNotFound(TransientError):  # noqa: N818
    """There is no such object, or not any more."""


class ApiRefused(TransientError):  # noqa: N818
    """The API server does not allow it: no right to it, a quota used up, a field that is invalid.

    Transient, because rights and quotas are given and taken while everybody runs. `message` is the server's.
    """

    def __init__(self, text: str, message: str) -> None:
        super().__init__(text)
        self.message = message


class ApiUnavailable(TransientError):  # noqa: N818
    """The API server did not answer in time, or answered that it cannot now.

    Nobody knows whether the call was carried out.
    """

    def __init__(self, text: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_seconds = retry_after_seconds
