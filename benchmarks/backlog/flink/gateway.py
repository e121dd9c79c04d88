"""Flink's two REST interfaces: the SQL gateway, which takes statements, and the job manager, which tells of jobs.

What an answer means is told by functions of it; asking is all that the two classes do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from benchmarks.local.waiting import wait_until

ANSWER_SECONDS = 60.0
STATEMENT_SECONDS = 180.0
"""To plan and submit a job, by a gateway that has just been started."""
LONGEST_ERROR = 1500
ENDED_BADLY = frozenset({"FAILED", "CANCELED", "SUSPENDED"})


class FlinkError(Exception):
    """Flink refused a statement, or a job failed; the message has the beginning of what it said."""


@dataclass(frozen=True)
class Finished:
    """A job that has read everything."""

    began: float
    """When it was RUNNING, in seconds since 1970: to plan and submit it took seconds more, which do not count."""
    ended: float
    checkpoints: int
    """How many were completed."""
    handed_over: float | None = None
    """When Flink was given the statement that started it; None where nobody looked."""
    restored: str | None = None
    """The savepoint that it went on from; None where it began anew."""
    repeated: float | None = None
    """The largest part of its time that a failure repeats; None where not all checkpoints are known."""


class Session:
    """A session of the gateway, with settings of its own; temporary tables are gone with it."""

    def __init__(self, gateway: str, settings: Mapping[str, str]) -> None:
        opened = asked(f"{gateway}/v2/sessions", {"properties": dict(settings)})
        self._address = f"{gateway}/v2/sessions/{opened['sessionHandle']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(FlinkError, OSError):
            asked(self._address, method="DELETE")

    def execute(self, statement: str) -> Mapping[str, Any]:
        """Execute a statement; returns its result, which of a job is its id. Raises `FlinkError`."""
        opened = asked(f"{self._address}/statements", {"statement": statement})
        operation = f"{self._address}/operations/{opened['operationHandle']}"

        def result() -> Mapping[str, Any] | None:
            found: Mapping[str, Any] = asked(f"{operation}/result/0?rowFormat=JSON")
            return None if found["resultType"] == "NOT_READY" else found

        return wait_until(f"the end of {statement[:60]}", result, STATEMENT_SECONDS)


@dataclass(frozen=True)
class Jobs:
    """What the job manager knows of jobs."""

    address: str

    def slots(self) -> int:
        """Return how many slots are free; 0 while it does not answer."""
        try:
            return int(asked(f"{self.address}/overview")["slots-available"])
        except OSError:
            return 0

    def wait(self, job: str, seconds: float) -> Finished:
        """Wait for the end of a job, which is cancelled if it does not come in time. Raises `FlinkError`."""
        try:
            return wait_until(f"the end of job {job}", lambda: self._finished(job), seconds)
        except TimeoutError:
            asked(f"{self.address}/jobs/{job}", method="PATCH")
            raise

    def wait_until_read(self, job: str, records: int, seconds: float) -> None:
        """Wait until the source of a job, which goes on, has read so many records. Raises `FlinkError`.

        The job manager asks for the numbers every ten seconds.
        """

        def has_read() -> bool | None:
            return self.told(job)["vertices"][0]["metrics"]["read-records"] >= records or None

        wait_until(f"job {job} to read {records:,} records", has_read, seconds)

    def stop(self, job: str, folder: Path, seconds: float) -> Path:
        """Stop a job with a savepoint, whose format is that of its state backend; returns its directory, which is in
        `folder`. Raises `FlinkError`.
        """
        wanted = {"targetDirectory": folder.as_uri(), "drain": False, "formatType": "NATIVE"}
        asked_for = asked(f"{self.address}/jobs/{job}/stop", wanted)["request-id"]
        address = f"{self.address}/jobs/{job}/savepoints/{asked_for}"
        return wait_until(f"the savepoint of job {job}", lambda: saved(asked(address)), seconds)

    def told(self, job: str) -> Mapping[str, Any]:
        """Return what the job manager tells of a job. Raises `FlinkError` where it has failed or was cancelled."""
        found: Mapping[str, Any] = asked(f"{self.address}/jobs/{job}")
        if found["state"] in ENDED_BADLY:
            raise FlinkError(failure(found, asked(f"{self.address}/jobs/{job}/exceptions")))
        return found

    def checkpoints(self, job: str) -> Mapping[str, Any]:
        """Return what is told of the checkpoints of a job, which is none of a batch job."""
        return asked(f"{self.address}/jobs/{job}/checkpoints")

    def _finished(self, job: str) -> Finished | None:
        found = self.told(job)
        if found["state"] != "FINISHED":
            return None
        has_none = found["job-type"] == "BATCH"  # and asking for them is refused
        return finished(found, {} if has_none else self.checkpoints(job))


def asked(address: str, body: object = None, method: str | None = None) -> Any:
    """Ask for a JSON document, or hand one over. Raises `FlinkError` with what the server says is wrong."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.loads(answer.read() or b"{}")
    except HTTPError as error:
        raise FlinkError(refusal(error.read().decode(errors="replace"))) from error


