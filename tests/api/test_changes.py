"""What a change of the resource does: each field has its update mode, and these agree with what restarts a driver."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api.application import SparkApplication, application_schema
from headgate.api.changes import Change, changes, summary, written
from headgate.api.update_modes import SETTINGS, UpdateMode
from headgate.api.validation import validate
from headgate.reconcile.launch import launch_of
from support.examples import examples
from support.manifests import Manifest, application, changed, query, source

PLAIN = application(
    query(source("flights"), source("weather"), checkpoint={"interval": "5s"}),
    image="img:1",
    sparkConf={"a": "1"},
    duringBacklog={"sparkConf": {"b": "2"}},
)


def accepted(manifest: Manifest) -> SparkApplication:
    found, findings = validate(manifest)
    assert found is not None, findings
    return found


def between(old: Manifest, new: Manifest) -> tuple[Change, ...]:
    return changes(accepted(old), accepted(new))


def only_change(*location: str | int, to: Any, of: Manifest = PLAIN) -> Change:
    """The one change that `to` at this place below `spec` makes."""
    (found,) = between(of, changed(of, ("spec", *location), to))
    return found


# Every field has an update mode


def settings_of(schema: dict[str, Any], path: str = "spec") -> Iterator[str]:
    """Every field of the resource that has no fields of its own."""
    schema = schema.get("items", {}) if "items" in schema and "properties" in schema["items"] else schema
    for name, field in schema.get("properties", {}).items():
        if name == "podTemplate":  # one setting, however deep
            yield f"{path}.{name}"
            continue
        below = list(settings_of(field, f"{path}.{name}"))
        yield from below or [f"{path}.{name}"]


def test_every_field_of_the_resource_has_an_update_mode_and_none_is_of_a_field_that_is_gone() -> None:
    declared = set(SETTINGS) - {"spec.queries", "spec.queries.sources"}

    assert declared == set(settings_of(application_schema()["properties"]["spec"]))


# Single changes

QUERY = ("queries", 0)
SOURCE = ("queries", 0, "sources", 0)


@pytest.mark.parametrize(
    ("location", "value", "text", "update_mode", "effect"),
    [
        (
            ("image",),
            "img:2",
            "spec.image: img:1 -> img:2",
            UpdateMode.RESTART,
            "stopped at the end of its batch and",
        ),
        (
            ("main", "arguments"),
            ["x"],
            'spec.main.arguments: [] -> ["x"]',
            UpdateMode.RESTART,
            "started anew",
        ),
        (("sparkConf", "a"), "2", "spec.sparkConf[a]: 1 -> 2", UpdateMode.RESTART, "started anew"),
        (("sparkConf", "c"), "3", "spec.sparkConf[c]: not set -> 3", UpdateMode.RESTART, "started anew"),
        (
            ("duringBacklog", "sparkConf", "b"),
            "3",
            "spec.duringBacklog.sparkConf[b]: 2 -> 3",
            UpdateMode.RESTART,
            "if a query is in backlog, otherwise when one enters it",
        ),
        (
            ("duringBacklog", "sparkConf", "a"),
            "1",
            "spec.duringBacklog.sparkConf[a]: not set -> 1",
            UpdateMode.OPERATOR,
            "nothing: what holds in a backlog is the same as before",
        ),
        (("executor", "cores"), 4, "spec.executor.cores: 1 -> 4", UpdateMode.RESTART, "started anew"),
        (
            ("executor", "instances"),
            5,
            "spec.executor.instances: 2 -> 5",
            UpdateMode.EXECUTORS,
            "executors are added or removed, and the queries go on",
        ),
        (
            ("duringBacklog", "executor"),
            {"instances": 5},
            "spec.duringBacklog.executor: not set -> {instances: 5}",
            UpdateMode.EXECUTORS,
            "while a query is in backlog",
        ),
        (
            ("suspend",),
            True,
            "spec.suspend: false -> true",
            UpdateMode.OPERATOR,
            "the driver is stopped at the end of",
        ),
        (
            ("restart", "policy"),
            "Never",
            "spec.restart.policy: OnFailure -> Never",
            UpdateMode.OPERATOR,
            "next end",
        ),
        (
            ("ttlAfterFinished",),
            "1h",
            "spec.ttlAfterFinished: not set -> 1h",
            UpdateMode.OPERATOR,
            "counts from",
        ),
        (("stop", "gracePeriod"), "90s", "spec.stop.gracePeriod: 2m -> 1m30s", UpdateMode.LIVE, "next stop"),
        (
            (*QUERY, "checkpoint", "interval"),
            "10s",
            "spec.queries[q].checkpoint.interval: 5s -> 10s",
            UpdateMode.LIVE,
            "in force when the next batch is planned",
        ),
        (
            (*QUERY, "batch", "maxGrowth"),
            2,
            "spec.queries[q].batch.maxGrowth: 4 -> 2",
            UpdateMode.LIVE,
            "the next batch is sized by it",
        ),
        (
            (*SOURCE, "rateLimit"),
            {"recordsPerSecond": 5, "duringBacklog": "Unlimited"},
            "spec.queries[q].sources[flights].rateLimit: not set -> "
            "{recordsPerSecond: 5, maxBurst: 10s, duringBacklog: Unlimited}",
            UpdateMode.LIVE,
            "in force when the next batch is planned",
        ),
        (
            (*SOURCE, "backlog", "watermarkLag"),
            "5m",
            "spec.queries[q].sources[flights].backlog.watermarkLag: not set -> 5m",
            UpdateMode.LIVE,
            "the verdict goes by it",
        ),
        (
            (*SOURCE, "kafka"),
            {"publishGroup": "lag"},
            "spec.queries[q].sources[flights].kafka.publishGroup: not set -> lag",
            UpdateMode.LIVE,
            "committed positions go to this consumer group",
        ),
        (
            (*SOURCE, "paused"),
            True,
            "spec.queries[q].sources[flights].paused: false -> true",
            UpdateMode.LIVE,
            "nothing more is planned from it",
        ),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_a_change_tells_both_values_its_update_mode_and_what_follows(
    location: tuple[str | int, ...], value: Any, text: str, update_mode: UpdateMode, effect: str
) -> None:
    found = only_change(*location, to=value)

    assert (found.text, found.update_mode) == (text, update_mode)
    assert effect in found.effect


def test_what_is_taken_back_has_an_effect_of_its_own() -> None:
    suspended = changed(PLAIN, ("spec", "suspend"), True)

    assert only_change("suspend", to=False, of=suspended).effect == "the driver is started"


def test_a_query_that_comes_or_goes_is_one_change() -> None:
    two = copy.deepcopy(PLAIN)
    two["spec"]["queries"].append({"name": "other"})

    (added,), (removed,) = between(PLAIN, two), between(two, PLAIN)

    assert (added.text, added.effect) == ("spec.queries[other]: added", "governed from its next batch on")
    assert removed.text == "spec.queries[other]: removed"
    assert removed.effect == "no longer governed: it runs as the job wrote it"


def test_a_source_is_recognised_by_its_name_wherever_it_stands_in_the_list() -> None:
    turned = copy.deepcopy(PLAIN)
    turned["spec"]["queries"][0]["sources"].reverse()
    turned["spec"]["queries"][0]["sources"][0]["paused"] = True

    paused, order = between(PLAIN, turned)

    assert paused.path == "spec.queries[q].sources[weather].paused"
    assert order.text == 'spec.queries[q].sources: ["flights", "weather"] -> ["weather", "flights"]'


def test_one_limit_that_becomes_another_is_shown_whole() -> None:
    limited = changed(
        PLAIN, ("spec", *SOURCE, "rateLimit"), {"recordsPerSecond": 5, "duringBacklog": "Unlimited"}
    )

    found = only_change(*SOURCE, "rateLimit", "duringBacklog", to={"recordsPerSecond": 0.5}, of=limited)

    assert found.text.endswith("rateLimit.duringBacklog: Unlimited -> {recordsPerSecond: 0.5}")


@pytest.mark.parametrize(
    ("location", "value"),
    [
        (("suspend",), False),
        (("executor",), {"instances": 2}),
        ((*QUERY, "checkpoint", "interval"), "5000ms"),
        ((*QUERY, "batch"), {"maxGrowth": 4.0}),
    ],
)
def test_the_same_thing_in_other_words_is_no_change(location: tuple[str | int, ...], value: Any) -> None:
    assert between(PLAIN, changed(PLAIN, ("spec", *location), value)) == ()


def test_annotations_are_no_part_of_what_is_declared() -> None:
    assert (
        between(PLAIN, changed(PLAIN, ("metadata", "annotations"), {"headgate.dev/paused": "q/flights"}))
        == ()
    )


@pytest.mark.parametrize(
    "name", ["spark.hadoop.fs.s3a.secret.key", "x.password", "my.TOKEN", "fs.access-key"]
)
def test_a_secret_is_told_to_have_changed_and_not_told(name: str) -> None:
    found = only_change("sparkConf", name, to="hunter2")

    assert found.text == f"spec.sparkConf[{name}]: not set -> (hidden)"
    assert "hunter2" not in repr(found)


def test_a_login_in_a_value_is_not_told() -> None:
    found = only_change("main", "file", to="s3a://AKID:x7Kq@bucket/job.py")

    assert found.text.endswith("-> s3a://(hidden)@bucket/job.py")


@pytest.mark.parametrize("before", [{}, {"old": "old-canary", "both": "old-canary"}])
def test_events_tell_which_properties_have_changed_and_no_value(before: dict[str, str]) -> None:
    after = {"new": "new-canary", "both": "new-canary"}
    text = summary(
        between(
            application(query(source("s")), sparkConf=before, duringBacklog={"sparkConf": before}),
            application(query(source("s")), sparkConf=after, duringBacklog={"sparkConf": after}),
        )
    )
    assert "canary" not in text
    for path in ("spec.sparkConf", "spec.duringBacklog.sparkConf"):
        assert f"{path}[new]: set" in text
        assert (f"{path}[both]: changed" in text) == bool(before)
        assert (f"{path}[old]: not set any more" in text) == bool(before)


def test_events_tell_that_arguments_have_changed_and_none_of_them() -> None:
    text = summary((only_change("main", "arguments", to=["--dsn", "canary"]),))
    assert text.startswith("spec.main.arguments: changed (")


# Laws

NAMES = st.sampled_from(["a", "b", "a.secret"])
CONF = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=2)
DURATIONS = st.sampled_from(["1s", "1000ms", "2m"])
SOURCES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["s", "t", "u"])},
        optional={
            "paused": st.booleans(),
            "rateLimit": st.sampled_from(
                [{"recordsPerSecond": 1}, {"recordsPerSecond": 1.0}, {"recordsPerCheckpoint": 2}]
            ),
        },
    ),
    unique_by=lambda item: str(item["name"]),
    max_size=3,
)
QUERIES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["p", "q"]), "sources": SOURCES},
        optional={
            "checkpoint": st.fixed_dictionaries({}, optional={"interval": DURATIONS, "minPause": DURATIONS})
        },
    ),
    unique_by=lambda item: str(item["name"]),
    max_size=2,
)
SIZES = st.fixed_dictionaries(
    {}, optional={"cores": st.integers(1, 2), "memory": st.sampled_from(["1g", "2g"])}
)
SPECS = st.fixed_dictionaries(
    {
        "main": st.fixed_dictionaries(
            {"file": st.sampled_from(["x.py", "y.py"])}, optional={"arguments": st.just(["z"])}
        )
    },
    optional={
        "image": st.sampled_from(["i:1", "i:2"]),
        "sparkVersion": st.sampled_from(["4.0", "4.3.0"]),
        "sparkConf": CONF,
        "driver": SIZES,
        "executor": SIZES.flatmap(lambda sizes: st.sampled_from([sizes, {**sizes, "instances": 7}])),
        "duringBacklog": st.fixed_dictionaries(
            {}, optional={"sparkConf": CONF, "executor": st.just({"instances": 9})}
        ),
        "suspend": st.booleans(),
        "restart": st.fixed_dictionaries({}, optional={"backoff": DURATIONS}),
        "ttlAfterFinished": DURATIONS,
        "metrics": st.fixed_dictionaries({}, optional={"source": st.sampled_from(["Driver", "Prometheus"])}),
        "queries": QUERIES,
    },
)

Pair = tuple[SparkApplication, SparkApplication]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Two applications that differ in a few members, as an edit does."""
    old, other = draw(SPECS), draw(SPECS)
    edited = draw(st.sets(st.sampled_from(sorted(other)), min_size=1, max_size=2))
    new = {name: (other if name in edited else old).get(name) for name in {*old, *edited}}
    return accepted({**PLAIN, "spec": old}), accepted({**PLAIN, "spec": new})


