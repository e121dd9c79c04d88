"""`make bench-operator`: measure, and write each figure with its goal to `benchmarks/results/operator.json`.

    python -m benchmarks.operator [--only creation,failover] [--rounds 3]

Rows are written after each scenario, and those of the others stay. `--share 0.02` tries everything out with a
fiftieth of the applications, and writes nothing. Exit code 0: everything was measured, whether or not it reached
its goal; 1: something could not be measured; 2: usage.

Control plane and Prometheus have machines of their own elsewhere. Here they share two cores with what is measured, so
they are given memory in place of time: `GOGC` is 400 unless it is set.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.local.results import OPERATOR, Origin
from benchmarks.operator.catalog import SCENARIOS
from benchmarks.operator.scenario import Bench
from benchmarks.runner import Suite, share, tell
from support.go_tools import MODULES

RESULTS = Path("benchmarks/results/operator.json")
BUILD = Path("build/bench/operator")
PACKAGES = ("headgate", "kopf", "kubernetes", "aiohttp", "msgspec", "pydantic", "prometheus-api-client")


COLLECTED_AT = "400"
"""By how many per cent the memory of a Go program grows until it is collected. At the usual 100 the API server of ten
thousand applications marks its heap every fifteen seconds, with a core for one of them."""


def main() -> int:
    """Run the command; returns its exit code."""
    os.environ.setdefault("GOGC", COLLECTED_AT)
    options = arguments()
    ready = wait_for_enter if options.pause else go_on
    bench = Bench(BUILD, BUILD, options.rounds, tell, share=options.share, ready=ready)
    return SUITE.run(options.only, bench, options.results if options.share == 1 else None)


def go_on(what: str) -> None:
    """Measure without a pause."""
    tell(what)


def wait_for_enter(what: str) -> None:
    """Wait for somebody who sees to a quiet machine."""
    tell(f"{what}: all is prepared; Enter begins")
    sys.stdin.readline()


def versions() -> dict[str, str]:
    """Return what is measured with."""
    found = {name: version(name) for name in PACKAGES}
    return found | {"python": platform.python_version()} | go_versions()


def go_versions() -> dict[str, str]:
    """Return the versions of the programs that are built for the tests."""
    wanted = {"k8s.io/kubernetes": "kubernetes-server", "github.com/prometheus/prometheus": "prometheus"}
    texts = [(MODULES / name / "go.mod").read_text(encoding="utf-8") for name in ("kube", "prometheus")]
    lines = [line.removeprefix("require").split() for text in texts for line in text.splitlines()]
    return {wanted[words[0]]: words[1] for words in lines if len(words) > 1 and words[0] in wanted}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = SUITE.parser("Measure the operator.", RESULTS, of="what is short")
    parser.add_argument(
        "--share", type=share, default=1.0, help="of the applications; default 1, all of them"
    )
    parser.add_argument("--pause", action="store_true", help="wait for Enter before each measurement")
    return parser.parse_args()


SUITE = Suite(
    "benchmarks.operator",
    SCENARIOS,
    Origin("make bench-operator", versions, OPERATOR),
)

if __name__ == "__main__":
    sys.exit(main())
