"""A process that forks while another of its threads is at something: the child is not held up by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stores.scripts import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

FORK_WHILE = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
begun, done = threading.Event(), threading.Event()

def pause():
    begun.set()
    done.wait()

def hold(lock):
    with lock:
        pause()

def fork_while(busy, child):
    thread = threading.Thread(target=busy)
    thread.start()
    begun.wait()
    if (pid := os.fork()) == 0:
        signal.alarm(10)
        done.set()
        print(child(), flush=True)
        os._exit(0)
    if status := os.waitpid(pid, 0)[1]:
        print("the child ended by signal", status, flush=True)
    done.set()
    thread.join()
"""


def said_by_child(script: str, *arguments: object) -> str:
    return run(FORK_WHILE + script, *arguments).strip()


ANALYSIS = """
from ragistry.utils.analysis import _analyser, analyse
fork_while(lambda: hold(_analyser("english")._lock), lambda: analyse("Two processes"))
"""


def test_a_child_analyses_text() -> None:
    assert said_by_child(ANALYSIS) == "['two', 'process']"


MINILM = """
from ragistry.embedders.minilm import MiniLMEmbedder
embedder = MiniLMEmbedder(threads=1)
fork_while(lambda: hold(embedder._lock), lambda: embedder.embed(["a text"]).shape)
"""


def test_a_child_loads_the_model_that_a_thread_was_loading() -> None:
    assert said_by_child(MINILM) == "(1, 384)"


OLLAMA = """
from ragistry.embedders.ollama import OllamaEmbedder
from ragistry.ollama.client import OllamaClient

class SlowClient(OllamaClient):
    def embed(self, text, model, **options):
        pause()
        return [0.0] * 3
    def digest(self, model):
        return "digest"
    def window(self, model, options):
        return 64

embedder, other = OllamaEmbedder(client=SlowClient()), OllamaEmbedder(client=SlowClient())
fork_while(lambda: embedder.fingerprint, lambda: embedder.fingerprint == other.fingerprint)
"""


def test_a_child_asks_for_the_fingerprint_that_a_thread_was_asking_for() -> None:
    assert said_by_child(OLLAMA) == "True"


REGISTRY = """
from ragistry.techniques.registry import TechniqueRegistry

class Slow:
    def __init__(self, config):
        pause()
    def retrieve(self, query, *, top_k=None, where=None):
        return []

registry = TechniqueRegistry.load(sys.argv[1])
fork_while(lambda: registry.get("slow"), lambda: registry.get("slow").retrieve("query"))
"""


def test_a_child_builds_the_technique_that_a_thread_was_building(tmp_path: Path) -> None:
    file = tmp_path / "techniques.yaml"
    file.write_text('techniques: {slow: {use: "__main__:Slow"}}')
    assert said_by_child(REGISTRY, file) == "[]"


SAMPLES = """
from ragistry.stores.local import LocalStore
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.target import Reachable, Target

class SlowStore(LocalStore):
    def sources(self, collection=None):
        pause()
        return super().sources(collection)

samples = Samples(SlowStore(sys.argv[1]), 8)
wanted = [Reachable(Target("mine"), None)]
fork_while(lambda: samples.of(wanted), lambda: len(samples.of(wanted)))
"""


def test_a_child_reads_the_samples_that_a_thread_was_reading(tmp_path: Path) -> None:
    assert said_by_child(SAMPLES, tmp_path / "store") == "1"


ARCHIVES = """
from ragistry.config.archive_settings import ArchiveSettings
from ragistry.tools.archive_config import ChromaRagConfig
from ragistry.tools.archive_search import ArchiveSearch
search = ArchiveSearch(ChromaRagConfig(archives=[]), ArchiveSettings())
fork_while(lambda: hold(search._lock), search.close)
"""


def test_a_child_closes_archives_that_a_thread_was_opening() -> None:
    assert said_by_child(ARCHIVES) == "None"


WORKSPACE = """
from ragistry import open_workspace
workspace = open_workspace(sys.argv[1])
fork_while(lambda: hold(workspace._lock), lambda: workspace.store.count())
"""


def test_a_child_opens_the_part_of_a_workspace_that_a_thread_was_opening(tmp_path: Path) -> None:
    assert said_by_child(WORKSPACE, tmp_path) == "0"
