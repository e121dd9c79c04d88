"""The exporter: where it serves. What a real scrape looks like is in `test_launch.py`."""

import errno

import pytest

from headgate_spark.exporter import first_free


def taken_below(free):
    def bind(port):
        if port < free:
            raise OSError(errno.EADDRINUSE, "taken")
        return port

    return bind


def test_the_next_free_port_is_found():
    assert first_free(8090, taken_below(8093)) == 8093


def test_ports_that_are_all_taken_are_told_with_a_remedy():
    with pytest.raises(OSError, match=r"8090 to 8189 are all taken; give another one"):
        first_free(8090, taken_below(10**6))


def test_an_address_that_is_not_ours_is_not_searched_for():
    def refuse(port):
        raise OSError(errno.EADDRNOTAVAIL, "not here")

    with pytest.raises(OSError, match="not here"):
        first_free(8090, refuse)
