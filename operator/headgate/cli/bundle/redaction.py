"""Takes what may be secret out of objects and logs before anybody else reads them.

Values at places where people put secrets (properties of Spark, arguments, variables of the environment, annotations
of others) are hidden whatever they look like; their names stay. Every other text goes through `scrubbed`, the net for
what looks like a secret. And a value that was hidden in one place is taken out of all others, so that a password of
no particular form is not found in a log.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headgate_contract.foreign import HIDDEN, LONGEST_READ, NAMES_A_SECRET, printable, scrubbed

HIDDEN_VALUES: Final = frozenset(
    {"sparkConf", "arguments", "args", "command", "data", "stringData", "binaryData"}
)
"""Members of which every value is hidden, and every name is kept."""
LEARNED: Final = HIDDEN_VALUES - {"args", "command"}
"""Those that are looked for elsewhere. Words of a pod's command line are arguments, or no secret."""
OWN: Final = "headgate.dev/"
"""Annotations that begin so are ours, and those of no others are shown."""
LEAST_KNOWN: Final = 8
"""Characters of a value that is looked for elsewhere: a shorter one, as `true` or `64`, is found by chance."""
_PEM: Final = re.compile(
    r"(?s)-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)"
    r"|\A[A-Za-z0-9+/=\s]*-----END [A-Z ]{1,40}-----"
)
"""A key or a certificate; of the end of a log it may be the last lines alone."""


class Redaction:
    """What is hidden in the files of one archive."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, document: Any) -> None:
        """Remember the values that will be hidden in a document, to hide them elsewhere too."""
        found = {text.strip() for text in _secrets(document)}
        self._known |= {text for text in found if len(text) >= LEAST_KNOWN}
        self._pattern = None

    def document(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {str(name): self._member(str(name), child) for name, child in value.items()}
            case list():
                return [self.document(child) for child in value]
            case str():
                return self._string(value)
        return value

    def text(self, text: str) -> str:
        """Return what may be shown of a log, line by line; a line that is very long is cut."""
        lines = _PEM.sub(HIDDEN, text).split("\n")
        return "\n".join(printable(self._line(line)) for line in lines)

    def _line(self, line: str) -> str:
        # In this order: a word that is known may be the one by which `scrubbed` sees that a secret follows.
        return self._without_known(scrubbed(line))

    def _member(self, name: str, value: Any) -> Any:
        if name in HIDDEN_VALUES or _is_secret(name, value):
            return _hidden(value)
        if name == "annotations" and isinstance(value, Mapping):
            return {
                each: self._string(str(found)) if each.startswith(OWN) else HIDDEN
                for each, found in value.items()
            }
        if name in {"env", "variables"} and isinstance(value, list):
            return [
                {**each, "value": HIDDEN}
                if isinstance(each, Mapping) and "value" in each
                else self.document(each)
                for each in value
            ]
        return self.document(value)

    def _string(self, text: str) -> str:
        try:
            inner = json.loads(text) if text[:1] in {"{", "["} else None
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, dict | list):  # a control document in an annotation
            return json.dumps(self.document(inner))
        return self._line(_PEM.sub(HIDDEN, text)) + ("…" if len(text) > LONGEST_READ else "")

    def _without_known(self, text: str) -> str:
        if not self._known:
            return text
        if self._pattern is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern.sub(HIDDEN, text)


def _is_secret(name: str, value: Any) -> bool:
    """Whether a member is a secret by its name; one that only refers to a Secret of the cluster is none."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, list) else [None]
    is_text = all(isinstance(each, str) for each in texts)
    return is_text and NAMES_A_SECRET.search(name) is not None and not name.endswith(("Name", "Ref"))


def _hidden(value: Any) -> Any:
    """Return the value with its form, its names and nothing else of it."""
    match value:
        case Mapping():
            return {str(name): _hidden(child) for name, child in value.items()}
        case list():
            return [_hidden(child) for child in value]
        case None:
            return None
    return HIDDEN


def _secrets(value: Any, *, is_hidden: bool = False) -> Iterator[str]:
    """Yield the texts that are at places where people put secrets."""
    match value:
        case Mapping():
            is_variable = "name" in value and isinstance(value.get("value"), str)
            for name, child in value.items():
                hides = str(name) in LEARNED or _is_secret(str(name), child)
                yield from _secrets(child, is_hidden=is_hidden or hides or (is_variable and name == "value"))
        case list():
            for child in value:
                yield from _secrets(child, is_hidden=is_hidden)
        case str() if is_hidden:
            yield value
            yield from value.splitlines()  # properties of Spark in one variable, a line each
            yield from (line.partition("=")[2] for line in value.splitlines())
