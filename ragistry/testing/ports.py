"""Loopback ports for tests that no other process takes meanwhile."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

LOOPBACK = "127.0.0.1"
FIRST_PORT = 10_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
EPHEMERAL_OF_OTHER_SYSTEMS = (49_152, 65_535)


def reserved_port() -> int:
    """Return a port on which a server of this process may start, stop and start again.

    The port is outside of the range that the system gives to outgoing connections. A bound UDP socket of the same
    number reserves it until this process ends: another process that calls this function gets another port.

    Raises:
        RuntimeError: Every port is in use.
    """
    ports = _ports_outside_of(*_ephemeral_range())
    start = os.getpid() * 31 % len(ports)  # Processes that start together begin at different ports.
    for port in ports[start:] + ports[:start]:
        reservation = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reservation.bind((LOOPBACK, port))
            with socket.socket() as listener:
                listener.bind((LOOPBACK, port))
        except OSError:
            reservation.close()
        else:
            reservation.detach()  # The kernel keeps it until the process ends.
            return port
    raise RuntimeError(f"no port of {LOOPBACK} is free; end the programs that listen there")


@cache
def refused_port() -> int:
    """Return a port that refuses connections until this process ends: a socket is bound to it and does not listen."""
    holder = socket.socket()
    holder.bind((LOOPBACK, 0))
    port = int(holder.getsockname()[1])
    holder.detach()
    return port


def _ephemeral_range() -> tuple[int, int]:
    try:
        first, last = EPHEMERAL.read_text(encoding="ascii").split()
    except OSError:
        return EPHEMERAL_OF_OTHER_SYSTEMS
    return int(first), int(last)


def _ports_outside_of(first: int, last: int) -> list[int]:
    """List the ports below and above a range; every port if the range covers them all."""
    return [*range(FIRST_PORT, first), *range(last + 1, 65_536)] or [*range(FIRST_PORT, 65_536)]
