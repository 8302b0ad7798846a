"""``ragistry mcp skill``: instructions for agents that use the command line or the MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.options import DebugOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console

SKILL = Path(__file__).with_name("SKILL.md")
MARK = b"\ncompatibility: Needs the command `ragistry`"
"""A line that every version of the file has; without it, a file is not from this command."""


def skill(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder from which your agent reads skills, such as .agents/skills.",
            parser=given_path,
        ),
    ],
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Write an Agent Skill: instructions to use Ragistry.

    They say how to search, answer with sources, and ingest documents. The file is FOLDER/ragistry/SKILL.md. Run the
    command again after an update of Ragistry. A file of this name that is not from Ragistry is never replaced.
    """
    from ragistry.errors import ConfigError

    path = target / "ragistry" / SKILL.name
    try:
        if path.exists() and MARK not in path.read_bytes():
            raise ConfigError(f"{str(path)!r} is not from Ragistry, so it was not replaced; move it away first")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SKILL.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror}; name another folder") from error
    console().print(f"wrote {path}")
