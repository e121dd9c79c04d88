"""What the pages under docs/ say is what the code says: names, defaults, examples, and where links lead."""

import json
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    BatchControl,
    ControlDocument,
    EventTimeControl,
    QueryControl,
    RateControl,
    ReentryControl,
    RefusalReason,
    SourceControl,
)
from headgate_contract.codec import member_name
from headgate_contract.metrics import ALL, MetricType
from headgate_contract.receiving import read
from headgate_spark.planner.model import ReadLimit

ROOT = Path(__file__).parents[2]
CONTROL_DOCUMENT = (ROOT / "docs/control-document.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs/operations.md").read_text(encoding="utf-8")  # held to the operator by its own test
SOURCES = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
EXPRESSIONS = "Expressions of your own: `backlog.query`"

EXAMPLES = re.findall(r"```json\n(.*?)```", CONTROL_DOCUMENT, re.DOTALL)
OBJECTS = {
    "The document": ControlDocument,
    "A query": QueryControl,
    "A batch": BatchControl,
    "Re-entry": ReentryControl,
    "A source": SourceControl,
    "A source's backlog": BacklogControl,
    "A rate limit": RateControl,
    "An alignment": AlignmentControl,
    "An event time": EventTimeControl,
}
NOT_OURS = {".venv", ".venvs", "build", "dist", ".git", ".pytest_cache", "node_modules"}
PAGES = sorted(p for p in ROOT.rglob("*.md") if not NOT_OURS & set(p.relative_to(ROOT).parts))


GUARANTEES = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


TESTS = {
    named
    for page in PAGES
    for named in re.findall(r"\b(tests/[\w/]+\.py)(?:::(\w+))?", page.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize(("file", "name"), sorted(TESTS))
def test_a_test_that_a_page_names_is_there(file, name):
    assert (ROOT / file).is_file()
    assert not name or f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_promise_names_what_holds_it():
    """A test, by name where there is one for it; or a command, for what takes hours or a server of S3."""
    header = "| promise | test |"
    promises = GUARANTEES.partition(header)[2].partition("\n\n")[0].splitlines()[2:]
    assert len(promises) > 20
    for promise in promises:
        _, _, held_by, _ = promise.split("|")
        files = re.findall(r"`(tests/[\w/]+\.py)", held_by)
        commands = re.findall(r"`make ([\w-]+)", held_by)
        assert files or commands, f"nothing is said to hold: {promise}"
        assert all((ROOT / file).is_file() for file in files), promise
        assert all(f"\n{target}:" in MAKEFILE for target in commands), promise


def section(page, heading):
    """Return the text below a heading, up to the next one of its level or above."""
    level, text = re.search(rf"^(#+) {re.escape(heading)}\n(.*)", page, re.DOTALL | re.MULTILINE).groups()
    return re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text):
    """Return the cells of each row whose first cell is code, as the rows of our tables are."""
    lines = re.findall(r"^\| (?=`)(.*) \|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def shown_default(field):
    """Return how a page shows the default of a member."""
    if field.default is MISSING:
        return "`{}`" if field.default_factory is dict else "all defaults"
    if field.default is None:
        return "not set"
    default = field.default
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return f'`"{default}"`' if isinstance(default, str) else f"`{json.dumps(default)}`"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_a_control_document_can_be_read(example):
    assert isinstance(read(example), ControlDocument)


def test_the_full_example_has_every_member():
    document = json.loads(EXAMPLES[-1])
    query = document["queries"]["delays"]
    source = query["sources"]["flights"]
    examples = (
        document,
        query,
        query["batch"],
        query["reentry"],
        source,
        source["backlog"],
        source["rateLimit"],
        source["alignment"],
        source["eventTime"],
    )
    for kind, example in zip(OBJECTS.values(), examples, strict=True):
        assert {member_name(field.name) for field in fields(kind)} == example.keys() - {"schemaVersion"}


@pytest.mark.parametrize(("heading", "kind"), OBJECTS.items())
def test_every_member_stands_in_the_table_of_its_object_with_its_default(heading, kind):
    table = {row[0].strip("`"): row[2] for row in rows(section(CONTROL_DOCUMENT, heading))}
    assert table.keys() - {"schemaVersion"} == {member_name(field.name) for field in fields(kind)}
    for field in fields(kind):
        required = field.default is MISSING and field.default_factory is MISSING
        expected = "required" if required else shown_default(field)
        assert table[member_name(field.name)].startswith(expected), field.name


def test_every_reason_for_refusing_a_document_is_explained():
    explained = set(re.findall(r"`([A-Z]\w+)` \|", section(CONTROL_DOCUMENT, "Rules")))
    assert explained == {reason.value for reason in RefusalReason}


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_every_metric_stands_on_its_page_as_it_is_declared(metric):
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    assert f"\n| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |" in METRICS


def test_no_page_names_a_metric_that_there_is_not():
    parts = {
        m.name + part for m in ALL if m.kind is MetricType.HISTOGRAM for part in ("_bucket", "_sum", "_count")
    }
    known = parts | {metric.name for metric in ALL} | {row[0].strip("`") for row in rows(OPERATIONS)}
    known |= {"headgate_dev_application"}  # a label: what Prometheus makes of the pod's
    packages = {path.name for root in ("operator", "spark_jobs") for path in (ROOT / root).iterdir()}
    for page in PAGES:
        named = set(re.findall(r"\bheadgate_\w+(?![\w*./-])", page.read_text(encoding="utf-8")))
        assert named - packages <= known, page


def test_an_example_of_a_backlog_query_is_true_where_it_compares_with_zero():
    """`up == 0` returns a sample whose value is 0, which votes no; with `bool` it returns 1."""
    expressions = re.findall(r"```promql\n(.*?)```", section(METRICS, EXPRESSIONS), re.DOTALL)
    assert expressions
    assert [each for each in expressions if re.search(r"(==|<=|>=) 0", each)] == []


def test_every_read_limit_is_explained():
    assert {row[0].strip("`") for row in rows(section(SOURCES, "Read limits"))} >= {
        read_limit.value for read_limit in ReadLimit
    }


def slug(heading):
    """Return the anchor that a heading is given."""
    words = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def prose(page):
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), target  # a folder is no page of the site
        if anchor:
            assert anchor in {slug(h) for h in re.findall(r"^#+ (.*)", prose(file), re.MULTILINE)}, target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_who_is_told_of_the_package_is_told_of_its_repository(page):
    """It is on no public one, and Spark asks these alone."""
    for line in page.read_text(encoding="utf-8").splitlines():
        assert "dev.headgate:headgate-spark" not in line or "repositories" in line
