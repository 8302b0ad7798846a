"""A port to serve on."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from ragistry.errors import ConfigError

LARGEST_PORT = 65_535


def _port(number: int) -> int:
    if not 0 <= number <= LARGEST_PORT:
        raise typer.BadParameter(f"{number} is no port; choose one from 1 to {LARGEST_PORT}, or 0 for any that is free")
    return number


PortOption = Annotated[int, typer.Option("--port", "-p", help="Port, 1 to 65535; 0: any free one.", callback=_port)]


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; ``port`` 0: a free one. Raises `ConfigError` where it cannot."""
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


def written(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
