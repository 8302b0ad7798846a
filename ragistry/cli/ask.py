"""``ragistry ask``: answer a question from the documents, with checked citations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.output import TextWriter, console, error_line
from ragistry.cli.search import print_documents, print_reservations
from ragistry.types import SearchRequest
from ragistry.utils.quoting import visible_line

if TYPE_CHECKING:
    from ragistry.types import RetrievalResult
    from ragistry.workspace import Workspace

EXIT_CODES = {"not_found": 4, "cut": 5, "filtered": 6, "refused": 7, "empty": 8}
"""Exit code of an answer that is not complete, by its status."""


@on_workspace()
def ask(opened: Workspace, as_json: bool, request: SearchRequest) -> Output:
    """Answer a question from the documents, and cite the passages of each sentence.

    A generator in config/models.yaml writes the answer. Without one, the search results are printed. Exit code 4 if
    the model says that the passages do not answer; 5 if its answer was cut, 6 if filtered, 7 if refused, 8 if empty.
    """
    from ragistry.answers.answer import HEADS
    from ragistry.library.asked import log_question
    from ragistry.presentation.plain import as_mapping

    library, language = opened.library, opened.settings.language
    log_question(library, request.query, "shell")
    if library.generator() is None:
        return _without_generator(opened, library.run_search(request))
    writer = TextWriter()
    live = not as_json and console().is_terminal
    answer = library.run_answer(request, writer.write if live else None)
    if answer.confirmed:
        log_question(library, request.query, "shell", confirmed=answer.confirmed)

    def write() -> None:
        if not live:
            writer.write(answer.text)
        writer.end()
        if answer.status != "complete":  # in the place of an answer without text, else as a warning
            line = f"{HEADS[answer.status]}: {answer.reason}"
            error_line(line, "warning") if answer.text else console().print(f"{line}.")
        for sentence in answer.sentences:
            if not sentence.supported:
                what = "shares no wording with its source" if sentence.citations else "cites no source"
                error_line(f"{what}: {visible_line(sentence.text)!r}", "warning")
        print_reservations(answer)
        if answer.documents:
            console().print()
            print_documents(opened, request.query, answer.documents, apart=True)

    return Output(partial(as_mapping, answer, language), write, EXIT_CODES.get(answer.status, 0))


def _without_generator(opened: Workspace, result: RetrievalResult) -> Output:
    from ragistry.answers.answer import Answer
    from ragistry.presentation.plain import as_mapping

    reason = "no generator is configured"
    found = Answer(
        result.query,
        tuple(result.documents),
        reason=reason,
        degraded=result.degraded,
        unknown_words=result.unknown_words,
    )

    def write() -> None:
        error_line(f"{reason}; showing the search results; add a generator to config/models.yaml", "note")
        print_documents(opened, result.query, result.documents, more="ragistry search QUERY --result")
        print_reservations(result)

    return Output(as_mapping(found, opened.settings.language) | {"status": None}, write)
