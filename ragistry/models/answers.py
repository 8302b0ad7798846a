"""Check the answers of a language model: JSON that fits a schema, and text without reasoning."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from ragistry.errors import ModelError
from ragistry.trace import degraded
from ragistry.utils.model_output import (
    begins_in_prompt,
    parse_answer,
    stream_without_reasoning,
    without_reasoning,
)
from ragistry.utils.wording import one_line

Schema = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON Schema."""
Message = Mapping[str, Any]
"""``{"role": "system" | "user" | "assistant", "content": "…"}``"""
Chat = Callable[[list[Message]], str]
"""Sends a conversation to a model and returns the next message."""

_log = logging.getLogger(__name__)


def messages_of(prompt: str, system: str | None) -> list[Message]:
    """Build the conversation of one prompt."""
    first: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    return [*first, {"role": "user", "content": prompt}]


def json_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema of a model or schema."""
    return schema.model_json_schema() if isinstance(schema, type) else dict(schema)


def in_words(schema: Schema) -> str:
    """Write the part of a prompt that asks for the schema."""
    return f"Answer with JSON only, by this JSON Schema:\n{json.dumps(json_schema(schema), ensure_ascii=False)}"


def answer_by_schema(chat: Chat, messages: list[Message], schema: Schema, model: str) -> str:
    """Ask for an answer in JSON that fits the schema. For a plain JSON Schema, only the JSON syntax is checked.

    An answer that does not fit is sent back once with the error.

    Args:
        chat: Sends the conversation.
        messages: The conversation.
        schema: The schema.
        model: Name of the model for messages.

    Raises:
        ModelError: The second answer does not fit either.
    """
    answer = chat(messages)
    try:
        return _fitting(answer, schema)
    except ValueError as error:
        reason = _why(error, schema)
    again = f"That answer {reason}. Answer again, with JSON that fits, and nothing else."
    answer = chat([*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": again}])
    try:
        return _fitting(answer, schema)
    except ValueError as error:
        raise ModelError(f"{model!r} answered {one_line(answer)!r}, which {_why(error, schema)}, twice") from error


def report_cut(model: str, remedy: str) -> None:
    """Log and trace that an answer was cut at its maximum length."""
    message = f"the answer of {model!r} was cut at its maximum length; {remedy}"
    _log.warning("%s", message)
    degraded(message)


def _fitting(answer: str, schema: Schema) -> str:
    """Return the JSON of an answer. Raises `ValueError` if it does not fit the schema."""
    return parse_answer(answer, partial(_checked, schema=schema))


def written_answer(text: str, model: str) -> str:
    """Remove the reasoning from a text of a model.

    Raises:
        ModelError: The text is only reasoning.
    """
    answer = without_reasoning(text)
    if text.strip() and not answer:
        raise ModelError(
            f"{model!r} wrote its reasoning but no answer; raise max_tokens, or turn its reasoning off in `options`"
        )
    return answer


def stream_answer(pieces: Iterable[str], model: str) -> Iterator[str]:
    """Yield the pieces of `written_answer` as they arrive, or at the end if reasoning may start in the prompt.

    Raises:
        ModelError: The pieces are only reasoning.
    """
    has_text = False

    def watched() -> Iterator[str]:
        nonlocal has_text
        for piece in pieces:
            has_text = has_text or bool(piece.strip())
            yield piece

    has_answer = False
    for piece in stream_without_reasoning(watched(), hold=begins_in_prompt(model)):
        has_answer = True
        yield piece
    if has_text and not has_answer:
        written_answer("<think>", model)


def _checked(answer: str, schema: Schema) -> str:
    if isinstance(schema, type):
        schema.model_validate_json(answer)
    else:
        try:
            json.loads(answer)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
    return answer


def _why(error: ValueError, schema: Schema) -> str:
    if isinstance(error, ValidationError) and isinstance(schema, type):
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        return f"does not fit {schema.__name__}: {where}: {first['msg']}"
    return f"is not JSON: {error}"
