"""Where this process listens: on one address, or on every one that the machine has, of both families.

A pod in a cluster with IPv6 alone has no IPv4 address that a probe could reach, and one on a machine without IPv6
cannot bind `::`.
"""

from __future__ import annotations

import socket


def listening_host(host: str) -> str:
    """Return the host to bind: `host` itself, or where it is empty the one that stands for every address."""
    return host or _every_address()


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of a host to bind, which is an address, or a name of IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _every_address() -> str:
    """Return `::`, on which Linux takes IPv4 too, unless there is no IPv6."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
            tried.bind(("::", 0))
    except OSError:
        return "0.0.0.0"  # noqa: S104  asked for by leaving the address out
    return "::"
