"""What Headgate remembers of a checkpoint, as small JSON values beside it.

Beside, in `<checkpoint>.headgate/`, so that nothing of Headgate is in the checkpoint itself and the job can go on
without Headgate at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from headgate_contract.codec import encode
from headgate_spark.engine.directory import Directory

T = TypeVar("T")

KEPT = 2
"""Values that stay: the newest, and the one before it for whoever is reading just now."""


class DamagedFileError(ValueError):
    """A file does not hold what was saved in it. The message names it and what is wrong."""


class NumberedStore(Generic[T]):
    """Keeps one small value as JSON. Each is a new file, `<name>.<number>.json`; the highest number counts."""

    def __init__(
        self, directory: Directory, name: str, read: Callable[[Any], T] = lambda value: value
    ) -> None:
        """`read` makes a value of its JSON, and raises ValueError for JSON that nobody has saved."""
        self._directory = directory
        self._name = name
        self._read = read
        self._unfinished = re.compile(rf"\.{re.escape(name)}\.(\d+)\.json\.\d+")
        """What a run leaves that is killed while it writes (`Directory.create`)."""

    def load(self) -> T | None:
        """Return the value saved last, or `None`. Raises `DamagedFileError`, and what the file system raises."""
        return self.newest()[1]

    def newest(self) -> tuple[int, T | None]:
        """Return the highest number with its value; 0 and `None` where there is none. Raises `DamagedFileError`."""
        numbers = self._numbers(self._directory.names())
        if not numbers:
            return 0, None
        file = self._file(numbers[-1])
        try:
            return numbers[-1], self._read(json.loads(self._directory.read(file)))
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"file {self._directory}/{file} is damaged ({error})") from None

    def save(self, value: T) -> None:
        """Keep `value` under the next number; when this returns, a crash cannot lose it. Raises what the file system
        raises."""
        numbers = self._numbers(self._directory.names())
        self.create(numbers[-1] + 1 if numbers else 1, value)

    def create(self, number: int, value: T) -> None:
        """Write `value` under a number; raises OSError where that one or a higher one is there."""
        names = self._directory.names()
        numbers = self._numbers(names)
        if numbers and numbers[-1] >= number:
            raise FileExistsError(
                f"{self._file(numbers[-1])} is there, so {self._file(number)} is out of date"
            )
        self._directory.create(self._file(number), json.dumps(encode(value)))
        for old in numbers[: 1 - KEPT]:
            self._directory.delete(self._file(old))
        for name in names:
            left = self._unfinished.fullmatch(name)
            if left is not None and int(left[1]) < number:  # another run may be writing this one just now
                self._directory.delete(name)

    def _numbers(self, names: Iterable[str]) -> list[int]:
        parts = [name.split(".") for name in names]
        numbers = (part[1] for part in parts if len(part) == 3 and part[::2] == [self._name, "json"])
        return sorted(int(number) for number in numbers if number.isdigit())

    def _file(self, number: int) -> str:
        return f"{self._name}.{number}.json"
