"""Read a PDF: pages, form fields and annotations, and doubtful pages with both engines. Runs in the worker process."""

from __future__ import annotations

import re
import signal
import threading
import time
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ragistry.readers.blocks import UnreadableFileError, check_characters, longest_text
from ragistry.readers.page_numbers import ALONE, AT_EDGE, NAMED
from ragistry.readers.pdf_engines import ENGINES, Pdf, PdfPage, Spot, inspect_pages
from ragistry.readers.pdf_forms import lines_of
from ragistry.readers.pdf_letters import BROKEN, MISSING, faults, is_better, restore
from ragistry.utils.wording import numbered

_UNMAPPED = re.compile("[\x00\x01\x03-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")  # 2 is a hyphen of pdfium
_WORD_WITH_MISSING = re.compile(rf"[^\W_]+{MISSING}|{MISSING}[^\W_]")
LONGEST_INFO = 10_000
"""Characters of a title, an author and the like; `extract` keeps fewer."""
XFA_CHARACTERS = 2_000
"""In a file with more text than that, an XFA form has pages of its own besides."""
SHARE_OF_TIME = 0.25
"""Of the time limit of a file, what a second reading of pages may take."""
_PAGE_BREAK = "\f"  # among the characters that `clean` removes


class _TooSlowError(BaseException):
    """The time for a second reading is over. No `Exception`, so that the engine does not catch it."""


def read(data: bytes, engine: str, request: dict[str, Any]) -> dict[str, Any]:
    """Read a PDF with one engine, and pages that show a fault with the other engine too.

    Returns:
        ``pages``: text of each page; ``notes``: ``[page, text]`` of form fields and annotations; ``labels``: number of
        each page as it is printed, empty where that is its number; ``unreadable`` and ``pictured``: pages;
        ``unmapped``: number of characters that fonts do not map; ``xfa``; ``info``; ``title`` on the first page;
        ``replaced``: ``[page, sign]`` of pages of which the reading by the other engine, ``second``, is better;
        ``unchecked``: number of doubtful pages for which there was no time; ``lost``: number of annotations and
        words with missing letters that were not read.

    Raises:
        UnreadableFileError: The file is damaged, encrypted, or over a limit.
    """
    pdf = ENGINES[engine](data)
    if pdf.pages > request["pages"]:
        raise UnreadableFileError(
            f"has {pdf.pages:,} pages, more than the limit of {request['pages']:,}; split it or raise limits.pages"
        )
    pages, unreadable, unmapped = _pages(pdf, request["characters"], len(data))
    annotated = pdf
    if engine != "pypdfium2":
        pages, annotated = _annotated(data, pages, pdf)
    texts = [clean(page.text) for page in pages]
    second = next(name for name in ENGINES if name != engine)
    replaced, unchecked = _read_again(data, second, texts, request["seconds"] * SHARE_OF_TIME)
    spots = [{} if number in replaced else page.spots for number, page in enumerate(pages)]
    labels = _labels(annotated, len(texts))
    texts = without_running_heads(restore(texts), spots, labels)
    notes = _notes(pages)
    lost = {
        "annotations": sum(page.skipped for page in pages),
        "glyphs": sum(len(_WORD_WITH_MISSING.findall(text)) for text in texts),
    }
    check_characters(sum(map(len, texts)) + sum(len(text) for _, text in notes), request["characters"])
    texts = [page.strip() for page in rejoin(_PAGE_BREAK.join(texts)).split(_PAGE_BREAK)] if texts else []
    empty = [index for index, page in enumerate(texts) if not page]
    suspicious = empty or sum(map(len, texts)) < XFA_CHARACTERS
    pictured, xfa = inspect_pages(data, empty) if suspicious else ([], False)
    return {
        "pages": texts,
        "notes": notes,
        "labels": labels,
        "unreadable": unreadable,
        "pictured": pictured,
        "unmapped": unmapped,
        "xfa": xfa,
        "info": {key: value[:LONGEST_INFO] for key, value in pdf.info.items()},
        "title": clean(pages[0].title) if pages and 0 not in replaced else "",
        "replaced": [[number + 1, sign] for number, sign in replaced.items()],
        "second": second,
        "unchecked": unchecked,
        "lost": {kind: count for kind, count in lost.items() if count},
    }


