"""What a model is told of an error, and what only the log is told."""

from __future__ import annotations

import logging

from ragistry.errors import InvalidConfigError, ModelError, QueryError, RagistryError
from ragistry.tools.quoting import one_line

_log = logging.getLogger(__name__)


class BrokenCollectionsError(InvalidConfigError):
    """documents.yaml cannot be read, in words that a model may see."""


def failure_text(error: Exception, tool: str) -> str:
    """One line for the model.

    Messages about its own arguments, models that cannot be reached and a broken documents.yaml are passed on. Any other
    may name what is none of the model's business, such as paths and collections out of its reach: it goes to the log.
    """
    if isinstance(error, QueryError | ModelError | BrokenCollectionsError):
        return f"Error: {one_line(error, 600)}"
    if isinstance(error, RagistryError):
        _log.error("%s: %s", tool, error)
    else:
        _log.error("%s failed", tool, exc_info=error)
    return f"Error: {tool} does not work at the moment ({type(error).__name__}); the owner's log says why"