def revisions(declared: SparkApplication) -> tuple[str, str]:
    """What a driver is started with outside a backlog, and inside one."""
    plain, in_backlog = (launch_of(declared, in_backlog=in_backlog).revision for in_backlog in (False, True))
    return plain, in_backlog


@given(pair=pairs())
def test_there_is_a_change_exactly_where_the_resources_differ(pair: Pair) -> None:
    old, new = pair
    assert (changes(old, new) == ()) == (old.spec == new.spec)


@settings(max_examples=examples(500))
@given(pair=pairs())
def test_a_driver_is_started_anew_exactly_where_a_change_says_so(pair: Pair) -> None:
    old, new = pair
    restarts = any(change.update_mode is UpdateMode.RESTART for change in changes(old, new))

    assert restarts == (revisions(old) != revisions(new))


@given(pair=pairs())
def test_back_again_is_the_same_changes_the_other_way_round(pair: Pair) -> None:
    old, new = pair
    there, back = changes(old, new), changes(new, old)

    assert {(c.path, written(c.before), written(c.after), c.update_mode) for c in there} == {
        (c.path, written(c.after), written(c.before), c.update_mode) for c in back
    }


@given(pair=pairs())
def test_a_summary_names_the_dearest_change_first_and_fits_an_event(pair: Pair) -> None:
    old, new = pair
    found = changes(old, new)
    text = summary(found)

    assert len(text.encode()) <= 1024
    if found:
        dearest = max(tuple(UpdateMode).index(change.update_mode) for change in found)
        first = [
            change.public_text for change in found if tuple(UpdateMode).index(change.update_mode) == dearest
        ]
        assert text.startswith(tuple(first))


def test_a_summary_groups_what_has_the_same_effect() -> None:
    new = changed(
        changed(PLAIN, ("spec", "image"), "img:2"), ("spec", *QUERY, "checkpoint", "interval"), "10s"
    )
    new = changed(new, ("spec", "driver"), {"memory": "2g"})

    assert summary(between(PLAIN, new)) == (
        "spec.image: img:1 -> img:2, spec.driver.memory: 1g -> 2g (the driver is stopped at the end of its batch and "
        "started anew); spec.queries[q].checkpoint.interval: 5s -> 10s (in force when the next batch is planned)"
    )
