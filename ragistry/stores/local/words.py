"""The index of words: BM25 by tantivy, over hashes of the terms from `text.analysis`.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 1.2, b 0.75.
"""

from __future__ import annotations

import json
import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from hashlib import blake2b
from math import inf, log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tantivy import Document, Index, Occur, Query, Schema, SchemaBuilder, Searcher

from ragistry.chunking.breadcrumb import searched_names, searched_text, without_suffix
from ragistry.errors import StoreError
from ragistry.stores.local.index import (
    DerivedIndex,
    Files,
    MappedFiles,
    Signature,
    Stale,
    Stamp,
    View,
    size_and_checksum,
)
from ragistry.stores.local.rows import chunks_where
from ragistry.stores.records import Keys, Scores
from ragistry.text.analysis import (
    CodeTable,
    analyse,
    analysis_record,
    bare_word,
    forms,
    query_forms,
    query_pairs,
    query_terms,
    required_terms,
    terms_by_word,
)
from ragistry.text.languages import canonical_language, chunk_language
from ragistry.text.questions import asking_words
from ragistry.types import Chunk

FILES_VERSION = 5
FORM = "~"
"""Precedes the form of a word (`text.analysis.forms`), so that it is another term than the word itself."""
FORM_WEIGHT = 0.4
FORM_AS_FORM = 0.28
"""Weights of a form where the query or the text has it as a word, and where both have it as a form; a word has 1. With
these, nDCG@10 of the shared sets falls by at most .003, and the spelling of the query ranks first."""
NAME = "@"
"""Precedes a term or form of a source's names (`searched_names`)."""
NAME_WEIGHT, NAME_WORDS, FEW_NAMES = 2.5, 4, 3
"""Weight, in comparison with a word of the text, of a name that has every word of a query of at most four, or of one
that is typed with a suffix. It falls where more than three sources have them, so that a rare passage is not behind them
all. In other queries a name counts as a text does, for words that no text has, because questions share words with many
names. See `benchmarks/names.py`."""
CACHED_CLAUSES = 50_000
META = "meta.json"
NOT_MAPPED = (".json", ".pos", ".store")
"""Suffixes of files that a search does not read: the index has neither positions nor texts."""
KEY, TERMS = "key", "terms"
WRITE_MEMORY = 64_000_000
"""Size of terms in bytes after which tantivy writes a segment; some 25,000 chunks."""
SLACK = 8
OVERFETCH = 1.5
GROWTH = 4
KEY_COST = 3
"""Looking up a key in tantivy costs as much as fetching and discarding this many hits."""


@dataclass(frozen=True, slots=True)
class WordView(View):
    """The open index.

    Attributes:
        removed: Number of removed chunks that the index still counts.
        clauses: Parts of earlier queries, by language, term and weights.
        holding: For words of earlier queries, the least number of chunks that have them, including removed ones.
    """

    searcher: Searcher
    schema: Schema
    removed: int
    clauses: dict[tuple[str, str, float, float, bool], list[tuple[Occur, Query]]] = field(default_factory=dict)
    holding: dict[str, float] = field(default_factory=dict)


