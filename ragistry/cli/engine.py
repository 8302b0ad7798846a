"""Options of commands whose work can run on several workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragistry.cli.flags import FlagsError

if TYPE_CHECKING:
    from ragistry.protocols import Engine

EngineName = Literal["local", "ray"]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="Where to run the work: local or ray.")]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT",
        help="The Ray cluster; auto: the one on this machine (default: a new one for this command).",
    ),
]


@contextmanager
def opened_engine(name: EngineName, ray_address: str | None) -> Iterator[Engine | None]:
    """Open the engine that the options name; None for this process. Ray prints to standard error."""
    if name == "local":
        if ray_address is not None:
            raise FlagsError("--ray-address does nothing without --engine ray; add it, or remove --ray-address")
        yield None
        return
    from ragistry.plugins import resolve_object

    with redirect_stdout(sys.stderr), resolve_object("ragistry.engines.ray:RayEngine")(ray_address) as engine:
        yield engine
