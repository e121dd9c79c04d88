"""The operator's log: one line each on standard error, of its own and of the libraries that it uses.

JSON by default, for whoever collects it. Libraries log through the standard library; their records take the same way,
so that a line of Kopf about a watch stands between ours, in the same form.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from headgate.settings import LogFormat, LogLevel
from headgate_contract.foreign import printable

_QUIET = ("asyncio", "aiohttp.access", "kopf", "urllib3")
"""They have nothing to say at info that is worth a line: Kopf has one for each event that it hands on."""
_FIRST = ("timestamp", "level", "event")


def configure(format_: LogFormat, level: LogLevel, stream: TextIO = sys.stderr) -> None:
    """Send everything that is logged in this process to `stream`."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _of_the_library,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _in_order,
                _renderer(format_),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(root.level if level is LogLevel.DEBUG else logging.WARNING)
    logging.captureWarnings(True)


def _renderer(format_: LogFormat) -> Processor:
    if format_ is LogFormat.JSON:
        return structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    return _as_text


_TEXT: Final = structlog.processors.KeyValueRenderer(repr_native_str=False)


def _as_text(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return one line: what others wrote ends none and begins none. A traceback's lines are set in."""
    exception = event.pop("exception", None)
    line = printable(str(_TEXT(logger, method, event)))
    if exception is None:
        return line
    return "\n    ".join((line, *printable(str(exception), lines=True).splitlines()))


def _of_the_library(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Name the object that a line of Kopf is about."""
    record = event.get("_record")
    about = getattr(record, "k8s_ref", None)
    if isinstance(about, dict) and about.get("name"):
        event["object"] = f"{about.get('kind', 'object')} {about.get('namespace', '')}/{about['name']}"
    return event


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Put first what a person looks for first."""
    return {**{name: event[name] for name in _FIRST if name in event}, **event}
