"""The best of a lexical index for a query: exact under a condition, and in a fixed order where scores are equal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from tantivy import FieldType, Occur, Query, Schema, Searcher

from ragistry.stores.lexical_writing import BLOCK, BLOCK_SIZE, KEY, TERMS

Keys = NDArray[np.int64]
Scores = NDArray[np.float32]

SLACK = 8
GROWTH = 4
OVERFETCH = 1.5
KEY_COST, BLOCK_COST = 3, 4
"""A key, or a block of keys, that tantivy looks up costs as much as this many hits that are fetched and thrown away."""


def any_of(schema: Schema, terms: Mapping[str, int]) -> Query:
    """What has at least one of the terms; a term that was asked for n times counts n times."""
    clauses = []
    for term, count in terms.items():
        clause = Query.term_query(schema, TERMS, term, "freq")
        clauses.append((Occur.Should, clause if count == 1 else Query.boost_query(clause, float(count))))
    return Query.boolean_query(clauses)


def best(
    searcher: Searcher, schema: Schema, terms: Mapping[str, int], top_k: int, allowed: Keys | None = None
) -> tuple[Keys, Scores]:
    """The ``top_k`` best keys for any of the terms, and whatever scores the same as the last, by ``(-score, key)``.

    ``allowed``: the keys that may be returned, ascending. Where these are many, more than ``top_k`` hits are fetched
    and the others thrown away, again and more of them until the best are certain; where few, tantivy looks them up.
    """
    fetch = top_k
    query = whole = any_of(schema, terms)
    if allowed is not None:
        if not len(allowed):
            return _empty()
        query, share = _narrowed(searcher, schema, terms, whole, allowed, top_k)
        fetch = int(OVERFETCH * top_k / share)
    fetch += SLACK
    while True:
        if allowed is not None and KEY_COST * len(allowed) <= fetch:
            query, allowed, fetch = _filtered(whole, _any(schema, KEY, allowed)), None, top_k + SLACK
        limit = min(fetch, searcher.num_docs + 1)
        keys, scores = fetched(searcher, query, limit)
        last = scores[-1] if len(scores) == limit else -np.inf
        if allowed is not None:
            kept = _are_among(keys, allowed)
            keys, scores = keys[kept], scores[kept]
        lowest = scores[top_k - 1] if len(scores) >= top_k else -np.inf
        if last < lowest or last == -np.inf:  # no better or equal hit was left unfetched
            keys, scores = keys[scores >= lowest], scores[scores >= lowest]
            order = np.lexsort((keys, -scores))
            return keys[order], scores[order]
        fetch *= GROWTH


def fetched(searcher: Searcher, query: Query, limit: int) -> tuple[Keys, Scores]:
    """The keys and scores of at most ``limit`` hits, best first, as tantivy orders equal scores."""
    hits = searcher.search(query, limit, count=False).hits
    keys = searcher.fast_field_values(KEY, [address for _, address in hits])
    return np.array(keys, dtype=np.int64), np.array([score for score, _ in hits], dtype=np.float32)


def all_keys(searcher: Searcher) -> Keys:
    """Every key, ascending."""
    return np.sort(fetched(searcher, Query.all_query(), searcher.num_docs + 1)[0])


def _empty() -> tuple[Keys, Scores]:
    return np.empty(0, np.int64), np.empty(0, np.float32)


def _narrowed(
    searcher: Searcher, schema: Schema, terms: Mapping[str, int], query: Query, allowed: Keys, top_k: int
) -> tuple[Query, float]:
    """The query for these terms within blocks in which the allowed keys lie, and the share of these which they are."""
    first, last = int(allowed[0]) // BLOCK_SIZE, int(allowed[-1]) // BLOCK_SIZE
    within = min((last - first + 1) * BLOCK_SIZE, searcher.num_docs)
    limit = OVERFETCH * top_k * within / len(allowed) / BLOCK_COST
    if len(allowed) / BLOCK_SIZE < limit:  # else there are too many blocks, which need not be told apart
        blocks = allowed // BLOCK_SIZE
        blocks = blocks[np.diff(blocks, prepend=blocks[0] - 1) > 0]
        matches = sum([searcher.doc_freq(TERMS, term) for term in terms])  # no more than that can be thrown away
        if len(blocks) < min(limit, matches / BLOCK_COST, last - first + 1):
            some = _any(schema, BLOCK, blocks)
            return _filtered(query, some), min(1.0, len(allowed) / (len(blocks) * BLOCK_SIZE))
    if within < searcher.num_docs / 2:
        blocks_between = Query.range_query(schema, BLOCK, FieldType.Integer, first, last, use_inverted_index=True)
        query = _filtered(query, blocks_between)
    return query, min(1.0, len(allowed) / max(within, 1))


def _any(schema: Schema, field: str, numbers: Keys) -> Query:
    # Up to some 700 keys faster than `Query.term_set_query`, which walks the whole dictionary of keys.
    return Query.boolean_query(
        [(Occur.Should, Query.term_query(schema, field, number, "basic")) for number in numbers.tolist()]
    )


def _filtered(query: Query, condition: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, Query.const_score_query(condition, 0.0))])


def _are_among(keys: Keys, allowed: Keys) -> NDArray[np.bool_]:
    at = np.minimum(np.searchsorted(allowed, keys), len(allowed) - 1)
    return np.equal(allowed[at], keys)
