"""How often Prometheus scrapes, and over which time a rate is taken then."""

from __future__ import annotations

import pytest

from headgate.adapters.metrics.prometheus.fetch import arrivals
from headgate.adapters.metrics.prometheus.poller import ScrapePace
from headgate.adapters.metrics.prometheus.targets import Pod, Run, Target
from headgate.key import Key


def scraped(*times: float) -> dict[Pod, Target]:
    pods = (Pod("team", f"a{number}-driver-1") for number in range(len(times)))
    return {
        pod: Target(Run(Key("team", "a"), 1), at, "drivers", "10.0.0.1:8090", "metrics", at)
        for pod, at in zip(pods, times, strict=True)
    }


@pytest.mark.parametrize(
    ("interval", "window"), [(5, 60), (15, 60), (30, 120), (60, 240), (120, 480), (3600, 1200)]
)
def test_a_rate_is_taken_over_four_scrapes_and_a_minute_at_least(interval: float, window: int) -> None:
    pace = ScrapePace().following(scraped(100.0), scraped(100.0 + interval))
    assert pace.window_seconds == window
    assert f"[{window}s]" in arrivals(["a"], "", pace.window_seconds)


def test_between_two_scrapes_and_before_any_the_pace_stays_as_it_was() -> None:
    assert (ScrapePace().seconds, ScrapePace().window_seconds) == (None, 60)
    assert ScrapePace().following({}, scraped(100.0)) == ScrapePace()
    assert ScrapePace(60.0).following(scraped(100.0), scraped(100.0)) == ScrapePace(60.0)


def test_one_driver_does_not_say_how_often_all_are_scraped() -> None:
    before, now = scraped(100.0, 101.0, 102.0, 103.0), scraped(115.0, 116.0, 117.0, 9999.0)
    assert ScrapePace().following(before, now) == ScrapePace(15.0)
    assert ScrapePace(60.0).following(before, scraped(90.0, 91.0, 92.0, 93.0)) == ScrapePace(60.0)
