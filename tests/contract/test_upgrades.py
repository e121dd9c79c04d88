"""Operator and runtime of different versions, and resources from before: what has gone out is read as it was meant.

What each version says is kept in `tests/data/contract`, with its own code for reading documents.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.adapters.address import Address
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.metrics.scrape import Page, scrape
from headgate.reconcile.document import next_document
from headgate_contract import ControlDocument, RefusalReason
from headgate_contract.codec import encode
from headgate_contract.document import MAJOR_VERSION, MINOR_VERSION
from headgate_contract.handover import SPARK_PROPERTIES
from headgate_contract.metrics import ALL, RENAMED
from headgate_contract.receiving import read, write
from headgate_spark.backfill.journal import Journal, store_in
from headgate_spark.backfill.matching import Matching, Side
from headgate_spark.backfill.sources import Files, Kafka
from headgate_spark.engine.batch_memory import MemoryFailure
from headgate_spark.engine.checkpoint import Checkpoint
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.planner.model import HybridMemory
from support.contract_versions import (
    CRD,
    DOCUMENT,
    KEPT,
    LEFT,
    PACKAGE,
    PAGE,
    ask,
    leave,
    left,
    metrics_of,
    structure,
    versions,
)
from support.crd_compatibility import breaks
from support.http_server import Handler, serving
from support.looping import application, query, source
from support.operating import KEY

VERSIONS = pytest.mark.parametrize("kept", versions(), ids=lambda folder: folder.name)

READ = """
import json, sys
from headgate_contract.codec import encode
from headgate_contract.receiving import Refusal, read
found = [read(text) for text in json.load(sys.stdin)]
print(json.dumps([str(one.reason) if isinstance(one, Refusal) else encode(one) for one in found]))
"""


REFUSED = """
import json, sys
from headgate_contract.settings.said import in_properties
print(json.dumps(in_properties(json.load(sys.stdin), "delays").problems))
"""


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what a document says, each member by its path."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from leaves(member, (*path, name))
    else:
        yield path, value


def todays_full_document() -> ControlDocument:
    found = read((versions()[-1] / DOCUMENT).read_text())
    assert isinstance(found, ControlDocument)
    return found


@VERSIONS
def test_a_document_of_an_operator_of_that_version_is_taken_and_none_of_it_is_ignored(kept: Path) -> None:
    text = (kept / DOCUMENT).read_text()
    said = dict(leaves(json.loads(text)))
    del said[("schemaVersion",)]

    taken = read(text)

    assert isinstance(taken, ControlDocument), taken
    assert said.items() <= dict(leaves(encode(taken))).items()


@VERSIONS
def test_a_runtime_of_that_version_takes_todays_documents_and_acts_by_all_that_it_knows(kept: Path) -> None:
    documents = [todays_full_document(), ControlDocument(generation=1)]

    taken = ask(kept / PACKAGE, READ, json.dumps([write(document) for document in documents]))

    for document, by_the_older in zip(documents, taken, strict=True):
        assert isinstance(by_the_older, dict), by_the_older
        assert dict(leaves(by_the_older)).items() <= dict(leaves(encode(document))).items()
    known = {path for path, _ in leaves(json.loads((kept / DOCUMENT).read_text()))} - {("schemaVersion",)}
    assert known <= dict(leaves(taken[0])).keys(), "it is told all that it has ever been told"


@pytest.mark.parametrize("kept", versions()[2:], ids=lambda folder: folder.name)
def test_a_runtime_of_that_version_is_told_nothing_new_that_nobody_has_set(kept: Path) -> None:
    """It tells each member that it does not know: one that only has its default is not written (`None`)."""
    aligned = {"group": "air", "maxDrift": "1h"}
    sources = [source(alignment=aligned, rateLimit={"recordsPerSecond": 5, "duringBacklog": "Unlimited"})]
    declared = application(queries=[query(sources=sources)])
    document = next_document(declared, {}, published=None, last_generation=0)
    known = {path for path, _ in leaves(json.loads((kept / DOCUMENT).read_text()))}

    assert {path for path, _ in leaves(json.loads(write(document)))} <= known


@VERSIONS
def test_a_runtime_of_that_version_refuses_what_would_mislead_it(kept: Path) -> None:
    of_the_next_major = json.dumps({**json.loads(write(todays_full_document())), "schemaVersion": "2.0"})

    assert ask(kept / PACKAGE, READ, json.dumps([of_the_next_major])) == [RefusalReason.NEWER_VERSION]


@VERSIONS
def test_a_runtime_of_that_version_refuses_no_property_that_todays_operator_hands_over(kept: Path) -> None:
    """It would refuse each query of a job for a property that nobody has set, at the next start of its driver."""
    [container] = json.loads(leave())["objects"]["pods"]["spec"]["containers"]
    [text] = [one["value"] for one in container["env"] if one["name"] == SPARK_PROPERTIES]
    handed_over = dict(line.split("=", 1) for line in text.splitlines())

    assert "spark.app.name" in handed_over
    assert ask(kept / PACKAGE, REFUSED, json.dumps(handed_over)) == []


@VERSIONS
def test_an_operator_of_that_version_finds_each_metric_that_it_reads_on_todays_pages(kept: Path) -> None:
    today = {(metric.name, metric.kind.value, metric.labels) for metric in ALL}
    renamed = {(before(name), kind, tuple(map(before, labels))) for name, kind, labels in today}

    assert set(metrics_of(kept / PACKAGE)) - today - renamed == set()


def before(name: str) -> str:
    """Return what drivers called a metric or label before its name was changed, which the changelog tells."""
    return RENAMED.get(name, name)


@VERSIONS
def test_todays_operator_reads_the_page_of_a_driver_of_that_version(kept: Path) -> None:
    page = (kept / PAGE).read_bytes()

    class Driver(Handler):
        def do_GET(self) -> None:
            self.say(page)

    with serving(Driver) as server:
        found = scrape(Address("127.0.0.1", server.server_port), 5.0, 60.0)

    assert isinstance(found, Page), found
    assert found.driver.control_generation == 1
    query = found.driver.queries["delays"]
    source = query.sources["flights"]
    assert (query.owner, query.backlog, source.pending_records) == ("1", True, 1)
    assert (source.read_limit, source.alignment_held_by_partition, source.unreadable_partitions) == (
        "1",
        "1",
        1,
    )
    assert source.far_ahead == source.unreadable == {"1": 1}


# What is in a cluster --------------------------------------------------------------------------------


@pytest.mark.parametrize("by", sorted(KEPT.rglob(LEFT.name)), ids=lambda file: file.parent.name)
def test_todays_operator_restarts_no_driver_of_one_from_before_and_forgets_nothing_that_it_knew(
    by: Path,
) -> None:
    """Another way to hash a launch, or another name of a label, would end every driver of a cluster at an upgrade."""
    upgraded = left(by)
    before = upgraded.cluster.application(KEY)["status"]
    pods, [told] = upgraded.pods, upgraded.documents()
    had = {path: value for path, value in leaves(before["memory"]) if path != ("generation",)}
    said = {path: value for path, value in leaves(encode(told)) if path != ("generation",)}

    upgraded.settle()

    assert upgraded.pods == pods
    assert {"create pods", "delete pods"}.isdisjoint(upgraded.cluster.calls)
    after = upgraded.cluster.application(KEY)["status"]
    remembered = dict(leaves(after["memory"]))
    assert {path: remembered.get(path) for path in had} == had
    kept = ("name", "backlog", "reason", "since")
    assert [[query[name] for name in kept] for query in after["queries"]] == [
        [query[name] for name in kept] for query in before["queries"]
    ]
    [now_told] = upgraded.documents()
    assert said.items() <= dict(leaves(encode(now_told))).items()


@pytest.mark.parametrize("later", [{}, {"later": {"limit": 1}}], ids=["no more", "more"])
def test_todays_operator_takes_back_what_only_a_newer_one_could_tell_a_driver(later: dict[str, Any]) -> None:
    """A rollback: the older definition has dropped the setting, and the driver would go by it all the same.

    A document that says no more than is known is left as it is: of ten thousand none need be written.
    """
    rolled_back = left()
    [pod] = [found for (plural, *_), found in rolled_back.cluster.objects.items() if plural == "pods"]
    told = json.loads(pod["metadata"]["annotations"][CONTROL])
    told["schemaVersion"] = f"{MAJOR_VERSION}.{MINOR_VERSION + 1}"
    told["queries"]["delays"] |= later
    pod["metadata"]["annotations"][CONTROL] = json.dumps(told)
    rolled_back.operator.restart()
    pods = rolled_back.pods

    rolled_back.settle()

    [now_told] = (json.loads(each["metadata"]["annotations"][CONTROL]) for each in rolled_back.cluster.pods())
    assert "later" not in now_told["queries"]["delays"]
    assert now_told["generation"] == told["generation"] + bool(later)
    assert now_told["queries"]["delays"]["backlog"] is told["queries"]["delays"]["backlog"] is True
    assert rolled_back.pods == pods


# What is beside a checkpoint --------------------------------------------------------------------------

BESIDE = KEPT / "1.0/beside"
"""In the forms of the tree of 884de7b: `batches` is what its code wrote, the others follow its source by hand."""


def test_where_histories_end_and_what_batches_and_topics_have_shown_outlives_an_upgrade(
    tmp_path: Path,
) -> None:
    shutil.copytree(BESIDE, tmp_path / "ck.headgate")
    checkpoint = Checkpoint(str(tmp_path / "ck"), lambda path: LocalDirectory(Path(path)))

    ended = HybridMemory({"archive": {"archive/0": 17}}, frozenset({"archive"}))
    assert checkpoint.hybrid.load() == ended
    batches = checkpoint.batches.load()
    assert (batches.repeated, batches.bound.grown_to) == (2, 250_000)
    assert batches.failure == MemoryFailure(batch=7, times=1, records=300_000)
    assert checkpoint.topics.load() == {"flights": {"flights": ("cluster", "id")}}


def test_a_backfill_goes_on_after_an_upgrade() -> None:
    """It is known by how it describes itself: in other words it would be another one, on a checkpoint that is not
    its own."""
    left = Side(
        "orders",
        Kafka("orders", {"kafka.bootstrap.servers": "broker:9092"}),
        "ordered_at",
        timedelta(minutes=10),
    )
    files = Files("s3a://lake/paid", "parquet", "order_id string, paid_at timestamp")
    right = Side("payments", files, "paid_at", timedelta(hours=1, milliseconds=5))
    within = (timedelta(0), timedelta(days=2, hours=1))
    asked = Matching(left, right, ("order_id",), *within, "left_outer").described()

    journal = Journal(store_in(LocalDirectory(BESIDE)), "ck", asked, has_batches=True)

    assert journal.kept("cut") == [{"orders": {"0": [0, 17]}}, ["s3a://lake/paid/1.parquet"]]


# The resource ----------------------------------------------------------------------------------------


def test_the_definition_takes_every_resource_that_the_last_released_one_took() -> None:
    found = list(breaks(json.loads(CRD.read_text()), structure()))

    assert found == [], (
        "where it is meant, say so in the changelog, and keep the new contract (CONTRIBUTING.md)"
    )


OLD = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "enum": ["x", "y"], "maxLength": 9},
        "b": {"type": "array", "maxItems": 4, "items": {"type": "integer", "minimum": 0, "default": 1}},
        "c": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "x-kubernetes-validations": [{"rule": "has(self.a)"}],
}
ITEMS = ["properties", "b", "items"]
BROKEN = {
    "a field is gone": (["properties", "c"], None, "c: is gone"),
    "another type": (["properties", "a", "type"], "integer", "a: type was 'string', and is 'integer'"),
    "one more is required": (["required"], ["a", "b"], "the resource: b is required now"),
    "a narrower enum": (["properties", "a", "enum"], ["x"], "a: enum takes no more: ['y']"),
    "an enum where there was none": ([*ITEMS, "enum"], [1], "b[]: enum takes no more: every other"),
    "a lower maximum": (["properties", "b", "maxItems"], 3, "b: maxItems was 4, and is 3"),
    "a maximum where there was none": ([*ITEMS, "maximum"], 9, "b[]: maximum was not set, and is 9"),
    "a higher minimum": ([*ITEMS, "minimum"], 1, "b[]: minimum was 0, and is 1"),
    "another default": ([*ITEMS, "default"], 2, "b[]: default was 1, and is 2"),
    "a map that takes no names": (["properties", "c", "additionalProperties"], None, "c{}: is gone"),
    "one more rule": (["x-kubernetes-validations"], [{"rule": "a > b"}], "the resource: one more rule: a > b"),
}  # fmt: skip
TAKEN = {
    "one more field": (["properties", "d"], {"type": "string"}),
    "a wider enum": (["properties", "a", "enum"], ["x", "y", "z"]),
    "no enum": (["properties", "a", "enum"], None),
    "a higher maximum": (["properties", "b", "maxItems"], 5),
    "less is required": (["required"], []),
    "a rule about a new field": (["x-kubernetes-validations"], [{"rule": "!(has(self.d) && self.d == 'x')"}]),
    "other words": (["description"], "new"),
}


def changed(at: list[str], value: Any) -> dict[str, Any]:
    new = copy.deepcopy(OLD)
    where: Any = new
    for name in at[:-1]:
        where = where[name]
    where.pop(at[-1], None)
    if value is not None:
        where[at[-1]] = value
    return new


@pytest.mark.parametrize(("at", "value", "told"), BROKEN.values(), ids=BROKEN)
def test_what_would_refuse_a_resource_from_before_or_change_its_meaning_is_named(
    at: list[str], value: Any, told: str
) -> None:
    assert list(breaks(OLD, changed(at, value))) == [told]


@pytest.mark.parametrize(("at", "value"), TAKEN.values(), ids=TAKEN)
def test_what_takes_all_that_was_taken_is_no_break(at: list[str], value: Any) -> None:
    assert list(breaks(OLD, changed(at, value))) == []
