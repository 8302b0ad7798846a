"""Engines without a cluster: what is refused, what every engine relies on, and stores that are busy."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
import stamina

from ragistry import Workspace
from ragistry.engines.ray import RayEngine
from ragistry.errors import ChromaDBConnectionError, ConfigError, EngineError, WorkerLostError
from ragistry.library.service import DocumentService
from ragistry.models.registry import choose_embedder
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.ports import refused_port
from tests.cli.conftest import ragistry  # noqa: F401, a fixture
from tests.conftest import Corpus
from tests.messages import check_message, refused

NOTES = {f"note-{number}.md": f"# Note {number}\n\nA text of its own, number {number}." for number in range(3)}


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused(ConfigError, "'ray'"):
        RayEngine()


def test_cluster_that_does_not_answer_is_refused_at_once() -> None:
    pytest.importorskip("ray", reason="ray has no wheel for this Python")
    with refused(EngineError):
        RayEngine(f"127.0.0.1:{refused_port()}")


def test_address_without_the_engine_is_refused(ragistry: Callable, corpus: Corpus) -> None:  # noqa: F811
    corpus(NOTES)
    done = ragistry("ingest", "documents", "--ray-address", "auto")
    assert done.code != 0
    check_message(done.err, "--ray-address", "--engine ray")


def test_embedder_is_loaded_once_however_often_it_is_sent() -> None:
    sent = pickle.dumps(choose_embedder("minilm"))
    assert pickle.loads(sent) is pickle.loads(sent)


@pytest.mark.parametrize("attempts", [5, 2])
def test_busy_store_is_asked_again_a_few_times(
    library: DocumentService, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    refusals: list[str] = []
    write = library.store.replace_source

    def busy(collection: str, source_file: str, chunks: object) -> None:
        if refusals.count(source_file) < 2:
            refusals.append(source_file)
            raise ChromaDBConnectionError("answered 429: 'too many requests'; try again later")
        write(collection, source_file, chunks)  # type: ignore[arg-type]

    monkeypatch.setattr(library.store, "replace_source", busy)
    library.embedder = HashingEmbedder()
    given_up = nullcontext() if attempts == 5 else pytest.raises(ChromaDBConnectionError)
    with stamina.set_testing(True, attempts=attempts), given_up:
        assert len(library.ingest_folder(corpus(NOTES), "notes").added) == 3
    assert (len(refusals), library.store.count()) == ((6, 3) if attempts == 5 else (2, 0))


class Elsewhere:
    """An engine whose workers find another file under each path."""

    def map(self, work, groups):
        for group in groups:
            yield work([replace(item, seen=(0, 0, True)) for item in group])


def test_file_that_a_worker_does_not_see_is_read_by_the_driver(library: DocumentService, corpus: Corpus) -> None:
    library.embedder = HashingEmbedder()
    report = library.ingest_folder(corpus(NOTES), "notes", engine=Elsewhere())
    assert (report.added, report.failed) == (sorted(NOTES), [])
    assert sorted(one.content for one in library.store.scan()) == sorted(NOTES.values())


class Fragile:
    """An engine whose workers die of items that name a word."""

    def map(self, work, groups):
        lost = WorkerLostError("the worker process died 2 times")
        for group in groups:
            yield [lost if "poison" in repr(item) else work([item])[0] for item in group]


def test_file_that_kills_its_worker_fails_alone(library: DocumentService, corpus: Corpus) -> None:
    library.embedder = HashingEmbedder()
    report = library.ingest_folder(corpus(NOTES | {"poison.md": "Read me."}), "notes", engine=Fragile())
    assert report.added == sorted(NOTES)
    [failure] = report.failed
    check_message(failure.error, "poison.md", "died 2 times")


def test_engine_that_cannot_be_used_is_refused(workspace: Workspace, corpus: Corpus) -> None:
    with refused(ConfigError, "'ray'"):
        workspace.library.ingest_folder(corpus(NOTES), "notes", engine="ray")  # type: ignore[arg-type]
