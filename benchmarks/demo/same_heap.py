"""The demo's job in the heap in which Spark's default gets through, governed and by that default, in turns.

What `make demo` shows is a governed run in a quarter of that heap, which therefore makes several batches where the
default makes one. Here both make one, and only who decides about it differs: what a governed run takes longer there
than here is the price of bounded batches in the small heap. Run as `python -m benchmarks.demo.same_heap`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from benchmarks.demo.__main__ import TARGET, compared, evaluate
from benchmarks.demo.input import Input, read_input
from benchmarks.demo.outputs import Row, read_output
from benchmarks.demo.recordings import prepare
from benchmarks.demo.results import Result
from benchmarks.demo.runs import LARGER_HEAP, RESOURCE, Resource, Run, governed, plain, read_resource
from benchmarks.demo.session import RunFailedError, record
from benchmarks.local.statistics import rotated

DEFAULT, GOVERNED = "plain_uncapped", "governed"
REPORT = TARGET / "same-heap.json"


def main() -> None:
    """Make the pairs of runs; write how many seconds each took to catch up, by which it was, in their order."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.demo.same_heap", description="The demo in one heap."
    )
    parser.add_argument("--pairs", type=int, default=3, help="of runs; default 3")
    pairs = parser.parse_args().pairs
    resource = read_resource(RESOURCE)
    prepare(resource.data)
    source = read_input(resource.data, resource.arguments)
    runs = (plain(resource, DEFAULT, LARGER_HEAP), governed_in(LARGER_HEAP, resource))
    found = [pair(rotated(runs, number), source) for number in range(pairs)]
    seconds = {run.key: [one[run.key].measures.catch_up_seconds for one in found] for run in runs}
    REPORT.write_text(json.dumps({"catch_up_seconds": seconds}, indent=2) + "\n")
    print(f"{REPORT}: {seconds}")


def pair(runs: Sequence[Run], source: Input) -> Mapping[str, Result]:
    """Make a run of each. Raises RunFailedError where one fails, or their results differ."""
    results: dict[str, Result] = {}
    outputs: dict[str, list[Row]] = {}
    for run in runs:
        recorded = record(run, source.backlog, lambda *_: None)
        outputs[run.key] = read_output(run.output)
        results[run.key] = evaluate(recorded, source, len(outputs[run.key]))
    if differences := compared(results, outputs):
        raise RunFailedError("\n".join(["the results of the runs differ:", *differences]))
    return results


def governed_in(heap: str, resource: Resource) -> Run:
    """Return the governed run in another heap, by a resource of its own beside that of the demo."""
    directory = resource.directory.with_name("governed-in-larger-heap")
    manifest: dict[str, Any] = yaml.safe_load(
        json.dumps(resource.manifest).replace(str(resource.directory), str(directory))
    )
    spec = manifest["spec"]
    spec["driver"]["memory"] = heap
    spec["main"]["file"] = str(resource.script.resolve())
    for query in spec["queries"]:
        del query["batch"]["maxRecords"]
        query["checkpoint"]["intervalDuringBacklog"] = "0s"
    file = TARGET / f"{directory.name}.yaml"
    file.write_text(yaml.safe_dump(manifest))
    return replace(governed(file, read_resource(file)), title=f"governed, {heap}")


if __name__ == "__main__":
    main()
