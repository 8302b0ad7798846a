"""Every chunk has a vector of its text, or is counted as waiting, after any sequence of writes, crashes and repairs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.collections import CollectionsFile
from ragistry.errors import ModelError, RagistryError
from ragistry.library.embedding import reembed
from ragistry.library.ingest import run
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.service import DocumentService
from ragistry.stores.local import LocalStore
from ragistry.stores.local import store as local_store
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.testing.hashed import HashingEmbedder, hashed_embedding
from tests.conftest import full_run
from tests.stores.local_stores import AS_FORMAT_13

POISON = "poison"
"""A word that the models refuse to embed."""
MODELS = {"small": 16, "large": 24}
"""Their dimensions, by which a vector of the other model is noticed."""
WORDS = ("tea", "rain", "snow", "moss", POISON)
FILES = st.dictionaries(
    st.sampled_from(["one.txt", "two.txt", "three.txt"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
    min_size=1,
)
DAMAGE = ("DELETE FROM vectors", "UPDATE vectors SET crc = crc + 1", "UPDATE vectors SET vector = x'00'")
STOPS = st.one_of(st.none(), st.none(), st.integers(0, 5))
"""The call of the model or the transaction at which the process ends; None: it does not end."""


class Crash(BaseException):
    """The process ends here."""


class VectorMachine(RuleBasedStateMachine):
    """A library on a local store, whose chunks get vectors, lose them, or wait for them."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="ragistry-vectors-"))
        (self.root / "techniques.yaml").write_text("techniques:\n  naive: {use: naive}\n", encoding="utf-8")
        self.opened: list[LocalStore] = []
        self.model, self.left, self.is_damaged = "small", -1, False
        self.patch, advance = pytest.MonkeyPatch(), local_store.advance
        self.patch.setattr(local_store, "advance", lambda *arguments: (advance(*arguments), self.step()))
        self.patch.setattr(run, "AT_ONCE", 2)  # so that words of a few chunks are written first
        CollectionsFile(self.root).add("notes", "Notes")
        self.open()

    def open(self) -> None:
        """Open the library as a new process does; what was open before is left as it is."""
        self.store, embedder = LocalStore(self.root / "store"), self.embedder(self.model)
        self.opened.append(self.store)
        registry = TechniqueRegistry.load(self.root / "techniques.yaml", {"store": self.store, "embedder": embedder})
        self.library = DocumentService(CollectionsFile(self.root), self.store, embedder, registry, ReadOptions(40, 0))

    def embedder(self, model: str) -> HashingEmbedder:
        def check(texts: Sequence[str]) -> None:
            self.step()
            if any(POISON in text for text in texts):
                raise ModelError("cannot embed this")

        return HashingEmbedder(MODELS[model], model=model, check=check)

    def step(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise Crash

    def do(self, call: Callable[[], Any], stop: int | None = None) -> bool:
        """Make a change, and return whether it was made to its end; a damaged store may refuse it."""
        self.left, is_done = -1 if stop is None else stop, False
        with suppress(Crash, *((RagistryError,) if self.is_damaged else ())):
            call()
            is_done = True
        self.left = -1
        if not is_done:
            self.open()
        return is_done

    def teardown(self) -> None:
        self.patch.undo()
        for store in self.opened:
            store.close()
        shutil.rmtree(self.root)

    @initialize()
    def begin(self) -> None:
        self.ingest({"one.txt": ["tea", "rain"], "two.txt": ["snow", POISON]}, prune=False, stop=None)

    @rule(files=FILES, prune=st.booleans(), stop=STOPS)
    def ingest(self, files: dict[str, list[str]], prune: bool, stop: int | None) -> None:
        folder = self.root / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, words in files.items():
            (folder / name).write_text("\n\n".join(" ".join([word] * 5) for word in words), encoding="utf-8")
        if self.do(lambda: self.library.ingest_folder(folder, "notes", prune=prune), stop) and not self.is_damaged:
            assert all(POISON in document.content for _, document in self.store.waiting()), "the others have vectors"

    @rule(model=st.sampled_from(sorted(MODELS)), stop=STOPS)
    def embed_again(self, model: str, stop: int | None) -> None:
        if self.do(lambda: reembed(self.store, self.embedder(model)), stop):
            self.model = model
            self.store.close()
            self.open()
        elif (recorded := self.store.embedder()) is not None:  # it may have ended after the switch
            self.model = recorded.model
            self.open()

    @precondition(lambda self: not self.is_damaged)
    @rule(chance=st.randoms(use_true_random=False), change=st.sampled_from(DAMAGE), is_index_lost=st.booleans())
    def damage(self, chance: Any, change: str, is_index_lost: bool) -> None:
        self.store.close()
        with closing(sqlite3.connect(self.root / "store" / "store.db")) as connection, connection:
            keys = [key for (key,) in connection.execute("SELECT key FROM vectors ORDER BY key")]
            if keys:
                connection.execute(f"{change} WHERE key = ?", (chance.choice(keys),))
                self.is_damaged = True
        if is_index_lost:
            shutil.rmtree(self.root / "store" / "vectors", ignore_errors=True)
        self.open()
        assert bool(self.store.verify()) == self.is_damaged

    @rule()
    def repair(self) -> None:
        self.store.repair()
        self.is_damaged = False

    @precondition(lambda self: not self.is_damaged)
    @rule(format=st.sampled_from([10, 11, 12]), is_vector_lost=st.booleans())
    def migrate(self, format: int, is_vector_lost: bool) -> None:
        """Make an earlier format of the store: a chunk without a vector did not wait for it then."""
        self.store.close()
        with closing(sqlite3.connect(self.root / "store" / "store.db")) as connection, connection:
            if is_vector_lost:
                connection.execute("DELETE FROM vectors WHERE key = (SELECT min(key) FROM vectors)")
            connection.execute("DROP TABLE waiting" if format == 10 else "DELETE FROM waiting")
            connection.executescript(f"{AS_FORMAT_13}; PRAGMA user_version = {format}")
        self.open()

    @invariant()
    def every_chunk_has_a_vector_of_its_text_or_is_counted(self) -> None:
        if self.is_damaged:
            return
        documents = list(self.store.scan())
        waiting = {document.id for _, document in self.store.waiting()}
        assert sum(info.waiting for info in self.library.sources()) == len(waiting)
        assert waiting <= {one.id for one in documents}
        for one, vector in zip(documents, self.store.vectors([one.id for one in documents]), strict=True):
            own = hashed_embedding(searched_text(one.content, one.metadata), MODELS[self.model])
            np.testing.assert_allclose(vector, np.zeros_like(own) if one.id in waiting else own, atol=1e-6)
        found = self.library.search("tea", None, 100, technique="naive")
        shown = {one.content for one in found.documents}
        assert shown == {one.content for one in documents if one.id not in waiting}
        assert bool(found.degraded) == bool(waiting)


def test_every_chunk_has_a_vector_of_its_text_or_is_counted() -> None:
    run_state_machine_as_test(
        VectorMachine,
        settings=settings(
            max_examples=25 * (10 if full_run() else 1), stateful_step_count=15, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
        ),
    )  # fmt: skip
