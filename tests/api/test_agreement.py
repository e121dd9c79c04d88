"""The models and Kubernetes' own code say the same to any resource, good or bad.

This is what "declared once" has to mean: a file that `headgate validate` takes is taken by the API server, and one
that it refuses is refused there. Only what CEL cannot see is kept out of the generated resources: cycles of `after`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.api.finding import Severity
from headgate.api.rules import RULES
from headgate.api.validation import validate
from support.api_server import ApiServer
from support.examples import examples
from support.manifests import Manifest, application

MESSAGES = {rule.id: rule.message for rule in RULES}
Values = st.SearchStrategy[Any]

AGREEMENT = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DURATIONS = st.sampled_from(
    ["0s", "0.0h", "9.999999ms", "10ms", "1s", "1000ms", "1.5s", "60s", "1m", "1h30m"]
)
MALFORMED_DURATIONS = st.sampled_from(
    ["", "5", "-5s", "5d", "1m 30s", "5S", ".5s", "5.s", "1e3s", "2562047.5h", "99999999999h", "1" * 40 + "s"]
)
RECORDS = st.sampled_from([1, 2, 3, 1_000_000_000_000])
RATES = st.sampled_from([0.001, 1, 50_000, 1e12])
WRONG: Values = st.sampled_from([None, True, 0, -1, 2.5, 1.0, 1e13, "x", "1", [], {}]) | MALFORMED_DURATIONS


def optional(**fields: Values) -> Values:
    return st.fixed_dictionaries({}, optional=fields)


def objects(**fields: Values) -> Values:
    return st.fixed_dictionaries(fields)


LIMITS = optional(recordsPerSecond=RATES, recordsPerCheckpoint=RECORDS)
IN_BACKLOG = st.just("Unlimited") | LIMITS.filter(bool)
RATE_LIMIT = optional(
    recordsPerSecond=RATES, recordsPerCheckpoint=RECORDS, maxBurst=DURATIONS, duringBacklog=IN_BACKLOG
)
ALIGNMENT = st.fixed_dictionaries(
    {"group": st.just("g"), "maxDrift": DURATIONS},
    optional={"updateInterval": DURATIONS, "idleAfter": DURATIONS},
)
SOURCE = st.fixed_dictionaries(
    {"backlog": optional(watermarkLag=DURATIONS, pendingRecords=RECORDS)},
    optional={
        "rateLimit": RATE_LIMIT,
        "alignment": ALIGNMENT,
        "paused": st.booleans(),
    },
)
QUERY = objects(
    name=st.just("q"),
    checkpoint=optional(interval=DURATIONS, intervalDuringBacklog=DURATIONS, minPause=DURATIONS),
    backlog=objects(reentry=optional(above=DURATIONS, pendingRecordsAbove=RECORDS, dwell=DURATIONS)),
    batch=optional(targetDuration=DURATIONS, maxRecords=RECORDS),
)
SPEC = optional(
    restart=optional(backoff=DURATIONS, maxBackoff=DURATIONS, resetAfter=DURATIONS),
    metrics=optional(staleAfter=DURATIONS, source=st.sampled_from(["Driver", "Prometheus"])),
    ttlAfterFinished=DURATIONS,
    duringBacklog=objects(executor=objects(instances=st.integers(1, 8))),
)


@st.composite
def applications(draw: st.DrawFn) -> Manifest:
    """Return a resource whose fields are well-formed each by itself, good together or not."""
    sources: list[dict[str, Any]] = []
    for name in draw(st.sampled_from(["", "a", "ab", "aa"])):
        reachable = [
            *(source["name"] for source in sources),
            name,
            "unlisted",
        ]  # never a later one: no cycles
        after = draw(st.none() | st.sampled_from(reachable))
        sources.append({"name": name, **draw(SOURCE)} | ({"after": after} if after else {}))
    return application({**draw(QUERY), "sources": sources}, **draw(SPEC))


@st.composite
def damaged_applications(draw: st.DrawFn) -> Manifest:
    """Return a resource with one value replaced by something else, or one field that nobody knows."""
    manifest = draw(applications())
    owner, key = draw(st.sampled_from(list(_places(manifest["spec"]))))
    if draw(st.integers(0, 4)) == 0 and isinstance(owner, dict):
        owner["unheardOf"] = 1
    else:
        owner[key] = draw(WRONG)
    return manifest


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in `value`, as its owner and its key or index."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for key, child in list(children) for place in [(value, key), *_places(child)]]


def assert_agreement(manifest: Manifest, kubernetes: ApiServer) -> None:
    accepted, findings = validate(manifest)
    answer = kubernetes.create(manifest)

    assert (accepted is not None) is answer.is_accepted, f"validate: {findings}\nKubernetes: {answer.text}"


@AGREEMENT
@given(manifest=applications())
def test_both_agree_whether_settings_go_together(manifest: Manifest, kubernetes: ApiServer) -> None:
    assert_agreement(manifest, kubernetes)


@AGREEMENT
@given(manifest=applications())
def test_both_name_the_same_broken_rules(manifest: Manifest, kubernetes: ApiServer) -> None:
    _, findings = validate(manifest)
    text = kubernetes.create(manifest).text

    for finding in findings:
        if finding.severity is Severity.ERROR and finding.rule != "name-twice":
            assert MESSAGES[finding.rule] in text


@AGREEMENT
@given(manifest=damaged_applications())
def test_both_agree_about_a_damaged_resource(manifest: Manifest, kubernetes: ApiServer) -> None:
    assert_agreement(manifest, kubernetes)
