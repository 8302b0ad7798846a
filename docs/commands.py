"""Every command with its arguments and options, read from the Typer application."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from docs.markdown import code, table
from ragistry.cli.app import app, load_command

EVERYWHERE = ("workspace", "debug")
"""Options that every command has; the section of the program says what they are."""
PRINTS_JSON = "Print JSON."


def commands() -> dict[str, Any]:
    """``ragistry search``, ``ragistry collections list``, … with what each is."""
    root = typer.main.get_command(app)
    return {"ragistry": root, **dict(_below("ragistry", root))}


def _below(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in subcommands(group).items():
        yield f"{prefix} {name}", command
        yield from _below(f"{prefix} {name}", command)


def subcommands(command: Any) -> Mapping[str, Any]:
    """The commands of a group, by name; none of a command."""
    return {name: load_command(one) for name, one in getattr(command, "commands", {}).items()}


def command_reference() -> str:
    """A section a command."""
    return "\n\n".join(_section(name, command) for name, command in commands().items())


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    json = [p for p in options if p.help == PRINTS_JSON]
    usage = [name, "[OPTIONS]" if options else "", "[--json]" if json else "", *map(_usage, arguments)]
    usage += ["COMMAND"] if subcommands(command) else []
    parts = [
        f"{'##' if name.count(' ') < 2 else '###'} {name}",
        _prose(command.help),
        f"```console\n$ {' '.join(filter(None, usage))}\n```",
    ]
    if subcommands(command):
        links = [f"[`{below}`](#{f'{name} {below}'.replace(' ', '-')})" for below in subcommands(command)]
        parts.append(f"Commands: {', '.join(links)}")
    rows = [(code(_usage(p)), _prose(p.help)) for p in arguments]
    said = [p for p in options if p.name in EVERYWHERE] if name != "ragistry" else []
    rows += [(code(_spelling(p)), f"{_prose(p.help)}{_default(p)}") for p in options if p not in said + json]
    if rows:
        parts.append(table(["", "meaning"], rows))
    return "\n\n".join(parts)


def _prose(text: str | None) -> str:
    """Help as a page shows it: what would be HTML is text."""
    paragraphs = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(" ".join(paragraph.split()).replace("<", "&lt;") for paragraph in paragraphs)


def _usage(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper() + ("…" if argument.nargs == -1 or argument.multiple else "")
    return name if argument.required else f"[{name}]"


def _spelling(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return names + value + (" (again for more)" if option.multiple else "")


def _default(option: Any) -> str:
    if option.required:
        return " Required."
    if option.default is None or callable(option.default) or option.is_flag:
        return f" Default: `{option.opts[0]}`." if option.is_flag and option.default and option.secondary_opts else ""
    return f" Default: `{'.' if option.default == Path() else option.default}`."
