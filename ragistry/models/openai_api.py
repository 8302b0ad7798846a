"""Send requests of OpenAI's protocol, adapted to the paths and parameters that a server supports."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ragistry.models.http import JsonClient, Patience, Read, RefusedError
from ragistry.utils.urls import base_address

NECESSARY = ("model", "input", "messages", "stream", "query", "documents", "response_format")
"""Parameters that a request needs; ``response_format`` has its own alternative."""

_log = logging.getLogger(__name__)


class OpenAIAPI(JsonClient):
    """A server with OpenAI's protocol.

    Most servers have its paths below ``/v1``. If the address has its own path, such as ``…/api/v3`` or ``…/openai``,
    they may be directly below that. A parameter that the server refuses is omitted from then on, unless the request
    needs it.

    Args:
        url: Address of the server, with or without ``/v1``, or of one of its endpoints.
        patience: See `JsonClient`.
        api_key: See `JsonClient`.
    """

    def __init__(self, url: str, patience: Patience, api_key: str | None) -> None:
        url = base_address(url)
        super().__init__(url.removesuffix("/v1"), patience, api_key=api_key)
        own_path = url.partition("://")[2].count("/") > 0 and not url.endswith("/v1")
        self._below = ["", "/v1"] if own_path else ["/v1"] if url.endswith("/v1") else ["/v1", ""]
        self._renamed: dict[str, str] = {}

    def places(self, path: str) -> tuple[str, ...]:
        """Return where the server may have a path of the protocol, for example ``/models``."""
        return tuple(below + path for below in self._below)

    def ask(self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read], **options: Any) -> Read:
        """Send POST to a path of the protocol; ``options`` as in `JsonClient.post`. Raises `ModelError`."""
        return self._with_accepted(body, lambda body: self.post(self.places(path), body, read, **options))

    def lines(self, path: str, body: Mapping[str, Any], **options: Any) -> Iterator[str]:
        """Send POST and yield the lines of the answer as they arrive; ``options`` as in `JsonClient.stream`.

        Raises `ModelError`.
        """

        def begin(body: Mapping[str, Any]) -> Iterator[str]:
            lines = self.stream(self.places(path), body, **options)
            return chain([next(lines, "")], lines)  # a refusal comes before the first line

        return self._with_accepted(body, begin)

    def _with_accepted(self, body: Mapping[str, Any], ask: Callable[[Mapping[str, Any]], Read]) -> Read:
        while True:
            sent = {self._renamed.get(name, name): value for name, value in body.items()}
            sent.pop("", None)
            try:
                return ask(sent)
            except RefusedError as error:
                names = [name for name in sent if name not in NECESSARY and error.status in (400, 422)]
                name = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", error.reason)), None)
                if name is None:  # its error names none that is not necessary
                    raise
                better = "max_completion_tokens" if name == "max_tokens" and "max_completion" in error.reason else ""
                self._renamed[name] = better
                change = f"is sent as {better!r}" if better else "is omitted"
                _log.warning("%s; %r %s from now on; set it to null to silence this warning", error, name, change)


def events(lines: Iterable[str]) -> Iterator[str]:
    """Yield the data of server-sent events, without comments, names and ids of events (WHATWG HTML, 9.2).

    A line that starts with ``{`` is data too: some servers send errors outside of an event, or the whole answer as
    JSON on one or several lines.
    """
    lines = iter(lines)
    for line in lines:
        field, _, value = line.partition(":")
        if line.startswith("{"):
            try:
                json.loads(line)
            except (RecursionError, ValueError):
                line = "\n".join([line, *lines])
            yield line
        elif field == "data" and value.strip():
            yield value.strip()
