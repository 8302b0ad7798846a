"""Common parts of commands that listen: the option ``--port``, the socket, the end."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Annotated

import typer

from ragistry.errors import ConfigError

LARGEST_PORT = 65_535


def _port(number: int) -> int:
    if not 0 <= number <= LARGEST_PORT:
        raise typer.BadParameter(f"{number} is not a port; choose 1 to {LARGEST_PORT}, or 0 for a free one")
    return number


PortOption = Annotated[int, typer.Option("--port", "-p", help="Port, 1 to 65535; 0: a free one.", callback=_port)]


def listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket. Port 0 selects a free port.

    Raises:
        ConfigError: The address or port cannot be used.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {host!r}, port {port}: {error.strerror}; choose another --host or --port"
        ) from error
    return listener


def url_of(host: str, listener: socket.socket) -> str:
    """Return the address of a listening socket."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def exit_on_sigterm() -> None:
    """End the process in order after SIGTERM. Uvicorn raises it again at its end, which would skip the cleanup."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
