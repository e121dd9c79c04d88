"""A view whose output may fail: a reader that has gone, a disk that is full.

Neither may end the run, whose driver would go on with nobody to govern it. Without a reader nothing more is shown,
and whoever runs the loop decides what to do about it. A full disk may have room again, so each moment is tried anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from headgate.cli.streams import has_reader, let_go
from headgate.cli.view import Moment, View


class GuardedView:
    """Shows what `view` shows on `out`, for as long as that can be written."""

    def __init__(
        self, view: View, out: TextIO, *, on_no_reader: Callable[[], None], complain: Callable[[str], None]
    ) -> None:
        self._view = view
        self._out = out
        self._on_no_reader = on_no_reader
        self._complain = complain
        self._has_reader = True
        self._has_failed = False

    def show(self, moment: Moment) -> None:
        """Show the moment, if it can be."""
        self._try(lambda: self._view.show(moment))

    def close(self, exit_code: int | None) -> None:
        """Leave the output in order, if it can be."""
        self._try(lambda: self._view.close(exit_code))
        if self._has_failed:
            let_go(self._out)

    def _try(self, write: Callable[[], None]) -> None:
        if not self._has_reader:
            return
        if not has_reader(self._out):
            self._lose_reader()
            return
        try:
            write()
        except BrokenPipeError:
            self._lose_reader()
        except OSError as error:
            if not self._has_failed:
                self._complain(f"the output cannot be written, and is lost until it can: {error.strerror}")
            self._has_failed = True

    def _lose_reader(self) -> None:
        self._has_reader, self._has_failed = False, True
        self._on_no_reader()
