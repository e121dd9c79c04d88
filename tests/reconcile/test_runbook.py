"""The runbook names each reason that can be met, and none that cannot."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

from headgate.adapters.local import resource_file
from headgate.cli.local import session as local_session
from headgate.controller import local as local_run
from headgate.decision.backlog_conf import ConfReason
from headgate.decision.driver import StepReason
from headgate.decision.voters import Reason
from headgate.reconcile import (
    alignment,
    answers,
    conditions,
    events,
    executors,
    no_lag,
    status,
)
from headgate.reconcile.ports import OutageReason
from headgate_contract import RefusalReason
from headgate_contract.exit_codes import ExitCode
from headgate_contract.held import HeldBy
from support.parsing import parsed

PACKAGE = Path(inspect.getfile(conditions)).parents[1]
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"


def declared_reasons() -> set[str]:
    constants = {
        value
        for module in (
            alignment,
            answers,
            conditions,
            events,
            executors,
            no_lag,
            status,
            local_run,
            local_session,
            resource_file,
        )
        for name, value in vars(module).items()
        if name.isupper() and type(value) is str and re.fullmatch(r"([A-Z][a-z]+)+", value)
        if re.search(rf"^[A-Z_, ]*\b{name}\b", inspect.getsource(module), re.M)  # and not imported
    }
    kinds = (Reason, StepReason, OutageReason, ConfReason, HeldBy, RefusalReason)
    return constants | {str(reason) for kind in kinds for reason in kind}


def given_reasons() -> set[str]:
    """Return what is given as a `reason` anywhere in the operator, as text or as a constant."""
    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        given = [
            word.value
            for call in ast.walk(parsed(file.read_text()))
            if isinstance(call, ast.Call)
            for word in call.keywords
            if word.arg == "reason"
        ]
        names = {value.id for value in given if isinstance(value, ast.Name) and value.id.isupper()}
        found |= {value.value for value in given if isinstance(value, ast.Constant) and value.value}
        found |= {getattr(import_module(module), name) for name in names}
    return {reason for reason in found if re.fullmatch(r"([A-Z][a-z]+)+", reason)}


def documented_reasons() -> set[str]:
    tables = RUNBOOK.read_text().partition("## Every reason")[2]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    return {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}


def test_what_is_given_as_a_reason_anywhere_is_in_the_runbook() -> None:
    given = given_reasons()
    assert len(given) > 10
    assert given - documented_reasons() == set()


def test_each_reason_says_what_it_means_or_is_spoken_of_where_its_row_leads() -> None:
    page, _, tables = RUNBOOK.read_text().partition("## Every reason")
    sections = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-"): text
        for heading, text in re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", page, re.M)
    }
    for line in tables.splitlines():
        if not line.startswith("| `"):
            continue
        _, reasons, meaning, *_ = line.split("|")
        leads = re.fullmatch(r"(?:event: )?see \[(?:above|below)\]\(#(.*)\)", meaning.strip())
        untold = [
            reason
            for reason in re.findall(r"`(\w+)`", reasons)
            if leads and f"`{reason}`" not in sections[leads[1]]
        ]
        assert leads or len(meaning.split()) > 2, line
        assert not untold, f"{untold} of {leads and leads[1]}"


def test_the_runbook_names_every_reason_and_no_other() -> None:
    assert documented_reasons() == declared_reasons()


def test_the_runbook_names_every_exit_code_and_no_other() -> None:
    table = RUNBOOK.read_text().partition("### Exit codes of a driver")[2]
    told = [int(code) for row in re.findall(r"^\| ([0-9, ]+) \|", table, re.M) for code in row.split(",")]
    assert sorted(told) == sorted(ExitCode)
