"""Names and labels that tell whose pod is which.

Selectors of people and of autoscalers rely on them; the status has one.
"""

from typing import Final

APPLICATION: Final = "headgate.dev/application"
"""Name of the application."""
ROLE: Final = "headgate.dev/role"
DRIVER: Final = "driver"
EXECUTOR: Final = "executor"


def executors_of(application: str) -> str:
    return f"{APPLICATION}={application},{ROLE}={EXECUTOR}"


def driver_name(application: str, attempt: int) -> str:
    """Return the name of a driver pod.

    One name for one attempt: whoever asks twice for the same attempt finds it there.
    """
    return f"{application}-driver-{attempt}"
