"""Running somebody's script as Python itself would."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from headgate_spark.launch.environment import UnsupportedSessionError


def run_script(script: Path, arguments: Sequence[str]) -> int:
    """Run `script` as `__main__` and return its exit code.

    `sys.argv` and `sys.path[0]` are what `python script` would give it, and an uncaught exception is printed as
    Python would print it.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        return _code(ended)
    except UnsupportedSessionError as error:
        print(f"headgate-run: error: {error}", file=sys.stderr)  # noqa: T201 -- the command's own voice
        return 2
    except BaseException as error:  # whatever a script raises, its exit code is 1
        _print_from(script, error)
        return 1
    return 0


def _code(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code
    print(ended.code, file=sys.stderr)  # noqa: T201 -- as Python does
    return 1


def _print_from(script: Path, error: BaseException) -> None:
    """Print the traceback from the script's first frame on: the frames before it are ours and say nothing."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != str(script):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame or error.__traceback__)