def _pages(pdf: Pdf, most: int, size: int) -> tuple[list[PdfPage], list[int], int]:
    """Return the pages, those of them that are unreadable, and the number of characters that fonts do not map."""
    pages, unreadable, characters, unmapped = [], [], 0, 0
    for index in range(pdf.pages):
        page = _page(pdf, index)
        if page is None:
            unreadable.append(index + 1)
            page = PdfPage("", {}, [])
        characters += len(page.text)
        check_characters(characters, most)
        if characters > longest_text(size):
            raise UnreadableFileError(
                f"draws its text again and again: {characters:,} characters on {numbered(index + 1, 'page[|s]')} from "
                f"{size:,} bytes; print it as a new PDF"
            )
        unmapped += len(_UNMAPPED.findall(page.text))
        pages.append(page)
    return pages, unreadable, unmapped


def _page(pdf: Pdf, index: int) -> PdfPage | None:
    try:
        return pdf.read(index)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - one damaged page is reported and the others are read
        return None


def _annotated(data: bytes, pages: Sequence[PdfPage], pdf: Pdf) -> tuple[list[PdfPage], Pdf]:
    """Return the pages of pypdf with pdfium's annotations and title, and the source of the page labels."""
    try:
        other = ENGINES["pypdfium2"](data)
    except UnreadableFileError:
        return list(pages), pdf
    found = []
    for index, page in enumerate(pages):
        seen = _page(other, index) if index < other.pages else None
        if seen:
            page = page._replace(annotations=seen.annotations, skipped=seen.skipped, title=seen.title)
        found.append(page)
    return found, other


def _labels(pdf: Pdf, pages: int) -> list[str]:
    """Return the number of each page as it is printed, empty if that is how it is counted; no list if all are."""
    labels = []
    for index in range(pages):
        label = ""
        with suppress(Exception):  # a damaged tree of labels says nothing
            label = pdf.label(index)[:LONGEST_INFO]
        labels.append("" if label == str(index + 1) else label)
    return labels if any(labels) else []


def _read_again(data: bytes, engine: str, texts: list[str], seconds: float) -> tuple[dict[int, str], int]:
    """Read pages with faults by the other engine, and put its reading in place of one that is worse.

    Returns the sign for each page, counted from 0, of which the text was replaced, and the number of pages that were
    not read again because the time was over.
    """
    doubtful = {index: found for index, text in enumerate(texts) if (found := faults(text))}
    if not doubtful:
        return {}, 0
    replaced: dict[int, str] = {}
    done = 0
    with suppress(_TooSlowError, UnreadableFileError, MemoryError), _at_most(seconds) as end:
        pdf = ENGINES[engine](data)
        for index, found in doubtful.items():
            if time.monotonic() > end:
                break
            page = _page(pdf, index) if index < pdf.pages else None
            done += 1
            if page is not None and is_better(texts[index], text := clean(page.text)):
                texts[index] = text
                replaced[index] = max(found, key=found.__getitem__)
    return replaced, len(doubtful) - done


@contextmanager
def _at_most(seconds: float) -> Iterator[float]:
    """Raise `_TooSlowError` in the block after some seconds, where the system and the thread allow it."""
    end = time.monotonic() + seconds

    def stop(*_: object) -> None:
        raise _TooSlowError

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield end
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield end
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _notes(pages: Sequence[PdfPage]) -> list[tuple[int, str]]:
    """Return the form fields and annotations of each page with some."""
    seen = set[str]()
    noted = ((number, lines_of(page.annotations, seen)) for number, page in enumerate(pages, 1))
    return [(number, "\n".join(lines)) for number, lines in noted if lines]


# --- The text of pages: running heads and feet, hyphenated words ---


_JUNK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\uffff]|\u00ad(?!\n)")  # of fonts that map no characters
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_LINE_ENDS = re.compile(r"(?<![ \t])[ \t]++(?=\n)")

