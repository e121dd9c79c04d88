"""Decoders that a job names instead of registering them: `module:function`, imported in the planner's process.

So a job that is not in Python, or has no more of Headgate than the jar, can read event times from Avro or Protobuf.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from headgate_contract.settings.layers import Job
from headgate_contract.settings.table import DECODER, PROPERTY, PYTHON_PATH
from headgate_spark.engine.settings import SettingsError
from headgate_spark.event_time import Decoder


def named(query: str, job: Job, properties: Mapping[str, str]) -> dict[str, Decoder]:
    """Return what is named for the sources of a query. Raises `SettingsError` where that is not there."""
    problems = []
    found = {}
    for source, given in job.sources.items():
        if DECODER in given:
            try:
                found[source] = _found(str(given[DECODER].value), properties)
            except LookupError as error:
                problems.append(f"source {source}: {given[DECODER].spelling}: {error.args[0]}")
    if problems:
        raise SettingsError(f"query {query}: {'; '.join(problems)}")
    return found


def look_in(places: str, separator: str) -> None:
    """Have modules looked for in these folders and zips as well, behind all others."""
    for place in filter(None, map(str.strip, places.split(separator))):
        if place not in sys.path:
            sys.path.append(place)
            importlib.invalidate_caches()


def _found(name: str, properties: Mapping[str, str]) -> Decoder:
    """Return the function of this name. Raises LookupError with what is wrong, and what to do."""
    look_in(properties.get(PROPERTY + PYTHON_PATH, ""), os.pathsep)
    module, _, attributes = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module runs what it likes
        raise LookupError(
            f"module {module} cannot be imported in the planner's process ({type(error).__name__}: {error}). Its "
            f"Python is {sys.executable}: name another one in {PROPERTY}python, or the folder or zip that has the "
            f"module in {PROPERTY}{PYTHON_PATH}"
        ) from None
    for attribute in attributes.split("."):
        found = getattr(found, attribute, None)
    if not callable(found):
        raise LookupError(  # noqa: TRY004 -- it is not there
            f"module {module} has no function {attributes}; write module:function of one that it has"
        )
    decoder: Decoder = found
    return decoder
