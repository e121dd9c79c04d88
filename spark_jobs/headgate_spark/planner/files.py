"""How many files a batch may take, for sources that take a limit in files and tell nothing before.

    files = grant / records per file

Only batches teach how many records a file has, and they tell the records but not the files: there may have been
fewer than the limit. `records / limit` is therefore a lower bound, and exact for a limit of one, so the first
batch is one file. A batch that brings much less than expected either met the end of the input or smaller files;
the limit is halved, and if it comes down to one, the size is known again. So a lull never lets the limit creep
up to a batch that is far too large.
"""

from __future__ import annotations


class FileCount:
    """The limit in files of one source."""

    def __init__(self) -> None:
        self.records_per_file: float | None = None
        self._most = 1.0

    def for_records(self, records: int, *, grows_freely: bool = False) -> int:
        """Return how many files should bring about that many records; at least one.

        `grows_freely`: not bounded by what the last batch was (a batch that spans a backlog).
        """
        if self.records_per_file is None:
            return 1
        wanted = records / self.records_per_file
        return max(1, int(wanted if grows_freely else min(wanted, self._most)))

    def read(self, files: int, records: int, max_growth: float) -> None:
        """Learn from a batch that was limited to `files` and brought `records`."""
        if records <= 0:
            return
        known = self.records_per_file
        as_expected = known is None or 2 * records >= files * known
        self.records_per_file = records if files == 1 or known is None else max(known, records / files)
        self._most = files * max_growth if as_expected else max(1.0, files / 2)
