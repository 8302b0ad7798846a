"""The contract's batches are embedded side by side, and its functions may be called from tasks and threads at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError
from ragistry.library.contract import (
    DocumentChunk,
    add_chunks,
    create_collection,
    get_collection,
    list_collections,
    search_chunks,
    update_collection_metadata,
)
from ragistry.library.contract_embedding import AT_ONCE
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbedderFingerprint


class Hashing:
    """Vectors without a model. Each call waits until as many others are on their way as ``meets`` says.

    A text that is ``poison`` cannot be embedded; what comes when it was tried three times takes its time.
    """

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16)

    def __init__(self, meets: int = 1, poison: str = "\0") -> None:
        self.meeting = threading.Barrier(meets, timeout=30)
        self.poison = poison
        self.tried = 0
        self.after = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
        if role == "document":
            self.meeting.wait()
        if self.poison in texts:
            self.tried += 1
            raise EmbeddingGenerationError(f"cannot embed {self.poison!r}")
        if self.poison != "\0":
            while self.tried < 3:
                time.sleep(0.005)
            self.after += 1
            time.sleep(0.02)
        return np.array([hashed_embedding(text, 16) for text in texts], dtype=np.float32)


def chunks(name: str, number: int) -> list[DocumentChunk]:
    return [
        DocumentChunk(f"{name}-{index}", f"the {name} of part {index}", f"{name}.md", "docs", "", index, 6)
        for index in range(number)
    ]


def test_batches_are_embedded_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    collection = create_collection("docs", {}, path=tmp_path, embedder=Hashing(meets=AT_ONCE))
    assert add_chunks(collection, chunks("tea", 5 * AT_ONCE), batch_size=5) == 5 * AT_ONCE
    collection = get_collection("docs", path=tmp_path, embedder=Hashing())
    for index in (0, 7, 19):
        best = search_chunks(collection, f"the tea of part {index}", 1).matches[0]
        assert (best.chunk_id, best.score) == (f"tea-{index}", pytest.approx(1.0, abs=1e-5))


def test_one_batch_that_fails_stops_all_and_nothing_is_written(tmp_path: Path) -> None:
    embedder = Hashing(poison="the tea of part 3")
    collection = create_collection("docs", {}, path=tmp_path, embedder=embedder)
    with pytest.raises(EmbeddingGenerationError, match="cannot embed 'the tea of part 3'"):
        add_chunks(collection, chunks("tea", 400), batch_size=1)
    assert collection.count() == 0
    assert (embedder.tried, embedder.after < 399) == (3, True), "what had not begun was not embedded"
    assert add_chunks(collection, chunks("tea", 8), batch_size=4, on_error="skip") == 7


def test_tasks_add_and_search_at_once(tmp_path: Path) -> None:
    collection = create_collection("docs", {}, path=tmp_path, embedder=Hashing())
    names = ("tea", "milk", "rain", "snow")

    async def one(name: str) -> str:
        await asyncio.to_thread(add_chunks, collection, chunks(name, 30), 10)
        found = await asyncio.to_thread(search_chunks, collection, f"the {name} of part 7", 1)
        return found.matches[0].chunk_id

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*map(one, names))

    assert asyncio.run(all_of_them()) == [f"{name}-7" for name in names]
    assert collection.count() == 120


def test_threads_of_the_other_operations(tmp_path: Path) -> None:
    collection = create_collection("docs", {"commit_hash": "a"}, path=tmp_path, embedder=Hashing())
    failed: list[Exception] = []

    def work(number: int) -> None:
        try:
            create_collection(f"other-{number}", {}, path=tmp_path, embedder=Hashing())
            update_collection_metadata(collection, {f"key-{number}": number})
            assert len(list_collections(path=tmp_path)) >= 2
        except Exception as error:  # noqa: BLE001, told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert {f"key-{number}" for number in range(8)} < set(collection.metadata)


def test_one_batch_is_embedded_by_the_thread_that_asks_for_it(tmp_path: Path) -> None:
    class Noting(Hashing):
        threads: set[int] = set()  # noqa: RUF012

        def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
            self.threads.add(threading.get_ident())
            return super().embed(texts, role=role)

    embedder = Noting()
    collection = create_collection("docs", {}, path=tmp_path, embedder=embedder)
    assert add_chunks(collection, chunks("tea", 5), batch_size=5) == 5
    assert embedder.threads == {threading.get_ident()}
