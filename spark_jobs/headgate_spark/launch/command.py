"""`headgate-run [--control FILE] app.py args…`: an unmodified PySpark script, governed.

Python is the parent process and runs the script itself, so that a signal reaches Python: with `spark-submit` it
would reach the JVM, which stops in mid-batch.
"""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import structlog

from headgate_contract.exit_codes import ERROR, ExitCode
from headgate_contract.handover import EXECUTOR_TEMPLATE, SPARK_PROPERTIES
from headgate_contract.listening import every_address
from headgate_spark import __version__
from headgate_spark.engine.shim import ShimError, jar_path
from headgate_spark.exporter.server import DEFAULT_PORT
from headgate_spark.launch.announcement import Announcement
from headgate_spark.launch.environment import UnsupportedSessionError, prepare, written_down
from headgate_spark.launch.logs import configure
from headgate_spark.launch.runtime import Runtime
from headgate_spark.launch.script import INTERRUPTED, run_script

log = structlog.get_logger("headgate")

NO_QUERY = "it had started no streaming query"
LARGEST_PORT = 65_535
USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; ends the process."""
    try:
        _run(_parser().parse_args(arguments))
    except KeyboardInterrupt:  # before anything was there to be stopped in order
        sys.exit(INTERRUPTED)


def _run(options: argparse.Namespace) -> NoReturn:
    _require_files(options)
    configure()
    try:
        properties_file = _settled(options.properties_file) or written_down(os.environ, SPARK_PROPERTIES)
        conf = [*options.conf, *_executor_template()]
        prepare(os.environ, jar=jar_path(), conf=conf, properties_file=properties_file)
    except (UnsupportedSessionError, ShimError) as error:
        _end(str(error), ExitCode.INVALID_SETUP)
    runtime = Runtime(options.application or options.script.stem, _settled(options.control))
    announcement = Announcement(_settled(options.announce), runtime.application, _start(runtime, options))
    try:
        announcement.write()
    except OSError as error:
        _end(f"--announce {options.announce}: {error.strerror}; give the path of a file that can be written")
    with runtime.stopper.script():
        code = run_script(options.script, options.arguments)
    runtime.stopper.settle()
    atexit.register(
        _say_if_nothing_was_governed, runtime, announcement
    )  # threads of the script may still go on
    runtime.end()
    if runtime.governor.unread:
        _note(announcement, "; ".join(runtime.governor.unread))
    for explanation in runtime.governor.explanations if code != 0 else ():
        print(f"{ERROR}{explanation}", file=sys.stderr)  # noqa: T201
    if runtime.governor.checkpoint_in_use is not None and code != 0:
        print(f"{ERROR}{runtime.governor.checkpoint_in_use}", file=sys.stderr)  # noqa: T201
        code = ExitCode.CHECKPOINT_IN_USE
    if runtime.governor.gave_up or (code != 0 and runtime.governor.too_large and not runtime.stopper.asked):
        for found in runtime.governor.too_large.values():
            print(f"{ERROR}{found.message}", file=sys.stderr)  # noqa: T201
        sys.exit(ExitCode.BATCH_TOO_LARGE)
    if code != 0 and runtime.governor.unnoted_memory and not runtime.stopper.asked:
        print(f"{ERROR}{out_of_memory(runtime.governor.unnoted_memory)}", file=sys.stderr)  # noqa: T201
        sys.exit(ExitCode.JVM_OUT_OF_MEMORY)
    if runtime.stopper.asked and runtime.stopper.unfinished:
        print(f"{ERROR}{runtime.stopper.unfinished.message}", file=sys.stderr)  # noqa: T201
        sys.exit(ExitCode.UNFINISHED)
    sys.exit(0 if runtime.stopper.asked else code)


def out_of_memory(queries: Iterable[str]) -> str:
    """Return what has happened to a JVM that nobody could note, and what helps."""
    return (
        f"the driver's JVM has died for want of memory, and took {', '.join(sorted(queries))} with it; give it more "
        "(driver.memory). If it dies of the same batch again, the driver ends with exit code 76"
    )


def _require_files(options: argparse.Namespace) -> None:
    """End with a usage error for a path that can mean nothing good."""
    if not options.script.is_file():
        _end(f"{options.script}: no such file; name the PySpark script to run")
    if not os.access(options.script, os.R_OK):
        _end(f"{options.script}: may not be read; see to its rights")
    for option, file in (("--control", options.control), ("--announce", options.announce)):
        if file is not None and file.exists() and not file.is_file():
            _end(f"{option} {file}: is a folder or a device; give the path of a file")
    if options.properties_file is not None:
        if not options.properties_file.is_file():
            _end(f"--properties-file {options.properties_file}: no such file")
        if SPARK_PROPERTIES in os.environ:
            _end(f"--properties-file: {SPARK_PROPERTIES} is in the environment too; leave one of them out")


def _executor_template() -> Iterator[str]:
    """Yield the property by which Spark finds the executors' pod that was handed over, if one was."""
    if (file := written_down(os.environ, EXECUTOR_TEMPLATE)) is not None:
        yield f"spark.kubernetes.executor.podTemplateFile={file}"


def _start(runtime: Runtime, options: argparse.Namespace) -> int:
    port, address = options.metrics_port, options.metrics_address or every_address()
    try:
        return runtime.start(port, address)
    except (OSError, OverflowError) as error:  # the second: no port is left after those that are taken
        reason = error.strerror if isinstance(error, OSError) else error
        _end(
            f"metrics cannot be served at {address}, port {port}: {reason}; "
            "give others with --metrics-address and --metrics-port"
        )


def _say_if_nothing_was_governed(runtime: Runtime, announcement: Announcement) -> None:
    if not runtime.governor.has_seen_a_query and not runtime.stopper.asked:
        log.warning("the script started no streaming query; there was nothing to govern")
        _note(announcement, NO_QUERY)


def _note(announcement: Announcement, note: str) -> None:
    """Say what is to be known of an end, which may be a good one or a bad one."""
    with suppress(OSError):  # it is in the log
        announcement.write(note=note)


def _end(message: str, code: int = USAGE_ERROR) -> NoReturn:
    print(f"{ERROR}{message}", file=sys.stderr)  # noqa: T201 -- the command's own voice
    sys.exit(code)


def _settled(path: Path | None) -> Path | None:
    """Return a path that stays what it is when the script changes its working directory."""
    try:
        return None if path is None else path.absolute()
    except FileNotFoundError:  # the working directory is gone, and nothing can be in it
        return path


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to {LARGEST_PORT}")
    return int(text)


def _conf(text: str) -> str:
    if text.find("=") < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headgate-run",
        usage="headgate-run [options] app.py args…",
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
    add(
        "--metrics-port", type=_port, default=DEFAULT_PORT, metavar="N", help="default 8090; 0: any free port"
    )
    add("--metrics-address", default="", metavar="ADDRESS", help="default: every interface, IPv4 and IPv6")
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
    add("--version", action="version", version=__version__, help="print the version and exit")
    add(
        "script",
        nargs=argparse.REMAINDER,
        action=_ScriptAndArguments,
        metavar="app.py args…",
        help="as with python",
    )
    return parser


class _ScriptAndArguments(argparse.Action):
    """Leaves the script all of its arguments; of two positionals argparse would take a `--` between them away."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002 -- the form of an action
    ) -> None:
        words = list(values or ())
        words = words[1:] if words[:1] == ["--"] else words
        if not words:
            parser.error("name the PySpark script to run")
        namespace.script, namespace.arguments = Path(words[0]), words[1:]
