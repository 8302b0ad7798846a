"""Messages of tools: a small protocol for any message transport, and a bus within the process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Message = Mapping[str, Any]
Receive = Callable[[Message], None]

SCHEMA = "tool.schema"
"""Subject of a tool's function schema, published again after each change.

A change by the tool's own library is published at once; any other, such as by an editor, with the next request.
"""

_log = logging.getLogger(__name__)


def request_subject(tool: str) -> str:
    """Return the subject of calls: ``{"id": …, "arguments": mapping or JSON}``."""
    return f"tool.request.{tool}"


def result_subject(tool: str) -> str:
    """Return the subject of answers: ``{"id": …, "name": …, "content": text, "error": bool}``."""
    return f"tool.result.{tool}"


def activity_subject(tool: str) -> str:
    """Return the subject of activity: ``{"id", "name", "query", "collection", "results", "error", "ms"}``."""
    return f"tool.activity.{tool}"


class ToolBus(Protocol):
    """Publishes messages by subject."""

    def publish(self, subject: str, message: Message) -> None:
        """Send the message to all subscribers of the subject."""
        ...

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        """Call ``receive`` with every message of the subject until the returned function is called."""
        ...


class InProcessBus:
    """A `ToolBus` for one process: receivers run in the publishing thread, before `publish` returns."""

    def __init__(self) -> None:
        self._receivers: dict[str, dict[object, Receive]] = {}

    def publish(self, subject: str, message: Message) -> None:
        for receive in list(self._receivers.get(subject, {}).values()):  # receivers may be added or removed meanwhile
            try:
                receive(message)
            except Exception:  # noqa: BLE001, a failing receiver affects neither the publisher nor the others
                _log.exception("a receiver of %s failed", subject)

    def subscribe(self, subject: str, receive: Receive) -> Callable[[], None]:
        key = object()
        self._receivers.setdefault(subject, {})[key] = receive

        def unsubscribe() -> None:
            self._receivers[subject].pop(key, None)

        return unsubscribe
