"""Brings the operator's settings together: flags win over the environment, that over the file, that over defaults.

One setting has one name in three spellings: `--prometheus-url`, `HEADGATE_PROMETHEUS_URL`, and `prometheusUrl` in the
file. Whatever is wrong is said at once, each with the place where it was written: whoever rolls out a change should
not find its faults one crash at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from headgate.api.document import Document, Malformed, read_documents
from headgate.errors import UsageError
from headgate.settings import Settings
from headgate_contract.nearest import did_you_mean

PREFIX = "HEADGATE_"
CONFIG = "HEADGATE_CONFIG"
"""Names the file, where `--config` does not."""
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Given:
    """A value as somebody wrote it, and where: `--tick`, `HEADGATE_TICK`, `operator.yaml:3: tick`."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings, and by name of the setting where its value is from."""

    settings: Settings
    sources: Mapping[str, str]

    def render(self) -> str:
        """Return them as a settings file, with a comment on each line that says where the value is from."""
        values = self.settings.model_dump(mode="json", by_alias=True)
        lines = []
        for name in Settings.model_fields:
            value = values[to_camel(name)]
            flow = isinstance(value, list)
            text = yaml.safe_dump({to_camel(name): value}, default_flow_style=flow, width=1000).strip()
            lines.append(f"{text.removeprefix('{').removesuffix('}')}  # {self.sources[name]}")
        return "\n".join([*lines, ""])


def load_settings(flags: Mapping[str, Any], environ: Mapping[str, str], file: Path | None) -> LoadedSettings:
    """Return the settings. `flags` are those that were given, by name of the setting.

    Raises `UsageError` with every fault, each with its place.
    """
    path = file or (Path(environ[CONFIG]) if environ.get(CONFIG) else None)
    given: dict[str, Given] = {}
    faults: list[str] = []
    names = {to_camel(name): name for name in Settings.model_fields}
    if path and (document := _read(path)) is not None:
        for key, value in document.content.items():
            source = f"{path}:{document.line_of((key,))}: {key}"
            if (name := names.get(key, key)) not in Settings.model_fields:
                faults.append(f"{source}: unknown setting{did_you_mean(key, names) or '; remove it'}")
            elif value is not None or key not in names:
                given[name] = Given(value, source)
    # An empty variable counts as none: that is how a template leaves one out. Others of the prefix are let be:
    # Kubernetes sets some for every Service.
    variables = ((name, variable_of(name)) for name in Settings.model_fields)
    given |= {name: Given(text, variable) for name, variable in variables if (text := environ.get(variable))}
    given |= {name: Given(value, flag_of(name)) for name, value in flags.items()}
    try:
        settings = Settings.model_validate({name: found.value for name, found in given.items()})
    except ValidationError as error:
        faults += [_fault(details, given) for details in error.errors(include_url=False)]
    if faults:
        raise UsageError("\n  ".join(["the settings are refused:", *faults]))
    sources = {name: given[name].source if name in given else DEFAULT for name in Settings.model_fields}
    return LoadedSettings(settings=settings, sources=sources)


def flag_of(name: str) -> str:
    """Return the flag of a setting: `--prometheus-url`."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """Return the environment variable of a setting: `HEADGATE_PROMETHEUS_URL`."""
    return PREFIX + name.upper()


def _read(path: Path) -> Document | None:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"{path}: {reason}; give the path of a settings file") from None
    match list(read_documents(text)):
        case []:
            return None
        case [Document(content=dict()) as document]:
            return document
        case [Malformed(message=message, line=line), *_]:
            raise UsageError(f"{path}:{line or 1}: malformed YAML: {message}")
        case _:
            raise UsageError(f"{path}: must be one object of settings, as workers: 16")


def _fault(details: ErrorDetails, given: Mapping[str, Given]) -> str:
    name = str(details["loc"][0])
    source = given[name].source if name in given else flag_of(name)
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if details["type"] in {"value_error", "duration"}:
        return f"{source}: {message}"
    if details["type"] == "path_not_file":
        return f"{source}: there is no file {details['input']}; mount it, or correct the path"
    return f"{source}: {message[0].lower()}{message[1:]}, not {details['input']!r}"
