"""Nearest neighbours by pgvector: exact among few chunks, by HNSW among many, and compared anew in full precision.

HNSW under a condition that few chunks meet finds fewer rows than there are. So the chunks that meet it are counted
first, and fewer rows than asked for count as a fault: then everything that meets the condition is compared.
"""

from __future__ import annotations

import json
import logging
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import psycopg
from numpy.typing import NDArray

from ragistry.stores.local.vectors import best
from ragistry.stores.postgres.database import Connection, Database, Head, read_head
from ragistry.stores.postgres.rows import Keys, vectors_of
from ragistry.stores.postgres.where import Sql

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

SPARE = 8
"""Rows beyond ``top_k``, because the server adds numbers up in another order."""
CANDIDATES, LEAST_CANDIDATES = 2, 40
"""Rows of HNSW for each that is wanted, and the least: it compares in half precision."""
MOST_CANDIDATES = 1_000
RANDOM = 16
"""How many times longer the index takes to reach a row than a comparison of all takes to read the next one."""
HALF_DIMENSIONS = 4_000
"""Numbers in a vector up to which pgvector can index half precision."""
BUILD_MEMORY = "256MB"
"""For the build of the index, where the server's ``maintenance_work_mem`` is less."""
MORE_MEMORY = f"""
SELECT set_config('maintenance_work_mem', '{BUILD_MEMORY}', false)
WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('{BUILD_MEMORY}')
"""

Scores = NDArray[np.float32]


def nearest(
    connection: Connection, head: Head, query: Vectors, top_k: int, which: Sql, exact_below: int
) -> tuple[Keys, Scores]:
    """Keys and similarities of the best chunks, unordered: ``top_k``, and all that tie with the last of them.

    Up to ``exact_below`` chunks that meet the condition are all compared; more if that reads less than the index does,
    which reads ``wanted * chunks / count`` rows. 0: none are.
    """
    wanted = min(max(CANDIDATES * top_k, LEAST_CANDIDATES), MOST_CANDIDATES)
    few = exact_below and max(exact_below, isqrt(RANDOM * wanted * head.chunks))
    if head.has_index and (count := _count(connection, head, which, few)) > few:
        wanted = min(wanted, count)
        keys, scores = _compared(connection, head, query, _by_index(connection, head, query, which, wanted))
        # Equal to the last one may be some that were not found.
        if len(keys) >= max(wanted, top_k) and scores.min() < np.partition(scores, -top_k)[-top_k]:
            return best(keys, scores, top_k)
    keys, scores = _compared(connection, head, query, _by_scan(connection, head, query, which, top_k + SPARE))
    return best(keys, scores, top_k)


def _count(connection: Connection, head: Head, which: Sql, limit: int) -> int:
    """How many chunks meet the condition, or some number above the limit."""
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
    """The similarities of these chunks, the same numbers on every engine."""
    found, vectors = vectors_of(connection, head.vectors, keys)
    if not len(found):
        return found, np.empty(0, np.float32)
    return found, np.vecdot(vectors, query)


def _text(vector: Vectors) -> str:
    return json.dumps(vector.tolist())


def build_index(database: Database, exact_below: int) -> bool:
    """Index the vectors by HNSW where there are many and no index yet; writers go on meanwhile. Whether it was built.

    Does nothing while another process builds it, and gives up if a transaction that began before does not end.
    """
    head = database.read(lambda connection: read_head(connection, database.place))
    if head.has_index or head.chunks <= exact_below or not 0 < head.dimension <= HALF_DIMENSIONS:
        return False
    name = f"nearest_{head.generation}"

    def told(notice: psycopg.errors.Diagnostic) -> None:
        if "maintenance_work_mem" in (notice.message_primary or ""):
            log.warning("%s: %s; the build slows down: raise it on the server", database.place, notice.message_primary)

    with database.outside() as connection:
        mine = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s), 1)", (f"{database.schema} {name}",))
        if mine.fetchone() != (True,):
            return False
        try:
            connection.execute(MORE_MEMORY)
            connection.add_notice_handler(told)
            connection.execute(f"DROP INDEX IF EXISTS {name}")  # what an interrupted build left
            connection.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON {head.vectors} "
                f"USING hnsw ((vector::halfvec({head.dimension})) halfvec_ip_ops) WITH (ef_construction = 128)"
            )
            # Without figures the server takes every collection for small, and compares all of a large one.
            connection.execute(f"ANALYZE chunks, sources, {head.vectors}")
        except psycopg.errors.LockNotAvailable as error:
            log.warning("%s: vectors are not indexed yet; the next ingest tries again: %s", database.place, error)
            connection.execute(f"DROP INDEX IF EXISTS {name}")
            return False
        finally:
            connection.remove_notice_handler(told)
            if not connection.broken:
                connection.execute("RESET maintenance_work_mem")
                connection.execute("SELECT pg_advisory_unlock_all()")
    return True
