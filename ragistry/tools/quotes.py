"""The tool ``check_quotes``: check the quotations and citations of an answer against the documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ragistry.answers.quotations import Cited, Place, Source
from ragistry.answers.quotes import CheckedQuote, compared
from ragistry.chunking.places import places_in
from ragistry.presentation.hits import place_text
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.sources import sources_in
from ragistry.tools.tokens import estimated_tokens
from ragistry.tools.tool import COLLECTION, TOKENS, Tool
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered

LONGEST_ANSWER = 1_000_000
"""Characters of an answer that is checked."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Check an answer.

    Attributes:
        answer: The answer: Markdown, or the JSON of ``ragistry ask --json``.
        collection: Look only into this collection.
        strict: A quotation that is nowhere is an error also if nothing is cited for it.
        max_tokens: Maximum size of the answer.
    """

    answer: str = field(metadata={"description": 'The answer, as Markdown: "a quotation" [1] or (guide.pdf, p. 3).'})
    collection: str | None = field(default=None, metadata=COLLECTION)
    strict: bool = field(
        default=False, metadata={"description": "Also refuse quotations without a source that are nowhere."}
    )
    max_tokens: int = field(default=4_000, metadata=TOKENS)


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The result of a check.

    Attributes:
        quotes: The quotations, and the citations without a source or place in the library, in their order.
        not_quoted: Numbers in blocks with citations that the cited passages do not have, each with its line in the
            answer. They may be computed, and so right.
        ok: Whether every quotation and citation is at its place.
        left_out: How many entries are not listed; those that are not at their place are listed first.
        not_compared: What could not be compared: pages of a source without pages, marks without a pair.
        summary: How much of the answer was checked.
    """

    quotes: list[CheckedQuote]
    not_quoted: list[str]
    ok: bool
    left_out: int = 0
    not_compared: list[str] = field(default_factory=list)
    summary: str = ""


def check_quotes(reach: Reach, request: CheckRequest) -> CheckAnswer:
    """Check an answer. Raises `CallError`."""
    if len(request.answer) > LONGEST_ANSWER:
        raise CallError(
            f"the answer has more than {LONGEST_ANSWER:,} characters, which is the limit; check parts of it"
        )
    known = sources_in(reach, request.collection, None)
    text, numbers = _read_json(request.answer, known)
    if not text.strip():
        raise CallError("the answer has no text; write Markdown, or the JSON of `ragistry ask --json`")
    found, not_quoted, not_compared = compared(reach.library.store, known, text, numbers)
    quotes = [one for one in found if one.text]
    counts = Counter(one.verdict for one in quotes)
    wrong, unknown = len(quotes) - counts["found"] - counts["uncited"], len(found) - len(quotes)
    others = {
        "not found": wrong,
        "without a source": counts["uncited"],
        "cited without a source or place in the library": unknown,
        "not compared": len(not_compared),
    }
    summary = [f"{counts['found']} of {numbered(len(quotes), 'quotation[|s]')} found"]
    summary += [f"{number} {what}" for what, number in others.items() if number]
    ok = not (wrong or unknown or (request.strict and counts["uncited"]))
    answer = CheckAnswer(found, not_quoted, ok, 0, not_compared, ", ".join(summary))
    return _fitting(answer, request.max_tokens)


def _fitting(checked: CheckAnswer, room: int) -> CheckAnswer:
    """Drop entries until the rest fits; numbers, and quotations at their place, are dropped first."""
    kept: set[int] = set()
    for at in sorted(range(len(checked.quotes)), key=lambda at: checked.quotes[at].verdict == "found"):
        one = checked.quotes[at]
        room -= estimated_tokens(f"{one.text[:200]}{one.cited[:200]}{one.source}") + 12
        if room >= 0:
            kept.add(at)
    others = checked.not_compared + checked.not_quoted
    size = max(0, room // 20)
    return replace(
        checked,
        quotes=[one for at, one in enumerate(checked.quotes) if at in kept],
        not_compared=checked.not_compared[:size],
        not_quoted=checked.not_quoted[: max(0, size - len(checked.not_compared))],
        left_out=len(checked.quotes) - len(kept) + max(0, len(others) - size),
    )


def check_text(found: CheckAnswer) -> str:
    """Write the result of a check."""
    lines = []
    for one in found.quotes:
        there = (
            f": {visible_line(one.source)} ({place_text(one.place)})" if one.source and one.verdict != "found" else ""
        )
        cited = f" {visible_line(one.cited, 200)}" if one.cited else ""
        text = f": {visible_line(one.text, 200)}" if one.text else ""
        lines.append(f"line {one.line}: {one.verdict}{there}{cited}{text}")
    lines += [f"{visible_line(one, 200)} is not compared" for one in found.not_compared]
    lines += [f"{one} is not quoted from the cited passages" for one in found.not_quoted]
    left_out = f", {found.left_out:,} more left out" if found.left_out else ""
    return "\n".join([*lines, found.summary + left_out])


def _read_json(text: str, known: Sequence[Source]) -> tuple[str, dict[int, list[Cited]]]:
    """Return the Markdown of an answer, and the sources of its numbers if it is the JSON of ``ragistry ask``."""
    try:
        values = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return text, {}
    documents = values.get("documents")
    numbers = {}
    for number, one in enumerate(documents if isinstance(documents, list) else [], 1):
        found = one.get("metadata") if isinstance(one, dict) else None
        metadata = found if isinstance(found, dict) else {}
        name, collection = metadata.get("source_file"), metadata.get("collection")
        sources = [each for each in known if (each[0], each[1].source_file) == (collection, name)]
        pages = [place.get("page") for _, place in places_in(metadata)]
        places = [Place("page", [(str(page), str(page))], f"p. {page}") for page in pages if type(page) is int]
        numbers[number] = [Cited(f"[{number}] {name}", sources, places)]
    answer = values.get("answer")
    return answer if isinstance(answer, str) else "", numbers


CHECK_QUOTES = Tool(
    "check_quotes",
    "Check quotations",
    "Check that the quotations and citations of an answer are in the documents, before you give it.",
    CheckRequest,
    CheckAnswer,
    check_quotes,
    check_text,
)
