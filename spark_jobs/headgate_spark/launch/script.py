"""Running somebody's script as Python itself would."""

from __future__ import annotations

import re
import sys
import traceback
import types
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path

from headgate_contract.exit_codes import ERROR, INTERRUPTED, ExitCode
from headgate_spark.engine.shim import ShimError
from headgate_spark.launch.environment import UnsupportedSessionError


def run_script(script: Path, arguments: Sequence[str]) -> int:
    """Run `script` as `__main__` and return its exit code.

    `sys.argv`, `sys.path[0]` and `__file__` are what `python script` would give it, and an uncaught exception is
    printed as Python would print it.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    script = script.absolute()
    try:
        _run_as_main(script)
    except SystemExit as ended:
        return _code(ended)
    except (UnsupportedSessionError, ShimError) as error:
        print(f"{ERROR}{error}", file=sys.stderr)  # noqa: T201 -- the command's own voice
        return ExitCode.INVALID_SETUP
    except BaseException as error:  # whatever a script raises, it is the script's end and not ours
        if (advice := remedy(error)) is not None:
            print(f"{ERROR}{advice}", file=sys.stderr)  # noqa: T201 -- the command's own voice
        else:
            _print_from(script, error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_as_main(script: Path) -> None:
    """Run the script as the module `__main__`, which it stays: its threads and what it pickles may outlive it."""
    code = compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = str(script)
    main.__loader__ = SourceFileLoader("__main__", str(script))
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102 -- it is what this command is for


def _code(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code
    print(ended.code, file=sys.stderr)  # noqa: T201 -- as Python does
    return 1


def _print_from(script: Path, error: BaseException) -> None:
    """Print the traceback from the script's first frame on: the frames before it are ours and say nothing.

    A script that does not compile has none; its place stands in the exception itself.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(script):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


MODULE = "org.apache.spark:spark-sql-kafka-0-10_2.13"

STAND_INS = {
    "4.3": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
}
"""Jars that run on a version of Spark whose own are not in every repository; the project's tests use them."""

_MISSING = re.compile(r"Failed to find data source: kafka\b", re.IGNORECASE)
_UNFIT = re.compile(
    r"^(?=(?:.*\n){0,3}.*sql\.kafka010\.).*\b(?:NoSuchMethodError|NoClassDefFoundError|AbstractMethodError)\b.*$",
    re.MULTILINE,
)
"""The connector is in the first frames below what is missing. Further down, in the plan of the query, it stands in
each failure of a job that reads Kafka."""


def remedy(error: BaseException) -> str | None:
    """Return what is wrong with the Kafka source if that is what ended the script, and the lines that mend it.

    Spark then names its online guide, or a method that does not exist. Which package goes with the Spark that is
    installed is known here, so it is said. Asked by `launch.script` about whatever has ended a script.
    """
    text = str(error)
    if not (_MISSING.search(text) or _UNFIT.search(text)):
        return None
    from pyspark.version import __version__

    return advice(text, __version__)


def advice(failure: str, spark: str) -> str | None:
    """Return the same for the text of a failure; `None`: the Kafka source is not to blame."""
    unfit = _UNFIT.search(failure)
    if _MISSING.search(failure):
        wrong = f'the job uses format("kafka"), which is not part of Spark {spark} but a package of its own'
    elif unfit is not None:
        wrong = f"the Kafka source on the class path is not the one of Spark {spark} ({unfit[0].strip()})"
    else:
        return None
    return "\n".join([f"{wrong}; add to the command", *_lines(spark)])


def _lines(spark: str) -> Iterator[str]:
    yield f"  --conf spark.jars.packages={MODULE}:{spark}"
    stand_ins = STAND_INS.get(".".join(spark.split(".")[:2]))
    if stand_ins is not None:
        yield f"or, where your repository does not have that version, the files of {', '.join(stand_ins)}:"
        yield f"  --conf spark.jars={','.join(file_name(jar) for jar in stand_ins)}"


def file_name(coordinates: str) -> str:
    """Return the name of the file that holds `group:artifact:version`."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"