_SEPARATOR = re.compile(f"(\n|{BROKEN})")
_NUMERIC = re.compile(r"[^\w\s]*\d[\d.,:/%-]*[^\w\s]*")
_SHORTEST, _LONGEST = 4, 300  # characters of a running head that is not the number of its page
_FEWEST_PAGES, _LEAST_SHARE = 3, 0.6
_WIDEST_GAP = 2  # pages from one head to the next of the same text: heads of left and right pages alternate
_LINES = 4  # at each end of a page where its lines have places
_LINES_BY_ORDER = 2  # where they have none
_ROW_GAP = 1.3
_APART = 0.4, 5.0  # heights of a line between the number of a page and the title after it, or before it
_SENTENCE_END = re.compile(r"[.!?:;…。][\W_]*$")


def clean(text: str) -> str:
    """Normalise the text of a page: newlines ``\\n``, no control characters, no blanks at line ends, no ligatures."""
    text = _JUNK.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LIGATURES.sub(lambda ligature: unicodedata.normalize("NFKC", ligature[0]), text)
    return _LINE_ENDS.sub("", text)


class _Line(NamedTuple):
    """A line that may be a running head: where it is, on which side of it a page number is, if that is certain."""

    page: int
    order: int
    side: int = -1
    is_certain: bool = True
    is_above_row: bool = False


def without_running_heads(
    pages: Sequence[str], spots: Sequence[Mapping[int, Spot]], labels: Sequence[str] = ()
) -> list[str]:
    """Remove each running head, foot and page number from all pages but the first that has it.

    A line is one if it has the same text at the same end of at least three pages in a row (left and right pages may
    alternate) or of 60 % of all pages. The number of its page may differ: alone, after a word such as "page", apart
    from the title, or before it on left pages and after it on right ones. Other lines with numbers that count stay,
    for example "Exhibit 2". A line that is repeated above the rows of a table stays, and so does what would leave a
    page empty.

    Args:
        pages: Cleaned texts of the pages.
        spots: For each page, the places of its first and last lines by line number, empty where they are unknown.
        labels: For each page, its number as it is printed, empty where that is how it is counted; empty if all are.
    """
    if len(pages) < 2:
        return list(pages)
    split = [_SEPARATOR.split(page) for page in pages]
    groups: defaultdict[tuple[str, str, str], list[_Line]] = defaultdict(list)
    for number, (parts, places) in enumerate(zip(split, spots, strict=True)):
        own = (labels[number] if labels else "").casefold() or str(number + 1)
        for key, line in _candidates(number, own, parts[::2], places):
            group = groups[key]
            if not group or group[-1].page != number:
                group.append(line)
    removed: defaultdict[int, set[int]] = defaultdict(set)
    kept_feet: defaultdict[int, list[int]] = defaultdict(list)
    for (end, _, own), group in groups.items():
        if len({line.side for line in group}) < 2:
            group = [line for line in group if line.is_certain]
        for position, line in enumerate(_repeated(group, len(pages), bool(own))):
            if position:
                removed[line.page].add(line.order)
            elif end in ("bottom", "last"):
                kept_feet[line.page].append(line.order)
    moved = [_with_foot_first(parts, kept_feet[number]) for number, parts in enumerate(split)]
    return [
        _without(page, parts, removed[number]) for number, (page, parts) in enumerate(zip(pages, moved, strict=True))
    ]


def _with_foot_first(parts: list[str], feet: Sequence[int]) -> list[str]:
    """Move the feet at the end of a page before its text, if that continues on the next page.

    The numbers of the other lines stay: a foot becomes part of the first line.
    """
    lines, separators = parts[::2], parts[1::2]
    filled = [index for index, line in enumerate(lines) if line.strip()]
    body = [index for index in filled if index not in feet]
    behind = [index for index in feet if body and index > body[-1]]
    if not behind or _SENTENCE_END.search(lines[body[-1]]):
        return parts
    moved = list(lines)
    for index in behind:
        moved[index] = ""
    moved[0] = "\n".join([*(lines[index] for index in behind), lines[0]])
    if separators and separators[body[-1]] == BROKEN:
        return parts
    return [piece for pair in zip(moved, [*separators, ""], strict=True) for piece in pair][:-1]


