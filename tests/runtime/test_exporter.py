"""The exporter: what a real scrape looks like to Prometheus' own checks, and what it says of what is not known."""

import errno
import subprocess

import pytest

from headgate_contract import metrics as m
from headgate_spark.exporter.server import first_free
from support.driver import driver, recording
from support.go_tools import go_tool


@pytest.fixture(scope="module")
def promtool():
    return go_tool("promtool")


@pytest.mark.spark
def test_a_real_scrape_passes_promtool_and_names_what_the_contract_names(tmp_path, promtool):
    source = recording(tmp_path / "source", 5000)
    with driver(tmp_path, "copy.py", source, tmp_path / "out", tmp_path / "ck") as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v == 5000)
        text = running.scrape()
    command = [promtool, "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    ours = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE headgate_")}
    assert ours <= {metric.name for metric in m.ALL}
    assert m.QUERY_BATCH_DURATION.name in ours
    # No control document, no watermark in the job: unknown is absent, never 0.
    assert m.CONTROL_GENERATION.name not in ours
    assert m.SOURCE_WATERMARK_LAG.name not in ours


def taken_below(free):
    def bind(port):
        if port < free:
            raise OSError(errno.EADDRINUSE, "taken")
        return port

    return bind


def test_the_next_free_port_is_found():
    assert first_free(8090, taken_below(8093)) == 8093


def test_ports_that_are_all_taken_are_told_with_a_remedy():
    with pytest.raises(OSError, match=r"8090 to 8189 are all taken; give another one"):
        first_free(8090, taken_below(10**6))


def test_an_address_that_is_not_ours_is_not_searched_for():
    def refuse(port):
        raise OSError(errno.EADDRNOTAVAIL, "not here")

    with pytest.raises(OSError, match="not here"):
        first_free(8090, refuse)
