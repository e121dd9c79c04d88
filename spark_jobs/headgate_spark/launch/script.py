"""Running somebody's script as Python itself would."""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path

from headgate_contract.exit_codes import ERROR, ExitCode
from headgate_spark.engine.shim import ShimError
from headgate_spark.launch.connector import remedy
from headgate_spark.launch.environment import UnsupportedSessionError

INTERRUPTED = 130
"""As a shell has it for a process that SIGINT has ended."""


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
        _print(script, error)
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


def _print(script: Path, error: BaseException) -> None:
    if (advice := remedy(error)) is not None:
        print(f"{ERROR}{advice}", file=sys.stderr)  # noqa: T201 -- the command's own voice
    else:
        _print_from(script, error)


def _print_from(script: Path, error: BaseException) -> None:
    """Print the traceback from the script's first frame on: the frames before it are ours and say nothing.

    A script that does not compile has none; its place stands in the exception itself.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(script):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)
