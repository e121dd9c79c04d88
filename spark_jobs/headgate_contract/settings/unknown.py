"""What to say of a name that is no setting, or none here: which one may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from headgate_contract.settings.table import (
    EVERY,
    OF,
    OF_THE_OPERATOR,
    OPTION,
    PROCESS,
    PROPERTY,
    QUERIES,
    SOURCES,
    Scope,
    Setting,
)


def option(name: str, setting: Setting | None, scope: Scope) -> str:
    """Say what is wrong with an option of a stream; `setting` is the one of that name, which is of something else."""
    if setting is not None:
        return _elsewhere(setting)
    here = [each for known in OF[scope] for each in known.options]
    return _close(name, OPTION, here, [each for known in EVERY for each in known.options])


def property_of_all(rest: str, setting: Setting | None) -> str:
    """Say what is wrong with `spark.headgate.<rest>`."""
    if setting is not None:
        return f"cannot be given for all sources; write {PROPERTY}{QUERIES}<query>.{SOURCES}<source>.{rest}"
    known = [*(each.name for each in EVERY if each.has_default), *sorted(PROCESS)]
    return _close(PROPERTY + rest, PROPERTY, [PROPERTY + each for each in known])


def property_of_query(query: str, rest: str, setting: Setting | None) -> str:
    """Say what is wrong with `spark.headgate.queries.<query>.<rest>`."""
    at = f"{PROPERTY}{QUERIES}{query}."
    if setting is not None:
        return f"is a setting of a source; write {at}{SOURCES}<source>.{rest}"
    scope = Scope.QUERY
    if rest.startswith(SOURCES):
        source, _, rest = rest[len(SOURCES) :].partition(".")
        at, scope = f"{at}{SOURCES}{source}.", Scope.SOURCE
    return _close(at + rest, at, [at + each.name for each in OF[scope]])


def _elsewhere(setting: Setting) -> str:
    if setting.scope is Scope.QUERY:
        return "is a setting of the query; give it to writeStream"
    return "is a setting of a source; give it to readStream"


def _close(name: str, prefix: str, here: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """Say which may have been meant: a similar one, or one whose last part this is. The prefix tells nothing."""
    bare = name[len(prefix) :]
    if bare in OF_THE_OPERATOR:
        return "an expression of Prometheus is judged by the operator; declare it in a SparkApplication"
    for known in (here, elsewhere):
        by_name = {each[len(prefix) :].lower(): each for each in known if each.startswith(prefix)}
        close = difflib.get_close_matches(bare.lower(), by_name, n=1, cutoff=0.6)
        close = close or [each for each in by_name if each.rpartition(".")[2] == bare.lower()]
        if close:
            return f"unknown setting; did you mean {by_name[close[0]]}?"
    return f"unknown setting; remove it, or use one of {', '.join(here)}"