def _candidates(
    page: int, own: str, lines: Sequence[str], spots: Mapping[int, Spot]
) -> Iterator[tuple[tuple[str, str, str], _Line]]:
    """Yield each line that may be a running head, under its end of the page, its text and the number of its page."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    ends = _LINES if spots else _LINES_BY_ORDER
    for order, index in enumerate(filled):
        if ends <= order < len(filled) - ends or len(lines[index]) > _LONGEST:
            continue
        spot = spots.get(index, Spot("", 0))
        end = spot.end
        if not spots:
            end = "first" if order < ends and order <= len(filled) - 1 - order else "last"
        if end:
            text = " ".join(lines[index].casefold().split())
            if len(text) >= _SHORTEST:
                above_row = end != "last" and _is_above_row(filled[order : order + 3], lines, spots)
                yield (end, text, ""), _Line(page, index, is_above_row=above_row)
            for title, number, side, is_certain in _numbered(text, page, own, spot.gaps):
                yield (end, title, number), _Line(page, index, side, is_certain)


def _numbered(text: str, page: int, own: str, gaps: Sequence[float]) -> Iterator[tuple[str, str, int, bool]]:
    """Yield readings of a line as the number of its page and a title: title, number, side, whether it is certain.

    The number is given as its distance from the number of the page, so that it is the same for all pages.
    """
    named, alone = NAMED.search(text), ALONE.fullmatch(text)
    for found in (named, alone):
        if found and (distance := _distance(found["number"], page, own)):
            title = text[: found.start("number")] + "#" + text[found.end("number") :]
            yield title, distance, -1, found is named or distance[0] != "-"
    for side, edge in enumerate(AT_EDGE):
        if not alone and (found := edge.fullmatch(text)) and (distance := _distance(found["number"], page, own)):
            words = len(found["count"].split())
            gap = max(gaps[-words:][:1] if side else gaps[words - 1 : words], default=0.0)
            yield found["title"], distance, side, distance[0] != "-" and (gap >= _APART[side] or found["gap"] != " ")


def _distance(number: str | None, page: int, own: str) -> str:
    """Return how far the number is from that of its page, which ``own`` may tell; empty if it is no number."""
    if number == own:
        return "own"
    return str(page + 1 - int(number[-9:])) if number and number.isdecimal() else ""


def _is_above_row(indices: Sequence[int], lines: Sequence[str], spots: Mapping[int, Spot]) -> bool:
    """Return whether the next lines look like rows of a table, the first no further away than the second is from it."""
    if len(indices) < 3 or not all(_is_row(lines[index]) for index in indices[1:]):
        return False
    if any(index not in spots for index in indices):
        return True
    first, second, third = (spots[index].height for index in indices)
    return 0 < second - first <= _ROW_GAP * (third - second)


def _is_row(line: str) -> bool:
    words = line.split()
    numeric = sum(_NUMERIC.fullmatch(word) is not None for word in words)
    return numeric >= 2 and numeric * 3 >= len(words)


def _repeated(group: Sequence[_Line], pages: int, counts: bool) -> list[_Line]:
    """Return the lines of a group that are a running head; ``counts`` says that they have the numbers of pages."""
    if sum(line.is_above_row for line in group) * 2 > len(group):
        return []
    if len(group) >= _LEAST_SHARE * pages and len(group) >= (2 if counts else _FEWEST_PAGES):
        return list(group)
    kept: list[_Line] = []
    run: list[_Line] = []
    for line in group:
        if run and line.page - run[-1].page > _WIDEST_GAP:
            kept += run if len(run) >= _FEWEST_PAGES else []
            run = []
        run.append(line)
    return kept + (run if len(run) >= _FEWEST_PAGES else [])


def _without(page: str, parts: Sequence[str], removed: set[int]) -> str:
    if not removed:
        return "".join(parts)
    lines, separators = parts[::2], [*parts[1::2], ""]
    kept = [index for index in range(len(lines)) if index not in removed]
    if not any(lines[index].strip() for index in kept):
        return page
    for index in {index - 1 for index in removed} - removed:
        if separators[index] == BROKEN:  # its word does not continue after a removed line
            separators[index] = "-\n\n"
    return "".join(lines[index] + separators[index] for index in kept)


# --- Words hyphenated at line ends ---

_LETTERS = r"(?<![^\W\d_])[^\W\d_]++"  # a whole run, entered at its start only: linear on text without blanks
_END = rf"(?:{BROKEN}|[-\u2010\u00ad]\n)"
_BREAK = re.compile(rf"({_LETTERS}){_END}(?=({_LETTERS}))")
_BROKEN_WORD = re.compile(rf"{_LETTERS}(?:{_END}{_LETTERS})+")
_WORD = re.compile(rf"{_LETTERS}(?:-{_LETTERS})*")
_SUSPENDED = frozenset({"and", "or", "und", "oder", "bzw"})  # "pre- and post-war", "Haupt- und Nebenfach"
_SHORTEST_PART = 3  # letters of a significant part; TeX breaks off two or three
_LONGEST_RELATED = 60  # letters of a word whose forms are looked for, one comparison for each letter


def rejoin(text: str) -> str:
    """Return the text with all words hyphenated at line ends rejoined, in linear time.

    The hyphen is kept if the document has the word with a hyphen elsewhere. If it has neither form, and no other form
    of the joined word ("highlight" for "high-" "lighted"), the hyphen is kept inside a longer compound ("state-of-the-"
    "art"), after a letter or an abbreviation ("X-" "ray"), before anything not in lower case ("Jean-" "Paul"), between
    two words of the document, and next to a part that it hyphenates elsewhere ("non-", "-based").
    """
    if _BREAK.search(text):
        seen = _words(_BROKEN_WORD.sub(" ", text))
        ordered = sorted(seen)
        text = _BREAK.sub(lambda broken: broken[1] + _link(broken, seen, ordered), text)
    return text.replace(BROKEN, "-")


def _words(text: str) -> Counter[str]:
    """Return the frequency of each word, and of each part of compounds (as "non-" and "-based")."""
    words = Counter(_WORD.findall(text.lower()))
    parts = [word.split("-") for word in words if "-" in word]
    words.update(f"{part}-" for compound in parts for part in compound[:-1])
    words.update(f"-{part}" for compound in parts for part in compound[1:])
    return words


def _link(broken: re.Match[str], seen: Counter[str], ordered: Sequence[str]) -> str:
    """Return the text between the two parts of a broken word."""
    left, right, text = broken[1].lower(), broken[2].lower(), broken.string
    joined, compound = seen[left + right], seen[f"{left}-{right}"]
    if joined or compound:
        return "-" if compound > joined else ""
    if right in _SUSPENDED and text[broken.end(2) : broken.end(2) + 1].isspace():
        return "- "
    in_compound = text[broken.start() - 1 : broken.start()] == "-"
    abbreviation = len(left) == 1 or broken[1].isupper()
    starts_anew = not broken[2][0].islower()
    if not starts_anew and _has_relative(left + right, len(left) + _SHORTEST_PART, seen, ordered):
        return ""
    return "-" if in_compound or abbreviation or starts_anew or _are_words(left, right, seen) else ""


def _has_relative(word: str, shortest: int, seen: Counter[str], ordered: Sequence[str]) -> bool:
    """Return whether the document has another form of a word, such as "highlight" for "highlighted"."""
    if not shortest <= len(word) <= _LONGEST_RELATED:
        return False
    if any(seen[word[:end]] for end in range(shortest, len(word))):
        return True
    place = bisect_left(ordered, word)
    return place < len(ordered) and ordered[place].startswith(word)


def _are_words(left: str, right: str, seen: Counter[str]) -> bool:
    from_left, from_right = len(left) >= _SHORTEST_PART, len(right) >= _SHORTEST_PART
    both = from_left and from_right and seen[left] and seen[right]
    return bool(both or (from_left and seen[f"{left}-"]) or (from_right and seen[f"-{right}"]))
