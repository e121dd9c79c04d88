"""The control document, the loop's memory and the status as files.

Each may be damaged by whatever damages files. A control document that cannot be read counts as absent and
is written anew. A memory that cannot be read is set aside, so that nobody loses the evidence, and the loop
starts with an empty one: it costs latches and counters, not the application. The status is read by people, by
scripts, and by the next loop, which takes over from it when each condition last changed.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from headgate.adapters.local.atomic import read_text, replace_text
from headgate.adapters.local.state_dir import StateDir
from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.ports import Event
from headgate_contract import ControlDocument, Refusal
from headgate_contract.receiving import read, write


class StateFiles:
    """The ports `Controls`, `Store` and `Reports`: a file each, of which the driver polls the first.

    `complain` is told, in a sentence, when the memory is damaged.
    """

    def __init__(self, files: StateDir, complain: Callable[[str], None]) -> None:
        self._files = files
        self._complain = complain

    def published(self) -> ControlDocument | None:
        text = read_text(self._files.control)
        document = None if text is None else read(text)
        return None if isinstance(document, Refusal) else document

    def publish(self, document: ControlDocument) -> None:
        replace_text(self._files.control, write(document) + "\n")

    def load(self) -> Mapping[str, Any] | None:
        """Return what was saved last; a damaged file is set aside and counts as none."""
        file = self._files.memory
        text = read_text(file)
        if text is None:
            return None
        fault = "is not a JSON object"
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            document, fault = None, f"is not JSON ({error})"
        if isinstance(document, dict):
            return document
        aside = file.with_name(f"{file.name}.damaged-{int(time.time())}")
        file.replace(aside)
        self._complain(f"{file} {fault}; it was renamed to {aside.name} and the loop starts without memory")
        return None

    def save(self, document: Mapping[str, Any]) -> None:
        replace_text(self._files.memory, json.dumps(document, indent=1) + "\n")

    def last(self) -> SparkApplicationStatus | None:
        """Return the status in the file; one that cannot be read counts as none."""
        text = read_text(self._files.status)
        try:
            return None if text is None else SparkApplicationStatus.model_validate_json(text)
        except ValidationError:
            return None

    def write(self, status: SparkApplicationStatus) -> None:
        replace_text(self._files.status, status.model_dump_json(exclude_none=True, indent=1) + "\n")

    def tell(self, event: Event) -> None:
        """Do nothing: events are shown by whoever runs the loop."""
