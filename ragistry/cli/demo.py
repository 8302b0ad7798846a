"""``ragistry demo``: search and compare techniques on documents that come with the package."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.command import run_line
from ragistry.cli.options import path as given_path
from ragistry.errors import ConfigError
from ragistry.utils.installation import install_command

COLLECTIONS = {
    "handbook": "Operations handbook of the Lantern server",
    "garden": "Gardening: soil, pests, pruning, watering",
    "manuals": "Manuals of appliances and instruments",
}
QUESTIONS = "questions.jsonl"
"""The questions of the demo with the documents that answer them; it also marks a folder that the demo made."""
LINES = (
    "ragistry init --yes",
    *(f'ragistry ingest {name} --collection {name} --create "{text}"' for name, text in COLLECTIONS.items()),
    'ragistry search "how do I restore yesterday\'s backup?" --top-k 2',
    'ragistry search "how often does the boiler need descaling?" --collection manuals --top-k 1',
    'ragistry search "LNT-1042" --technique bm25 --top-k 1',
    f"ragistry compare --queries {QUESTIONS} -t bm25 -t hybrid --measure nDCG@10",
)


def demo(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the documents and the library.", parser=given_path)
    ] = Path("demo-workspace"),
) -> None:
    """Search 40 documents that come with Ragistry, and compare two techniques on questions about them.

    The documents are copied to FOLDER, in which you can continue. Running it again uses the same folder.
    """
    _copy_documents(target)
    with contextlib.chdir(target):
        for line in LINES:
            typer.echo(f"\n$ {line}")
            if code := run_line(context, line, Path()):
                raise typer.Exit(code)
    install_page = "" if find_spec("nicegui") else f"\n  {install_command('ui')}"
    typer.echo(f"""
next:
  cd {shlex.quote(str(target))}
  ragistry search "when should I water tomatoes?"{install_page}
  ragistry ui                                         # the same in a browser
  ragistry init ~/library                             # a library of your own documents
  ragistry testset judge mine                         # decide by your own grades which technique is better""")


def _copy_documents(target: Path) -> None:
    """Copy the missing documents. Raises `ConfigError` for a folder with other files."""
    if target.exists() and not (target / QUESTIONS).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{str(target)!r} exists and is not from an earlier demo; name a new folder")
    target.mkdir(parents=True, exist_ok=True)
    examples = _examples()
    lines = (examples / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    with (target / QUESTIONS).open("w", encoding="utf-8") as file:
        for question in questions:
            if question["collection"] is not None:  # the others have no answer here
                source = f"{question['collection']}/{question['source_file']}"
                file.write(json.dumps({"text": question["text"], "sources": [source]}, ensure_ascii=False) + "\n")
    for name in COLLECTIONS:
        if not (target / name).exists():
            shutil.copytree(examples / name, target / name)


def _examples() -> Path:
    """Return the folder of the documents: part of an installed package, or the fixtures of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "examples"
    return installed if installed.is_dir() else package.parent / "fixtures"
