"""Find nearest neighbours with pgvector: exact among few chunks, by HNSW among many, compared in full precision.

Under a condition that few chunks meet, HNSW misses rows. So the matching chunks are counted first. If HNSW finds fewer
rows than requested, all matching chunks are compared.
"""

from __future__ import annotations

import json
import logging
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import psycopg

from ragistry.stores.local.vectors import best
from ragistry.stores.postgres.database import Connection, Database, Head, read_head
from ragistry.stores.postgres.rows import vectors_of
from ragistry.stores.postgres.where import Sql
from ragistry.stores.records import Keys, Scores

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

SPARE = 8
"""Number of rows beyond ``top_k``, because the server sums numbers in another order."""
CANDIDATES, LEAST_CANDIDATES = 2, 40
"""Rows requested from HNSW per result, and at least: it compares in half precision."""
MOST_CANDIDATES = 1_000
RANDOM = 16
"""How many times longer the index takes to read a row than a full scan."""
HALF_DIMENSIONS = 4_000
"""Maximum dimension of vectors that pgvector can index in half precision."""
BUILD_MEMORY = "256MB"
"""Memory to build the index, if the server's ``maintenance_work_mem`` is less."""
MORE_MEMORY = f"""
SELECT set_config('maintenance_work_mem', '{BUILD_MEMORY}', false)
WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('{BUILD_MEMORY}')
"""


def nearest(
    connection: Connection, head: Head, query: Vectors, top_k: int, which: Sql, exact_below: int
) -> tuple[Keys, Scores]:
    """Return keys and similarities of the best ``top_k`` chunks and all ties with the last, unordered.

    Up to ``exact_below`` matching chunks are all compared, and more if the index would read more rows (``wanted *
    chunks / count``). With ``exact_below`` 0, the index is always used.
    """
    wanted = min(max(CANDIDATES * top_k, LEAST_CANDIDATES), MOST_CANDIDATES)
    few = exact_below and max(exact_below, isqrt(RANDOM * wanted * head.chunks))
    if head.has_index and (count := _count(connection, head, which, few)) > few:
        wanted = min(wanted, count)
        keys, scores = _compared(connection, head, query, _by_index(connection, head, query, which, wanted))
        # Rows not found may tie with the last one.
        if len(keys) >= max(wanted, top_k) and scores.min() < np.partition(scores, -top_k)[-top_k]:
            return best(keys, scores, top_k)
    keys, scores = _compared(connection, head, query, _by_scan(connection, head, query, which, top_k + SPARE))
    return best(keys, scores, top_k)


def _count(connection: Connection, head: Head, which: Sql, limit: int) -> int:
    """Count the matching chunks; above the limit, any larger number may be returned."""
    if which.text == "true":
        return head.chunks
    if which.on_names:
        statement = f"SELECT coalesce(sum(chunks), 0) FROM sources WHERE {which.text}"
    else:
        statement = f"SELECT count(*) FROM (SELECT FROM chunks WHERE {which.text} LIMIT {limit + 1}) AS chosen"
    [count] = connection.execute(statement, which.values).fetchone() or (0,)
    return int(count)


def _by_index(connection: Connection, head: Head, query: Vectors, which: Sql, wanted: int) -> list[int]:
    half = f"halfvec({head.dimension})"
    rows = connection.execute(
        f"SELECT key FROM {_chosen(head, which)} ORDER BY (vector::{half}) <#> %s::{half} LIMIT {wanted}",
        (*which.values, _text(query)),
        prepare=False,  # the plan of a prepared statement suits the average collection, not this one
    )
    return [key for (key,) in rows]


def _by_scan(connection: Connection, head: Head, query: Vectors, which: Sql, wanted: int) -> list[int]:
    rows = connection.execute(
        f"SELECT key FROM {_chosen(head, which)} ORDER BY vector <#> %s::vector FETCH FIRST {wanted} ROWS WITH TIES",
        (*which.values, _text(query)),
        prepare=False,
    )
    return [key for (key,) in rows]


def _chosen(head: Head, which: Sql) -> str:
    return head.vectors if which.text == "true" else f"chunks JOIN {head.vectors} USING (key) WHERE {which.text}"


def _compared(connection: Connection, head: Head, query: Vectors, keys: list[int]) -> tuple[Keys, Scores]:
    """Compute the similarities of these chunks, with equal results on every engine."""
    found, vectors = vectors_of(connection, head.vectors, keys)
    if not len(found):
        return found, np.empty(0, np.float32)
    return found, np.vecdot(vectors, query)


def _text(vector: Vectors) -> str:
    return json.dumps(vector.tolist())


def build_index(database: Database, exact_below: int) -> bool:
    """Build the HNSW index if it is missing and there are enough vectors; writers can work meanwhile.

    Does nothing while another process builds it, and stops if an earlier transaction does not end.

    Returns:
        Whether the index was built.
    """
    head = database.read(lambda connection: read_head(connection, database.place))
    if head.has_index or head.chunks <= exact_below or not 0 < head.dimension <= HALF_DIMENSIONS:
        return False
    name = f"nearest_{head.generation}"

    def warn(notice: psycopg.errors.Diagnostic) -> None:
        if "maintenance_work_mem" in (notice.message_primary or ""):
            log.warning("%s: %s; the build is slow: raise it on the server", database.place, notice.message_primary)

    with database.outside() as connection:
        mine = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s), 1)", (f"{database.schema} {name}",))
        if mine.fetchone() != (True,):
            return False
        try:
            connection.execute(MORE_MEMORY)
            connection.add_notice_handler(warn)
            connection.execute(f"DROP INDEX IF EXISTS {name}")  # left by an interrupted build
            connection.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON {head.vectors} "
                f"USING hnsw ((vector::halfvec({head.dimension})) halfvec_ip_ops) WITH (ef_construction = 128)"
            )
            # Without statistics, the planner assumes that every collection is small, and scans a large one.
            connection.execute(f"ANALYZE chunks, sources, {head.vectors}")
        except psycopg.errors.LockNotAvailable as error:
            log.warning("%s: vectors are not indexed yet; the next ingest tries again: %s", database.place, error)
            connection.execute(f"DROP INDEX IF EXISTS {name}")
            return False
        finally:
            connection.remove_notice_handler(warn)
            if not connection.broken:
                connection.execute("RESET maintenance_work_mem")
                connection.execute("SELECT pg_advisory_unlock_all()")
    return True
