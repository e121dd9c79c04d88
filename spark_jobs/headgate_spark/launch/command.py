"""`headgate-run [--control FILE] app.py args…`: an unmodified PySpark script, governed.

Python is the parent process and runs the script itself, so that a signal reaches Python: with `spark-submit` it
would reach the JVM, which stops in mid-batch.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import stat
import sys
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import structlog

from headgate_contract.exit_codes import CUT, ERROR, INTERRUPTED, ExitCode
from headgate_contract.handover import EXECUTOR_TEMPLATE, SPARK_PROPERTIES
from headgate_contract.listening import DEFAULT_PORT, every_address
from headgate_contract.settings.table import APPLICATION, CONTROL
from headgate_spark import __version__
from headgate_spark.engine.control_file import control_path
from headgate_spark.engine.shim import ShimError, jar_path
from headgate_spark.launch.driver import LaunchedDriver
from headgate_spark.launch.environment import (
    TemporaryFolderError,
    UnsupportedSessionError,
    on_executors,
    prepare,
    written_down,
)
from headgate_spark.launch.planner import PlannerError, PlannerProcess
from headgate_spark.launch.script import run_script
from headgate_spark.launch.stopping import Stopper
from headgate_spark.runtime import settings
from headgate_spark.runtime.answers import End
from headgate_spark.runtime.logs import configure

log = structlog.get_logger("headgate")

NO_QUERY = "it had started no streaming query"
SCRIPT_CUT = f"the script {CUT}"
LARGEST_PORT = 65_535
USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> None:
    _open_what_is_closed()
    try:
        _run(_parser().parse_args(arguments))
    except KeyboardInterrupt:  # before anything was there to be stopped in order
        sys.exit(INTERRUPTED)


def _open_what_is_closed() -> None:
    """Let a standard stream that the caller has closed (`<&-`) lead nowhere.

    Else the next socket has its number, and a child process has something else there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(
                os.open(os.devnull, os.O_RDWR), True
            )  # the lowest number that is free: this one


def _run(options: argparse.Namespace) -> NoReturn:
    _take_properties(options)
    _require_files(options)
    configure()
    application = options.application or options.script.stem
    planner = PlannerProcess(application, _properties(options))
    driver = LaunchedDriver(planner)
    stopper = driver.stopper
    codes: list[int] = []
    try:
        jar = jar_path()
        if EXECUTOR_TEMPLATE in os.environ:
            os.environ[SPARK_PROPERTIES] = on_executors(os.environ.get(SPARK_PROPERTIES, ""), jar)
        properties_file = _settled(options.properties_file) or written_down(os.environ, SPARK_PROPERTIES)
        atexit.register(_leave, codes)  # before any that the script registers, so it is called after them
        driver.start()  # before anybody can see that there is something to be stopped
        planner.start()
        conf = [*options.conf, f"{settings.ADDRESS}={planner.address()}"]
        if (template := written_down(os.environ, EXECUTOR_TEMPLATE)) is not None:
            conf.append(f"spark.kubernetes.executor.podTemplateFile={template}")
        prepare(os.environ, jar=jar, conf=conf, properties_file=properties_file)
    except (UnsupportedSessionError, ShimError) as error:
        _end(str(error), ExitCode.INVALID_SETUP)
    except TemporaryFolderError as error:
        _end(str(error))
    except PlannerError as error:
        address, port = options.metrics_address or every_address(), options.metrics_port
        _end(
            f"metrics cannot be served at {address}, port {port}: {error}; "
            "give others with --metrics-address and --metrics-port"
        )
    announcement = Announcement(_settled(options.announce), application, planner.metrics_port)
    try:
        announcement.write()
    except OSError as error:
        _end(f"--announce {options.announce}: {error.strerror}; give the path of a file that can be written")
    with stopper.script():
        code = run_script(options.script, options.arguments)
    stopper.settle()
    end = driver.end()
    codes.append(report(end, code, stopper))
    # Threads of the script may still go on.
    atexit.register(_at_exit, end, driver, planner, announcement, codes)
    if end.unread:
        _note(announcement, "; ".join(end.unread))
    sys.exit(codes[0])


def report(end: End, code: int, stopper: Stopper) -> int:
    """Say what is to be known of an end, and return the exit code."""
    if code != 0:
        _say(*end.explanations)
    if end.checkpoint_in_use is not None and code != 0:
        _say(end.checkpoint_in_use)
        code = ExitCode.CHECKPOINT_IN_USE
    if end.gave_up or (code != 0 and end.too_large and not stopper.asked):
        _say(*end.too_large)
        return ExitCode.BATCH_TOO_LARGE
    if code != 0 and end.unnoted_memory and not stopper.asked:
        _say(out_of_memory(end.unnoted_memory))
        return ExitCode.JVM_OUT_OF_MEMORY
    if stopper.asked and (stopper.is_unfinished or end.cut_short):
        _say(*(end.cut_short or [SCRIPT_CUT]))
        return ExitCode.UNFINISHED
    return 0 if stopper.asked else code


