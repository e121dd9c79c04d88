"""What Flux and Helm think of our objects, by the library that both use."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from support.go_tools import go_tool


@dataclass(frozen=True)
class Verdict:
    """`status` is `Current`, `InProgress`, `Failed`, `Terminating` or `Unknown`; `message` is for a person."""

    status: str
    message: str


def kstatus(objects: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Return what kstatus computes for each object."""
    lines = "".join(json.dumps(dict(one)) + "\n" for one in objects)
    done = subprocess.run([go_tool("kstatus")], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Verdict(**json.loads(line)) for line in done.stdout.splitlines()]


def flux_health(check: Mapping[str, Any], objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what Flux makes of each object where its kind has `healthCheckExprs`; `check` is one element of them."""
    lines = "".join(json.dumps(dict(one)) + "\n" for one in objects)
    command = [go_tool("fluxhealth"), json.dumps(dict(check))]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
