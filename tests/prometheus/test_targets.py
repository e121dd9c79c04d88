from __future__ import annotations

import gc
import json
from collections.abc import Mapping

import pytest

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.targets import (
    Pod,
    Run,
    TargetLabels,
    Targets,
    target_labels,
    targets,
)
from headgate.key import Key

WATCHED = {Key("team", "flights")}
SERVER_NOW, OUR_NOW = 5000.0, 90.0


READ = target_labels


def scraped(seconds_ago: float, pod: str = "flights-driver-1", **labels: str) -> Sample[TargetLabels]:
    found = {"namespace": "team", "pod": pod, "application": "flights", **labels}
    return Sample(READ(json.dumps(found).encode()), (SERVER_NOW, repr(SERVER_NOW - seconds_ago)))


def found(*samples: Sample[TargetLabels]) -> Targets:
    return targets(samples, WATCHED, OUR_NOW)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("flights-driver-1", Run(Key("team", "flights"), 1)),
        ("flights-driver-12", Run(Key("team", "flights"), 12)),
        ("a-driver-1-driver-2", Run(Key("team", "a-driver-1"), 2)),
        ("flights-driver-", None),
        ("flights-driver-x", None),
        ("flights-driver-1-exec-2", None),
        ("flights-driver-²", None),
        ("flights-driver-0", None),
        ("-driver-1", None),
        ("flights-driver-999999999", Run(Key("team", "flights"), 999_999_999)),
        ("flights-driver-" + "1" * 5000, None),
        ("flights", None),
    ],
)
def test_the_name_of_a_pod_tells_the_application_and_the_attempt(name: str, run: Run | None) -> None:
    assert Pod("team", name).run == run


def test_every_name_that_is_given_is_read_back() -> None:
    key = Key("team", "a-driver-1")
    assert Pod.of(key, 7).run == Run(key, 7)


def test_nothing_is_left_of_an_attempt_of_which_nobody_asks_any_more() -> None:
    pod = Pod("team", "flights-driver-20261127")
    assert pod.run == Run(Key("team", "flights"), 20261127)

    assert not [one for one in gc.get_objects() if isinstance(one, Run) and one.attempt == 20261127]


def test_ages_are_differences_on_the_servers_clock() -> None:
    by_pod = found(scraped(12.5)).by_pod
    assert by_pod[Pod("team", "flights-driver-1")].at == OUR_NOW - 12.5


def test_a_scrape_from_the_servers_future_is_of_now() -> None:
    assert found(scraped(-3.0)).by_pod[Pod("team", "flights-driver-1")].at == OUR_NOW


def test_pods_of_others_and_what_is_no_driver_are_left_out() -> None:
    others = (scraped(1, "other-driver-1"), scraped(1, "flights"), scraped(1, namespace="elsewhere"))
    assert found(*others) == Targets(evaluated_at=SERVER_NOW)


def test_series_that_name_no_pod_are_remembered_by_their_application() -> None:
    assert found(scraped(1, pod=""), scraped(1, namespace="")).unplaced == {"flights"}


def test_of_two_scrapes_of_one_driver_the_newer_is_used() -> None:
    old = scraped(20, job="annotations", instance="10.0.0.1:8090", endpoint="")
    new = scraped(5, job="podmonitor", instance="10.0.0.1:8090", endpoint="metrics", container="driver")
    for order in ((old, new), (new, old)):
        target = found(*order).by_pod[Pod("team", "flights-driver-1")]
        assert (target.job, target.at) == ("podmonitor", OUR_NOW - 5)
        assert target.serves(Labels(job="podmonitor", instance="10.0.0.1:8090", endpoint="metrics"))
        assert not target.serves(Labels(job="annotations", instance="10.0.0.1:8090"))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({"cluster": "a"}, {"cluster": "b"}, "cluster: a, b"),
        ({"cluster": "a", "replica": "1"}, {"cluster": "b", "replica": "0"}, "cluster: a, b; replica: 0, 1"),
        ({"team": "x"}, {"job": "again"}, None),
        ({"application": "flights"}, {"application": "trains"}, "application: flights, trains"),
    ],
)
def test_targets_that_contradict_each_other_are_two_drivers(
    one: Mapping[str, str], other: Mapping[str, str], why: str | None
) -> None:
    pod = Pod("team", "flights-driver-1")
    seen = found(scraped(1, **one), scraped(2, **other))
    assert seen.contradictions.get(pod) == why
    assert (pod in seen.by_pod) is (why is None)
