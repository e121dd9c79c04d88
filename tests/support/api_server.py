"""What an API server says to our CRD and to objects of it, by Kubernetes' own code and without a server.

`tests/support/tools/kube/crdcheck` is a Go program round the create strategies of the API server. It is built once
into `build/tools`, and answers one line for each object, so that a property test can ask it hundreds of times.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.go_tools import go_tool


@dataclass(frozen=True)
class Answer:
    """What the API server would say to one object."""

    errors: tuple[Mapping[str, str], ...]
    unknown: tuple[str, ...]
    stored: Mapping[str, Any]

    @property
    def is_accepted(self) -> bool:
        """Whether a strict client (`kubectl apply`) gets it in."""
        return not self.errors and not self.unknown

    @property
    def text(self) -> str:
        """Every error, as `kubectl` would print it."""
        lines = [f"{error['path']}: {error['message']}" for error in self.errors]
        return "\n".join([*lines, *(f"unknown field {path}" for path in self.unknown)])


@dataclass(frozen=True)
class ApiServer:
    """A running `crdcheck` that has accepted the definition."""

    process: subprocess.Popen[str]

    def create(self, manifest: Mapping[str, Any]) -> Answer:
        """Return what it says to the creation of `manifest`."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(manifest) + "\n")
        self.process.stdin.flush()
        said = _read(self.process)
        return Answer(tuple(said["errors"]), tuple(said.get("unknown", ())), said["object"])


class DefinitionRefusedError(Exception):
    """The API server does not take the definition itself; the text is its errors."""


@contextmanager
def api_server(definition: Path) -> Iterator[ApiServer]:
    """Run `crdcheck` over `definition`; raise DefinitionRefusedError if that is refused."""
    pipe = subprocess.PIPE
    with subprocess.Popen([go_tool("crdcheck"), definition], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            if errors := _read(process)["errors"]:
                raise DefinitionRefusedError(
                    "\n".join(f"{error['path']}: {error['message']}" for error in errors)
                )
            yield ApiServer(process)
        finally:
            process.kill()


def _read(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"crdcheck ended with exit code {process.wait(10)}; what it said is on standard error"
    said: dict[str, Any] = json.loads(line)
    return said
