"""A forked child does not share the connections of its parent, on which it would read answers that are not its own."""

from __future__ import annotations

import os

import pytest

from tests.stores.scripts import run
from tests.tools.archive_servers import ROOF

pytest_plugins = ["tests.tools.archive_fixture"]

FORKED = """
import os, signal, sys, warnings
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig
from tests.tools.archive_servers import settings
warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
archive, chroma, tei = sys.argv[1:]
search = ArchiveSearch(ChromaRagConfig.model_validate_json(archive), settings(tei, chromadb_url=chroma))

def connected():
    [archive] = search.archives
    return search.clients.connection(archive._database).client, archive._opened.rows._client

found, before = search.search("roof tiles").documents, connected()
if (child := os.fork()) == 0:
    signal.alarm(20)
    same = search.search("roof tiles").documents == found
    print(same, [now is then for now, then in zip(connected(), before)], flush=True)
    search.close()
    os._exit(0)
print(os.waitpid(child, 0)[1], search.search("roof tiles").documents == found, len(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_connections_of_its_own(servers):
    config = f'{{"archives": [{servers.archive("Roof", ROOF).model_dump_json()}]}}'
    said = run(FORKED, config, servers.chroma, servers.tei.url).splitlines()
    assert said == ["True [False, False]", "0 True 3"]
