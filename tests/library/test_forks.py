"""A process that forks while another of its threads has a lock of the library: the child is not held up by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stores.scripts import run

FORKED = """
import os, sys, threading
from pathlib import Path
from ragistry.library.archive_clients import Clients
from ragistry.library.contract_collection import Collection
from ragistry.library.contract_entries import Entry, new_folder, put_entry
from ragistry.library.repository_search import RepositoryTechnique
from tests.stores.local_stores import *
root = Path(sys.argv[1])
folder = new_folder(root, "docs")
root.mkdir()
store = LocalStore(folder)
put(store, version_of("a.md", 1))
store.close()
put_entry(root, Entry("docs", folder.name, {}))
collection = Collection(root, "docs")
technique = RepositoryTechnique(collection, lambda store: store)
clients = Clients(1.0)
assert collection.count() == 3
taken, done = threading.Event(), threading.Event()

def take() -> None:
    with collection._opened._guard, technique._lock, clients._lock:
        taken.set()
        done.wait()

thread = threading.Thread(target=take)
thread.start()
taken.wait()
child = os.fork()
if child == 0:
    deadline = threading.Timer(10, os._exit, [9])
    deadline.daemon = True
    deadline.start()
    clients.close()
    print(collection.count(), technique._technique(store) is store, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
done.set()
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_is_not_held_up_by_a_lock_that_a_thread_of_its_parent_had(tmp_path: Path) -> None:
    output = run(FORKED, tmp_path / "root").splitlines()
    assert [line for line in output if "fork" not in line] == ["3 True", "0"]
