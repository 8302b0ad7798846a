"""Write failures for a model, and log their details.

Messages of lower layers may name paths, servers, and collections that the tool must not reach. So a limited tool
returns only messages written for models, by this module and by the checks of arguments.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from ragistry.errors import InvalidConfigError, ModelError, QueryError, RagistryError
from ragistry.utils.quoting import visible_line

NOTES = 2
"""Maximum number of notes in an answer."""
WHY = "; see the owner's log"
INCOMPLETE = f"the search was incomplete, so results may be missing{WHY}"

_SEVERAL = re.compile(r"; (?=[^;:]+ was not searched: )")
_log = logging.getLogger(__name__)


class CallError(QueryError):
    """A call is invalid; the message may be shown to a model."""


class BrokenCollectionsError(InvalidConfigError):
    """documents.yaml is invalid; the message may be shown to a model."""


def failure_text(error: Exception, tool: str, *, limited: bool) -> str:
    """Describe an error in one line for the model.

    `CallError` and `BrokenCollectionsError` are passed on. If the tool is not ``limited`` to some collections, so are
    errors about the query and of models. All others are only logged.
    """
    if isinstance(error, CallError | BrokenCollectionsError) or (
        isinstance(error, QueryError | ModelError) and not limited
    ):
        return f"Error: {visible_line(error, 600)}"
    if isinstance(error, RagistryError):
        _log.error("%s: %s", tool, error)
    else:
        _log.error("%s failed", tool, exc_info=error)
    return f"Error: {tool} does not work at the moment ({type(error).__name__}){WHY}"


def notes(reasons: Sequence[str], tool: str, *, limited: bool) -> str:
    """Write notes about a degraded search for the model, and log the complete reasons.

    The part of a reason after a colon is only logged. A ``limited`` tool says only that the search was incomplete.
    """
    for reason in reasons:
        _log.warning("%s: %s", tool, reason)
    found = [_note(each) for reason in reasons for each in _SEVERAL.split(reason)]
    if found and limited:
        found = [INCOMPLETE]
    return "".join(f"[Note: {each}]\n\n" for each in found[:NOTES])


def _note(reason: str) -> str:
    what, why, _ = reason.partition(":")
    return visible_line(what) + WHY if why else visible_line(reason)
