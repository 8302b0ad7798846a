"""Check messages from browsers before engine.io, socket.io and NiceGUI read them.

These libraries expect only messages of their own client. Other messages cause a traceback in the log, and the
connection stays open. This middleware closes the connection and logs one line; other connections are not affected.
"""

from __future__ import annotations

import logging
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from nicegui import core, json
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragistry.http.guard import refuse

_log = logging.getLogger(__name__)

PATH = "/_nicegui_ws/socket.io/"
LENGTH = 1_000_000
"""Maximum number of characters of a message, as in engine.io."""
AT_ONCE = 16
"""Maximum number of messages in one long-polling request, as in engine.io."""
INVALID = 1007
"""WebSocket close code."""


class MalformedError(ValueError):
    """The reason why a message is malformed, without its content."""


def _check_number(value: int | str) -> int | str:
    int(value)
    return value


def _check_json(text: str) -> str:
    json.loads(text)
    return text


class _FromWindow(BaseModel):
    model_config = ConfigDict(strict=True)

    client_id: str


class _Handshake(_FromWindow):
    tab_id: str
    document_id: str
    old_tab_id: str | None = None
    next_message_id: Annotated[int | str, AfterValidator(_check_number)] | None = None


class _Event(_FromWindow):
    id: int | str
    listener_id: str
    args: list[Annotated[str, AfterValidator(_check_json)] | None] = []


class _JavaScriptResponse(_FromWindow):
    request_id: str


class _Acknowledgement(_FromWindow):
    next_message_id: int


class _LogLine(_FromWindow):
    level: Literal["debug", "info", "warning", "error"]
    message: Any


EVENTS: dict[str, type[_FromWindow]] = {
    "handshake": _Handshake,
    "event": _Event,
    "javascript_response": _JavaScriptResponse,
    "ack": _Acknowledgement,
    "log": _LogLine,
}
"""The events that NiceGUI handles, with the values that it reads."""


class SocketMessages:
    """ASGI middleware that closes a WebSocket, or rejects a long-polling request, after a malformed message."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        logging.getLogger("uvicorn.error").addFilter(_say_briefly)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] in ("http", "websocket") and f"{scope['path']}/".startswith(PATH)
        try:
            if scope["type"] == "websocket" and not is_socket:
                raise MalformedError("it opened a WebSocket at an unknown address")
            if is_socket:
                values = dict(parse_qsl(scope["query_string"].decode("latin-1"))[::-1])  # the first of each name
                if values.get("implicit_handshake") == "true":  # without an event `handshake`, which has the same
                    _check_values(_Handshake, values)
                receive = await _posted(receive) if scope.get("method") == "POST" else _checked(receive, send)
        except MalformedError as error:
            _report(error)
            await refuse(scope, receive, send, PlainTextResponse(str(error), 400), str(error))
            return
        await self.app(scope, receive, send)


def check_message(text: str) -> None:
    """Raise `MalformedError` for a message that the client of the page does not send."""
    if len(text) > LENGTH:
        raise MalformedError("it sent a message that is too long")
    if text in ("1", "2probe", "3", "5"):  # close, probe, pong, upgrade
        return
    if text[:1] != "4" or text[1:2] not in ("0", "1", "2"):  # connect, disconnect, event
        raise MalformedError("it sent an unsupported kind of message")
    try:
        found = core.sio.packet_class(encoded_packet=text[1:])
    except (ValueError, RecursionError) as error:
        raise MalformedError("it sent an unreadable message") from error
    if found.namespace not in (None, "/") or found.attachment_count:
        raise MalformedError("it sent an unsupported kind of message")
    if text[1] == "2":
        match found.data:
            case [str(name), dict(values)] if name in EVENTS:
                _check_values(EVENTS[name], values)
            case _:
                raise MalformedError("it sent an unknown event")
    elif found.data is not None and not isinstance(found.data, dict):
        raise MalformedError("it sent an unreadable message")


def _check_values(model: type[_FromWindow], values: dict[str, Any]) -> None:
    try:
        model.model_validate(values)
    except (ValidationError, RecursionError) as error:
        raise MalformedError("it sent an event with missing or malformed values") from error


def _checked(receive: Receive, send: Send) -> Receive:
    """Return a ``receive`` that closes the WebSocket at the first malformed message."""
    closed = False

    async def checked() -> Message:
        nonlocal closed
        message = await receive()
        if closed or message["type"] != "websocket.receive":
            return message
        try:
            if message.get("text") is None:
                raise MalformedError("it sent an unsupported kind of message")
            check_message(message["text"])
        except MalformedError as error:
            _report(error)
            closed = True
            await send({"type": "websocket.close", "code": INVALID, "reason": str(error)})
            return {"type": "websocket.disconnect", "code": INVALID}
        return message

    return checked


async def _posted(receive: Receive) -> Receive:
    """Read and check the body, and return a ``receive`` that repeats it."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LENGTH:
            raise MalformedError("it sent a message that is too long")
    try:
        texts = body.decode().split("\x1e") if body else []
    except UnicodeDecodeError as error:
        raise MalformedError("it sent text that is not UTF-8") from error
    if len(texts) > AT_ONCE:
        raise MalformedError("it sent too many messages at once")
    for text in texts:
        check_message(text)
    is_read = False

    async def read() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def _report(reason: object) -> None:
    _log.warning("a client was disconnected: %s", reason)


def _say_briefly(record: logging.LogRecord) -> bool:
    """Replace uvicorn's traceback for text that is not UTF-8 by one line."""
    if record.exc_info and isinstance(record.exc_info[1], UnicodeDecodeError) and "UTF-8" in str(record.msg):
        _report("it sent text that is not UTF-8")
        return False
    return True
