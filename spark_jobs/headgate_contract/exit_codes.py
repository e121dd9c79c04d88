"""What a driver's launcher ends with, and says last, where there is more to say than that the job failed.

The driver's lifecycle reads it: another attempt may help, or would only repeat the end of the one before.
"""

from __future__ import annotations

from enum import IntEnum

INTERRUPTED = 130
KILLED = 137
"""As a shell has them for a process that SIGINT, or SIGKILL, has ended."""

ERROR = "headgate-run: error: "
"""What the launcher puts before what it says of an end, on standard error: a sentence with the remedy."""

CUT = "was stopped before its end; start it again, and it goes on where it was stopped"
"""What is said of a query, or of a script, that was to end by itself and was stopped."""

PREVIOUS_END = "HEADGATE_PREVIOUS_END"
"""An environment variable of a driver: how the attempt before it ended, where nothing of that was left to note it."""

OOM_KILLED = "OOMKilled"
"""Its value where the kernel killed all of the driver for want of memory."""


class ExitCode(IntEnum):
    """An end that the launcher knows the cause of; every other code is the job's own."""

    CHECKPOINT_IN_USE = 75
    """EX_TEMPFAIL of sysexits.h: another driver holds the checkpoint, and may be about to end."""
    BATCH_TOO_LARGE = 76
    """One batch has failed again and again for want of memory."""
    INVALID_SETUP = 78
    """EX_CONFIG of sysexits.h: the job cannot be governed with what is installed or set where it starts."""
    UNFINISHED = 79
    """A run that ends by itself was stopped before; no code of sysexits.h. Another start goes on where it was."""
    JVM_OUT_OF_MEMORY = 80
    """The JVM has died for want of memory, and nobody else can reach its checkpoint: the next driver counts it. No
    code of sysexits.h."""
