"""``ragistry search``: ask, and see where the passages come from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.completion import collection_names, technique_names
from ragistry.cli.flags import refuse_together
from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, error_line, print_json
from ragistry.tools.quoting import one_line
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.types import Document, RetrievalResult
    from ragistry.workspace import Workspace

EXCERPT = 400


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    technique: Annotated[
        str | None, typer.Option("--technique", "-t", autocompletion=technique_names, help="A name of techniques.yaml.")
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option("--collection", "-c", autocompletion=collection_names, help="Search this collection only."),
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="How many passages, 1 to 1,000.")] = None,
    where: Annotated[str | None, typer.Option("--where", help='Condition on metadata, JSON: {"page": 3}.')] = None,
    full: Annotated[bool, typer.Option("--full", help="Print whole passages.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Print what each stage did.")] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Search the library and print the best passages, with source, page or heading, and score."""
    from ragistry.workspace import open_workspace

    refuse_together(context, "as_json", "full", "trace")  # JSON has all of both
    condition = None if where is None else _condition(where)
    if top_k is not None:
        check_top_k(top_k, name="--top-k")
    with open_workspace(workspace, existing=True) as opened:
        _check_is_collection(opened, collection)
        result = opened.search(query, technique, collection, top_k, condition)
    if as_json:
        print_json(as_mapping(result))
        return
    for number, document in enumerate(result.documents, start=1):
        _print(number, document, full)
    for reason in result.degraded:
        error_line(reason, label="degraded")
    if not result.documents:
        error_line("nothing found", label="note")
    if trace:
        _print_trace(result)


def as_mapping(result: RetrievalResult) -> dict[str, Any]:
    """A result as plain values, the form of ``--json``."""
    return {
        "query": result.query,
        "documents": [
            {"id": d.id, "content": d.content, "metadata": d.metadata, "score": d.score,
             "scores": [asdict(score) for score in d.scores]}
            for d in result.documents
        ],
        "total_results": result.total_results,
        "search_time_ms": result.search_time_ms,
        "trace": [asdict(stage) for stage in result.trace],
    }  # fmt: skip


def _check_is_collection(opened: Workspace, collection: str | None) -> None:
    """A name that no collection has, but a repository or an archive, is answered with how that is searched."""
    from ragistry.errors import CollectionNotFoundError
    from ragistry.library.contract_entries import names

    if collection is None or collection in (entry.name for entry in opened.library.collections.entries()):
        return
    if collection in names(opened.repositories.root):
        raise CollectionNotFoundError(
            f"{collection!r} is a repository, no collection; search it with `ragistry repo search {collection} QUERY`, "
            "or everything with --technique routed"
        )
    if collection in (archive.name for archive in opened.settings.archives):
        raise CollectionNotFoundError(
            f"{collection!r} is an archive, no collection; search it with `--technique routed --where "
            f'\'{{"collection": "{collection}"}}\'`, or everything with --technique routed'
        )


def _condition(text: str) -> Any:
    import json

    from ragistry.errors import InvalidFilterError

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidFilterError(f"--where is not JSON: {text!r} ({error}); write '{{\"page\": 3}}'") from error


def _print(number: int, document: Document, full: bool) -> None:
    from rich.text import Text

    out = console()
    out.print(Text.assemble((f"{number}. ", "bold"), (place(document), "bold cyan"), f"  {score(document)}"))
    text = document.content
    if not full:
        text = " ".join(text.split())
        text = text if len(text) <= EXCERPT else text[:EXCERPT].rsplit(" ", 1)[0] + " …"
    out.print("   " + text.replace("\n", "\n   "))


def place(document: Document) -> str:
    """Where a passage stands, as people say it: collection, source, page or heading, chunk."""
    metadata = document.metadata
    source = str(metadata.get("source_file", metadata.get("source", document.id)))
    collection = f"{metadata['collection']}/" if "collection" in metadata else ""
    spot = [
        f"p.{metadata['page']}" if "page" in metadata else "",
        str(metadata.get("heading_context", "")),
        f"chunk {metadata['chunk_index']}" if "chunk_index" in metadata else "",
    ]
    return one_line(f"{collection}{source} ({', '.join(part for part in spot if part)})", 400)


def score(document: Document) -> str:
    """A score with its kind, since those of different kinds are never compared: ``cosine 0.497``."""
    last = document.scores[-1] if document.scores else None
    kind = last.kind if last is not None and last.value == document.score else "score"
    return f"{kind} {document.score:.3f}"


def _print_trace(result: RetrievalResult) -> None:
    out = console()
    out.print()
    for stage in result.trace:
        parts = [f"{stage.ms:.1f} ms", numbered(stage.documents_out, "document[|s]")]
        if stage.model_calls:
            parts += [numbered(stage.model_calls, "model call[|s]"), numbered(stage.tokens, "token[|s]")]
        out.print(f"{'  ' * stage.depth}{stage.name}: {', '.join(parts)}")
    out.print(f"total: {result.search_time_ms:.1f} ms")
