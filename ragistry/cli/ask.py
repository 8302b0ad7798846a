"""``ragistry ask``: answer a question from the documents, with checked citations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ragistry.cli.options import (
    DebugOption,
    JsonOption,
    WorkspaceOption,
    with_request,
)
from ragistry.cli.output import TextWriter, console, error_line, print_json
from ragistry.cli.search import print_degraded, print_documents
from ragistry.types import SearchRequest
from ragistry.utils.quoting import visible_line

if TYPE_CHECKING:
    from ragistry.answers.answer import Answer

EXIT_CODES = {"not_found": 4, "cut": 5, "filtered": 6, "refused": 7, "empty": 8}
"""Exit code of an answer that is not complete, by its status."""


@with_request
def ask(
    request: SearchRequest,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Answer a question from the documents, and cite the passages of each sentence.

    A generator in config/models.yaml writes the answer. Without one, the search results are printed. Exit code 4 if
    the model says that the passages do not answer; 5 if its answer was cut, 6 if filtered, 7 if refused, 8 if empty.
    """
    from ragistry.answers.answer import Answer
    from ragistry.library.asked import log_question
    from ragistry.presentation.plain import as_mapping
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        library = opened.library
        log_question(library, request.query, "shell")
        if library.generator() is None:
            result = library.run_search(request)
            if as_json:
                found = Answer(
                    request.query,
                    tuple(result.documents),
                    reason="no generator is configured",
                    degraded=result.degraded,
                )
                print_json(as_mapping(found, opened.settings.language) | {"status": None})
                return
            error_line(
                "no generator is configured; showing the search results; add a generator to config/models.yaml", "note"
            )
            print_documents(opened, request.query, result.documents, more="ragistry search QUERY --result")
            print_degraded(result)
            return
        writer = TextWriter()
        live = not as_json and console().is_terminal
        answer = library.run_answer(request, writer.write if live else None)
        if as_json:
            print_json(as_mapping(answer, opened.settings.language))
        else:
            if not live:
                writer.write(answer.text)
            writer.end()
            _report_end(answer)
            _warn_of_unsupported(answer)
            print_degraded(answer)
            if answer.documents:
                console().print()
                print_documents(opened, request.query, answer.documents, apart=True)
    if answer.status != "complete":
        raise typer.Exit(EXIT_CODES[answer.status])


def _report_end(answer: Answer) -> None:
    """Print why the answer is not complete, if so: in the place of an answer without text, else as a warning."""
    from ragistry.answers.answer import HEADS

    if answer.status != "complete":
        line = f"{HEADS[answer.status]}: {answer.reason}"
        error_line(line, "warning") if answer.text else console().print(f"{line}.")


def _warn_of_unsupported(answer: Answer) -> None:
    for sentence in answer.sentences:
        if not sentence.supported:
            what = "shares no wording with its source" if sentence.citations else "cites no source"
            error_line(f"{what}: {visible_line(sentence.text)!r}", "warning")
