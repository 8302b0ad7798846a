"""``ragistry search``: search the library and print the passages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.flags import refuse_together
from ragistry.cli.options import ResultOption
from ragistry.cli.output import console, error_line
from ragistry.errors import InvalidLimitError
from ragistry.types import SearchRequest
from ragistry.utils.wording import no_passage, numbered

if TYPE_CHECKING:
    from ragistry.answers.answer import Answer
    from ragistry.types import Document, RetrievalResult
    from ragistry.workspace import Workspace


@on_workspace((refuse_together, "as_json", "full", "scores", "trace", "number"), (refuse_together, "number", "full"))
def search(
    opened: Workspace,
    request: SearchRequest,
    full: Annotated[bool, typer.Option("--full", help="Print whole passages.")] = False,
    number: ResultOption = None,
    scores: Annotated[bool, typer.Option("--scores", help="Print the score of each passage.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Print what each stage did.")] = False,
) -> Output:
    """Search the library and print the results: title, place, and the best lines of each passage."""
    from ragistry.library.asked import log_question
    from ragistry.presentation.plain import as_mapping

    log_question(opened.library, request.query, "shell")
    result = opened.run_search(request)

    def write() -> None:
        print_documents(
            opened, request.query, result.documents, full=full, scores=scores, number=number, more="--result"
        )
        print_reservations(result)
        if not result.documents:
            error_line("nothing found", label="note")
        if trace:
            _print_trace(result)

    return Output(partial(as_mapping, result, opened.settings.language), write)


def print_reservations(result: RetrievalResult | Answer) -> None:
    """Print why the search is degraded, and the words that no passage contains."""
    for reason in result.degraded:
        error_line(reason, label="degraded")
    if line := no_passage(result.unknown_words):
        error_line(line, label="note")


def print_documents(
    opened: Workspace,
    query: str,
    documents: Sequence[Document],
    *,
    full: bool = False,
    scores: bool = False,
    apart: bool = False,
    number: int | None = None,
    more: str = "",
) -> None:
    """Print the passages by source.

    Args:
        opened: The workspace.
        query: The query.
        documents: The passages.
        full: Print each passage separately and whole.
        scores: Print the score of each passage.
        apart: Print each passage separately.
        number: Print only this result, counted from 1, with all passages of its source and the similar ones of others,
            whole.
        more: Option of the command that does this, to be named below a source with more passages.
    """
    from ragistry.presentation import Card, Hit, cards_of, separate_cards
    from ragistry.presentation.terminal import print_card, room_in

    out, language = console(), opened.settings.language
    room = None if full or number is not None else room_in(out)
    cards = (separate_cards if full or apart else cards_of)(documents, query, language, room)
    if number is not None and cards:
        if not 1 <= number <= len(cards):
            results = f"1 to {len(cards)}" if len(cards) > 1 else "1, the only result"
            raise InvalidLimitError(f"--result must be {results}, got {number}")
        card = cards[number - 1]
        print_card(out, number, card._replace(parts=[*card.parts, *card.rest], rest=[], similar=[]), scores=scores)
        for part in card.similar:
            out.print()
            print_card(out, None, Card(Hit(number, part.document), [part], [], []), scores=scores)
        return
    for position, card in enumerate(cards, start=1):
        if position > 1:
            out.print()
        print_card(out, position, card, f"{more} {position}" if more else "", scores=scores)


def _print_trace(result: RetrievalResult) -> None:
    out = console()
    out.print()
    for stage in result.trace:
        parts = [f"{stage.ms:.1f} ms", numbered(stage.documents_out, "document[|s]")]
        if stage.model_calls:
            parts += [numbered(stage.model_calls, "model call[|s]"), numbered(stage.tokens, "token[|s]")]
        out.print(f"{'  ' * stage.depth}{stage.name}: {', '.join(parts)}")
    out.print(f"total: {result.search_time_ms:.1f} ms")
