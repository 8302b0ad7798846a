"""Answers that Ollama streams, piece by piece, to their end."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragistry.errors import ModelError
from ragistry.trace import degraded, model_call

# A prompt that is too long is refused, instead of losing its beginning; an answer ends where the window is full,
# instead of pushing the prompt out of it.
WHOLE: Mapping[str, Any] = {"stream": True, "truncate": False, "shift": False}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Part:
    """One line of a stream. ``tokens``: read and said, told at the end; ``cut``: the answer ended at its limit."""

    text: str
    done: bool
    tokens: int
    cut: bool


def generated(line: dict[str, Any]) -> Part:
    """A line of ``/api/generate``."""
    return _part(line, line.get("response"))


def chatted(line: dict[str, Any]) -> Part:
    """A line of ``/api/chat``."""
    return _part(line, (line.get("message") or {}).get("content"))


def _part(line: dict[str, Any], text: str | None) -> Part:
    if "error" in line:
        raise ModelError(f"Ollama broke off its answer: {line['error']!r}; look into its log")
    tokens = int(line.get("prompt_eval_count") or 0) + int(line.get("eval_count") or 0)
    return Part("" + (text or ""), bool(line.get("done")), tokens, line.get("done_reason") == "length")


def texts_of(parts: Iterable[Part], model: str) -> Iterator[str]:
    """The texts of an answer; its cost is traced, and where it was cut at its limit, that is logged and traced.

    Raises `ModelError` where the answer stops before its end.
    """
    part = None
    for part in parts:
        if part.text:
            yield part.text
    if part is None or not part.done:
        raise ModelError(f"Ollama broke off the answer of {model!r} before its end; try again")
    model_call(part.tokens)
    if part.cut:
        message = f"the answer of {model!r} was cut at the limit of its length; raise num_predict or num_ctx"
        _log.warning("%s", message)
        degraded(message)
