"""`headgate explain` says of each setting whose word holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.adapters.address import Address
from headgate.cli.local.session import SettingsOfTheJob
from headgate.cli.view import Moment
from support.command_line import Headgate
from support.http_server import Handler, serving

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights.yaml"
PAGE = """headgate_query_active{query="delays"} 1
# TYPE headgate_setting_info gauge
headgate_setting_info{query="delays",source="",setting="minPause",origin="option"} 1
headgate_setting_info{query="delays",source="flights",setting="alignment.group",origin="property"} 1
"""


@pytest.fixture
def driver() -> Iterator[str]:
    """The address of a driver's metrics."""

    class Page(Handler):
        def do_GET(self) -> None:
            if self.path == "/ssh":
                self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
                return
            self.send_response(200)
            self.end_headers()
            page = {
                "/jobs": "<html></html>",
                "/early": "# TYPE headgate_query_active gauge\n",
                "/connect": BY_CONNECT,
                "/bare": PAGE.replace('setting="', 'sets="'),
            }.get(self.path, PAGE)
            self.wfile.write(page.encode() * (9000 if self.path == "/large" else 1))

    with serving(Page) as server:
        yield f"http://127.0.0.1:{server.server_port}/metrics"


BY_CONNECT = PAGE + 'headgate_query_owner{query="delays",user="ada",session="5f0c"} 1\n'


def words(text: str) -> str:
    """Return what is said, however it is wrapped."""
    return " ".join(text.partition("whose word holds")[2].split())


@pytest.fixture
def with_property(tmp_path: Path) -> Path:
    """The example, with a property beside what it declares."""
    file = tmp_path / "app.yaml"
    said = '    spark.headgate.batch.maxGrowth: "2"\n    spark.headgate.interval: 9s\n'
    file.write_text(FLIGHTS.read_text().replace("  sparkConf:\n", "  sparkConf:\n" + said, 1))
    return file


def test_a_resource_and_its_properties_are_told_apart(headgate: Headgate, with_property: Path) -> None:
    ended = headgate("explain", with_property)
    assert ended.code == 0, ended.err
    assert "batch.maxGrowth: property spark.headgate.batch.maxGrowth;" in words(ended.out)
    assert "interval, intervalDuringBacklog: document" in words(ended.out), (
        "what the resource declares holds against a property"
    )
    assert "all others: default, unless an option of the job says it" in words(ended.out)


def test_the_driver_tells_of_options(headgate: Headgate, driver: str) -> None:
    said = words(headgate("explain", FLIGHTS, "--metrics", driver).out)
    assert "minPause: option" in said
    assert "alignment.group: property" in said
    assert "unless" not in said


def test_a_job_without_a_resource_is_told_of_by_its_driver_alone(headgate: Headgate, driver: str) -> None:
    ended = headgate("explain", "--metrics", driver)
    assert "query delays: minPause: option" in words(ended.out)
    assert "source flights of query delays: alignment.group: property" in words(ended.out)


@pytest.mark.parametrize("resource", [(), (FLIGHTS,)])
def test_whose_options_they_are_is_told_of_a_query_that_came_through_spark_connect(
    headgate: Headgate, driver: str, resource: tuple[Path, ...]
) -> None:
    said = words(headgate("explain", *resource, "--metrics", driver.replace("/metrics", "/connect")).out)
    assert "query delays (owner ada, Spark Connect):" in said
    assert "source flights of query delays (owner ada, Spark Connect): " in said


@pytest.mark.parametrize(
    ("url", "code"),
    [("http://127.0.0.1:1/metrics", 1), ("file:///etc/passwd", 2), ("localhost:8090", 2), ("http://a:b/", 2)],
)
def test_an_address_without_metrics_is_named_and_a_wrong_one_ends_with_2(
    headgate: Headgate, url: str, code: int
) -> None:
    ended = headgate("explain", FLIGHTS, "--metrics", url)
    assert ended.code == code
    assert f"--metrics {url}" in ended.err
    assert "urlopen" not in ended.err


def test_a_driver_that_is_gone_is_told_in_plain_words(headgate: Headgate) -> None:
    said = headgate("explain", "--metrics", "http://127.0.0.1:1/metrics").err
    assert "no metrics are read there (Connection refused); see that the driver runs" in said


def test_a_job_that_has_not_started_a_query_is_not_one_that_says_nothing(
    headgate: Headgate, driver: str
) -> None:
    ended = headgate("explain", FLIGHTS, "--metrics", driver.replace("/metrics", "/early"))
    assert (ended.code, ended.out) == (1, "")
    assert "the job has started no query yet, so nobody knows what it says" in " ".join(ended.err.split())


def test_a_page_of_another_program_is_not_a_job_that_says_nothing(headgate: Headgate, driver: str) -> None:
    ended = headgate("explain", "--metrics", driver.replace("/metrics", "/jobs"))
    assert (ended.code, ended.out) == (1, "")
    assert "its page has no metric of Headgate" in ended.err


@pytest.mark.parametrize("path", ["/ssh", "/bare"])
def test_who_is_no_driver_is_told_in_a_sentence(headgate: Headgate, driver: str, path: str) -> None:
    ended = headgate("explain", "--metrics", driver.replace("/metrics", path))
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert "no metrics are read there" in ended.err


def test_a_page_that_no_driver_of_ours_would_serve_is_not_read_to_its_end(
    headgate: Headgate, driver: str
) -> None:
    ended = headgate("explain", FLIGHTS, "--metrics", driver.replace("/metrics", "/large"))
    assert (ended.code, "it is larger than 1,048,576 bytes" in " ".join(ended.err.split())) == (1, True)


def test_headgate_local_goes_on_while_the_driver_does_not_tell() -> None:
    moment = SimpleNamespace(
        pid=1,
        is_measured=True,
        status=SimpleNamespace(acknowledged_generation=1),
        queries=[(SimpleNamespace(name="delays"), SimpleNamespace(active=True))],
    )
    assert SettingsOfTheJob(lambda: Address("127.0.0.1", 1)).news(cast(Moment, moment)) is None
