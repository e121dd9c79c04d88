"""Namespaces of the kernel for servers that must not touch the machine: network, mounts and processes of their own.

No address, interface, firewall rule or mount made in them exists outside, and no way leads out of them to any
network. Their first process is `pause`; when it ends, the kernel ends every other.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from support.go_tools import go_tool
from support.servers import Server

CLONE_NEWNET = 0x40000000
OWN_MOUNTS = ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers")


class Namespaces:
    """A network, mounts and processes apart from the machine's; it takes root to make them."""

    def __init__(self, log: Path):
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._outer = Server([*unshare, go_tool("pause")], log)
        self._first = 0

    def start(self) -> None:
        """Make the namespaces, with a loopback interface that is up."""
        self._outer.start()
        self._outer.wait_until(self._has_begun)
        with self.network():
            run("ip", "link", "set", "lo", "up")
        run(*self.enter(), "mount", "--make-rshared", "/")
        for folder in OWN_MOUNTS:
            Path(folder).mkdir(parents=True, exist_ok=True)
            run(*self.enter(), "mount", "-t", "tmpfs", "tmpfs", folder)

    def stop(self) -> None:
        """End every process in them, and them with it."""
        self._outer.kill()

    def enter(self) -> list[str]:
        """Return what to put before a command that shall see the mounts and processes inside."""
        return ["nsenter", "--target", str(self._first), "--mount", "--pid", "--net", "--"]

    @contextmanager
    def network(self) -> Iterator[None]:
        """Make connections, and start processes, in the network inside, as far as this thread does so."""
        before, inside = Path("/proc/thread-self/ns/net"), Path(f"/proc/{self._first}/ns/net")
        with before.open() as way_back, inside.open() as way_in:
            _enter_network(way_in.fileno())
            try:
                yield
            finally:
                _enter_network(way_back.fileno())

    def _has_begun(self) -> bool:
        """Whether the first process runs its program, that is, all its namespaces are made."""
        for child in psutil.Process(self._outer.pid).children():
            if child.name() == "pause":
                self._first = child.pid
        return self._first != 0


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a command to its end and return its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{_shown(command)} failed:\n{done.stderr or done.stdout}"
    return done.stdout


def _enter_network(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _shown(command: Sequence[str | Path]) -> str:
    return " ".join(map(str, command))
