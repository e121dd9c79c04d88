"""Where a query takes up again, by what is in its checkpoint."""

import json

import pytest

from headgate_spark.engine.resumption import Resumption, offsets_in, read_resumption
from headgate_spark.engine.store import NumberedStore


class FakeDirectory:
    """Files in memory."""

    def __init__(self, **files):
        self.files = {name.removeprefix("_"): text for name, text in files.items()}

    def names(self):
        return list(self.files)

    def read(self, name):
        return self.files[name]

    def create(self, name, text):
        assert name not in self.files
        self.files[name] = text

    def delete(self, name):
        del self.files[name]


ENTRY = 'v1\n{"batchWatermarkMs":0}\n{"row":17}\n-'
OFFSETS = ('{"row":17}', None)

ROWS = (
    ("a query that has never run", (), (), Resumption()),
    ("its first batch was not committed", (0,), (), Resumption(0, repeats=True, offsets=OFFSETS)),
    ("stopped at a batch boundary", (8, 9, 10), (8, 9, 10), Resumption(10, repeats=False, offsets=OFFSETS)),
    ("ended in mid-batch", (8, 9, 10), (8, 9), Resumption(10, repeats=True, offsets=OFFSETS)),
    ("old commits were removed", (9, 10), (10,), Resumption(10, repeats=False, offsets=OFFSETS)),
)


@pytest.mark.parametrize(("planned", "committed", "found"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_the_logs_tell_where_a_query_takes_up_again(planned, committed, found):
    offsets = FakeDirectory(**{f"_{batch}": ENTRY for batch in planned}, **{".9.crc": "", "_tmp": ""})
    commits = FakeDirectory(**{f"_{batch}": "v1\n{}" for batch in committed})
    assert read_resumption(offsets, commits) == found


@pytest.mark.parametrize("entry", ["", "v2\n{}\n{}"])
def test_offsets_in_a_form_that_is_not_known_are_not_known(entry):
    assert offsets_in(entry) == ()


def test_the_newest_value_counts_and_old_ones_go():
    directory = FakeDirectory(**{"_lock": "4711", "_other.7.json": "1"})
    store = NumberedStore(directory, "batches")
    assert store.load() is None
    for value in range(12):
        store.save({"value": value})
    assert store.load() == {"value": 11}
    assert sorted(directory.files) == ["batches.11.json", "batches.12.json", "lock", "other.7.json"]
    assert json.loads(directory.files["batches.12.json"]) == {"value": 11}
