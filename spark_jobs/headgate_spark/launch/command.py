"""`headgate-run [--control FILE] app.py args…`: an unmodified PySpark script, governed.

Python is the parent process and runs the script itself, so that a signal reaches Python: with `spark-submit` it
would reach the JVM, which stops in mid-batch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from headgate_spark.engine.shim import jar_path
from headgate_spark.exporter.server import DEFAULT_PORT
from headgate_spark.launch.environment import UnsupportedSessionError, prepare
from headgate_spark.launch.logs import configure
from headgate_spark.launch.runtime import Runtime
from headgate_spark.launch.script import run_script

USAGE_ERROR = 2
CHECKPOINT_IN_USE = 75
"""`EX_TEMPFAIL`: the one failure that another start of the same driver would only repeat."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; ends the process."""
    options = _parser().parse_args(arguments)
    if not options.script.is_file():
        _end(f"{options.script}: no such file; name the PySpark script to run")
    configure()
    try:
        prepare(os.environ, jar=jar_path(), conf=options.conf, properties_file=options.properties_file)
    except (UnsupportedSessionError, FileNotFoundError) as error:
        _end(str(error))
    runtime = Runtime(options.application or options.script.stem, options.control)
    port = runtime.start(options.metrics_port, options.metrics_address)
    if options.announce is not None:
        _announce(options.announce, runtime.application, port)
    code = run_script(options.script, options.arguments)
    runtime.say_what_was_not_seen()
    runtime.end()
    for explanation in runtime.governor.explanations if code != 0 else ():
        print(f"headgate-run: error: {explanation}", file=sys.stderr)  # noqa: T201
    if runtime.governor.checkpoint_in_use is not None and code != 0:
        print(f"headgate-run: error: {runtime.governor.checkpoint_in_use}", file=sys.stderr)  # noqa: T201
        code = CHECKPOINT_IN_USE
    sys.exit(0 if runtime.stopper.asked else code)


def _announce(path: Path, application: str, port: int) -> None:
    members = {"pid": os.getpid(), "metricsPort": port, "application": application}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(members), encoding="utf-8")
    unfinished.replace(path)


def _end(message: str) -> None:
    print(f"headgate-run: error: {message}", file=sys.stderr)  # noqa: T201 -- the command's own voice
    sys.exit(USAGE_ERROR)


def _conf(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headgate-run",
        description="Run an unmodified PySpark script with Headgate's runtime around it.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--control",
        type=Path,
        metavar="FILE",
        help="control document; without it the job runs as it says itself",
    )
    add("--application", metavar="NAME", help="label of the metrics (default: name of the script)")
    add("--metrics-port", type=int, default=DEFAULT_PORT, metavar="N", help="default 8090; 0: any free port")
    add("--metrics-address", default="0.0.0.0", metavar="ADDRESS", help="default: every interface")  # noqa: S104
    add(
        "--announce",
        type=Path,
        metavar="FILE",
        help="write pid and metrics port there once metrics are served",
    )
    add(
        "--conf",
        type=_conf,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Spark conf, as spark-submit's",
    )
    add("--properties-file", type=Path, metavar="FILE", help="Spark properties, as spark-submit's")
    add("script", type=Path, metavar="app.py")
    add("arguments", nargs=argparse.REMAINDER, metavar="args…")
    return parser