class WordIndex(DerivedIndex[WordView]):
    """``language``: language of chunks without ``language`` in their metadata (see `text.languages`).

    Terms of different languages never match. A query is analysed in every language of the index.
    """

    name = "words"

    def __init__(self, *arguments: Any, language: str) -> None:
        super().__init__(*arguments)
        self.language = canonical_language(language)
        self.kind = {"files": FILES_VERSION, **analysis_record(language)}

    def best(
        self, view: WordView, query: str, top_k: int, allowed: Keys | None, *, every: bool = False
    ) -> tuple[Keys, Scores]:
        """Return the ``top_k`` best keys, and all ties with the last, by ``(-score, key)``.

        ``allowed``: the keys that may be returned, ascending. Many are used to filter the hits, of which more are
        fetched until the best are certain; few are looked up. ``every``: only chunks with every word. Raises `Stale` if
        the index is damaged.
        """
        with _damage_is_stale():
            return _found(view, _every_of(view, query) if every else _any_of(view, query), top_k, allowed)

    def unknown(self, view: WordView, query: str, allowed: Keys | None) -> list[str]:
        """Return the words of a query, as typed, that none of the allowed chunks has in any spelling.

        If more chunks have a word than are excluded, an allowed one has it; else the word is searched. No word is
        unknown if no chunk is allowed.
        """
        searched = view.searcher.num_docs if allowed is None else len(allowed)
        others = view.removed + view.searcher.num_docs - searched
        uncertain = [word for word in query.split() if view.holding.get(word, 0) <= others]
        if not uncertain or not searched:
            return []
        by_language = [(language, terms_by_word(query, language)) for language in view.stamp.files["languages"]]
        with _damage_is_stale():
            missing = [
                word
                for word in uncertain
                if not any(_is_held(view, language, word, of[word], others, allowed) for language, of in by_language)
            ]
        asking = asking_words(*view.stamp.files["languages"])
        bare = dict.fromkeys(filter(None, map(bare_word, missing)))
        return [word for word in bare if word.casefold().replace("\u2019", "'").partition("'")[0] not in asking]

    # The files

    def load(self, folder: Path, stamp: Stamp, signature: Signature) -> WordView:
        known = {} if self._view is None else self._view.stamp.files["segments"]  # which never change
        for name, entry in stamp.files["segments"].items():
            path, is_known = folder / name, name != META and known.get(name) == entry
            if (path.stat().st_size != entry[0]) if is_known else (size_and_checksum(path) != entry):
                raise Stale(f"damaged ({name})", broken=True)
        with _damage_is_stale(), _place_to_open(folder) as place:
            index = Index.open(str(place))
            index.config_reader("manual")  # else a thread of tantivy watches for changes
            sizes = {folder / name: size for name, (size, _) in stamp.files["segments"].items()}
            mapped = MappedFiles({path: size for path, size in sizes.items() if path.suffix not in NOT_MAPPED})
            removed = sum((one["deletes"] or {"num_deleted_docs": 0})["num_deleted_docs"] for one in _segments(folder))
            return WordView(stamp, signature, mapped, index.searcher(), index.schema, removed)

    def added(self, connection: Any, since: Stamp | None) -> Iterator[tuple[int, Chunk]]:
        """Yield the chunks added since this stamp of the index, by key; None: all."""
        return chunks_where(connection, "chunks.key >= ?", 0 if since is None else since.next_key)

    def removed(self, connection: Any, since: Stamp) -> Iterator[int]:
        """Yield the keys of chunks in the index with this stamp that were removed since."""
        rows = connection.execute(
            "SELECT key FROM removed WHERE number > ? AND key < ?", (since.removed, since.next_key)
        )
        return (key for (key,) in rows)

    def write(self, folder: Path, connection: Any, head: Any, since: WordView | None) -> Files:  # noqa: ARG002
        chunks = self.added(connection, None if since is None else since.stamp)
        languages = {self.language} if since is None else set(since.stamp.files["languages"])
        with _damage_is_stale(folder):
            index = Index(schema(), str(folder)) if since is None else Index.open(str(folder))
            index.config_reader("manual")
            writer = index.writer(WRITE_MEMORY, 1)
            try:
                if since is not None:
                    writer.garbage_collect_files()  # files left by a killed writer may have the same names
                    for key in self.removed(connection, since.stamp):
                        writer.delete_documents_by_term(KEY, key)
                for key, chunk in chunks:
                    language = chunk_language(chunk.metadata, self.language)
                    languages.add(language)
                    document = Document()
                    document.add_integer(KEY, key)
                    codes = _table(language).codes(searched_text(*chunk))
                    if names := searched_names(chunk.metadata):
                        codes += _name_codes(language, names.values())
                    document.add_text(TERMS, codes)
                    writer.add_document(document)
                writer.commit()
            finally:
                writer.wait_merging_threads()  # and frees tantivy's own lock
        mode = folder.stat().st_mode & 0o666
        for name in (META, ".managed.json"):  # tantivy creates them readable by the owner only
            (folder / name).chmod(mode)
        known = {} if since is None else since.stamp.files["segments"]  # which never change
        segments = {
            name: known[name] if name in known and name != META else size_and_checksum(folder / name)
            for name in _files(folder)
        }
        return {"segments": segments, "languages": sorted(languages)}

    def check(self, connection: Any, view: WordView) -> str:
        [expected] = connection.execute(
            "SELECT (SELECT count(*) FROM chunks WHERE key < :key) + "
            "(SELECT count(*) FROM removed WHERE key < :key AND number > :removed)",
            {"key": view.stamp.next_key, "removed": view.stamp.removed},
        ).fetchone()
        if view.searcher.num_docs != expected:
            reason = f"has {view.searcher.num_docs:,} chunks instead of {expected:,}"
            raise Stale(reason, broken=True)
        return ""


@cache
def _table(language: str) -> CodeTable:
    return CodeTable(language, partial(_code, language), lambda form: _code(language, FORM + form))


