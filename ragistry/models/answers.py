"""Check the answers of a language model: how they ended, JSON that fits a schema, and text without reasoning."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from ragistry.errors import IncompleteAnswerError, ModelError
from ragistry.trace import degraded, model_call
from ragistry.types import AnswerStatus
from ragistry.utils.model_output import (
    begins_in_prompt,
    parse_answer,
    stream_without_reasoning,
    text_of,
    without_reasoning,
)
from ragistry.utils.wording import one_line, problem_of

Message = Mapping[str, Any]
"""``{"role": "system" | "user" | "assistant", "content": "…"}``"""
Chat = Callable[[list[Message]], str]
"""Sends a conversation to a model and returns the next message."""

_COMPLETE = frozenset(
    ("", "none", "stop", "stop_sequence", "eos", "eos_token", "end", "end_turn", "complete", "completed")
)
_CUT = frozenset(
    ("length", "max_length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded")
)
_FILTERED = frozenset(
    [
        "content_filter",
        "content_filtered",
        "safety",
        "sensitive",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "error_toxic",
        "guardrail_intervened",
    ]
)
_REFUSED = frozenset(("refusal", "refused"))
_TOOLS = frozenset(("tool_calls", "tool_call", "tool_use", "function_call"))
"""How servers name the end of an answer, in lower case; an unknown name counts as an error of the server."""

_log = logging.getLogger(__name__)


def messages_of(prompt: str, system: str | None) -> list[Message]:
    """Build the conversation of one prompt."""
    first: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    return [*first, {"role": "user", "content": prompt}]


def in_words(schema: type[BaseModel]) -> str:
    """Write the part of a prompt that asks for the schema."""
    return f"Answer with JSON only, by this JSON Schema:\n{json.dumps(schema.model_json_schema(), ensure_ascii=False)}"


def answer_by_schema(chat: Chat, messages: list[Message], schema: type[BaseModel], model: str) -> str:
    """Ask for an answer in JSON that fits the schema.

    An answer that does not fit is sent back once with the error.

    Args:
        chat: Sends the conversation.
        messages: The conversation.
        schema: The schema.
        model: Name of the model for messages.

    Raises:
        ModelError: The second answer does not fit either.
    """

    def checked(text: str) -> str:
        schema.model_validate_json(text)
        return text

    conversation = messages
    while True:
        answer = chat(conversation)
        try:
            return parse_answer(answer, checked)
        except ValueError as error:
            reason = f"is not JSON: {error}"
            if isinstance(error, ValidationError):
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"])) or "the whole"
                reason = f"does not fit {schema.__name__}: {where}: {problem_of(first)}"
            if conversation is not messages:
                raise ModelError(f"{model!r} answered {one_line(answer)!r}, which {reason}, twice") from error
        again = f"That answer {reason}. Answer again, with JSON that fits, and nothing else."
        conversation = [*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": again}]


class Part(NamedTuple):
    """A message of a model, or what one event of a stream adds to it.

    Attributes:
        text: Its text.
        end: How the server names the end of the answer; None before it.
        tokens: Number of tokens read and written; 0 before the end.
        refusal: How the model refused to answer.
        reasons: Whether it has reasoning beside the text.
        calls_tool: Whether it calls a tool.
        is_whole: Whether the text is the answer so far, instead of what follows.
    """

    text: str = ""
    end: str | None = None
    tokens: int = 0
    refusal: str = ""
    reasons: bool = False
    calls_tool: bool = False
    is_whole: bool = False

    def and_(self, later: Part) -> Part:
        """Add a later part."""
        return Part(
            self.text + later.new_text(self.text),
            later.end if self.end is None else later.end or self.end,
            later.tokens or self.tokens,
            self.refusal + later.refusal,
            self.reasons or later.reasons,
            self.calls_tool or later.calls_tool,
        )

    def new_text(self, before: str) -> str:
        """Return the text that follows ``before``. Some servers repeat the whole answer in their last event."""
        if not self.is_whole or not before.strip() or not self.text.strip().startswith(before.strip()):
            return self.text
        return self.text.strip()[len(before.strip()) :]


def part_of(message: Mapping[str, Any], **more: Any) -> Part:
    """Read a message of OpenAI's protocol or of Ollama; ``more``: other fields of the part.

    Raises:
        TypeError: Its content is neither text nor a list of parts.
    """
    content = message.get("content")
    refusals = [part.get("refusal") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return Part(
        text_of(content),
        refusal="".join(map(str, filter(None, [message.get("refusal"), *refusals]))),
        reasons=any(message.get(name) for name in ("reasoning_content", "reasoning", "thinking")),
        calls_tool=any(message.get(name) for name in ("tool_calls", "function_call")),
        **more,
    )


def whole_answer(part: Part, model: str, remedy: str) -> str:
    """Return the text of an answer without its reasoning.

    An answer that was cut at its maximum length is returned, which is logged and traced.

    Args:
        part: The message.
        model: Name of the model.
        remedy: How to allow longer answers.

    Raises:
        IncompleteAnswerError: It has no text, was refused, or did not end as an answer ends.
    """
    text = without_reasoning(part.text)
    error = _incomplete(part, text, model, remedy)
    if error is None:
        return text
    if error.status != "cut" or not text.strip():
        raise error
    _log.warning("%s", error)
    degraded(str(error))
    return text


def stream_answer(parts: Iterable[Part], model: str, remedy: str, server: str) -> Iterator[str]:
    """Yield the text of an answer without its reasoning as it arrives, or at the end if it may start in the prompt.

    Arguments as in `whole_answer`; ``server``: its name in messages. The call is traced.

    Raises:
        IncompleteAnswerError: As `whole_answer`, after the last piece, and for an answer that was cut.
        ModelError: The parts have no end.
    """
    whole, said = Part(), ""

    def pieces() -> Iterator[str]:
        nonlocal whole
        for part in parts:
            before, whole = whole, whole.and_(part)
            if len(whole.text) > len(before.text):
                yield whole.text[len(before.text) :]
        if whole.end is None:
            raise ModelError(f"{server} aborted its answer; check its log")
        model_call(whole.tokens)

    for piece in stream_without_reasoning(pieces(), hold=begins_in_prompt(model)):
        said += piece
        yield piece
    if error := _incomplete(whole, said, model, remedy):
        raise error


def _incomplete(part: Part, text: str, model: str, remedy: str) -> IncompleteAnswerError | None:
    """Return the error of an answer that its model did not complete. ``text``: that of the part, without reasoning."""
    end, status, message = (part.end or "").lower(), "", ""
    if part.refusal or end in _REFUSED:
        said = f": {one_line(part.refusal)!r}" if part.refusal else ""
        status, message = "refused", f"{model!r} refused to answer{said}; ask in other words"
    elif end in _FILTERED:
        status, message = "filtered", f"a content filter ended the answer of {model!r}; ask in other words"
    elif end in _CUT:
        status, message = "cut", f"the answer of {model!r} was cut at its maximum length; {remedy}"
    elif text.strip() and not part.calls_tool and end in _COMPLETE:
        return None
    elif part.calls_tool or end in _TOOLS:
        status, message = "empty", f"{model!r} called a tool instead of answering; turn its tools off"
    elif end not in _COMPLETE:
        status, message = "empty", f"the server of {model!r} ended its answer with {part.end!r:.80}; check its log"
    elif part.reasons or part.text.strip():
        status = "empty"
        message = f"{model!r} wrote its reasoning but no answer; {remedy}, or turn its reasoning off in `options`"
    else:
        status, message = "empty", f"{model!r} wrote nothing; ask again, or use another model"
    if status == "empty" and text.strip():
        status = "cut"
    return IncompleteAnswerError(message, cast("AnswerStatus", status), text if text.strip() else "")
