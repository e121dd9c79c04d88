"""The example for a cluster: its job runs, and its resource speaks of the query and the source that the job has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate.api.load import load_application
from support.containerfile import instructions
from support.driver import driver
from support.go_tools import ROOT

EXAMPLE = ROOT / "examples" / "cluster"


@pytest.mark.spark
def test_the_example_runs_and_is_governed_by_the_names_of_its_resource(tmp_path) -> None:
    data = tmp_path / "readings"
    subprocess.run([sys.executable, EXAMPLE / "record.py", data, "20000"], check=True)
    (query,) = load_application(EXAMPLE / "readings.yaml").spec.queries
    (source,) = query.sources

    with driver(tmp_path / "run", EXAMPLE / "readings.py", data, tmp_path / "checkpoint") as running:
        running.wait_for_metric(
            "headgate_source_processed_records_total",
            lambda value: value == 20_000,
            query=query.name,
            source=source.name,
        )


def test_the_image_of_the_example_holds_what_its_resource_names() -> None:
    spec = load_application(EXAMPLE / "readings.yaml").spec
    said = list(instructions((EXAMPLE / "Containerfile").read_text()))
    copied = [text.split()[0] for word, text in said if word == "COPY" and not text.startswith("--from")]
    targets = [text.split()[-1] for word, text in said if word == "COPY"]

    assert [name for name in copied if not (EXAMPLE / name).exists()] == []
    assert spec.main.file == "local:///opt/app/readings.py"
    assert spec.main.arguments[0] in targets
