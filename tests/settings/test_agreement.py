"""A setting means the same as an option of the job, as a property, and as a field of the resource.

Where `headgate validate` refuses a resource, the option is refused in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api.finding import Severity
from headgate.api.validation import validate
from headgate.reconcile.document import next_document
from headgate_contract import QueryControl
from headgate_contract.settings.layers import merged
from headgate_contract.settings.table import BY_NAME, TABLE, Scope, Setting
from headgate_spark.engine.settings import OfJob, SettingsError
from support.examples import examples
from support.manifests import Manifest, application, changed, query, source

DURATIONS = ["0s", "9.999ms", "10ms", "1s", "1.5s", "90s", "1h30m", "2562047h"]
NO_DURATIONS = ["", "5", "-5s", "5d", "1m 30s", ".5s", "99999999999h", "1" * 40 + "s"]
NUMBERS = ["1", "2", "50000", "1000000000000"]
NO_NUMBERS = ["0", "-1", "1000000000001"]
RATES = [*NUMBERS, "0.5", "2500.5"]
TEXTS = {
    "batch.initialRecords": NUMBERS + NO_NUMBERS,
    "batch.maxRecords": NUMBERS + NO_NUMBERS,
    "batch.maxGrowth": ["1.5", "4", "1000", "1", "1001", "-2.5"],
    "rateLimit.recordsPerSecond": RATES + NO_NUMBERS,
    "rateLimit.duringBacklog.recordsPerSecond": RATES + NO_NUMBERS,
    "rateLimit.recordsPerCheckpoint": NUMBERS + NO_NUMBERS,
    "rateLimit.duringBacklog.recordsPerCheckpoint": NUMBERS + NO_NUMBERS,
    "rateLimit.duringBacklog": ["Unlimited"],
    "backlog.pendingRecords": NUMBERS + NO_NUMBERS,
    "backlog.snapshot": ["Debezium", "debezium", "Maxwell", ""],
    "backlog.reentry.pendingRecordsAbove": NUMBERS + NO_NUMBERS,
    "backlog.reentry.policy": ["Allowed", "Never", "never", "Sometimes"],
    "live.mode": ["MicroBatch", "RealTime", "realTime", ""],
    "live.batch": ["5s", "1m", "4.999s", "0s", "5"],
    "alignment.group": ["trips", "", "g" * 64],
    "eventTime.column": ["at", "$.pickup.time", ""],
    "eventTime.format": ["Json", "Avro", "Protobuf", "Jsn", "Parquet"],
    "after": ["history"],
    "paused": ["true", "false"],
    "kafka.publishGroup": ["positions", "", "   ", "p" * 250],
}
"""What may be written for each; for the others, durations."""
WORDS = {
    "backlog.reentry.policy",
    "live.mode",
    "eventTime.format",
    "backlog.snapshot",
    "alignment.group",
    "eventTime.column",
    "after",
    "kafka.publishGroup",
}


def texts(setting: Setting) -> list[str]:
    return TEXTS.get(setting.name, DURATIONS + NO_DURATIONS)


def parses(setting: Setting, text: str) -> bool:
    try:
        setting.form.parse(text)
    except ValueError:
        return False
    return True


def both_forms(said: Mapping[str, str]) -> bool:
    """Whether `duringBacklog` is given as a word and as an object, which no resource can say."""
    return "rateLimit.duringBacklog" in said and any(
        name.startswith("rateLimit.duringBacklog.") for name in said
    )


WELL_FORMED = st.fixed_dictionaries(
    {}, optional={each.name: st.sampled_from([t for t in texts(each) if parses(each, t)]) for each in TABLE}
).filter(lambda said: not both_forms(said))


def as_manifest(said: Mapping[str, str]) -> Manifest:
    """Return a resource that says the same of query `q` and its source `s`."""
    manifest = application(query(source(), source("history")))
    for name, text in said.items():
        setting = BY_NAME[name]
        below = (
            ("spec", "queries", 0) if setting.scope is Scope.QUERY else ("spec", "queries", 0, "sources", 0)
        )
        manifest = changed(manifest, (*below, *setting.field.split(".")), as_value(setting, text))
    return manifest


def as_value(setting: Setting, text: str) -> Any:
    is_duration = setting.path[-1:] and setting.path[-1].endswith("_seconds")
    is_word = setting.name in WORDS or is_duration or text == "Unlimited"
    return text if is_word else json.loads(text)


def by_resource(manifest: Manifest) -> tuple[QueryControl | None, list[str]]:
    """Return what a driver is told, or what is refused."""
    found, findings = validate(manifest)
    refused = [each.message for each in findings if each.severity is Severity.ERROR]
    if found is None:
        return None, refused
    return next_document(found, {}, published=None, last_generation=0).queries["q"], []


def options(said: Mapping[str, str], scope: Scope) -> dict[str, str]:
    return {BY_NAME[name].option: text for name, text in said.items() if BY_NAME[name].scope is scope}


def by_options(said: Mapping[str, str]) -> tuple[QueryControl | None, str]:
    of_job = OfJob(options(said, Scope.QUERY))
    return read(of_job, {"s": options(said, Scope.SOURCE)})


def by_properties(said: Mapping[str, str]) -> tuple[QueryControl | None, str]:
    at = {Scope.QUERY: "spark.headgate.queries.q.", Scope.SOURCE: "spark.headgate.queries.q.sources.s."}
    return read(OfJob({}, {at[BY_NAME[name].scope] + name: text for name, text in said.items()}), {"s": {}})


def read(of_job: OfJob, sources: Mapping[str, Mapping[str, str]]) -> tuple[QueryControl | None, str]:
    try:
        return merged(None, of_job.read("q", sources)), ""
    except SettingsError as error:
        return None, str(error)


OF_A_QUERY = (
    "interval_seconds",
    "interval_during_backlog_seconds",
    "min_pause_seconds",
    "batch",
    "reentry",
    "live",
)


def without_history(control: QueryControl | None) -> QueryControl:
    """Leave out the source that only the resource has to list."""
    control = control or QueryControl()
    sources = {"s": control.sources["s"]} if "s" in control.sources else {}
    return QueryControl(**{name: getattr(control, name) for name in OF_A_QUERY}, sources=sources)


@settings(max_examples=examples(400), deadline=None)
@given(said=WELL_FORMED.filter(bool))
def test_settings_together_are_what_they_are_in_a_resource_or_are_refused_in_its_words(
    said: Mapping[str, str],
) -> None:
    declared, refused = by_resource(as_manifest(said))
    for control, told in (by_options(said), by_properties(said)):
        assert (control is None) == bool(refused), (refused, told)
        for message in refused:
            assert message.partition(":")[0] in told, (message, told)
        if declared is not None:
            source_said = any(BY_NAME[name].scope is Scope.SOURCE for name in said)
            expected = without_history(declared)
            assert control is not None
            assert without_history(control) == (
                expected if source_said else QueryControl(**{**vars_of(expected), "sources": {}})
            )


def vars_of(control: QueryControl) -> dict[str, Any]:
    return {name: getattr(control, name) for name in OF_A_QUERY}


EVERY_TEXT = [(setting, text) for setting in TABLE for text in texts(setting) if not parses(setting, text)]


@pytest.mark.parametrize(
    ("setting", "text"), EVERY_TEXT, ids=[f"{setting.name}={text[:12]}" for setting, text in EVERY_TEXT]
)
def test_a_value_that_is_refused_in_a_resource_is_refused_in_the_same_words(
    setting: Setting, text: str
) -> None:
    _, refused = by_resource(as_manifest({setting.name: text}))
    for (_, told), called in (
        (by_options({setting.name: text}), f"option {setting.option}: "),
        (by_properties({setting.name: text}), "property spark.headgate.queries.q."),
    ):
        assert called in told
        assert any(message in told for message in refused), (refused, told)


FLINKS = [
    ("scan.rate.limit.record-per-second", "500", "rateLimit.recordsPerSecond", "500"),
    ("scan.watermark.alignment.group", "trips", "alignment.group", "trips"),
    ("scan.watermark.alignment.max-drift", "1 min", "alignment.maxDrift", "1m"),
    ("scan.watermark.alignment.max-drift", "500", "alignment.maxDrift", "500ms"),
    ("scan.watermark.alignment.max-drift", "1h30m", "alignment.maxDrift", "1h30m"),
    ("scan.watermark.alignment.update-interval", "250 ms", "alignment.updateInterval", "250ms"),
    ("scan.watermark.idle-timeout", "2 days", "alignment.idleAfter", "48h"),
]


@pytest.mark.parametrize(("alias", "text", "name", "same"), FLINKS)
def test_the_spellings_that_flinks_users_know_say_the_same(
    alias: str, text: str, name: str, same: str
) -> None:
    rest = {"headgate.alignment.group": "g", "headgate.alignment.maxDrift": "1s"}
    rest.pop(BY_NAME[name].option, None)
    one, _ = read(OfJob(), {"s": {alias: text, **rest}})
    other, _ = read(OfJob(), {"s": {BY_NAME[name].option: same, **rest}})
    assert one == other is not None


REFUSED_FLINKS = [
    ("scan.rate.limit.record-per-second", "0", "rateLimit.recordsPerSecond", "0"),
    ("scan.rate.limit.record-per-second", "-2.5", "rateLimit.recordsPerSecond", "-2.5"),
    ("scan.watermark.alignment.group", "", "alignment.group", ""),
    ("scan.watermark.alignment.max-drift", "-1s", "alignment.maxDrift", "-1s"),
    ("scan.watermark.alignment.max-drift", "1 fortnight", "alignment.maxDrift", "1 fortnight"),
    ("scan.watermark.alignment.update-interval", "0 s", "alignment.updateInterval", "0s"),
    ("scan.watermark.idle-timeout", "0s", "alignment.idleAfter", "0s"),
]


@pytest.mark.parametrize(("alias", "text", "name", "same"), REFUSED_FLINKS)
def test_what_flinks_users_get_wrong_is_refused_in_the_same_words(
    alias: str, text: str, name: str, same: str
) -> None:
    _, refused = by_resource(as_manifest({name: same}))
    _, told = read(OfJob(), {"s": {alias: text}})
    assert f"option {alias}: " in told
    assert any(message in told.replace(text, same) for message in refused), (refused, told)
