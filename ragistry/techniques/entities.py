"""Find the entities of texts without a model: names, phrases of two words, and metadata.

1. A name is a run of capitalised words, with small words such as "of" inside: "University of Oxford". Every run of up
   to four words within it counts too, so that "Ed Wood" is found in "Director Ed Wood". A single word that begins a
   sentence is not a name.
2. Two words that follow each other, neither of them a stop word: "boundary layer".
3. Titles, headings and tags, as wholes and by the rules above; they count `FROM_METADATA` times.
4. In scripts without spaces, pairs of characters.

Words are compared as stems without accents (`text.analysis`). An entity is kept as a hash: see `derived`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.techniques.derived import Rows, hashed
from ragistry.text.analysis import VERSION, analyse, query_terms
from ragistry.text.languages import chunk_language
from ragistry.types import Document

ENTITY = np.dtype([("key", "<u8"), ("weight", "<f4")])
"""An entity of a chunk: its hash, and its weight."""
STAMP = f"entities 1, analysis {VERSION}"
LONGEST = 4
"""Maximum number of words of a name."""
FROM_METADATA = 3.0
FLAGS = 7
"""Number of flag bits of a word; the others are its hash."""
UNSPACED = "\u0e00"
"""The first character of the scripts without spaces; the scripts after it can be cut in the same way."""

CAPITAL, STOP, LINK, OPENS, CLOSES, ENDS, WHOLE = (1 << bit for bit in range(7))
"""What a word is: capitalised; a stop word; a small word within names; after a bracket or quote; before a punctuation
mark; last of a sentence; an entity by itself, which joins no other word."""
_LINKS = frozenset(("of", "the", "and", "de", "la", "le", "von", "van", "der", "du", "da", "del", "di", "for", "in"))
_MORE_STOPS = frozenset(
    re.findall(
        r"\w+",
        "he she we you i his her its our your who whom whose which what when where why how has have had do does did "
        "were been being from after before also than more most some any all can could may might should would so",
    )
)
_EDGES = re.compile(r"^([^\w]*)(.*?)([^\w]*)$", re.DOTALL)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class _Words(NamedTuple):
    """The words of several texts in sequence: hash, flags, and index of the text."""

    keys: NDArray[np.uint64]
    flags: NDArray[np.uint64]
    text: NDArray[np.int64]


class _Found(NamedTuple):
    """Entities: hash, and the first word and the number of words of each."""

    keys: NDArray[np.uint64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]


def entities(documents: Sequence[Document]) -> list[Rows]:
    """Find the entities of each chunk, ``(n,)`` of `ENTITY`, each entity once."""
    if not documents:
        return []
    words = _words([document.content for document in documents], documents)
    found = _found(words)
    said = [_metadata(document) for document in documents]
    owner = [number for number, texts in enumerate(said) for _ in texts]
    titles = _words([text for texts in said for text in texts], [documents[number] for number in owner])
    named = _found(titles, wholes=True)
    keys = np.concatenate([found.keys, named.keys])
    chunk = np.concatenate([words.text[found.first], np.array(owner, dtype=np.int64)[titles.text[named.first]]])
    weight = np.concatenate([np.ones(len(found.keys)), np.full(len(named.keys), FROM_METADATA)])
    order = np.lexsort((-weight, keys, chunk))
    keys, chunk, weight = keys[order], chunk[order], weight[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (chunk[1:] != chunk[:-1])
    rows = np.zeros(int(new.sum()), dtype=ENTITY)
    rows["key"], rows["weight"] = keys[new], weight[new]
    return np.split(rows, np.searchsorted(chunk[new], np.arange(1, len(documents))))


def _metadata(document: Document) -> list[str]:
    """Return titles, headings and tags."""
    get = document.metadata.get
    tags = get("tags")
    said = [get("title"), *str(get("heading_context") or "").split(" > "), get("section")]
    said += tags if isinstance(tags, list | tuple) else [tags]
    return list(dict.fromkeys(text for text in said if isinstance(text, str) and text.strip()))


def _words(texts: Sequence[str], documents: Sequence[Document]) -> _Words:
    found = [
        np.fromiter(chain.from_iterable(map(_reader(document), text.split())), dtype=np.uint64)
        for text, document in zip(texts, documents, strict=True)
    ]
    packed = np.concatenate([np.zeros(0, np.uint64), *found])
    numbers = np.repeat(np.arange(len(texts)), list(map(len, found)))
    return _Words(packed >> np.uint64(FLAGS), packed & np.uint64((1 << FLAGS) - 1), numbers)


def _reader(document: Document) -> Callable[[str], tuple[int, ...]]:
    return _reader_of(chunk_language(document.metadata, "english"))


@cache
def _reader_of(language: str) -> Callable[[str], tuple[int, ...]]:
    """Make a function from a token to its words, each a hash with flags in the lowest bits."""

    @lru_cache(maxsize=100_000)  # words repeat so often that most of the work is the lookup
    def read(token: str) -> tuple[int, ...]:
        before, core, after = _EDGES.match(token).groups()  # type: ignore[union-attr]
        core = core.removesuffix("'s").removesuffix("\u2019s")
        terms = analyse(core, language)
        if not terms:
            return ()
        if len(terms) > 1 and max(core) >= UNSPACED:
            return tuple(_packed(term, WHOLE) for term in terms if len(term) > 1)
        stop = core.casefold() in _MORE_STOPS or len(core) < 2 or not _tells(core, language)
        flags = CAPITAL * core[0].isupper() | STOP * stop | LINK * (core in _LINKS)
        flags |= OPENS * bool(before) | CLOSES * bool(after) | ENDS * (token[-1] in ".!?:")
        return (_packed(" ".join(terms), flags),)

    return read


def _packed(term: str, flags: int) -> int:
    return (hashed(term) >> FLAGS) << FLAGS | flags


def _tells(word: str, language: str) -> bool:
    """Return whether a word is not a stop word: then a query with another word has both."""
    return len(query_terms(f"{word} zzyzx", language)) > 1


def _found(words: _Words, *, wholes: bool = False) -> _Found:
    """Find the entities of words; with ``wholes`` also each text as a whole, and single words that begin one."""
    capital, stop, link, opens, closes, ends, whole = (
        (words.flags & np.uint64(flag)) > 0 for flag in (CAPITAL, STOP, LINK, OPENS, CLOSES, ENDS, WHOLE)
    )
    count = len(words.keys)
    same_text = words.text[:-1] == words.text[1:]
    first = np.ones(count, dtype=bool)
    first[1:] = ends[:-1] | ~same_text
    # Whether a word and the next one may be parts of one name or phrase.
    joins = same_text & ~closes[:-1] & ~opens[1:] & ~whole[:-1] & ~whole[1:]
    named, inside = capital & ~stop, capital | link
    alone = np.flatnonzero((named & (~first | wholes)) | whole)
    parts = [(words.keys[alone], alone, np.ones(len(alone), dtype=np.int64))]
    keys, runs = words.keys, inside
    for length in range(2, min(LONGEST, count) + 1):
        last = length - 1
        keys = keys[:-1] * _FACTOR ^ words.keys[last:]
        runs = runs[:-1] & inside[last:] & joins[last - 1 :]
        entity = runs & named[: count - last] & named[last:]
        if length == 2:
            entity |= joins & ~stop[:-1] & ~stop[1:]
        start = np.flatnonzero(entity)
        parts.append((keys[start], start, np.full(len(start), length)))
    if wholes:
        parts += _wholes(words)
    return _Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _wholes(words: _Words) -> list[tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]]:
    """Return each text of at most `LONGEST` words as one entity."""
    _, first, length = np.unique(words.text, return_index=True, return_counts=True)
    parts = []
    for start, size in zip(first.tolist(), length.tolist(), strict=True):
        if size <= LONGEST:
            key = words.keys[start : start + 1].copy()
            for offset in range(1, size):
                key = key * _FACTOR ^ words.keys[start + offset : start + offset + 1]
            parts.append((key, np.array([start]), np.array([size])))
    return parts
