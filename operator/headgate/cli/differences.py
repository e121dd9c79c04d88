"""What `headgate explain --diff` prints: a table in a terminal, a line for each change elsewhere, or JSON."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from headgate.api.application import SparkApplication
from headgate.api.changes import Change, changes, written
from headgate.api.update_modes import UpdateMode
from headgate.cli.terminal import Terminal, print_json
from headgate_contract.foreign import printable

MODE_STYLES = {
    UpdateMode.RESTART: "bold red",
    UpdateMode.EXECUTORS: "yellow",
    UpdateMode.LIVE: "green",
    UpdateMode.OPERATOR: "cyan",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """What becomes of one application; it is `changed`, `added` or `removed`."""

    application: str
    fate: str
    changes: tuple[Change, ...] = ()

    @property
    def title(self) -> str:
        """The whole of it on one line, the dearest update mode first."""
        if self.fate != "changed":
            return f"application {self.application}: {self.fate}"
        counts = Counter(change.update_mode for change in self.changes)
        parts = [f"{counts[mode]} {mode.lower()}" for mode in reversed(UpdateMode) if mode in counts]
        return f"application {self.application}: {', '.join(parts) or 'nothing changes'}"


def differences(old: Sequence[SparkApplication], new: Sequence[SparkApplication]) -> Iterator[Difference]:
    """Yield what becomes of each application of `old` by what `new` says of it.

    Two resources alone belong together whatever their names are, else those of the same name.
    """
    if len(old) == len(new) == 1:
        yield Difference(new[0].name, "changed", changes(old[0], new[0]))
        return
    before, after = ({(each.metadata.namespace, each.name): each for each in side} for side in (old, new))
    for key in dict.fromkeys((*after, *before)):
        if key not in before:
            yield Difference(key[1], "added")
        elif key not in after:
            yield Difference(key[1], "removed")
        else:
            yield Difference(key[1], "changed", changes(before[key], after[key]))


def print_differences(found: Sequence[Difference], *, as_json: bool) -> None:
    """Print them to standard output, in the form that suits it."""
    if as_json:
        print_json([_as_json(each) for each in found])
    elif sys.stdout.isatty():
        console = Terminal()
        for each in found:
            console.print(_table(each) if each.changes else escape(each.title))
    else:
        told = "\n\n".join("\n".join(map(printable, _lines(each))) for each in found)
        sys.stdout.write(f"{told}\n")


def _as_json(difference: Difference) -> dict[str, Any]:
    def named(members: list[tuple[str, Any]]) -> dict[str, Any]:
        return {"updateMode" if name == "update_mode" else name: value for name, value in members}

    return asdict(difference, dict_factory=named)


def _lines(difference: Difference) -> Iterator[str]:
    yield difference.title
    for change in difference.changes:
        yield f"  {change.update_mode.lower():<11}{change.text} ({change.effect})"


def _table(difference: Difference) -> Table:
    table = Table(title=escape(difference.title), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for heading in ("update mode", "setting", "before", "after", "then"):
        table.add_column(heading, overflow="fold")
    for change in difference.changes:
        texts = (change.path, written(change.before), written(change.after), change.effect)
        style = MODE_STYLES[change.update_mode]
        table.add_row(f"[{style}]{change.update_mode.lower()}[/]", *map(escape, texts))
    return table
