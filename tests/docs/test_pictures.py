"""Pictures of pages: drawn from what was recorded, and the same each time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from docs import dashboard
from docs.pictures import SHOWN, main, pictures
from docs.site import ROOT

from benchmarks.demo import picture

RUN = {
    "title": "governed, 512m",
    "failure": None,
    "caught_up": 20.0,
    "in_sight": [[0, 0], [9.6, 0], [9.6, 7]],
    "heap": [[1, 90]],
}
DEAD = {
    **RUN,
    "title": "Spark's default, 512m",
    "failure": "out of memory",
    "caught_up": None,
    "in_sight": [[0, 0]],
}
DRAWN = dict(pictures())


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_an_image_that_fetches_nothing(name: str) -> None:
    ET.fromstring(DRAWN[name])
    assert "url(http" not in DRAWN[name].replace("http://www.w3.org", "")
    assert DRAWN[name] == dict(pictures())[name]


def test_each_state_is_in_the_picture_of_many_applications() -> None:
    assert [name for name in SHOWN if name not in DRAWN["top"]] == []


def test_each_picture_that_differs_has_a_sentence_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs.pictures.IMAGES", tmp_path)
    main(check=False)
    main(check=True)
    (tmp_path / "top.svg").write_text("of before")
    (tmp_path / "local.svg").unlink()

    with pytest.raises(SystemExit) as ended:
        main(check=True)

    assert str(ended.value).splitlines() == [
        f"error: {tmp_path}/{name}.svg is not what is drawn now; run python -m docs.pictures"
        for name in ("top", "local")
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/local.md", "docs/runbook.md"])
def test_a_page_shows_one(page: str) -> None:
    assert "images/" in (ROOT / page).read_text(encoding="utf-8")


def test_the_picture_of_a_run_has_what_was_recorded_of_it() -> None:
    text = "".join(ET.fromstring(DRAWN["local"]).itertext()).replace("\xa0", " ")
    for said in ("flights-demo", "BACKLOG", "PendingRecords yes", "1.27M", "batches 1"):
        assert said in text, text


def test_the_picture_of_the_demo_says_of_each_run_what_came_of_it() -> None:
    drawn = picture.draw({"runs": {"plain_small": DEAD, "governed": RUN}})
    ET.fromstring(drawn)
    assert "Spark&#x27;s default, 512m: out of memory" in drawn
    assert "governed, 512m: backlog read after 20 s, first results in sight after 10 s" in drawn
    assert drawn.count("<polyline") == 4
    assert drawn.count("<circle") == 2


def panel(kind: str, points: list[list[float]], **defaults: object) -> str:
    """Return a panel of the dashboard with one line."""
    shown = {
        "title": "one",
        "type": kind,
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": "s", "mappings": [], **defaults}},
    }
    return dashboard.drawn(shown, [{"legend": "orders", "points": points}], 100)


def test_a_line_ends_where_nothing_was_scraped_and_begins_anew() -> None:
    assert panel("timeseries", [[0, 1], [10, 2], [20, 3]]).count("<polyline") == 1
    assert panel("timeseries", [[0, 1], [10, 2], [50, 3], [60, 4]]).count("<polyline") == 2


def test_a_number_is_the_last_one() -> None:
    assert ">3 s</text>" in panel("stat", [[0, 1], [10, 3]])


def test_a_band_has_the_colour_and_the_length_of_its_state() -> None:
    states = {"0": {"text": "live", "color": "green"}, "1": {"text": "backlog", "color": "orange"}}
    picture = panel("state-timeline", [[0, 0], [10, 1], [20, 1], [60, 0]], mappings=[{"options": states}])
    green, orange = (dashboard.COLOURS[colour] for colour in ("green", "orange"))
    assert [part.split('"')[0] for part in picture.split('fill="')[1:]] == [green, orange, green]


def test_a_panel_is_shown_where_its_expressions_found_something() -> None:
    recorded = {"seconds": 60, "panels": {panel.title: [] for row in dashboard.ROWS for panel in row.panels}}
    recorded["panels"]["Watermark lag"] = [{"legend": "orders", "points": [[0, 1], [10, 2]]}]
    picture = dashboard.draw(recorded)
    assert "Watermark lag" in picture
    assert "Pending records" not in picture
    assert "What is in force?" not in picture