def _at_exit(
    end: End, driver: LaunchedDriver, planner: PlannerProcess, announcement: Announcement, codes: list[int]
) -> None:
    """Nothing of the script goes on any more: say what became of its threads, and let the planner's process end."""
    if not (end.has_seen_query or driver.stopper.asked or driver.end().has_seen_query):
        log.warning("the script started no streaming query; there was nothing to govern")
        _note(announcement, NO_QUERY)
    if codes == [0] and (code := report(driver.end(), 0, driver.stopper)):
        codes.append(code)
    planner.end()


def _leave(codes: list[int]) -> None:
    """Leave with the last code: Python knows that of the script's own end alone, after which its threads went on."""
    if len(codes) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(codes[-1])


def _take_properties(options: argparse.Namespace) -> None:
    """Let a property of the driver as a whole stand for the option: when Spark reads it, it is too late."""
    conf = dict(pair.split("=", 1) for pair in options.conf)
    said, by = (
        (conf.get(CONTROL) or None, CONTROL) if options.control is None else (options.control, "--control")
    )
    try:
        options.control = None if said is None else control_path(said)
    except ValueError as error:
        _end(f"{by}: {error}")
    options.application = options.application or conf.get(APPLICATION)
    options.metrics_address = options.metrics_address or conf.get(settings.METRICS_ADDRESS, "")
    if options.metrics_port is None:
        options.metrics_port = conf.get(settings.METRICS_PORT, DEFAULT_PORT)


def _properties(options: argparse.Namespace) -> dict[str, str]:
    """Return what the planner's process is told of the options."""
    control = _settled(options.control)
    given = {
        settings.METRICS_PORT: str(options.metrics_port),
        settings.METRICS_ADDRESS: options.metrics_address,
        CONTROL: None if control is None else str(control),
    }
    return {name: value for name, value in given.items() if value is not None}


def _say(*sentences: str) -> None:
    for sentence in sentences:
        print(f"{ERROR}{sentence}", file=sys.stderr)  # noqa: T201 -- the command's own voice


def out_of_memory(queries: Iterable[str]) -> str:
    """Return what has happened to a JVM that nobody could note, and what helps."""
    return (
        f"the driver's JVM has died for want of memory, and took {', '.join(sorted(queries))} with it; give it more "
        "(driver.memory). If it dies of the same batch again, the driver ends with exit code 76"
    )


def _require_files(options: argparse.Namespace) -> None:
    """End with a usage error for a path that can mean nothing good."""
    if not _is_file(options.script):
        _end(f"{options.script}: no such file; name the PySpark script to run")
    if not os.access(options.script, os.R_OK):
        _end(f"{options.script}: may not be read; see to its rights")
    if zipfile.is_zipfile(options.script):  # eggs, wheels and jars are, too
        _end(
            f"{options.script}: is an archive and not a script; name the script to run, and have its imports found "
            f"in the archive with PYTHONPATH={options.script} and --conf spark.submit.pyFiles={options.script}"
        )
    for option, file in (("--control", options.control), ("--announce", options.announce)):
        if file is not None and _is_file(file) is False:
            _end(f"{option} {file}: is a folder or a device; give the path of a file")
    if options.properties_file is not None:
        if not _is_file(options.properties_file):
            _end(f"--properties-file {options.properties_file}: no such file")
        if SPARK_PROPERTIES in os.environ:
            _end(f"--properties-file: {SPARK_PROPERTIES} is in the environment too; leave one of them out")


def _is_file(path: Path) -> bool | None:
    """Tell whether a path is a file; `None`: nothing is there, or nobody can tell, as in a folder without rights."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return None


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
        metavar="FILE",
        help="control document; without it the job runs as it says itself",
    )
    add("--application", metavar="NAME", help="label of the metrics (default: name of the script)")
    add("--metrics-port", type=_port, metavar="N", help="default 8090; 0: any free port")
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


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where the driver serves its metrics; nobody is told where `path` is `None`."""

    path: Path | None
    application: str
    metrics_port: int

    def write(self, *, note: str | None = None) -> None:
        """Write the file; `note` is what is to be known of the driver's end. Raises `OSError`."""
        if self.path is None:
            return
        members = {"pid": os.getpid(), "metricsPort": self.metrics_port, "application": self.application}
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(members | ({"note": note} if note else {})), encoding="utf-8")
        unfinished.replace(self.path)
