"""Compare a library with a dictionary under random operations and crashes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from itertools import chain, combinations
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ragistry.config.collections import CollectionsFile
from ragistry.errors import ModelError, RagistryError
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.service import DocumentService
from ragistry.protocols import LibraryStore
from ragistry.stores.local import store as local_store
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document
from tests.conftest import full_run
from tests.stores.local_stores import store_at

Text = tuple[str, ...]
"""A source: a paragraph of each of these words, and so a chunk of each."""
Model = dict[str, dict[str, Text]]

WORDS = ("tea", "rain", "snow")
POISON = "poison"
"""A word that the model refuses to embed."""
FILES = ("one.txt", "two.txt")
NAMES, SOURCES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["note", *FILES])
TEXTS = st.lists(st.sampled_from([*WORDS, *WORDS, POISON]), min_size=1, max_size=3, unique=True).map(tuple)
STOPS = st.one_of(st.none(), st.none(), st.integers(0, 5))
"""The step before which a process ends; None: it does not end."""
TECHNIQUES = "techniques:\n  naive: {use: naive}\n  bm25: {use: bm25}\n"


class Crash(BaseException):
    """The process ends here."""


def content(text: Text) -> str:
    return "\n\n".join(paragraph(word) for word in text)


def paragraph(word: str) -> str:
    return " ".join([word] * 5)


def without_new_poison(source: str, text: Text, known: Mapping[str, Text]) -> Text:
    """Remove poison from a new source: the local store keeps its words, as `test_words_first` checks."""
    return text if source in known else tuple(word for word in text if word != POISON) or WORDS[:1]


def refuse_poison(texts: Sequence[str]) -> None:
    if any(POISON in text for text in texts):
        raise ModelError("cannot embed this")


class LibraryMachine(RuleBasedStateMachine):
    """A library on a store, and a model: collections, their sources, and the text of each."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="ragistry-machine-"))
        self.place = f"{address}#{uuid4().hex}" if address else str(self.root / "store")
        (self.root / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
        self.model: Model = {}
        self.orphans: Model = {}
        self.opened: list[LibraryStore] = []
        self.steps, self.left = 0, -1
        self.patch, advance = pytest.MonkeyPatch(), local_store.advance
        # a step within the transactions of the local store
        self.patch.setattr(local_store, "advance", lambda *arguments: (advance(*arguments), self.step()))
        self.open()

    def open(self) -> None:
        """Open the library as a new process does; what was open before is left as it is."""
        store, embedder = store_at(self.place), HashingEmbedder(16, check=refuse_poison)
        registry = TechniqueRegistry.load(self.root / "techniques.yaml", {"store": store, "embedder": embedder})
        self.opened.append(store)
        self.library = DocumentService(CollectionsFile(self.root), store, embedder, registry, ReadOptions(40, 0))
        for part, names in (
            (store, ("replace_source", "move_source", "move_collection", "delete")),
            (self.library.collections, ("begin_rename", "end_rename", "remove")),
        ):
            for method in names:
                setattr(part, method, self.stepped(getattr(part, method)))

    def teardown(self) -> None:
        self.patch.undo()
        for store in self.opened:
            store.close()
        shutil.rmtree(self.root)

    def stepped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call with a step before and after it."""

        @wraps(call)
        def stepped(*arguments: Any, **options: Any) -> Any:
            self.step()
            result = call(*arguments, **options)
            self.step()
            return result

        return stepped

    def step(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise Crash

    def do(self, call: Callable[[], Any], stop: int | None, *states: Model | None) -> Any:
        """Make a change: the model becomes the last state; None: it is refused, and nothing changes.

        After a crash it is in any of the states, or as before.
        """
        if states[-1] is None:
            with pytest.raises(RagistryError):
                call()
            return None
        if stop is None:
            self.model = states[-1]
            return call()
        self.left = stop
        with suppress(Crash):
            call()
        self.left = -1
        self.open()
        held = self.held()
        [self.model] = [state for state in unique([self.model, *states]) if ordered(state) == held]
        return None

    def held(self) -> list[tuple[str, dict[str, Text]]]:
        """What the store holds, as `ordered` gives it."""
        names = self.library.scope.current_names().current
        found: Model = {row["name"]: {} for row in self.library.list_collections()}
        for document in sorted(self.library.store.scan(), key=lambda one: one.metadata["chunk_index"]):
            name, source = names.get(document.metadata["collection"]), document.metadata["source_file"]
            if name is not None:
                found[name][source] = (*found[name].get(source, ()), document.content.split()[0])
        return ordered(found)

    @initialize()
    def begin(self) -> None:
        for name in ("a", "b"):
            self.create(name)

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        state = None if name in self.model else self.model | {name: self.orphans.get(name, {})}
        self.do(lambda: self.library.create_collection(name, "Described"), None, state)
        self.orphans.pop(name, None)

    @rule(name=NAMES, new=NAMES, stop=STOPS)
    def rename(self, name: str, new: str, stop: int | None) -> None:
        state = None
        if name in self.model and new not in self.model and new not in self.orphans:
            state = {new if key == name else key: sources for key, sources in self.model.items()}
        self.do(lambda: self.library.rename_collection(name, new), stop, state)

    @rule(name=NAMES, stop=STOPS)
    def drop(self, name: str, stop: int | None) -> None:
        states: list[Model | None] = [None]
        if name in self.model:
            states = [self.model | {name: {}}, {key: value for key, value in self.model.items() if key != name}]
        elif self.orphans.get(name):
            states, stop = [self.model], None
        self.do(lambda: self.library.delete_collection(name), stop, *states)
        self.orphans.pop(name, None)

    @rule(name=NAMES)
    def take_out_by_hand(self, name: str) -> None:
        entries = self.library.collections.entries()
        if name in self.model and all(entry.formerly is None for entry in entries):
            CollectionsFile(self.root).remove(name, before=lambda: None)
            if sources := self.model.pop(name):
                self.orphans[name] = sources

    @rule(name=NAMES, text=TEXTS, stop=STOPS)
    def ingest_text(self, name: str, text: Text, stop: int | None) -> None:
        known = self.model.get(name)
        text = without_new_poison("note", text, known or {})
        state = None if known is None or POISON in text else self.model | {name: known | {"note": text}}
        written = self.do(lambda: self.library.ingest_text(content(text), "note", name), stop, state)
        if written is not None:
            assert written == (0 if known and known.get("note") == text else len(text))

    @rule(name=NAMES, files=st.dictionaries(st.sampled_from(FILES), TEXTS, min_size=1), prune=st.booleans(), stop=STOPS)
    def ingest_folder(self, name: str, files: dict[str, Text], prune: bool, stop: int | None) -> None:
        folder = self.root / "in"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        files = {file: without_new_poison(file, text, self.model.get(name, {})) for file, text in files.items()}
        for file, text in files.items():
            (folder / file).write_text(content(text), encoding="utf-8")
        call = lambda: self.library.ingest_folder(folder, name, prune=prune)  # noqa: E731
        if (known := self.model.get(name)) is None:
            self.do(call, None, None)
            return
        gone = [file for file in FILES if file in known and file not in files]
        new = {file: text for file, text in files.items() if POISON not in text and known.get(file) != text}
        changes: dict[str, Text | None] = new | dict.fromkeys(gone if prune else ())
        states = [self.model | {name: changed(known, part)} for part in subsets(changes)]
        report = self.do(call, stop, *states)
        if report is not None:
            assert report.added == sorted(file for file in new if file not in known)
            assert report.updated == sorted(file for file in new if file in known)
            assert report.skipped == sorted(file for file, text in files.items() if known.get(file) == text)
            assert sorted(one.source for one in report.failed) == sorted(f for f in files if POISON in files[f])
            assert (report.vanished, report.deleted) == (gone, gone if prune else [])
            assert report.chunks == sum(map(len, new.values()))

    @rule(name=NAMES, source=SOURCES, stop=STOPS)
    def delete(self, name: str, source: str, stop: int | None) -> None:
        known = self.model.get(name, {})
        state = self.model | {name: changed(known, {source: None})} if source in known else None
        self.do(lambda: self.library.delete_source(source, name), stop, state)

    @rule(name=NAMES, to=NAMES, source=SOURCES, overwrite=st.booleans(), stop=STOPS)
    def move(self, name: str, to: str, source: str, overwrite: bool, stop: int | None) -> None:
        known, there = self.model.get(name, {}), self.model.get(to)
        states: list[Model | None] = [None]
        if source in known and there is not None and name != to and (overwrite or source not in there):
            both = self.model | {to: there | {source: known[source]}}
            moved = both | {name: changed(known, {source: None})}
            states = [both, moved] if source in there else [moved]
        moving = lambda: self.library.move_source(source, name, to, overwrite=overwrite)  # noqa: E731
        assert self.do(moving, stop, *states) in (None, len(known.get(source, ())))

    @rule()
    def reopen(self) -> None:
        self.library.store.close()
        self.open()

    @invariant()
    def the_library_holds_what_the_model_says(self) -> None:
        self.steps += 1
        library, model = self.library, self.model
        chunks = {(name, source, word) for name in model for source, text in model[name].items() for word in text}
        assert [(row["name"], row["source_count"], row["chunk_count"]) for row in library.list_collections()] == [
            (name, len(sources), sum(map(len, sources.values()))) for name, sources in model.items()
        ]
        assert [(info.collection, info.source_file, info.chunks) for info in library.sources()] == sorted(
            (name, source, len(text)) for name, sources in model.items() for source, text in sources.items()
        )
        assert {(one.collection, one.source_file) for one in library.orphans()} == {
            (name, source) for name, sources in self.orphans.items() for source in sources
        }
        word, name = WORDS[self.steps % len(WORDS)], [None, *model][self.steps % (len(model) + 1)]
        chunks = {chunk for chunk in chunks if name in (None, chunk[0])}
        assert library.count(name) == len(chunks)
        for technique in ("naive", "bm25") if "text" in library.store.abilities else ("naive",):
            found = library.search(paragraph(word), name, 100, technique=technique).documents
            seen = {place for one in found for place in places(one)}
            best = {chunk for chunk in chunks if chunk[2] == word}
            assert seen == (chunks if technique == "naive" else best)
            has_word = [
                one.content == paragraph(word) for one in found
            ]  # fewer than in `best`, where copies are folded
            assert has_word == sorted(has_word, reverse=True)


def places(found: Document) -> Iterable[tuple[str, str, str]]:
    """Collection, source and word of a result, and of those that are folded under it."""
    word = found.content.split()[0]
    yield found.metadata["collection"], found.metadata["source_file"], word
    for place in found.metadata.get("copy_places", ()):
        name, _, source = place.partition(": ")
        yield name, source.partition(", ")[0], word


def changed(sources: dict[str, Text], changes: dict[str, Text | None]) -> dict[str, Text]:
    """The sources with their new texts; None: deleted."""
    return {source: text for source, text in (sources | changes).items() if text is not None}


def subsets(changes: dict[str, Text | None]) -> list[dict[str, Text | None]]:
    """Every part of the changes, from none of them to all."""
    parts = chain.from_iterable(combinations(changes.items(), size) for size in range(len(changes) + 1))
    return [dict(part) for part in parts]


def ordered(model: Model) -> list[tuple[str, dict[str, Text]]]:
    """The model with the order of its collections."""
    return list(model.items())


def unique(models: Iterable[Model | None]) -> list[Model]:
    """The models without equals of an earlier one."""
    found: list[Model] = []
    for model in models:
        if model is not None and ordered(model) not in map(ordered, found):
            found.append(model)
    return found


@pytest.fixture(params=[("local", 30), ("postgres", 8), ("chroma", 6)], ids=lambda param: param[0])
def place(request: pytest.FixtureRequest) -> tuple[str, int]:
    """The address of the server, empty for the local store, and how many times to play on it."""
    kind, examples = request.param
    return "" if kind == "local" else request.getfixturevalue(kind).url, examples


def test_library_holds_what_the_model_says(place: tuple[str, int]) -> None:
    address, examples = place
    run_state_machine_as_test(
        lambda: LibraryMachine(address),
        settings=settings(
            max_examples=examples * (10 if full_run() else 1), stateful_step_count=15, deadline=None, derandomize=True,
            database=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
        ),
    )  # fmt: skip
