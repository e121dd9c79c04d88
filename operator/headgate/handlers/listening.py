"""Where this process listens: on one address, or on every one that the machine has, of both families."""

from __future__ import annotations

import socket

from headgate_contract.listening import every_address


def listening_host(host: str) -> str:
    """Return the host to bind: `host` itself, or where it is empty the one that stands for every address."""
    return host or every_address()


def family_of(host: str) -> socket.AddressFamily:
    """Return the family of a host to bind, which is an address, or a name of IPv4."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
