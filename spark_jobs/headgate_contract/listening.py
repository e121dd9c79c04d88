"""Where a process listens that was told nothing else: on every address that the machine has, of both families.

A pod in a cluster with IPv6 alone has no IPv4 address that a scrape or a probe could reach, and a process on a
machine without IPv6 cannot bind `::`. Operator and driver are reached in the same way.
"""

from __future__ import annotations

import socket

DEFAULT_PORT = 8090
"""Of a driver's metrics."""


def every_address() -> str:
    """Return the address that stands for every interface: `::`, on which Linux takes IPv4 too, if there is IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
            tried.bind(("::", 0))
    except OSError:
        return "0.0.0.0"  # noqa: S104  asked for by leaving the address out
    return "::"
