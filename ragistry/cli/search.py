"""``ragistry search``: search the library and print the passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.flags import refuse_together
from ragistry.cli.options import (
    CollectionOption,
    DebugOption,
    JsonOption,
    TechniqueOption,
    TopKOption,
    WorkspaceOption,
)
from ragistry.cli.output import console, error_line, print_json
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.types import Document, RetrievalResult
    from ragistry.workspace import Workspace


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="The query.")],
    technique: TechniqueOption = None,
    collection: CollectionOption = None,
    top_k: TopKOption = None,
    where: Annotated[str | None, typer.Option("--where", help='Condition on metadata, JSON: {"page": 3}.')] = None,
    full: Annotated[bool, typer.Option("--full", help="Print whole passages.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Print the score of each passage.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Print what each stage did.")] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Search the library and print the results: title, place, and the best lines of each passage."""
    from ragistry.workspace import open_workspace

    refuse_together(context, "as_json", "full", "scores", "trace")  # JSON contains all of them
    condition = None if where is None else _condition(where)
    if top_k is not None:
        check_top_k(top_k, name="--top-k")
    with open_workspace(workspace, existing=True) as opened:
        _check_is_collection(opened, collection)
        result = opened.search(query, technique, collection, top_k, condition)
        if as_json:
            from ragistry.presentation.plain import result_as_mapping

            print_json(result_as_mapping(result, opened.settings.language))
            return
        print_documents(opened, query, result.documents, full=full, scores=scores)
    for reason in result.degraded:
        error_line(reason, label="degraded")
    if not result.documents:
        error_line("nothing found", label="note")
    if trace:
        _print_trace(result)


def _check_is_collection(opened: Workspace, collection: str | None) -> None:
    """Explain how to search a repository or an archive, if the name belongs to one."""
    if collection is None or collection in (entry.name for entry in opened.library.collections.entries()):
        return
    from ragistry.errors import CollectionNotFoundError
    from ragistry.library.contract.entries import names

    if collection in names(opened.repositories.root):
        raise CollectionNotFoundError(
            f"{collection!r} is a repository, not a collection; search it with "
            f"`ragistry repo search {collection} QUERY`, or everything with --technique routed"
        )
    if collection in (archive.name for archive in opened.settings.archives):
        raise CollectionNotFoundError(
            f"{collection!r} is an archive, not a collection; search it with `--technique routed --where "
            f'\'{{"collection": "{collection}"}}\'`, or everything with --technique routed'
        )


def _condition(text: str) -> Any:
    import json

    from ragistry.errors import InvalidFilterError

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidFilterError(f"--where is not JSON: {text!r} ({error}); write '{{\"page\": 3}}'") from error


def print_documents(
    opened: Workspace,
    query: str,
    documents: Sequence[Document],
    *,
    full: bool = False,
    scores: bool = False,
    apart: bool = False,
) -> None:
    """Print the passages by source. ``apart``: print each separately; ``full``: separately and whole."""
    from ragistry.presentation import Hit, excerpt_of, grouped, place_of
    from ragistry.presentation.hits import spot_of
    from ragistry.presentation.terminal import print_hit, room_in

    out, language = console(), opened.settings.language
    hits = [Hit(rank, one) for rank, one in enumerate(documents, start=1)] if full or apart else grouped(documents)
    for number, hit in enumerate(hits, start=1):
        if number > 1:
            out.print()
        found = excerpt_of(hit.document, query, language, None if full else room_in(out))
        more = [spot_of(one, place_of(one, query, language)) for one in hit.more]
        print_hit(out, number, hit, found, more, scores=scores)


def _print_trace(result: RetrievalResult) -> None:
    out = console()
    out.print()
    for stage in result.trace:
        parts = [f"{stage.ms:.1f} ms", numbered(stage.documents_out, "document[|s]")]
        if stage.model_calls:
            parts += [numbered(stage.model_calls, "model call[|s]"), numbered(stage.tokens, "token[|s]")]
        out.print(f"{'  ' * stage.depth}{stage.name}: {', '.join(parts)}")
    out.print(f"total: {result.search_time_ms:.1f} ms")
