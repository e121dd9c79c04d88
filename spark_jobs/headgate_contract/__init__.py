"""What the operator and the driver say to each other: the control document and the metric names.

Both sides import this package and nothing else of each other. It needs the standard library only, so that the
runtime can be put into any Spark image, and so that an operator of one version can speak to a driver of
another: unknown members are named and do nothing, a newer major version is refused and the last good document stays
in force. What an exit code of the driver's means is here too, and what both do alike towards those who run them:
where they listen, and how often a stop was asked for.
"""

from headgate_contract.document import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    ControlDocument,
    EventTimeControl,
    LiveControl,
    QueryControl,
    RateControl,
    ReentryControl,
    SourceControl,
)
from headgate_contract.receiving import Inbox, Refusal, RefusalReason

__all__ = [
    "AlignmentControl",
    "BacklogControl",
    "BatchControl",
    "ControlDocument",
    "EventTimeControl",
    "Inbox",
    "LiveControl",
    "QueryControl",
    "RateControl",
    "ReentryControl",
    "Refusal",
    "RefusalReason",
    "SourceControl",
]
