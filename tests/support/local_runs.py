"""`headgate local` as a process of its own, as a person would start it, and what it tells as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import wait_until

FAKE_DRIVER = f"{sys.executable} {Path(__file__).with_name('fake_driver.py')}"

Line = dict[str, Any]


@dataclass
class LocalRun:
    """A running `headgate local --json`."""

    process: subprocess.Popen[bytes]
    folder: Path
    application: str

    @property
    def state_dir(self) -> Path:
        """Where it keeps its files."""
        return self.folder / ".headgate" / self.application

    @property
    def lines(self) -> list[Line]:
        """What it has written to standard output so far."""
        text = (self.folder / "out.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    @property
    def errors(self) -> str:
        """What it has written to standard error so far."""
        return (self.folder / "err.txt").read_text()

    @property
    def samples(self) -> list[Line]:
        """The samples so far."""
        return [line for line in self.lines if line["type"] == "sample"]

    @property
    def reasons(self) -> list[str]:
        """The reasons of the events so far."""
        return [line["reason"] for line in self.lines if line["type"] == "event"]

    def wait_for_sample(self, accept: Callable[[Line], object], what: str, seconds: float = 240.0) -> Line:
        """Return the first sample that is accepted; fails when there is none in time."""
        return wait_until(lambda: next(filter(accept, self.samples), None), what, seconds, seen=self.__str__)

    def wait_for_event(self, reason: str, seconds: float = 240.0) -> None:
        """Wait for an event."""
        wait_until(lambda: reason in self.reasons, f"event {reason}", seconds, seen=self.__str__)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def terminate(self) -> None:
        """Ask it to stop as a service manager does; after Ctrl-C that is a second wish, however soon it comes."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 240.0) -> int:
        """Return the exit code once it has ended."""
        return self.process.wait(seconds)

    def __str__(self) -> str:
        log = self.state_dir / "driver.log"
        driver = log.read_text()[-3000:] if log.exists() else "no log"
        sample = next(reversed(self.samples), None)
        return f"events {self.reasons}\nlast sample {sample}\nerrors {self.errors}\ndriver {driver}"


@contextmanager
def local_run(
    folder: Path, application: str, *options: str, environment: dict[str, str] | None = None
) -> Iterator[LocalRun]:
    """Start `headgate local app.yaml` in `folder`; whatever is left of it afterwards is killed.

    It listens to a terminal that is closed also where the tests themselves were started by `nohup`.
    """
    with (folder / "out.jsonl").open("wb") as out, (folder / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            ["env", "--default-signal=HUP", *command("--json", *options)],
            cwd=folder,
            stdout=out,
            stderr=err,
            env=os.environ | (environment or {}),
        )
    run = LocalRun(process, folder, application)
    try:
        yield run
    finally:
        process.kill()
        process.wait(240)
        kill_driver(run.state_dir)


def command(*options: str) -> Sequence[str]:
    """The command line of `headgate local` on `app.yaml` in the working directory."""
    return (sys.executable, "-m", "headgate.cli.main", "local", "app.yaml", *options)


def kill_driver(state_dir: Path) -> None:
    """End the driver that a killed loop left behind."""
    record = state_dir / "driver.json"
    if record.exists() and (known := json.loads(record.read_text())).get("endedAt") is None:
        with suppress(ProcessLookupError):
            os.killpg(known["pid"], signal.SIGKILL)
