"""The messages of tools: a small seam that any message transport fits, and one that stays in the process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Message = Mapping[str, Any]
Receive = Callable[[Message], None]

SCHEMA = "tool.schema"
"""A tool says what it can do: its function schema, again when that has changed.

A change by the tool's own library is told at once, one by somebody else, such as an editor, with the next request.
"""

_log = logging.getLogger(__name__)


def request_subject(tool: str) -> str:
    """Somebody calls the tool: ``{"id": …, "arguments": mapping or JSON}``."""
    return f"tool.request.{tool}"


def result_subject(tool: str) -> str:
    """The tool answers: ``{"id": …, "name": …, "content": text, "error": bool}``."""
    return f"tool.result.{tool}"


def activity_subject(tool: str) -> str:
    """What the tool did, for people who watch: ``{"id", "name", "query", "collection", "results", "error", "ms"}``."""
    return f"tool.activity.{tool}"


class ToolBus(Protocol):
    """Messages by subject."""

    def publish(self, subject: str, message: Message) -> None:
        """Give the message to everybody who subscribed to the subject."""
        ...

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        """Have ``receive`` called with every message of the subject, until the returned function is called."""
        ...


class InProcessBus:
    """A `ToolBus` for one process: a message is received in the thread that publishes it, before `publish` returns."""

    def __init__(self) -> None:
        self._receivers: dict[str, dict[object, Receive]] = {}

    def publish(self, subject: str, message: Message) -> None:
        for receive in list(self._receivers.get(subject, {}).values()):  # one may leave, or another join, meanwhile
            try:
                receive(message)
            except Exception:  # noqa: BLE001, one receiver's failure is not the publisher's, nor the others'
                _log.exception("a receiver of %s failed", subject)

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        key = object()
        self._receivers.setdefault(subject, {})[key] = receive

        def unsubscribe() -> None:
            self._receivers[subject].pop(key, None)

        return unsubscribe
