"""``ragistry skill``: instructions for agents that use the command line or the MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.options import DebugOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console

SKILL = Path(__file__).with_name("SKILL.md")


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
    """Write an Agent Skill: instructions to search, answer with sources, and ingest documents with Ragistry.

    The file is FOLDER/ragistry/SKILL.md. Run the command again after an update of Ragistry.
    """
    from ragistry.errors import ConfigError

    path = target / "ragistry" / SKILL.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SKILL.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror}; name another folder") from error
    console().print(f"wrote {path}")
