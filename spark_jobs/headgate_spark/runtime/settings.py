"""What the planner's process is told by whoever starts it, as one line of JSON on its standard input."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate_contract.handover import LINEAGE
from headgate_contract.listening import DEFAULT_PORT, every_address
from headgate_contract.settings.table import APPLICATION, CONTROL, PROPERTY
from headgate_spark.engine.control_file import control_path

METRICS_PORT = PROPERTY + "metrics.port"
METRICS_ADDRESS = PROPERTY + "metrics.address"
ADDRESS = PROPERTY + "planner.address"
"""A file with the port and the token of a planner's process that runs already."""


@dataclass(frozen=True)
class ProcessSettings:
    """How the process is to run."""

    token: str
    """Without it nobody is answered."""
    pid: int
    """Of whoever is to be stopped to end the driver."""
    application: str
    """Label of the metrics."""
    lineage: str = ""
    """Which resource has this driver, and which attempt it is, as the operator says; empty: nobody has said it."""
    control: Path | None = None
    metrics_port: int = DEFAULT_PORT
    metrics_address: str = field(default_factory=every_address)
    listening: int | None = None
    """Descriptor of a socket that listens already."""
    py_files: str = ""
    """What the job has sent along, with commas between: modules are looked for there too."""

    @property
    def follows_jvm(self) -> bool:
        """Whether the JVM has started it: then it ends with the JVM, and `headgate-run` asks for nothing."""
        return self.listening is None

    def without_metrics(self, reason: str) -> str:
        """Say why metrics cannot be served, and by which properties they can; `headgate-run` names its options."""
        if not self.follows_jvm:
            return reason
        return (
            f"metrics cannot be served at {self.metrics_address}, port {self.metrics_port}: {reason}; "
            f"give others in {METRICS_ADDRESS} and {METRICS_PORT}"
        )

    @classmethod
    def parse(cls, line: str) -> ProcessSettings:
        """Return the settings in a line. Raises ValueError for properties that make no sense, by their names."""
        members: Mapping[str, Any] = json.loads(line)
        properties: Mapping[str, str] = members["properties"]
        control = properties.get(CONTROL)
        return cls(
            token=members["token"],
            pid=members["pid"],
            application=properties.get(APPLICATION) or members["application"],
            lineage=os.environ.get(LINEAGE, ""),
            control=None if control is None else _control(control),
            metrics_port=_port(properties.get(METRICS_PORT, str(DEFAULT_PORT))),
            metrics_address=properties.get(METRICS_ADDRESS) or every_address(),
            listening=members.get("listening"),
            py_files=members.get("pyFiles", ""),
        )


def _control(text: str) -> Path:
    try:
        return control_path(text)
    except ValueError as error:
        raise ValueError(f"{CONTROL}: {error}") from None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise ValueError(f"{METRICS_PORT} is {text!r}, which is no port: give a number from 0 to 65535")
    return int(text)
