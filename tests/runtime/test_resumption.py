"""Where a query takes up again, by what is in its checkpoint."""

import json

import pytest

from headgate_spark.engine.resumption import Ends, Resumption, ends_in, read_resumption, takes_least_in
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
ENDS = Ends(('{"row":17}', None))

ROWS = (
    ("a query that has never run", (), (), Resumption()),
    ("its first batch was not committed", (0,), (), Resumption(0, repeats=True, ends=ENDS)),
    ("stopped at a batch boundary", (8, 9, 10), (8, 9, 10), Resumption(10, repeats=False, ends=ENDS)),
    ("ended in mid-batch", (8, 9, 10), (8, 9), Resumption(10, repeats=True, ends=ENDS, begins=ENDS)),
    ("the entry before is gone", (8, 10), (8,), Resumption(10, repeats=True, ends=ENDS)),
    ("old commits were removed", (9, 10), (10,), Resumption(10, repeats=False, ends=ENDS)),
)


@pytest.mark.parametrize(("planned", "committed", "found"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_the_logs_tell_where_a_query_takes_up_again(planned, committed, found):
    offsets = FakeDirectory(**{f"_{batch}": ENTRY for batch in planned}, **{".9.crc": "", "_tmp": ""})
    commits = FakeDirectory(**{f"_{batch}": "v1\n{}" for batch in committed})
    assert read_resumption(offsets, commits) == found


@pytest.mark.parametrize("entry", ["", "v3\n{}\n{}", "v2\n{}\n17", "v1"])
def test_offsets_in_a_form_that_is_not_known_are_not_known(entry):
    ends = ends_in(entry)
    assert not ends
    assert not ends.tells_of(0)


def test_sources_that_go_by_name_are_found_by_it_wherever_they_are():
    ends = ends_in('v2\n{"batchWatermarkMs":0}\norders:{"orders":{"0":17}}\npayments:-\nrefunds:a:b')
    assert ends
    found = [ends.of([place], name) for place, name in enumerate(("refunds", "payments", "added", "orders"))]
    assert found == ["a:b", None, None, '{"orders":{"0":17}}']
    assert all(ends.tells_of(place) for place in range(4))


def test_sources_that_go_by_place_are_known_as_far_as_they_were_there():
    ends = ends_in(ENTRY)
    assert [ends.of([place], "any") for place in range(2)] == ['{"row":17}', None]
    assert [ends.tells_of(place) for place in range(3)] == [True, True, False]


def test_sources_that_go_by_number_are_found_by_any_of_their_lines():
    ends = ends_in('v2\n{"batchWatermarkMs":0}\n1:{"row":17}\n2:{"row":4}\n3:-')
    assert not ends.are_by_name([None, "orders"])
    assert [ends.of(lines, None) for lines in ([1], [0, 2], [3], [4])] == [
        '{"row":17}',
        '{"row":4}',
        None,
        None,
    ]


def test_a_name_may_look_like_a_number():
    ends = ends_in('v2\n{"batchWatermarkMs":0}\n0:{"row":17}\n2:{"row":4}')
    assert ends.are_by_name(["7", "2"])
    assert [ends.of([2], "7"), ends.of([0], "2")] == [None, '{"row":4}']


@pytest.mark.parametrize(
    ("metadata", "takes_least"),
    [
        ('{"conf":{"spark.sql.streaming.multipleWatermarkPolicy":"max"}}', False),
        ('{"conf":{"spark.sql.streaming.multipleWatermarkPolicy":"MIN"}}', True),
        ('{"conf":{}}', None),
        ("{}", None),
        ("[", None),
    ],
)
def test_a_checkpoint_says_which_of_several_watermarks_counts(metadata, takes_least):
    assert takes_least_in(f"v1\n{metadata}\n-") is takes_least


def test_the_newest_value_counts_and_old_ones_go():
    directory = FakeDirectory(**{"_lock": "4711", "_other.7.json": "1"})
    store = NumberedStore(directory, "batches")
    assert store.load() is None
    for value in range(12):
        store.save({"value": value})
    assert store.load() == {"value": 11}
    assert sorted(directory.files) == ["batches.11.json", "batches.12.json", "lock", "other.7.json"]
    assert json.loads(directory.files["batches.12.json"]) == {"value": 11}