def _name_codes(language: str, names: Iterable[str]) -> str:
    """Return the codes of names, each once, with a blank before each."""
    words = " ".join(names).replace("/", " ")
    return "".join(f" {_code(language, NAME + term)}" for term in {*analyse(words, language), *forms(words, language)})


@lru_cache(maxsize=1 << 16)
def _code(language: str, term: str) -> str:
    """Hash a term, so that no word of a deleted text stays in a file.

    Tantivy keeps the terms of deleted chunks until it merges segments.
    """
    return urlsafe_b64encode(blake2b(f"{language} {term}".encode(), digest_size=8).digest()).decode().rstrip("=")


def _any_of(view: WordView, query: str) -> Query:
    """Build a query for chunks with at least one of the terms; a term that occurs n times counts n times."""
    clauses = []
    for language in view.stamp.files["languages"]:
        terms = query_terms(query, language)
        for term, count in terms.items():
            clauses += _finding(view, language, term, count, count * FORM_WEIGHT, named=True)
        for form, count in query_forms(query, language).items():
            # The text with the query's spelling of a number also has its words. Similar codes have most of them.
            as_word = count if count > 2 else count * FORM_WEIGHT
            clauses += _finding(view, language, form, as_word, FORM_AS_FORM if count == 1 else as_word, named=True)
        for pair, weight in query_pairs(query, language).items():
            # A text that has a pair as a form also has both words. Most pairs are not words.
            if view.searcher.doc_freq(TERMS, code := _code(language, pair)):
                clauses.append(_clause(view.schema, code, weight * FORM_WEIGHT))
        for typed in dict.fromkeys((query, " ".join(map(without_suffix, query.split())))):  # names have no suffix
            terms = query_terms(typed, language)
            if terms and (len(terms) <= NAME_WORDS or typed != query):
                rarest = min(_names(view, language, term) for term in terms)
                share = min(1.0, FEW_NAMES / rarest) if rarest else 0.0
                if all(every := [_name(view, language, term, NAME_WEIGHT * share) for term in terms]):
                    all_words = Query.boolean_query([(Occur.Must, clause) for [(_, clause)] in every])
                    clauses.append((Occur.Should, all_words))
    return Query.boolean_query(clauses)


def _every_of(view: WordView, query: str) -> Query:
    """Build a query for chunks with every word, in any spelling."""
    of_languages = []
    for language in view.stamp.files["languages"]:
        groups = required_terms(query, language)
        found = [[clause for term in group for clause in _finding(view, language, term, 1, 1)] for group in groups]
        if found:
            of_language = [(Occur.Must, Query.boolean_query(clauses)) for clauses in found]
            of_languages.append((Occur.Should, Query.boolean_query(of_language)))
    return Query.boolean_query(of_languages)


def _finding(
    view: WordView, language: str, term: str, as_word: float, as_form: float, *, named: bool = False
) -> list[tuple[Occur, Query]]:
    """Find a term as a word and as the form of another word, with a weight for each. ``named``: else in names."""
    known = view.clauses.get((language, term, as_word, as_form, named))
    if known is None:
        if len(view.clauses) >= CACHED_CLAUSES:
            view.clauses.clear()
        word, form = _code(language, term), _code(language, FORM + term)
        known = [_clause(view.schema, word, as_word)]
        words, forms = (view.searcher.doc_freq(TERMS, code) for code in (word, form))
        if forms:  # no chunk has both, and a rare form is not worth more than its word
            share = _rarity(view, words + forms) / _rarity(view, forms)
            known.append(_clause(view.schema, form, as_form * share))
        if named and not (words or forms):
            known += _name(view, language, term, as_word)
        view.clauses[language, term, as_word, as_form, named] = known
    return known


def _name(view: WordView, language: str, term: str, weight: float) -> list[tuple[Occur, Query]]:
    """Find the sources whose names have a term; it is as rare as in texts and names together."""
    names = _names(view, language, term) if weight else 0
    if not names:
        return []
    share = _rarity(view, view.searcher.doc_freq(TERMS, _code(language, term)) + names) / _rarity(view, names)
    return [_clause(view.schema, _code(language, NAME + term), weight * share)]


def _names(view: WordView, language: str, term: str) -> int:
    return view.searcher.doc_freq(TERMS, _code(language, NAME + term))


def _is_held(
    view: WordView, language: str, word: str, groups: list[tuple[str, ...]], others: int, allowed: Keys | None
) -> bool:
    """Return whether allowed chunks have a term of each group; true for a stop word, which has no group."""
    least: float = inf
    for group in groups:
        codes = [_code(language, mark + term) for term in group for mark in ("", FORM, NAME)]
        most = max(view.searcher.doc_freq(TERMS, code) for code in codes)
        if not most:
            return False
        if most <= others:
            clauses = [_clause(view.schema, code, 1) for code in codes]
            if not len(_found(view, Query.boolean_query(clauses), 1, allowed)[0]):
                return False
        least = min(least, most)
    if len(view.holding) >= CACHED_CLAUSES:
        view.holding.clear()
    view.holding[word] = max(least, view.holding.get(word, 0))
    return True


