"""Files of a batch: how many, or how many bytes of them, bring so many records."""

from __future__ import annotations

from collections import deque

ENOUGH_BYTES = 2**20
"""Read by a run, from which on bytes per record are believed: headers are a small part of them by then."""
MOST_FILES, MOST_BYTES = 2**31 - 1, 2**63 - 1
"""Spark counts files of a batch in 32 bits, and their bytes in 64."""
REMEMBERED_FILES = 8
"""Batches of which the smallest records count: one odd file does not make batches small for good."""


class FileCount:
    """How many files a batch may take of a source that takes a limit in files, or in bytes, and tells nothing before.

        files = grant / records per file
        bytes = grant * bytes per record, the fewest that one of the last batches had

    Batches tell their records but not their files: `records / limit` is a lower bound, exact for a limit of one, so
    the first batch is one file. One that brings much less than expected met the end of the input or smaller files;
    the limit is halved, and if it comes down to one, the size is known again. Bytes, where the source tells them, are
    for a batch that spans a backlog. A small file has more bytes per record than a large one (header, footer,
    dictionaries), so until enough has been read a batch has no more than `max_growth` times the bytes read before it.
    """

    def __init__(self) -> None:
        self.records_per_file: float | None = None
        self._most = 1.0
        self._bytes = 0
        self._bytes_per_record: deque[float] = deque(maxlen=REMEMBERED_FILES)

    def for_records(self, records: int, *, grows_freely: bool = False) -> int:
        """Return how many files should bring about that many records; at least one.

        `grows_freely`: not bounded by what the last batch was (a batch that spans a backlog).
        """
        if self.records_per_file is None:
            return 1
        wanted = records / self.records_per_file
        return min(max(1, int(wanted if grows_freely else min(wanted, self._most))), MOST_FILES)

    def bytes_for(self, records: int, max_growth: float) -> int | None:
        """Return how many bytes of files bring at most that many records, as far as is known; `None`: it is not.

        Bounded by the bytes that were read before as long as these are few.
        """
        if not self._bytes_per_record:
            return None
        wanted = records * min(self._bytes_per_record)
        most = wanted if self._bytes >= ENOUGH_BYTES else min(wanted, max_growth * self._bytes)
        return min(max(1, int(most)), MOST_BYTES)

    def measured(self, records: int, size: int | None) -> None:
        """Learn from a batch whose files had `size` bytes in all; `None`: nobody can tell."""
        if size is not None and size > 0 and records > 0:
            self._bytes += size
            self._bytes_per_record.append(size / records)

    def read(self, files: int, records: int, max_growth: float) -> None:
        """Learn from a batch that was limited to `files` and brought `records`."""
        if records <= 0:
            return
        known = self.records_per_file
        as_expected = known is None or 2 * records >= files * known
        self.records_per_file = records if files == 1 or known is None else max(known, records / files)
        self._most = files * max_growth if as_expected else max(1.0, files / 2)