def refusal(text: str) -> str:
    """Return why a request was refused: the last cause in the longest stack trace, or how that begins."""
    try:
        errors = [str(one) for one in json.loads(text)["errors"]]
    except (ValueError, LookupError, TypeError):
        errors = [text]
    longest = max(errors, key=len, default="")
    causes = [line.strip() for line in longest.splitlines() if line.startswith("Caused by: ")]
    return (causes[-1] if causes else longest.partition("\n")[0])[:LONGEST_ERROR]


def job_of(result: Mapping[str, Any]) -> str:
    """Return the id of the job that a statement has started, which is the one value of its result."""
    return str(result["results"]["data"][0]["fields"][0])


def finished(job: Mapping[str, Any], checkpoints: Mapping[str, Any]) -> Finished:
    """Return what a job that is FINISHED came to."""
    completed = checkpoints.get("counts", {}).get("completed", 0)
    restored = checkpoints.get("latest", {}).get("restored") or {}
    began, ended = job["timestamps"]["RUNNING"] / 1000, job["end-time"] / 1000
    made = [one for one in checkpoints.get("history", ()) if one["status"] == "COMPLETED"]
    repeated = largest_part(began, ended, made) if len(made) == completed else None
    return Finished(began, ended, completed, restored=restored.get("external_path"), repeated=repeated)


def largest_part(began: float, ended: float, checkpoints: Iterable[Mapping[str, Any]]) -> float:
    """Return the largest part of a job's time that a failure repeats: from the moment at which one checkpoint was
    triggered until the next one is complete.
    """
    ordered = sorted(checkpoints, key=lambda one: int(one["trigger_timestamp"]))
    since = [began, *(one["trigger_timestamp"] / 1000 for one in ordered)]
    until = [*(one["latest_ack_timestamp"] / 1000 for one in ordered), ended]
    return max(end - start for start, end in zip(since, until, strict=True)) / (ended - began)


def saved(answer: Mapping[str, Any]) -> Path | None:
    """Return the directory of a savepoint, once it is complete. Raises `FlinkError`."""
    if answer["status"]["id"] != "COMPLETED":
        return None
    made = answer["operation"]
    if "location" not in made:
        raise FlinkError(made["failure-cause"]["stack-trace"][:LONGEST_ERROR])
    return Path(urlsplit(made["location"]).path)


def failure(job: Mapping[str, Any], exceptions: Mapping[str, Any]) -> str:
    """Return why a job has ended as it did."""
    entries = exceptions.get("exceptionHistory", {}).get("entries", [])
    reason = entries[0]["stacktrace"][:LONGEST_ERROR] if entries else "without a reason"
    return f"job {job['jid']} is {job['state']}: {reason}"
