"""The command line: the table of commands, and errors as one line and an exit code."""

from __future__ import annotations

import io
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from ragistry.cli.options import path
from ragistry.errors import RagistryError

GROUPS = {
    "Search and read": {
        "search": ("search:search", "Search the library and print the results."),
        "ask": ("ask:ask", "Answer a question from the documents, and cite the passages."),
        "grep": ("reading:grep", "Find the lines of the documents that contain a pattern."),
        "read": ("reading:read", "Print lines of a source by their numbers, or around a place."),
        "outline": ("reading:outline", "List the headings, pages, slides, sheets and chapters."),
        "check": ("check:check", "Check the quotations and citations of an answer."),
        "why": ("why:why", "Explain why a search does not return a source."),
        "route": ("route:route", "Print which collections a query would be routed to."),
    },
    "Library": {
        "demo": ("demo:demo", "Search 40 documents that come with Ragistry."),
        "init": ("init:init", "Write the configuration files of a workspace."),
        "ingest": ("ingest:ingest", "Add files, folders and web pages to a collection."),
        "collections": ("collections:app", "List, add, rename, describe and delete collections."),
        "sources": ("sources:app", "List, change, move and delete sources."),
        "repo": ("repo:app", "Documentation repositories: Git clones of Markdown trees."),
    },
    "Compare": {
        "techniques": ("techniques:techniques", "List the techniques of the workspace with a description."),
        "testset": ("testset:app", "Make a test set from your documents, or judge passages."),
        "compare": ("compare:compare", "Compare techniques on a test set."),
        "gate": ("gate:gate", "Say whether B lost quality against A, two reports of compare."),
        "plan": ("plan:plan", "Say how many questions a comparison needs."),
    },
    "Serve": {
        "ui": ("ui:ui", "Serve the library as a page on this machine."),
        "serve": ("serve:app", "Serve the library to programs over HTTP."),
        "mcp": ("mcp:app", "Serve the library to agents over MCP, or write an Agent Skill."),
    },
    "Look after": {
        "config": ("config:app", "Print each setting with its value, or list embedding models."),
        "doctor": ("doctor:doctor", "Check the configuration, the models, the store and Ollama."),
        "verify": ("maintenance:verify", "Read every file of the store and report problems."),
        "repair": ("maintenance:repair", "Rebuild damaged indexes, and copy every readable row."),
        "reembed": ("maintenance:reembed", "Embed every chunk with the configured embedder."),
        "backup": ("backup:backup", "Write the workspace to one zip file."),
        "restore": ("backup:restore", "Restore a backup as a workspace in a new folder."),
        "store": ("store:app", "Copy a library between stores."),
    },
}
"""Commands by group, each with its function or application in this package, and one line: the beginning of its help."""


DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", expose_value=False)]


class LazyCommand(TyperCommand):
    """A command whose module is imported when the command runs, not when it is listed."""

    def __init__(self, name: str, place: str, help: str) -> None:
        super().__init__(name, help=help, rich_markup_mode=None)
        self._place = place
        self._command: Any = None

    def load(self) -> Any:
        """Return the command itself."""
        if self._command is None:
            module, _, attribute = self._place.partition(":")
            found = getattr(import_module(f"ragistry.cli.{module}"), attribute)
            group = typer.Typer(rich_markup_mode=None, callback=_debug)
            if isinstance(found, typer.Typer):
                group.add_typer(found, name=self.name)
            else:
                group.command(self.name)(found)
            made = typer.main.get_group(group)
            self._command = made.commands[str(self.name)]
            _add_options(self._command, made.params)
        return self._command

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        return self.load().make_context(*arguments, **options)


def _debug(debug: DebugOption = False) -> None:
    """Declare the option of all commands, which `run` reads from the command line."""


def _add_options(command: Any, options: list[Any]) -> None:
    """Add options to a command and those below it, but not to a group that only lists its commands."""
    below = getattr(command, "commands", {}).values()
    for one in below:
        _add_options(one, options)
    if command.params or not below:
        command.params += options


def load_command(command: Any) -> Any:
    """Return a command of the list, with its module imported."""
    return command.load() if isinstance(command, LazyCommand) else command


