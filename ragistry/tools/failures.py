"""What a model is told of failures, and what only the log is told.

The words of whatever is below a tool may name paths, servers, and collections out of the tool's reach. A tool that is
limited therefore passes none of them on, but only what is written for models, here and where arguments are checked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from ragistry.errors import InvalidConfigError, ModelError, QueryError, RagistryError
from ragistry.utils.quoting import one_line

NOTES = 2
"""Of what could not be done as asked, so many things are told at most."""
WHY = "; the owner's log says why"
INCOMPLETE = f"not everything could be searched as it should be, so that something may be missing{WHY}"

_SEVERAL = re.compile(r"; (?=[^;:]+ was not searched: )")
_log = logging.getLogger(__name__)


class CallError(QueryError):
    """A call is wrong, in words that a model may see."""


class BrokenCollectionsError(InvalidConfigError):
    """documents.yaml cannot be read, in words that a model may see."""


def failure_text(error: Exception, tool: str, *, limited: bool) -> str:
    """One line for the model.

    `CallError` and `BrokenCollectionsError` are passed on; where the tool is not ``limited`` to some collections, also
    what a technique says of the query, and models that cannot be reached. Anything else goes to the log.
    """
    if isinstance(error, CallError | BrokenCollectionsError) or (
        isinstance(error, QueryError | ModelError) and not limited
    ):
        return f"Error: {one_line(error, 600)}"
    if isinstance(error, RagistryError):
        _log.error("%s: %s", tool, error)
    else:
        _log.error("%s failed", tool, exc_info=error)
    return f"Error: {tool} does not work at the moment ({type(error).__name__}){WHY}"


def notes(reasons: Sequence[str], tool: str, *, limited: bool) -> str:
    """What a search could not do as asked, a line each; why that is, which the reasons say after a colon, is logged.

    Of a ``limited`` tool only that there is something.
    """
    for reason in reasons:
        _log.warning("%s: %s", tool, reason)
    said = [_note(each) for reason in reasons for each in _SEVERAL.split(reason)]
    if said and limited:
        said = [INCOMPLETE]
    return "".join(f"[Note: {each}]\n\n" for each in said[:NOTES])


def _note(reason: str) -> str:
    what, why, _ = reason.partition(":")
    return one_line(what) + WHY if why else one_line(reason)
