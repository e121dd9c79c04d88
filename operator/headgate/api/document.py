"""YAML documents that remember on which line each value stands.

Values are read as the API server reads them, not as YAML 1.1 has it: `1e6` is a number, `2013-01-01` and `1:30` are
text, `1.0` is the integer 1, a key is text whatever it looks like, one given twice is refused. What cannot be read is
a `Malformed` with a line, never a traceback: a file that is cut, refers to itself, or blows up through aliases is
something a person may hand over.
"""

import json
import math
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import yaml

from headgate.api.finding import Location

_MARK: Final = re.compile("^\ufeff", re.MULTILINE)  # before each document of files that were put together
_MOST_NODES: Final = 200_000  # far above any resource; the API server takes 3 MiB at most
_MOST_LEVELS: Final = 200  # no resource has half as many


@dataclass(frozen=True)
class Document:
    """One document of a file: its content as plain values, and the nodes that it was made from."""

    content: Any
    node: yaml.Node

    @property
    def line(self) -> int:
        """Line on which the document starts, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def part(self, location: Location) -> "Document":
        """Return the value at `location`, which is there, as a document of its own."""
        content, node = self.content, self.node
        for step in location:
            content = content[step]
            found = _child(node, step)
            node = node if found is None else found[0]
        return Document(content, node)

    def line_of(self, location: Location) -> int:
        """Line of the value at `location`, or of the closest object around it that is there."""
        node, line = self.node, self.line
        for step in location:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return line


@dataclass(frozen=True)
class Malformed:
    """What could not be read, and where."""

    message: str
    line: int | None


def read_documents(text: str) -> Iterator[Document | Malformed]:
    """Yield the documents of `text` that are not empty; the first malformed one ends it."""
    try:
        loader = _Loader(_MARK.sub("", text))
        while loader.check_node():
            node = loader.get_node()
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
                continue
            _refuse_explosion(node)
            yield Document(loader.construct_document(node), node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(filter(None, (error.context, error.problem))) or "is no YAML"
        if (error.problem or "").startswith(r"found character '\t'"):
            said = "a tab, where YAML wants spaces; indent with spaces"
        yield Malformed(said, mark.line + 1 if mark else None)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        yield Malformed(f"character {error.character!r} is not allowed in YAML", line)


class _Loader(yaml.SafeLoader):
    """Reads scalars as Kubernetes does, and refuses a key that stands twice in one object."""

    yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML declares it without ClassVar
        first: [(tag, form) for tag, form in resolvers if tag.rpartition(":")[2] in ("bool", "null", "merge")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    _level = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read a value, where it is not in too many others: all that comes after this calls itself for each."""
        if self._level >= _MOST_LEVELS:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="is nested too deeply", problem_mark=mark)
        self._level += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._level -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Say where a value is that its tag does not fit (`!!int x`, a number of 5,000 digits)."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(
                problem=f"a value is no {kind}", problem_mark=node.start_mark
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen and not key.tag.endswith(":merge"):
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands twice", problem_mark=key.start_mark)
            seen.add(getattr(key, "value", "") if isinstance(key, yaml.ScalarNode) else "")
        return {_name(key): value for key, value in super().construct_mapping(node, deep).items()}


def _integer_or_float(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    value = loader.construct_yaml_float(node)
    return int(value) if math.isfinite(value) and value.is_integer() else value


def _text_of_binary(loader: _Loader, node: yaml.ScalarNode) -> str:
    return loader.construct_yaml_binary(node).decode("utf-8", "replace")


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0o?[0-7_]+|0b[01_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"
    ),
    list("-+.0123456789"),
)
_Loader.add_constructor("tag:yaml.org,2002:float", _integer_or_float)
_Loader.add_constructor("tag:yaml.org,2002:binary", _text_of_binary)


def _name(key: Hashable) -> str:
    """Return a key as JSON has it, where names are text."""
    return json.dumps(key) if key is None or isinstance(key, bool) else str(key)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):
            if isinstance(key, yaml.ScalarNode) and key.value == str(step):
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item = node.value[step]
        return item, item.start_mark.line + 1
    return None


def _refuse_explosion(root: yaml.Node) -> None:
    """Count nodes as they are once aliases are written out; each node is visited once."""
    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node), 0)
        if known is None:
            raise yaml.MarkedYAMLError(problem="an alias refers to itself", problem_mark=node.start_mark)
        if not known:
            sizes[id(node)] = None
            value: Any = node.value
            children = chain.from_iterable(value) if isinstance(node, yaml.MappingNode) else value
            known = 1 + sum(map(size, children)) if isinstance(node, yaml.CollectionNode) else 1
            sizes[id(node)] = known
        if known > _MOST_NODES:
            raise yaml.MarkedYAMLError(problem="is too large with its aliases", problem_mark=node.start_mark)
        return known

    size(root)
