"""Files of resources: every finding at once, each with its line, path and remedy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api.advice import MOST_IN_VAIN
from headgate.api.finding import Severity
from headgate.api.load import load_application, load_bytes, load_file, load_text
from headgate.errors import InvalidInputError, UsageError

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights.yaml"
BROKEN = ROOT / "tests" / "data" / "resources" / "broken.yaml"
EXPECTED = BROKEN.with_suffix(".txt").read_text().splitlines()


def texts(text: str) -> list[str]:
    return [finding.text("f.yaml") for finding in load_text(text, "f.yaml").all_findings]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = [finding.text("broken.yaml") for finding in load_file(BROKEN).all_findings]

    assert sorted(found) == sorted(EXPECTED)


def test_findings_come_in_the_order_of_lines() -> None:
    lines = [finding.line or 0 for finding in load_file(BROKEN).all_findings]

    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "f.yaml:1: error: malformed YAML: while parsing a flow node"),
        ("a:\n\tb: 1", "f.yaml:2: error: malformed YAML: a tab, where YAML wants spaces; indent with spaces"),
        ("- 1", "f.yaml:1: error: holds no object; a resource starts with apiVersion: headgate.dev/v1alpha1"),
        (
            "a: 1",
            "f.yaml:1: error: has no kind; set apiVersion: headgate.dev/v1alpha1 and kind: SparkApplication",
        ),
        ("kind: SparkApplication", "f.yaml:1: error: has no apiVersion; set"),
        (
            "{kind: SparkApplication, apiVersion: headgate.dev/v2, metadata: {name: a}, spec: {main: {file: a}}}",
            "f.yaml:1: error: apiVersion: 'headgate.dev/v2' is not one of headgate.dev/v1alpha1; did you mean",
        ),
        (
            "{kind: SparkAplication, apiVersion: headgate.dev/v1alpha1}",
            "f.yaml:1: error: kind SparkAplication is not one of headgate.dev; set kind: SparkApplication",
        ),
        (
            "{kind: SparkApplication, apiVersion: sparkoperator.k8s.io/v1beta2}",
            "v1beta2 SparkApplication skipped: it is of another operator. Here it is apiVersion: headgate.dev",
        ),
    ],
)
def test_a_document_that_is_no_resource_is_told_what_it_lacks(text: str, said: str) -> None:
    (found,) = [line for line in texts(text) if said in line]

    assert found


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    loaded = load_bytes(b"a: 1\nb: \xff\n", "f.yaml")

    assert [finding.text("f.yaml") for finding in loaded.all_findings] == [
        "f.yaml:2: error: is not UTF-8 text; save it as UTF-8, or give the path of a resource file"
    ]


def test_a_file_that_is_far_too_large_is_refused_before_it_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    with path.open("wb") as file:
        file.truncate(10**12)

    loaded = load_file(path)

    assert [finding.text("f.yaml") for finding in loaded.all_findings] == [
        "f.yaml: error: has more than 10 MB; split it, or give the path of a resource file"
    ]


def test_a_file_of_several_documents_gives_each_resource() -> None:
    flights = FLIGHTS.read_text()
    other = flights.replace("  name: flights\n", "  name: other\n")

    loaded = load_text(f"{flights}\n---\n{other}")

    names = [resource.application.name for resource in loaded.resources if resource.application]
    assert names == ["flights", "other"]


def test_a_list_is_read_as_kubectl_writes_it() -> None:
    items = "".join(
        f"- {{apiVersion: headgate.dev/v1alpha1, kind: SparkApplication, metadata: {{name: {name}}},\n"
        f"   spec: {{main: {{file: a.py}}, sparkVersion: {version}}}}}\n"
        for name, version in (("good", "'4.1'"), ("bad", "4.1"))
    )
    text = f"apiVersion: v1\nitems:\n- {{apiVersion: v1, kind: Pod}}\n{items}- 1\nkind: List\n"

    loaded = load_text(text, "f.yaml")

    assert [resource.application.name for resource in loaded.resources if resource.application] == ["good"]
    pod, version, scalar = (finding.text("f.yaml") for finding in loaded.all_findings)
    assert pod == "f.yaml:3: note: v1 Pod skipped"
    assert version.startswith("f.yaml:7: error: spec.sparkVersion: must be text")
    assert scalar.startswith("f.yaml:8: error: holds no object")


def test_an_application_that_stands_twice_in_a_file_is_warned_of() -> None:
    flights = FLIGHTS.read_text()
    elsewhere = flights.replace("  name: flights\n", "  name: flights\n  namespace: other\n")

    (warning,) = texts(f"{flights}\n---\n{elsewhere}\n---\n{flights}")

    assert "warning: application flights stands in line 2 too, and this one wins; give each" in warning


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("", ""),
        ("{apiVersion: v1, kind: Pod}", "v1 Pod skipped; "),
        (
            "{kind: SparkApplication, apiVersion: sparkoperator.k8s.io/v1beta2}",
            "sparkoperator.k8s.io/v1beta2 SparkApplication skipped: it is of another operator. Here it is "
            "apiVersion: headgate.dev/v1alpha1, the script in spec.main.file; ",
        ),
    ],
)
def test_a_file_without_an_application_is_said_to_hold_what_it_holds(
    text: str, instead: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)

    with pytest.raises(InvalidInputError) as refused:
        load_application(path)

    said = f"holds no SparkApplication of headgate.dev/v1alpha1; {instead}give a file that holds one"
    assert str(refused.value) == f"{path}: {said}"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("sparkVersion: 4.0", "must be text, and is read as the number 4; write it in quotes"),
        ("queries: [{name: on}]", "must be text, and is read as true; write it in quotes"),
        (
            "queries: [{name: a b}]",
            "'a b' has a comma, a slash or a blank, as no name may: Name that the job gives",
        ),
        ("queries: [{name: ''}]", "is empty; give it a value"),
        ("executor: {instances: '3'}", "must be a whole number, not the text '3'; write it without quotes"),
        ("executor: {instances: many}", "must be a whole number, not the text 'many'"),
        ("suspend: 'true'", "must be true or false, not the text 'true'; write it without quotes"),
        ("suspend: 'yes'", "must be true or false, not the text 'yes'"),
    ],
)
def test_a_value_of_another_type_is_told_how_to_write_it(spec: str, said: str) -> None:
    head = "apiVersion: headgate.dev/v1alpha1\nkind: SparkApplication\nmetadata: {name: a}\n"

    (found,) = texts(f"{head}spec:\n  main: {{file: a.py}}\n  {spec}\n")

    assert found.partition(": error: ")[2].partition(": ")[2].startswith(said)
    assert found.endswith("quotes") is said.endswith("quotes")


def test_the_one_application_of_a_file_is_returned() -> None:
    assert load_application(FLIGHTS).name == "flights"


def test_a_refused_file_is_an_error_that_holds_every_finding() -> None:
    with pytest.raises(InvalidInputError) as refused:
        load_application(BROKEN)

    assert str(refused.value).count("broken.yaml:") == len([line for line in EXPECTED if ": error: " in line])


def test_a_file_of_two_applications_is_no_single_one(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(f"{FLIGHTS.read_text()}\n---\n{FLIGHTS.read_text()}")

    with pytest.raises(
        InvalidInputError, match="holds 2 resources of kind SparkApplication; give a file with one"
    ):
        load_application(path)


def test_a_file_that_is_not_there_is_an_error_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory; give the path of a resource file"):
        load_file(tmp_path / "none.yaml")


def warnings(manifest: dict[str, Any]) -> list[str]:
    loaded = load_text(yaml.safe_dump(manifest))
    assert not loaded.is_refused
    return [
        f"{found.path}: {found.message}"
        for found in loaded.all_findings
        if found.severity is Severity.WARNING
    ]


def flights_with(*, stop: str = "2m", drift: str = "1h", **checkpoint: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(FLIGHTS.read_text())
    manifest["spec"]["stop"]["gracePeriod"] = stop
    query = manifest["spec"]["queries"][0]
    query["checkpoint"] |= checkpoint
    query["sources"][1]["alignment"]["maxDrift"] = drift
    return manifest


def live_so(batch: str) -> dict[str, Any]:
    manifest = flights_with()
    query = manifest["spec"]["queries"][0]
    query["live"] = {"mode": "RealTime", "batch": batch}
    for source in query["sources"]:
        source.pop("rateLimit", None)
        source.pop("alignment", None)
    return manifest


def paused(annotation: str) -> dict[str, Any]:
    manifest = flights_with()
    manifest["metadata"]["annotations"] = {"headgate.dev/paused": annotation}
    return manifest


@pytest.mark.parametrize(
    "manifest",
    [flights_with(), flights_with(interval="10s"), live_so(batch="2m")],
    ids=["", "interval", "live"],
)
def test_the_example_gives_no_warning(manifest: dict[str, Any]) -> None:
    assert warnings(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (flights_with(stop="1m59s"), "checkpoint: stop.gracePeriod is 1m59s, but a batch may take up to 2m"),
        (flights_with(stop="9h", intervalDuringBacklog="0s"), "as long as the backlog takes"),
        (
            live_so(batch="2m1s"),
            "live: stop.gracePeriod is 2m, but a batch may take 2m1s in real-time mode, since live.batch is so long",
        ),
        (
            flights_with(interval="50ms"),
            "checkpoint.interval: the trigger base of 100ms holds instead of 50ms",
        ),
        (
            flights_with(drift="2h"),
            "sources[weather].alignment.maxDrift: group air also has a member with maxDrift 1h",
        ),
        (
            flights_with(interval="40s"),
            "sources[flights].rateLimit: live, batches are 40s apart, but only 10s of the rate are saved up "
            "meanwhile: at most 12,500 of the 50,000 records per second are read. Set maxBurst to 40s for",
        ),
        (flights_with(minPause="20s"), "at most 25,000 of the 50,000 records per second are read"),
        (
            paused("delays/flights, delay/flights"),
            "metadata.annotations[headgate.dev/paused]: delay/flights pauses nothing: there is no query delay; the "
            "resource lists delays",
        ),
        (
            paused("delays/flihgts"),
            "delays/flihgts pauses nothing: query delays has no source flihgts; the resource lists flights, weather",
        ),
        (paused("flights,delays/weather"), "flights pauses nothing; write query/source, separated by commas"),
        (paused("a/," * 87_000), "a/ pauses nothing: there is no query a; the resource lists delays"),
    ],
)
def test_what_is_allowed_but_seldom_meant_is_a_warning(manifest: dict[str, Any], said: str) -> None:
    (found,) = warnings(manifest)

    assert said in found


def test_of_thousands_of_pauses_that_pause_nothing_some_are_warnings() -> None:
    found = warnings(paused(",".join(f"q{number}/" for number in range(40_000))))

    assert len(found) == MOST_IN_VAIN


def test_a_jar_as_the_script_is_a_warning() -> None:
    manifest = flights_with()
    manifest["spec"]["main"]["file"] = "local:///opt/app/flights.jar"
    (found,) = warnings(manifest)
    assert "spec.main.file: names a jar, but drivers run a Python script" in found


def test_a_property_that_the_query_refuses_is_a_warning() -> None:
    manifest = flights_with()
    manifest["spec"]["sparkConf"] = {"spark.headgate.interval": "5", "spark.sql.shuffle.partitions": "64"}
    manifest["spec"]["duringBacklog"] = {"sparkConf": {"spark.headgate.queries.delays.intervall": "5s"}}
    of_one, of_all = sorted(warnings(manifest))
    assert (
        "spec.sparkConf[spark.headgate.interval]: the query would fail at its start: 5 has no unit" in of_all
    )
    assert "did you mean spark.headgate.queries.delays.interval?" in of_one


def test_a_property_is_named_whole_whatever_is_in_its_name() -> None:
    manifest = flights_with()
    manifest["spec"]["sparkConf"] = {"spark.headgate.live: mode": "RealTime"}
    (found,) = warnings(manifest)
    assert found.partition(": the query would")[0].endswith("spec.sparkConf[spark.headgate.live: mode]")


def test_a_source_alone_in_its_group_is_a_warning() -> None:
    manifest = flights_with()
    manifest["spec"]["queries"][0]["sources"][1]["alignment"]["group"] = "aire"

    assert [line for line in warnings(manifest) if "group aire has no other source" in line]


def test_a_backlog_interval_that_can_never_hold_is_a_warning() -> None:
    manifest = flights_with()
    del manifest["spec"]["queries"][0]["sources"][0]["backlog"]

    assert [line for line in warnings(manifest) if "no source of the query says what its backlog is" in line]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(data=st.data())
def test_no_damage_to_a_resource_is_answered_with_a_traceback(data: st.DataObject) -> None:
    manifest = copy.deepcopy(yaml.safe_load(FLIGHTS.read_text()))
    owner, key = data.draw(st.sampled_from(places(manifest)))
    owner[key] = data.draw(JSON)

    loaded = load_text(yaml.safe_dump(manifest, allow_unicode=True))

    assert all(finding.message for finding in loaded.all_findings)


@settings(deadline=None)
@given(cut=st.integers(0, FLIGHTS.stat().st_size), junk=st.binary(max_size=8))
def test_no_cut_or_junk_in_a_file_is_answered_with_a_traceback(cut: int, junk: bytes) -> None:
    raw = FLIGHTS.read_bytes()

    load_bytes(raw[:cut] + junk, "f.yaml")
    load_bytes(raw[:cut] + junk + raw[cut:], "f.yaml")


def places(value: Any) -> list[tuple[Any, Any]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for key, child in list(children) for place in [(value, key), *places(child)]]
