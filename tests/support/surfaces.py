"""Each place at which text of others is read: what reads it, and what it may raise instead of an answer.

`feed` gets any bytes, and returns or raises one of `refusals`; anything else is a defect. Examples are files in
`tests/data/fuzz`, a folder for each surface: valid ones to begin from, and those that once found something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.adapters.kubernetes.checkpoint_locations import checkpoint_locations
from headgate.adapters.last_words import last_words
from headgate.adapters.metrics import scrape
from headgate.adapters.metrics.prometheus.answer import Labels, QueryFailure, VectorDecoder, error_of
from headgate.api.annotations import checkpoint_requests, paused_sources
from headgate.api.duration import parse_duration
from headgate.api.load import load_bytes
from headgate.cli.bundle.redaction import Redaction
from headgate.cli.checks.applications import check_application
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.view.application import describe
from headgate.reconcile.memory import Kept
from headgate.reconcile.metric_table import since
from headgate_contract import ControlDocument, EventTimeControl
from headgate_contract.codec import decode, encode
from headgate_contract.foreign import printable, scrubbed
from headgate_contract.receiving import read, write
from headgate_contract.settings.said import in_options, in_properties
from headgate_contract.settings.table import Scope
from headgate_spark.engine.sources import RecordCounts
from headgate_spark.kafka.payload import NoEventTimeError, millis_of, reader_of, steps_of
from headgate_spark.planner.model import HybridMemory

EXAMPLES = Path(__file__).parents[1] / "data" / "fuzz"
NOW = 1_700_000_000.0


@dataclass(frozen=True)
class Surface:
    """One place at which text of others is read."""

    name: str
    feed: Callable[[bytes], object]
    refusals: tuple[type[BaseException], ...] = ()
    share: int = 1
    """Of a long run; the cheap ones take more."""

    @property
    def examples(self) -> list[bytes]:
        """The files in its folder."""
        return [file.read_bytes() for file in sorted((EXAMPLES / self.name).iterdir())]


class UnreadableError(Exception):
    """The input is no JSON: its reader is given none."""


def text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def object_of(raw: bytes) -> Any:
    """What a reader of JSON gets: whoever reads the file has found out before that it is some."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableError from None


def resource(raw: bytes) -> None:
    loaded = load_bytes(raw, "-")
    for finding in loaded.all_findings:
        printable(finding.text("-")).encode("utf-8", "strict")


def document(raw: bytes) -> None:
    found = read(text_of(raw))
    if isinstance(found, ControlDocument):
        assert read(write(found)) == found, "what is written is read as it was"


def page(raw: bytes) -> None:
    lines = iter(raw.splitlines(keepends=True))
    since(scrape._page(scrape._body(lines, None), NOW).driver, NOW - 60)


def answer(raw: bytes) -> None:
    error_of(raw)
    for sample in VectorDecoder(Labels).decode(raw).samples:
        _ = sample.number


def offset(raw: bytes) -> None:
    text = text_of(raw)
    position = RecordCounts().position(text)
    assert RecordCounts().position(RecordCounts().offset(position, text)) == position


def history(raw: bytes) -> None:
    memory = decode(HybridMemory, object_of(raw))
    assert decode(HybridMemory, json.loads(json.dumps(encode(memory)))) == memory


def payload(raw: bytes) -> None:
    reader_of("s", EventTimeControl(column="$.payload.after.at", format="Json")).event_time(raw)


def path(raw: bytes) -> None:
    steps_of(text_of(raw))


def moment(raw: bytes) -> None:
    text = text_of(raw)
    for one in (text, _number(text)):
        if one is not None:
            assert millis_of(one) >= 0


def _number(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def pairs(raw: bytes) -> dict[str, str]:
    lines = text_of(raw).splitlines()
    return {line.partition("=")[0]: line.partition("=")[2] for line in lines}


def properties(raw: bytes) -> None:
    found = in_properties(pairs(raw), "delays")
    found.of_source("flights")
    for problem in found.problems:
        str(problem).encode("utf-8", "strict")


def options(raw: bytes) -> None:
    for scope in Scope:
        in_options(pairs(raw), scope)


def duration(raw: bytes) -> None:
    assert parse_duration(text_of(raw)).total_seconds() >= 0


def annotations(raw: bytes) -> None:
    text = text_of(raw)
    found = {"headgate.dev/pause": text, "headgate.dev/checkpoint": text}
    paused_sources(found)
    checkpoint_requests(found)


def log(raw: bytes) -> None:
    text = text_of(raw)
    said = last_words(text)
    assert said is None or len(said) <= 4096
    for shown in (scrubbed(text), printable(text), Redaction().text(text)):
        shown.encode("utf-8", "strict")


def memory(raw: bytes) -> None:
    if isinstance(found := object_of(raw), Mapping):
        kept = Kept.from_json(found, lambda _complaint: None)
        assert Kept.from_json(json.loads(json.dumps(kept.to_json())), _unexpected) == kept


def _unexpected(complaint: str) -> None:
    raise AssertionError(f"what it has written itself is damaged: {complaint}")


def status(raw: bytes) -> None:
    """A status of another version, or one that somebody wrote, in the commands for people."""
    if not isinstance(found := object_of(raw), Mapping):
        return
    metadata = {"name": "flights", "namespace": "team", "generation": 1}
    application = ClusterApplication({"metadata": metadata, "spec": {}, "status": found})
    for line in describe(application, [], NOW):
        printable(line.plain)
    list(check_application(application, NOW))


def locations(raw: bytes) -> None:
    checkpoint_locations(pairs(raw), ["delays"])


SURFACES = (
    Surface("resource", resource, share=1),
    Surface("document", document, share=30),
    Surface("page", page, (scrape._Unusable,), share=10),
    Surface("answer", answer, (QueryFailure,), share=60),
    Surface("offset", offset, (ValueError, RecursionError), share=60),
    Surface("history", history, (ValueError, UnreadableError), share=30),
    Surface("payload", payload, (NoEventTimeError,), share=60),
    Surface("path", path, (ValueError,), share=60),
    Surface("moment", moment, (ValueError, OverflowError), share=60),
    Surface("properties", properties, share=30),
    Surface("options", options, share=30),
    Surface("duration", duration, (ValueError,), share=60),
    Surface("annotations", annotations, share=60),
    Surface("log", log, share=5),
    Surface("memory", memory, (UnreadableError,), share=10),
    Surface("status", status, (UnreadableError,), share=5),
    Surface("locations", locations, share=30),
)
