"""Patterns of lines: a literal, or a regular expression whose time grows with the length of the line alone.

They are those of Rust, which pydantic uses for fields. Python's may take forever, and cannot be stopped. A line has a
pattern if its composed form has it, or the line as it is typed (`text.spellings.as_typed`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, StringConstraints, TypeAdapter
from pydantic_core import SchemaError

from ragistry.text.spellings import as_typed
from ragistry.tools.failures import CallError
from ragistry.utils.ids import composed
from ragistry.utils.wording import shown

if TYPE_CHECKING:
    from ragistry.tools.grep import GrepRequest

LONGEST_PATTERN = 1_000
LINE_CHARACTERS = 300
"""Characters of a line that `grep` shows; a longer one is cut around the match."""
SEARCHED_CHARACTERS = 1_000_000
"""Characters of a line that are searched at once."""
_ENDS = re.compile(r"\\[Az]|\(\?[a-zA-Z]*[-R]")
"""Parts of a regular expression that tell the ends of a text from those of a line, whatever its flags say."""
_Form = Callable[[str], str]


class LinePattern:
    """The pattern of a request. Raises `CallError` if it is empty, too long or not valid."""

    def __init__(self, request: GrepRequest) -> None:
        pattern, typed = composed(request.pattern), as_typed(request.pattern)
        if not typed:
            raise CallError("the pattern is empty; write at least one character")
        if len(pattern) > LONGEST_PATTERN:
            raise CallError(
                f"the pattern has {len(pattern):,} characters, the limit is {LONGEST_PATTERN:,}; shorten it"
            )
        if set("\0\n\r") & set(pattern):
            raise CallError("the pattern has a NUL or a line end, and lines are searched one by one; leave it out")
        self._regex = _escaped(typed)
        if request.regex:  # typed sign by sign, because a plain one may mean something there
            self._regex = "".join(one if one.isascii() else _escaped(as_typed(one)) for one in pattern)
        if request.words:
            self._regex = rf"\b{{start-half}}(?:{self._regex})\b{{end-half}}"
        if request.ignore_case:
            self._regex = f"(?i){self._regex}"
        self._found = _tester(self._regex, request.pattern)
        in_text = _tester(f"(?m){self._regex}", request.pattern)
        self._found_in_text = bool if request.regex and _ENDS.search(pattern) else in_text

    def test(self, line: str) -> bool:
        """Return whether a line has the pattern."""
        return self._match(line)[1] is not None

    def may_match(self, text: str) -> bool:
        """Return whether one of the lines of a text may have the pattern."""
        return _form_with(self._found_in_text, text) is not None

    def span(self, line: str) -> tuple[int, int]:
        """Return where a match in a line with the pattern begins and ends: of the first one to end, the longest.

        The beginning is at most `LINE_CHARACTERS` characters before the end.
        """
        at, found = self._match(line)
        form, part = found or composed, line[at : at + SEARCHED_CHARACTERS]
        sizes = range(1, len(part) + 1)
        start, end = (
            bisect_right(sizes, one, key=lambda size: len(form(part[:size]))) for one in self._span(form(part))
        )
        return at + start, at + end

    def _match(self, line: str) -> tuple[int, _Form | None]:
        """Return the offset of the part of a line that has the pattern, and the form in which it has it."""
        at = 0
        while (form := _form_with(self._found, line[at : at + SEARCHED_CHARACTERS])) is None:
            if at + SEARCHED_CHARACTERS >= len(line):
                break
            at += SEARCHED_CHARACTERS // 2
        return at, form

    def _span(self, text: str) -> tuple[int, int]:
        """Find a match by tests alone, since pydantic tells only whether there is one."""
        inside = f"(?:{self._regex})"
        forms = (f"{inside}(?s:.)", rf"\A(?s:.){inside}", rf"\A{inside}")
        try:
            ends_before, begins_after, begins = (_tester(form, "") for form in forms)
        except CallError:  # a comment in it takes the rest, or the longer expression is too large
            return 0, 0
        end = bisect_left(range(len(text)), True, key=lambda at: ends_before(text[: at + 1]))
        first = max(0, end - LINE_CHARACTERS)
        if not first and begins(text):
            return 0, end
        return next(
            (at for at in range(first or 1, end + 1) if begins_after(text[at - 1 : end + LINE_CHARACTERS])), first
        ), end


@lru_cache(maxsize=64)
def _tester(regex: str, written: str) -> Callable[[str], bool]:
    try:
        text = Annotated[str, StringConstraints(pattern=regex, strict=True)]
        return TypeAdapter[str](text, config=ConfigDict(regex_engine="rust-regex")).validator.isinstance_python
    except (SchemaError, UnicodeError) as error:
        reason = " ".join(str(error).rpartition("rror:")[2].split()) or "it is not valid"
        raise CallError(
            f"the regular expression {shown(written)} cannot be used: {reason[:200]}; correct it"
        ) from error


def _escaped(text: str) -> str:
    return "".join(f"\\{one}" if one in "\\.+*?()|[]{}^$#&-~" else one for one in text)


def _form_with(found: Callable[[str], bool], text: str) -> _Form | None:
    """Return the form of a text in which something is found."""
    if found(composed(text)):
        return composed
    return as_typed if not text.isascii() and found(as_typed(text)) else None