def _clause(schema: Schema, code: str, weight: float) -> tuple[Occur, Query]:
    clause = Query.term_query(schema, TERMS, code, "freq")
    return Occur.Should, clause if weight == 1 else Query.boost_query(clause, float(weight))


def _rarity(view: WordView, holding: int) -> float:
    """Return the weight of a term in BM25, of which ``holding`` chunks, also removed ones, have it."""
    chunks = max(view.searcher.num_docs, holding)
    return log(1 + (chunks - holding + 0.5) / (holding + 0.5))


def schema() -> Schema:
    """Build the schema: keys, and terms with their frequencies."""
    fields = SchemaBuilder()
    # Signed: a negative number in an unsigned field silently ends tantivy's thread.
    fields.add_integer_field(KEY, indexed=True, fast=True)
    fields.add_text_field(TERMS, tokenizer_name="whitespace", index_option="freq")
    return fields.build()


def _found(view: WordView, query: Query, top_k: int, allowed: Keys | None) -> tuple[Keys, Scores]:
    if allowed is None:
        return _best(view.searcher, query, top_k, top_k, None)
    if not len(allowed):
        return np.empty(0, np.int64), np.empty(0, np.float32)
    fetch = int(OVERFETCH * top_k * max(1.0, view.searcher.num_docs / len(allowed)))
    if KEY_COST * len(allowed) <= fetch:
        keys = [(Occur.Should, Query.term_query(view.schema, KEY, key, "basic")) for key in allowed.tolist()]
        only = Query.const_score_query(Query.boolean_query(keys), 0.0)
        both = Query.boolean_query([(Occur.Must, query), (Occur.Must, only)])
        return _best(view.searcher, both, top_k, top_k, None)
    return _best(view.searcher, query, top_k, fetch, allowed)


def _best(searcher: Searcher, query: Query, top_k: int, fetch: int, allowed: Keys | None) -> tuple[Keys, Scores]:
    while True:
        limit = min(fetch + SLACK, searcher.num_docs + 1)
        hits = searcher.search(query, limit, count=False).hits
        keys = np.array(searcher.fast_field_values(KEY, [address for _, address in hits]), dtype=np.int64)
        scores = np.array([score for score, _ in hits], dtype=np.float32)
        next_best = scores[-1] if len(hits) == limit else -np.inf  # hits not fetched have at most this score
        if allowed is not None:
            kept = allowed[np.minimum(np.searchsorted(allowed, keys), len(allowed) - 1)] == keys
            keys, scores = keys[kept], scores[kept]
        last = scores[top_k - 1] if len(scores) >= top_k else -np.inf
        if next_best < last or next_best == -np.inf:
            keys, scores = keys[scores >= last], scores[scores >= last]
            order = np.lexsort((keys, -scores))
            return keys[order], scores[order]
        fetch *= GROWTH


def _files(folder: Path) -> list[str]:
    """List the segment files of the index, and the file that lists them."""
    segments = tuple(segment["segment_id"].replace("-", "") for segment in _segments(folder))
    return [META, *sorted(path.name for path in folder.iterdir() if path.name.startswith(segments))]


def _segments(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / META).read_text(encoding="utf-8"))["segments"]
    return found


@contextmanager
def _place_to_open(folder: Path) -> Iterator[Path]:
    """Provide a folder in which tantivy can lock a file, which it does even for reading.

    A read-only folder is replaced by a temporary one with links to its files.
    """
    if os.access(folder, os.W_OK):
        yield folder
        return
    with TemporaryDirectory(prefix="ragistry-") as name:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                Path(name, path.name).symlink_to(path)
        yield Path(name)


@contextmanager
def _damage_is_stale(folder: Path | None = None) -> Iterator[None]:
    """Translate errors: tantivy raises `ValueError` for nearly everything, and panics. ``folder``: being written."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, ValueError | RuntimeError) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:200]
        # for a full disk, tantivy only reports a failed thread
        if folder is not None and ("os error 28" in reason or shutil.disk_usage(folder).free < WRITE_MEMORY // 64):
            raise StoreError(
                f"no space left for the index {str(folder)!r}; your data is safe; free some space and try again"
            ) from error
        raise Stale(f"damaged ({reason})", broken=True) from error
