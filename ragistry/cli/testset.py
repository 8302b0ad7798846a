"""``ragistry testset``: make test sets from documents, and judge passages."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import command_group
from ragistry.cli.flags import FlagsError, refuse_all_but, refuse_together
from ragistry.cli.judge import judge
from ragistry.cli.options import JsonOption, WorkspaceOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_json
from ragistry.utils.removed import removed
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.evaluation.data.library import LibrarySource
    from ragistry.evaluation.data.testsets import Candidate, Kind
    from ragistry.ollama.generator import OllamaGenerator

FROM_PEOPLE = "asked"
"""Value of --from that means the questions that people asked."""
app = command_group("Make a test set from your documents, or judge passages.")
app.command()(judge)

KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", "-k", help="Queries from: description, else sentence (both by default); question."),
]
ModelOption = Annotated[str | None, typer.Option("--model", help="A model of Ollama that writes questions.")]


@app.command()
def make(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="New folder for corpus.jsonl, queries.jsonl and qrels/.", parser=given_path
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder of documents, instead of the workspace's library; or `asked`: the questions of people.",
            parser=given_path,
        ),
    ] = None,
    collection: Annotated[str | None, typer.Option("--collection", "-c", help="One collection of the library.")] = None,
    kind: KindOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of queries.")] = 200,
    model: ModelOption = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Make queries with one relevant source each: its description, else a sentence from its middle.

    `--from asked` lists the questions that people asked. Their candidates are what all techniques without a model find,
    and what was confirmed as an answer. Move those that answer a question to its `sources`, then use `ragistry compare
    --queries FOLDER/queries.jsonl`.

    The text of a query is removed from the document to find. Use the set with `ragistry compare --dataset FOLDER`.
    """
    from ragistry.evaluation.data.files import write_beir
    from ragistry.evaluation.data.testsets import ask_questions, known_items, make_testset

    if source == Path(FROM_PEOPLE):
        refuse_all_but(context, "--from asked", "out", "source", "limit", "as_json", "workspace")
        _check_target(out)
        _propose_asked(out, workspace, limit, as_json=as_json)
        return
    refuse_together(context, "source", "collection")
    if not model:  # which Ollama of the workspace writes with
        refuse_together(context, "source", "workspace")
    kinds = _kinds(kind, model)
    _check_target(out)
    sources = _sources(source, collection, workspace)
    left_out: Counter[str] = Counter()
    candidates: list[Candidate] = list(known_items(sources, kinds))
    if "question" in kinds and model:
        with closing(_generator(model, workspace)) as generator:
            candidates += ask_questions(sources, generator, limit, left_out)
    name = out.resolve().name
    made = make_testset(name, sources, candidates, limit=limit, model=model, left_out=left_out)
    write_beir(made.dataset, out)
    by_kind = Counter(known["kind"] for known in made.dataset.synthetic.values())
    if as_json:
        print_json(
            {"folder": str(out), "documents": len(sources), "queries": len(made.dataset.queries)}
            | {"kinds": dict(by_kind), "left_out": dict(made.left_out)}
        )
        return
    shares = ", ".join(numbered(count, f"{name}[|s]") for name, count in by_kind.items())
    documents, queries = numbered(len(sources), "document[|s]"), numbered(len(made.dataset.queries), "[query|queries]")
    console().print(f"{out}: {queries} ({shares}) from {documents}, marked as synthetic")
    for reason, count in made.left_out.items():
        error_line(f"{numbered(count, '[candidate was|candidates were]')} not used: {reason}", label="note")


def _propose_asked(out: Path, workspace: Path, limit: int, *, as_json: bool) -> None:
    """Write the questions that were asked, newest first, with the sources of several techniques as candidates."""
    import json

    from ragistry.errors import DatasetError
    from ragistry.evaluation.data.dataset import ASKED
    from ragistry.evaluation.data.library import source_id
    from ragistry.evaluation.judging import confirmed_passages
    from ragistry.library.asked import FILE, QuestionLog
    from ragistry.utils.ids import text_hash
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        asked = QuestionLog(opened.path_of(opened.settings.data_dir) / FILE).read()
        asked = [one for one in reversed(asked) if not one.limited]
        texts = dict.fromkeys(one.text for one in asked)
        if not texts:
            raise DatasetError("no question was kept; set log_questions: true in documents.yaml, and ask some")
        rows, registry = [], opened.registry
        usable = [name for name in registry.names() if not registry.unusable(name)]
        techniques = [name for name in usable if not registry.get(name).asks_model]
        confirmed = confirmed_passages(opened, asked)
        for number, text in enumerate(list(texts)[:limit], 1):
            found = [*confirmed.get(text, ())]
            for name in techniques:
                try:
                    found += opened.search(text, name, top_k=5).documents
                except Exception as error:  # noqa: BLE001, of a technique that a person wrote
                    error_line(f"{name!r} found no candidates of {text!r}: {error}", label="note")
            names = sorted({source_id(one.metadata) for one in found}, key=lambda one: text_hash(f"{number} {one}"))
            rows.append({"_id": f"q{number}", "text": text, "kind": ASKED, "sources": [], "candidates": names})
    out.mkdir(parents=True, exist_ok=True)
    path = out / "queries.jsonl"
    path.touch(0o600)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    if as_json:
        print_json({"file": str(path), "questions": len(rows)})
        return
    console().print(f"{path}: {numbered(len(rows), '[question|questions]')}; move the right candidates to sources")


def _kinds(given: list[str] | None, model: str | None) -> list[Kind]:
    """Return the requested kinds in their fixed order; questions need a model."""
    from ragistry.evaluation.data.testsets import KINDS

    known: tuple[Kind, ...] = (*KINDS, "question")
    wanted = given or (["question"] if model else list(KINDS))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        line = removed("value", f"testset make --kind {unknown[0]}")
        raise typer.BadParameter(line or f"unknown kind {unknown[0]!r}; the kinds are {', '.join(known)}")
    if "question" in wanted and not model:
        raise FlagsError("--kind question needs a model of Ollama; add --model NAME")
    if model and "question" not in wanted:
        raise FlagsError("--model does nothing without --kind question; add it, or remove --model")
    return [name for name in known if name in wanted]


def _check_target(folder: Path) -> None:
    from ragistry.errors import DatasetError

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"{str(folder)!r} exists and is not empty; choose a new folder")


def _sources(folder: Path | None, collection: str | None, workspace: Path) -> list[LibrarySource]:
    from ragistry.errors import DatasetError
    from ragistry.evaluation.data.library import folder_sources, library_sources
    from ragistry.workspace import open_workspace

    if folder is not None:
        return folder_sources(folder)
    with open_workspace(workspace, existing=True) as opened:
        sources = library_sources(opened, collection)
    if not sources:
        where = f"the collection {collection!r}" if collection else "the library"
        raise DatasetError(f"{where} has no sources; run `ragistry ingest` first, or give a folder with --from")
    return sources


def _generator(model: str, workspace: Path) -> OllamaGenerator:
    from ragistry.config.resolve import resolve
    from ragistry.ollama.generator import OllamaGenerator

    return OllamaGenerator(model, ollama_host=resolve(workspace, {}).settings.ollama_host)
