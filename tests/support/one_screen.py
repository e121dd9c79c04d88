"""A failed test fits on a screen: the last frames, the reason, and the end of what it printed.

`pytest -v` shows everything.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntry, ReprTraceback

MOST_FRAMES = 4
MOST_LINES = 14
"""Of a frame with what it says, or of the reason."""
MOST_PRINTED = 8
"""Lines of each thing that the test printed or logged."""
WIDEST = 240
MARK = "   ... {} more lines; pytest -v shows them"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten what is told of a failure."""
    report = yield
    if report.failed and item.config.get_verbosity() <= 0:
        shorten(report)
    return report


def shorten(report: pytest.TestReport) -> None:
    """Leave of a report what fits on a screen."""
    if isinstance(report.longrepr, ExceptionChainRepr):
        chain = report.longrepr.chain
        chain[:] = chain[-2:]
        for traceback, _, _ in chain:
            _shorten_traceback(traceback)
        report.longrepr.reprtraceback = chain[-1][0]
    elif isinstance(report.longrepr, str):
        report.longrepr = "\n".join(_ends_of(report.longrepr.splitlines(), 3 * MOST_LINES))
    report.sections = [
        (name, "\n".join(_last_of(text.splitlines(), MOST_PRINTED))) for name, text in report.sections
    ]


def _shorten_traceback(traceback: ReprTraceback) -> None:
    entries = list(traceback.reprentries)
    traceback.reprentries = (
        entries[:1] + entries[-MOST_FRAMES + 1 :] if len(entries) > MOST_FRAMES else entries
    )
    for entry in traceback.reprentries:
        if isinstance(entry, ReprEntry):
            entry.reprfuncargs = entry.reprlocals = None
            said = [line for line in entry.lines if line.startswith("E")]
            code = [line for line in entry.lines if not line.startswith("E")]
            entry.lines[:] = [*_last_of(code, MOST_LINES), *_ends_of(said, MOST_LINES, "E")]


def _ends_of(lines: Sequence[str], most: int, begin: str = "") -> list[str]:
    """Return the first lines, where the reason is, and the last ones."""
    narrow = [line if len(line) <= WIDEST else f"{line[:WIDEST]}..." for line in lines]
    if len(narrow) <= most:
        return narrow
    return [*narrow[: most - 4], begin + MARK.format(len(narrow) - most + 1), *narrow[-3:]]


def _last_of(lines: Sequence[str], most: int) -> list[str]:
    narrow = [line if len(line) <= WIDEST else f"{line[:WIDEST]}..." for line in lines]
    return narrow if len(narrow) <= most else [MARK.format(len(narrow) - most), *narrow[-most:]]
