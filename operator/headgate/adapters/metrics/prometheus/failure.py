"""A query that brought nothing."""

from __future__ import annotations

from headgate.reconcile.ports import Outage, OutageReason


class QueryFailure(Exception):  # noqa: N818  no error of ours: the poller turns it into an `Outage`
    """One query was not answered; `outage` says why in words for a person."""

    def __init__(self, reason: OutageReason, message: str) -> None:
        super().__init__(message)
        self.outage = Outage(reason, message)