class Commands(TyperGroup):
    """All commands of ``ragistry``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: LazyCommand(name, *entry) for group in GROUPS.values() for name, entry in group.items()}

    def format_commands(self, context: Any, formatter: Any) -> None:  # noqa: ARG002, the parser passes it
        """List the commands in their groups, with aligned help."""
        width = max(map(len, self.commands))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help) for name, (_, help) in group.items()])


app = typer.Typer(
    name="ragistry",
    cls=Commands,
    help="Name a retrieval technique, ingest once, ask, and see which technique is better on your documents.",
    invoke_without_command=True,
    rich_markup_mode=None,  # the help of rich takes twice the time of the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ragistry import __version__

        typer.echo(f"ragistry {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    workspace: Annotated[
        Path,
        typer.Option("--workspace", "-w", help="Folder of the workspace.", envvar="RAGISTRY_WORKSPACE", parser=path),
    ] = Path(),
    debug: DebugOption = False,  # noqa: ARG001, as in `_debug`
    version: bool = typer.Option(  # noqa: ARG001, its callback prints
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Options before a command; the same options after the command override them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
    defaults = {"workspace": workspace}
    command = load_command(context.command.get_command(context, context.invoked_subcommand))  # type: ignore[attr-defined] # a group
    below = dict.fromkeys(getattr(command, "commands", {}), defaults)
    context.default_map = {context.invoked_subcommand: defaults | below, "init": {"folder": workspace}}


def run() -> None:
    """Run a command. Exit codes: 0 done, 1 failed in whole or in part, 2 wrong usage, 130 interrupted.

    `ingest` has 3 too, and `ask` 4 to 8. A closed pipe on the output does not change the exit code.
    """
    make_robust()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", handlers=[_WarningHandler()])
    debug = "--debug" in sys.argv or bool(os.environ.get("RAGISTRY_DEBUG"))
    try:
        sys.exit(app(prog_name="ragistry", standalone_mode=False))
    except typer.TyperException as error:
        _error_line(_usage(error))
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Exception as error:
        # the failed technique and the line of the user's code; of nested techniques, the innermost
        note = next((note for note in getattr(error, "__notes__", ()) if note.startswith("technique ")), "")
        if debug or not (note or isinstance(error, RagistryError | OSError)):
            raise
        if isinstance(error, RagistryError):
            _error_line(f"{error} ({note})" if note else str(error))
            sys.exit(1)
        message = f"{note}: {type(error).__name__}: {error}"
        if isinstance(error, OSError) and not note:
            place = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
            message = f"{place}{error.strerror or str(error) or type(error).__name__}"
        _error_line(f"{' '.join(message.split())}; `--debug` shows where")
        sys.exit(1)


def _error_line(message: str, label: str = "error") -> None:
    from ragistry.cli.output import error_line  # imports rich

    error_line(message, label)


def _usage(error: typer.TyperException) -> str:
    """Return an error in the use of a command on one line, with the command whose help explains it."""
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "ragistry"
    if problem := _problem(error):
        error.message = problem
    if line := _removed(error, command):
        return line
    text = " ".join(error.format_message().split())
    if context and hasattr(error, "option_name") and not getattr(error, "possibilities", ()):
        arguments = [str(one.name).upper() for one in context.command.params if one.param_type_name == "argument"]
        if arguments:
            text += f"; put `--` before a text that begins with a dash: {command} -- {arguments[0]}"
    return f"{text} (see `{command} --help`)"


def _removed(error: typer.TyperException, command: str) -> str:
    """Return what replaces a command or an option that does not exist any more; empty for other errors."""
    from ragistry.utils.removed import removed

    message = error.format_message()
    name = getattr(error, "option_name", "")
    if message.startswith("No such command '"):
        name = message.split("'")[1]
    elif message.startswith("Got unexpected extra argument"):
        name = "FILE"
    return removed("command", f"{command} {name}".removeprefix("ragistry "))


def _problem(error: typer.TyperException) -> str:
    """Return what is wrong with a value that a type rejected; empty for other errors."""
    from pydantic import ValidationError

    from ragistry.utils.wording import problem_of

    if not isinstance(error.__cause__, ValidationError):
        return ""
    found = error.__cause__.errors()[0]
    return f"{problem_of(found)}, got {found['input']!r}"


class _WarningHandler(logging.Handler):
    """Prints each distinct warning once, as a line on standard error in the form of errors."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.name.split(".")[0] == "ragistry" and message not in self.printed:
            self.printed.add(message)
            _error_line(message, label=record.levelname.lower())


# --- Output that tolerates closed pipes, full disks, and characters that a terminal cannot show ---


class Stream(io.FileIO):
    """A stream that discards output once it cannot be written.

    If the reader closes the pipe, as ``head`` does, the command continues silently and ends with its own exit code.
    Raises `RagistryError`, once, if the system refuses to write.
    """

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if not size:  # the caller only asks whether the stream takes bytes
            return 0
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                return size
            raise RagistryError(
                f"cannot write the output: {error.strerror}; make room, or write it elsewhere"
            ) from error


def make_robust() -> None:
    """Replace standard output and error by `Stream`, unless a program or a Windows console provides its own."""
    if sys.stdout is sys.__stdout__ and (stdout := _robust(sys.stdout)):
        sys.stdout = stdout
    if sys.stderr is sys.__stderr__ and (stderr := _robust(sys.stderr)):
        sys.stderr = stderr


def _robust(stream: Any) -> io.TextIOWrapper | None:
    """Return a `Stream` for a stream of Python; it writes characters outside its encoding as ``\\xe9``."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # with PYTHONUNBUFFERED there is no buffer
    if type(raw) is not io.FileIO:  # a Windows console has its own class, which always has a reader
        return None
    robust = Stream(raw.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        robust if buffer is raw else io.BufferedWriter(robust),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
