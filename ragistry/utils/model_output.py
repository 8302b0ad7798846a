"""Clean the output of language models: text in parts, reasoning in the text, JSON with words around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Parsed = TypeVar("Parsed")

_REASONING = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
"""Marks before and after the reasoning of a model, if the server leaves it in the text."""
_BLOCKS = "|".join(
    rf"{re.escape(before)}.*?(?:{re.escape(after)}|\Z)" for before, after in _REASONING.items()
)  # fmt: skip
_BLOCK = re.compile(rf"^[ \t]*(?:{_BLOCKS})\s*", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_END = re.compile("|".join(map(re.escape, _REASONING.values())), re.IGNORECASE)
_BEGINS_IN_PROMPT = re.compile(r"\br1\b|qwq|thinking|reasoner", re.IGNORECASE)
"""Names of models whose chat template writes the start of the reasoning into the prompt."""
_REASONING_PARTS = ("reasoning", "thinking", "reasoning_text", "redacted_thinking")
_JSON_BEGINS = re.compile(r"[{\[]")
_CANDIDATES = 200
"""Maximum number of places in an answer at which JSON may begin."""


def text_of(content: Any) -> str:
    """Return the text of a message: a string, a list of parts of which some have text, or None.

    Parts with reasoning are left out.

    Raises:
        TypeError: ``content`` is something else.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TypeError(f"not the text of a message: {content!r:.100}")
    texts = [part for part in content if not (isinstance(part, dict) and part.get("type") in _REASONING_PARTS)]
    return "".join(text_of(part.get("text") if isinstance(part, dict) else part) for part in texts)


def begins_in_prompt(model: str) -> bool:
    """Return whether the reasoning of this model starts in the prompt, so that an answer has only its end."""
    return _BEGINS_IN_PROMPT.search(model) is not None


def without_reasoning(text: str) -> str:
    """Remove the reasoning that some models write before their answer.

    Reasoning without an end includes the rest of the text. If its start is missing, because it was part of the prompt,
    all text before its end is reasoning. A text without reasoning is returned unchanged.
    """
    clean = _BLOCK.sub("", text)
    *_, end = [None, *_END.finditer(clean)]
    if end:
        clean = clean[end.end() :]
    return text if clean == text else clean.lstrip()


def stream_without_reasoning(pieces: Iterable[str], *, hold: bool = False) -> Iterator[str]:
    """Yield an answer without its reasoning, as it arrives.

    Args:
        pieces: The answer as the model writes it.
        hold: Wait for the end of the answer, to recognise reasoning without a start.
    """
    text, sent = "", ""
    for piece in pieces:
        text += piece
        if hold:
            continue
        clean = without_reasoning(text[: _safe_length(text)])
        if clean.startswith(sent) and len(clean) > len(sent):
            yield clean[len(sent) :]
            sent = clean
    clean = without_reasoning(text)
    if clean != sent:
        yield clean.removeprefix(sent)


def parse_answer(text: str, parse: Callable[[str], Parsed]) -> Parsed:
    """Parse the JSON of an answer, without reasoning, a code fence or words around it.

    Args:
        text: The answer.
        parse: Raises `ValueError` for JSON that does not fit.

    Raises:
        ValueError: No JSON in the answer fits; the error is that of the whole answer.
    """
    text = without_reasoning(text)
    try:
        return parse(text)
    except ValueError:
        for value in _json_values(text):
            try:
                return parse(value)
            except ValueError:
                continue
        raise


def _json_values(text: str) -> list[str]:
    """Find the JSON objects and lists in a text, longest first."""
    found: list[str] = []
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_CANDIDATES):
        begin = _JSON_BEGINS.search(text, at)
        if begin is None:
            break
        try:
            at = decoder.raw_decode(text, begin.start())[1]
            found.append(text[begin.start() : at])
        except (RecursionError, ValueError):
            at = begin.end()
    return sorted(found, key=len, reverse=True)


def _safe_length(text: str) -> int:
    """Return the length of the text without an end that may become the start or end of reasoning."""
    start = text.rfind("\n") + 1
    line = text[start:].lstrip(" \t").lower()
    if not text.strip() or any(before.lower().startswith(line) for before in _REASONING if line):
        return start
    tag = max(text.rfind(sign) for sign in "<[◁")
    is_end = tag >= 0 and any(after.lower().startswith(text[tag:].lower()) for after in _REASONING.values())
    return tag if is_end else len(text)
