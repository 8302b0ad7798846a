"""``ragistry init``: write the configuration of a new workspace."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.command import run_line
from ragistry.cli.options import JsonOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, print_json

FILES = ("techniques.yaml", "documents.yaml", "vector_stores.yaml", "models.yaml")


def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="Folder of the workspace; created if it does not exist.", parser=given_path)
    ] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for documents.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the configuration files of a workspace; existing files do not change.

    On a terminal, the command then asks for a folder of documents and the name of a collection, and ingests them.
    """
    from ragistry.config.folder import check_restored
    from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
    from ragistry.errors import ConfigError

    check_restored(folder)
    target = folder / CONFIG_FOLDER
    written, kept = [], []
    try:
        (target / "schemas").mkdir(parents=True, exist_ok=True)
        for name in FILES:
            path = target / name
            if path.exists():
                kept.append(str(path))
                continue
            schema = f"# yaml-language-server: $schema=schemas/{_schema_name(name)}\n"
            path.write_text(schema + (DEFAULTS / name).read_text(encoding="utf-8"), encoding="utf-8")
            written.append(str(path))
        for name, schema_of_file in schemas().items():
            (target / "schemas" / name).write_text(json.dumps(schema_of_file, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {str(error.filename or target)!r}: {error.strerror}") from error
    if as_json:
        print_json({"written": written, "kept": kept})
        return
    out = console()
    for name in written:
        out.print(f"wrote {name}")
    for name in kept:
        out.print(f"kept  {name}")
    line = _first_ingest() if written and not yes and sys.stdin.isatty() and sys.stdout.isatty() else None
    if line is None:
        out.print("next: ragistry ingest FOLDER --collection NAME")
        return
    code = run_line(context, line, folder)
    enter = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    out.print(f'next: {enter}ragistry search "your question"')
    if code:
        raise typer.Exit(code)


def _first_ingest() -> str | None:
    """Ask for documents, and return the command that ingests them; None for an empty answer."""
    documents = typer.prompt(
        "Folder of your documents (Enter: later)", default="", show_default=False, value_proc=_documents
    )
    if not documents:
        return None
    typed = typer.prompt("Name of the collection", default=Path(documents).resolve().name)
    return shlex.join(["ragistry", "ingest", documents, "--collection", typed])


def _documents(typed: str) -> str:
    """Check the typed path, which may be empty; the prompt repeats if it does not exist."""
    path = Path(typed.strip()).expanduser()
    if typed.strip() and not path.exists():
        raise typer.BadParameter(f"no such file or folder: {typed!r}")
    return str(path) if typed.strip() else ""


def _schema_name(file: str) -> str:
    return file.replace(".yaml", ".schema.json")


def schemas() -> dict[str, dict[str, object]]:
    """Return the JSON Schemas with which editors complete and check the files."""
    from pydantic import BaseModel

    from ragistry.config.files import FILES as SETTINGS
    from ragistry.config.models import MODELS_FILE, ModelsFile
    from ragistry.techniques.classes import techniques_schema

    files: dict[str, type[BaseModel]] = {**SETTINGS, MODELS_FILE: ModelsFile}
    schemas = {_schema_name(name): model.model_json_schema() for name, model in files.items()}
    return schemas | {"techniques.schema.json": techniques_schema()}
