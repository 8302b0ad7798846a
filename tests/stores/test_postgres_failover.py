"""The primary is killed while another process ingests; its synchronous standby takes over, and has all of it."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

from ragistry.stores.postgres import PostgresStore
from ragistry.testing.postgres_server import postgres_server, standby_server
from tests.stores.local_stores import check_searches, held, put, same, truth_of, version_of
from tests.stores.scripts import start

SOURCES, ACKNOWLEDGED = 400, 25

INGEST = """
import sys
from contextlib import closing
from ragistry.errors import StoreConnectionError
from ragistry.stores.postgres import PostgresStore
from tests.stores.local_stores import *
with closing(PostgresStore(sys.argv[1])) as store:
    for n in range(int(sys.argv[2])):
        try:
            put(store, version_of(f"f{n}.md", 1))
        except StoreConnectionError as error:
            print("lost", error, flush=True)
            break
        print("stored", n, flush=True)
"""


def test_nothing_that_was_acknowledged_is_missing_after_a_failover() -> None:
    sources = [version_of(f"f{n}.md", 1) for n in range(SOURCES)]
    with postgres_server() as primary, standby_server(primary, synchronous=True) as standby:
        with start(INGEST, primary.url, SOURCES) as process:
            assert process.stdout is not None
            told = list(islice(process.stdout, ACKNOWLEDGED))
            primary.kill()
            told += list(process.stdout)
        acknowledged = [int(line.split()[1]) for line in told if line.startswith("stored")]
        assert told[-1].startswith("lost"), told[-1]
        assert ACKNOWLEDGED <= len(acknowledged) < SOURCES
        standby.promote()
        both = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        with closing(PostgresStore(f"{both}?target_session_attrs=read-write")) as store:
            found = held(store)
            assert {f"f{n}.md" for n in acknowledged} <= {name for _, name in found}
            assert same(found, {name: chunks for name, chunks in truth_of(*sources).items() if name in found})
            check_searches(store, found, every=7)
            put(store, *sources)
            assert same(held(store), truth_of(*sources))
            check_searches(store, truth_of(*sources), every=97)
