"""What a job says by options and properties is read whole, or refused with the names, and the one that was meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate_contract.settings.said import Origin, in_options, in_properties, is_option
from headgate_contract.settings.table import OF_THE_OPERATOR, OWN_OPTIONS, PROCESS, TABLE, Scope
from headgate_spark.engine.settings import OfJob, SettingsError

SHIM = Path(__file__).parents[2] / "spark_jobs/shim/src/dev/headgate/spark"


@pytest.mark.parametrize(
    ("name", "scope", "told"),
    [
        ("headgate.intervall", Scope.QUERY, "did you mean headgate.interval?"),
        (
            "headgate.rateLimit.recordPerSecond",
            Scope.SOURCE,
            "did you mean headgate.rateLimit.recordsPerSecond?",
        ),
        ("headgate.recordsPerSecond", Scope.SOURCE, "did you mean headgate.rateLimit.recordsPerSecond?"),
        ("headgate.interval", Scope.SOURCE, "is a setting of the query; give it to writeStream"),
        ("headgate.paused", Scope.QUERY, "is a setting of a source; give it to readStream"),
        ("headgate.nothingLikeIt", Scope.QUERY, "remove it, or use one of headgate.interval, "),
        *((f"headgate.{name}", Scope.SOURCE, "judged by the operator") for name in OF_THE_OPERATOR),
    ],
)
def test_an_option_that_is_none_here_is_named_with_what_was_meant(name: str, scope: Scope, told: str) -> None:
    given, problems = in_options({name: "1s"}, scope)
    assert not given
    (problem,) = problems
    assert str(problem) == f"option {name}: {problem.what}"
    assert told in problem.what


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("spark.headgate.intervall", "did you mean spark.headgate.interval?"),
        ("spark.headgate.contrl", "did you mean spark.headgate.control?"),
        ("spark.headgate.queries.q.minPaus", "did you mean spark.headgate.queries.q.minPause?"),
        (
            "spark.headgate.queries.q.sources.s.pausd",
            "did you mean spark.headgate.queries.q.sources.s.paused?",
        ),
        ("spark.headgate.queries.q.paused", "write spark.headgate.queries.q.sources.<source>.paused"),
        ("spark.headgate.after", "write spark.headgate.queries.<query>.sources.<source>.after"),
        (
            "spark.headgate.queries.q.sources.s.interval",
            "is a setting of the query; write spark.headgate.queries.q.interval",
        ),
        (
            "spark.headgate.queries.q.sources.my.after.backlog.reentry.dwell",
            "is a setting of the query; write spark.headgate.queries.q.backlog.reentry.dwell",
        ),
    ],
)
def test_a_property_that_is_none_is_named_with_what_was_meant(key: str, told: str) -> None:
    found = in_properties({key: "1s"}, "q")
    assert (found.query, found.sources, found.every_source) == ({}, {}, {})
    (problem,) = found.problems
    assert problem.name == key
    assert told in problem.what
    assert str(problem) == f"property {key}: {problem.what}"


def test_properties_of_other_queries_of_the_driver_and_of_spark_are_left_alone() -> None:
    others = {
        "spark.headgate.queries.other.intervall": "1s",
        "spark.headgate.queries.q.eu.interval": "1s",
        "spark.headgate.queries.q.eu.sources.s.paused": "true",
        "spark.sql.shuffle.partitions": "1",
        **{f"spark.headgate.{name}": "x" for name in PROCESS},
    }
    found = in_properties(others, "q")
    assert (found.query, found.sources, found.every_source, found.problems) == ({}, {}, {}, ())


def test_names_of_queries_and_sources_may_have_dots() -> None:
    found = in_properties({"spark.headgate.queries.q.eu.sources.my.after.paused": "true"}, "q.eu")
    assert found.sources["my.after"]["paused"].value is True


def test_an_option_holds_against_a_property_and_one_of_a_query_against_one_of_all() -> None:
    job = OfJob(
        {"headgate.interval": "1s"},
        {
            "spark.headgate.interval": "2s",
            "spark.headgate.minPause": "3s",
            "spark.headgate.queries.q.interval": "4s",
            "spark.headgate.queries.q.minPause": "5s",
            "spark.headgate.rateLimit.recordsPerSecond": "6",
            "spark.headgate.rateLimit.duringBacklog": "Unlimited",
        },
    ).read("q", {"s": {"HEADGATE.ratelimit.duringbacklog.recordsPerSecond": "7"}})
    assert {name: (said.text, said.origin) for name, said in job.query.items()} == {
        "interval": ("1s", Origin.OPTION),
        "minPause": ("5s", Origin.PROPERTY),
    }
    assert {name: said.text for name, said in job.sources["s"].items()} == {
        "rateLimit.recordsPerSecond": "6",
        "rateLimit.duringBacklog.recordsPerSecond": "7",  # in the place of the property's Unlimited
    }


def test_a_setting_that_is_given_under_two_names_is_refused() -> None:
    _, problems = in_options(
        {"headgate.alignment.group": "a", "scan.watermark.alignment.group": "b"}, Scope.SOURCE
    )
    assert list(map(str, problems)) == [
        "option scan.watermark.alignment.group: option headgate.alignment.group says it too; leave one of them out"
    ]


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        OfJob({"headgate.interval": "5"}, {"spark.headgate.minPaus": "1s"}).read(
            "q", {"s": {"headgate.paused": "yes"}, "t": {"headgate.alignment.maxDrift": "1s"}}
        )
    assert str(refused.value) == (
        "query q: option headgate.interval: 5 has no unit; write for example 250ms, 5s, 2m or 1h30m; "
        "property spark.headgate.minPaus: unknown setting; did you mean spark.headgate.minPause?; "
        "source s: option headgate.paused: must be true or false, not the text 'yes'; "
        "source t: option headgate.alignment.maxDrift: alignment.group is required: Name of the group"
    )


def test_sources_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(SettingsError, match="a after b after a"):
        OfJob().read("q", {"a": {"headgate.after": "b"}, "b": {"headgate.after": "a"}})


def test_the_shim_takes_out_what_is_read_here_and_nothing_else() -> None:
    java = (SHIM / "JobSettings.java").read_text(encoding="utf-8")
    in_java = set(re.findall(r'"(scan\.[a-z.-]+)"', java))
    assert in_java == {
        each for setting in TABLE for each in setting.options if not each.startswith("headgate.")
    }
    assert all(is_option(option.upper()) for setting in TABLE for option in setting.options)
    assert not any(is_option(name) for name in ("path", "kafka.bootstrap.servers", *OWN_OPTIONS))
