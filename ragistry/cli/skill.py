"""``ragistry skill``: instructions for agents that use the command line or the MCP server."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.flags import FlagsError
from ragistry.cli.options import DebugOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_text

SKILL = Path(__file__).with_name("SKILL.md")
NEW, OLD, CURRENT, FOREIGN = "is new", "is older", "is up to date", "is not from Ragistry"
MARK = "\ncompatibility: Needs the command `ragistry`"
"""A line that every version of the file has; without it, a file is not from this command."""
AGENTS = {
    ".claude": ("Claude Code", ".claude/skills"),
    ".codex": ("Codex", ".agents/skills"),
    ".gemini": ("Gemini CLI", ".agents/skills"),
    ".config/opencode": ("opencode", ".agents/skills"),
    ".agents": ("agents that read .agents", ".agents/skills"),
    ".cursor": ("Cursor", ".cursor/skills"),
    ".copilot": ("GitHub Copilot", ".copilot/skills"),
}
"""Agents by the folder that each has in the home folder, with the folder in which it reads skills."""


def skill(
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder from which your agent reads skills, such as .agents/skills.",
            parser=given_path,
        ),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Write it for all agents of your home folder, after asking.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Write an Agent Skill: instructions to search, answer with sources, and ingest documents with Ragistry.

    The file is FOLDER/ragistry/SKILL.md. Run the command again after an update of Ragistry. A file of this name that is
    not from Ragistry is never replaced.
    """
    from ragistry.errors import ConfigError

    if (target is None) != install or (yes and not install):
        raise FlagsError("name the folder of one agent, or write --install, to which --yes can be added")
    if target is not None:
        path = target / "ragistry" / SKILL.name
        if _state(path) == FOREIGN:
            raise ConfigError(f"{str(path)!r} {FOREIGN}, so it was not replaced; move it away first")
        _write(path)
        return
    home = Path.home()
    found: dict[Path, list[str]] = {}
    for folder, (name, skills) in AGENTS.items():
        if (home / folder).is_dir():
            found.setdefault(home / skills / "ragistry" / SKILL.name, []).append(name)
    if not found:
        raise ConfigError(
            f"{str(home)!r} has no folder of an agent ({', '.join(AGENTS)}); "
            "name the folder from which your agent reads skills: ragistry skill FOLDER"
        )
    states = {path: _state(path) for path in found}
    _install([path for path, state in states.items() if state in (NEW, OLD)], found, states, yes)
    if FOREIGN in states.values():
        raise typer.Exit(1)


def _install(
    paths: Sequence[Path], agents: Mapping[Path, Sequence[str]], states: Mapping[Path, str], yes: bool
) -> None:
    """Show what would be written, ask, and write."""
    from ragistry.cli.confirm import ask_yes_no
    from ragistry.errors import ConfigError

    new = SKILL.read_text(encoding="utf-8").splitlines()
    for old in dict.fromkeys(path.read_text(encoding="utf-8") if path.exists() else "" for path in paths):
        print_text("\n".join(difflib.unified_diff(old.splitlines(), new, "now", SKILL.name, lineterm="")))
    for path, names in agents.items():
        console().print(f"{path} ({', '.join(names)}) {states[path]}")
    if not paths:
        return
    if not yes and not sys.stdin.isatty():
        raise ConfigError("nothing was written; to write these files without being asked, add --yes")
    if not yes and not ask_yes_no("Write?", default=False):
        error_line("nothing was written", label="note")
        raise typer.Exit(1)
    for path in paths:
        _write(path)


def _state(path: Path) -> str:
    from ragistry.errors import ConfigError

    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return NEW
    except UnicodeDecodeError:
        return FOREIGN
    except OSError as error:
        raise ConfigError(f"cannot read {str(path)!r}: {error.strerror}; move it away") from error
    if MARK not in text:
        return FOREIGN
    return CURRENT if text == SKILL.read_text(encoding="utf-8") else OLD


def _write(path: Path) -> None:
    from ragistry.errors import ConfigError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SKILL.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror}; name another folder") from error
    console().print(f"wrote {path}")
