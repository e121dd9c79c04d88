"""What the driver tells whoever started it: a file that is replaced whole, since it is polled."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where the driver serves its metrics; nobody is told where `path` is `None`."""

    path: Path | None
    application: str
    metrics_port: int

    def write(self, *, note: str | None = None) -> None:
        """Write the file; `note` is what is to be known of the driver's end. Raises `OSError`."""
        if self.path is None:
            return
        members = {"pid": os.getpid(), "metricsPort": self.metrics_port, "application": self.application}
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(members | ({"note": note} if note else {})), encoding="utf-8")
        unfinished.replace(self.path)
