"""The runbook names each reason that can be met, and none that cannot."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from headgate.cli.local import session as local_session
from headgate.controller import local as local_run
from headgate.decision.backlog_conf import ConfReason
from headgate.decision.driver import StepReason
from headgate.decision.voters import Reason
from headgate.reconcile import (
    alignment,
    answers,
    conditions,
    edits,
    events,
    executors,
    no_lag,
    readiness,
    refused,
)
from headgate.reconcile.ports import OutageReason

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"


def declared_reasons() -> set[str]:
    constants = {
        value
        for module in (
            alignment,
            answers,
            conditions,
            edits,
            events,
            executors,
            no_lag,
            readiness,
            refused,
            local_run,
            local_session,
        )
        for name, value in vars(module).items()
        if name.isupper() and type(value) is str and re.fullmatch(r"([A-Z][a-z]+)+", value)
        if re.search(rf"^[A-Z_, ]*\b{name}\b", inspect.getsource(module), re.M)  # and not imported
    }
    kinds = (Reason, StepReason, OutageReason, ConfReason)
    return constants | {str(reason) for kind in kinds for reason in kind}


def documented_reasons() -> set[str]:
    tables = RUNBOOK.read_text().partition("## Every reason")[2]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    return {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}


def test_the_runbook_names_every_reason_and_no_other() -> None:
    assert documented_reasons() == declared_reasons()
