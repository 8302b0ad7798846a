"""While techniques are compared they cannot see the names of sources, and what needs them still works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import EvaluationError, UnsupportedError
from ragistry.evaluation import Dataset, Text, compare, read_library
from ragistry.evaluation.report.content import origin
from ragistry.evaluation.systems.controls import controls
from ragistry.evaluation.systems.masking import HIDDEN, SALT, MaskedStore, masked_store, read_salt, real_name
from ragistry.stores.local import rows
from ragistry.text.analysis import analyse
from ragistry.types import Document
from ragistry.utils.ids import chunk_id
from ragistry.utils.where import normalise
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import refused

NAMES = ("brewing-green-tea", "baking-rye-bread", "keeping-honey-bees", "oiling-a-chain", "tuning-a-violin")
TEXTS = (
    "Leaves turn bitter in boiling water.", "Dough rises overnight.", "A colony survives the winter.",
    "Clean and oil it every few weeks.", "Its strings stand in fifths.",
)  # fmt: skip
LONG = ["\n\n".join(f"{text} Part {part}." for part in range(4)) for text in TEXTS]


class ByPath:
    """Ranks by the words that a query shares with whatever names a chunk's source."""

    def __init__(self, config: dict, *, store: Any, library: Any = None) -> None:
        self.store = store
        self.listed = "" if library is None else str(library.sources())

    def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
        words = set(analyse(query))
        assert not any(name in self.listed for name in NAMES)

        def shared(chunk: Document) -> int:
            names = " ".join([chunk.id, *(str(chunk.metadata.get(key, "")) for key in HIDDEN)])
            return len(words & set(analyse(names.replace("-", " ").replace("/", " "))))

        ranked = sorted(self.store.scan(), key=lambda chunk: (-shared(chunk), chunk.id))
        return [Document(one.content, one.metadata, -at, one.id) for at, one in enumerate(ranked)][:top_k]


class ByFolder:
    """Knows the names of all files, and looks for what a hash of one of them leads to."""

    def __init__(self, config: dict, *, store: Any) -> None:
        self.store = store

    def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
        name = query.replace(" ", "-")
        paths = [f"{folder}{name}.md" for folder in ("", "deep/", "guide/", "notes/deep/")]
        collections = {info.collection for info in self.store.sources()}
        ids = {chunk_id(collection, path, 0) for collection in collections for path in paths}
        hashes = {sha256(f"{prefix}{path}".encode()).hexdigest() for prefix in ("", " ", "source ") for path in paths}

        def is_found(chunk: Document) -> bool:
            named = [chunk.id, *(str(chunk.metadata.get(key, "")) for key in HIDDEN)]
            return bool(ids & {*named}) or any(text[1:] and text[1:] in one for text in named for one in hashes)

        read = self.store.get(sorted(ids))
        ranked = sorted(self.store.scan(), key=lambda chunk: (not is_found(chunk), chunk.id))
        return [Document(one.content, one.metadata, -at, one.id) for at, one in enumerate([*read, *ranked])][:top_k]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with hashed_workspace(tmp_path_factory.mktemp("library"), chunk_size=60, chunk_overlap=0) as opened:
        opened.library.create_collection("notes")
        for name, text in zip(NAMES, LONG, strict=True):
            opened.library.ingest_text(text, f"deep/{name}.md", "notes")
        yield opened


@pytest.mark.parametrize("of_library", [False, True])
def test_technique_that_ranks_by_paths_does_no_better_than_chance(of_library, workspace, tmp_path):
    """Every query is answered by the words of a path, and by no word of a text."""
    if of_library:
        lines = [f'{{"text": "{name.replace("-", " ")}", "sources": ["deep/{name}.md"]}}\n' for name in NAMES]
        (tmp_path / "queries.jsonl").write_text("".join(lines))
        dataset = read_library(workspace, tmp_path / "queries.jsonl")
    else:
        corpus = [Text(f"guide/{name}.md", "", text) for name, text in zip(NAMES, LONG, strict=True)]
        qrels = {name: {f"guide/{name}.md": 1} for name in NAMES}
        dataset = Dataset("paths", corpus, {name: name.replace("-", " ") for name in NAMES}, qrels)
    given = {"paths": ByPath, "folder": ByFolder, "bm25": None, "parent_document": None}
    size = "library" if of_library else 60
    result = compare(given, dataset, ["RR@10"], workspace=workspace, cache=tmp_path, chunk_size=size)
    assert result.failures == {}
    assert result.controls["filename"]["RR@10"] == 1
    assert max(result.techniques[name].measures["RR@10"].mean for name in ("paths", "folder")) < 0.8
    assert any("filename" in warning for warning in result.warnings)
    assert all(id in dataset.texts for run in result.runs.values() for ranking in run.values() for id, _ in ranking)


def test_neighbours_are_found_under_opaque_names(workspace, tmp_path):
    corpus = [Text(name, "", text) for name, text in zip(NAMES, LONG, strict=True)]
    dataset = Dataset("long", corpus, {"q": "bitter leaves"}, {"q": {NAMES[0]: 1}})
    names = ["bm25", "parent_document"]
    result = compare(names, dataset, ["RR@10"], workspace=workspace, chunk_size=60, cache=tmp_path)
    words, *wider = result.techniques.values()
    assert all(one.returned_tokens >= words.returned_tokens for one in wider)
    assert [one.measures["RR@10"].mean for one in wider] == [1]


def test_view_is_the_store_under_other_names(workspace):
    view = MaskedStore(workspace.store, "salt")
    chunks = list(view.scan())
    names = {chunk.metadata["source_file"] for chunk in chunks}
    assert {real_name(view, name) for name in names} == {f"deep/{name}.md" for name in NAMES}
    assert {info.source_file for info in view.sources()} == names
    shown = str([(chunk.metadata, chunk.id) for chunk in chunks] + view.sources())
    assert not any(name in shown for name in NAMES)
    one, *others = sorted(names)
    for where in (
        {"source_file": one},
        {"source": {"$in": [one]}},
        {"source_file": {"$nin": others}},
        {"$and": [{"source_file": one}, {"collection": "notes"}]},
    ):
        assert {chunk.metadata["source_file"] for chunk in view.scan(where)} == {one}
    assert view.count({"source_file": {"$ne": one}}) + view.count({"source_file": one}) == view.count() == len(chunks)
    assert {hit.metadata["source_file"] for hit in view.search_text("bitter", where={"source_file": one})} <= {one}
    assert view.get([chunk.id for chunk in workspace.store.scan()]) == [], "a real id leads nowhere"
    assert [chunk.id for chunk in view.get([chunks[1].id, "x", chunks[0].id])] == [chunks[1].id, chunks[0].id]
    assert len(view.vectors([chunk.id for chunk in chunks])) == len(chunks)
    assert vars(view) == {"_has_vectors": True}, "no attribute leads to the real store"
    with refused(UnsupportedError):
        view.delete(ids=[chunks[0].id])


def test_view_ranks_under_other_names(workspace):
    view = masked_store(workspace.store, "salt")
    found = view.search_text("strings winter", 9)
    ranking = view.rank("strings winter", 9)
    keys = list(ranking.scores)
    read, places = ranking.read(keys), ranking.places(keys)
    assert [(read[key].id, ranking.scores[key]) for key in keys] == [(one.id, one.score) for one in found]
    assert [places[key][:3] for key in keys] == [
        (one.id, "notes", one.metadata["source_file"]) for one in (read[key] for key in keys)
    ]
    assert not any(name in str([read, places]) for name in NAMES)
    assert vars(view) == {"_has_vectors": True}
    assert {ranking.snapshot[0], ranking.read.func.__self__, ranking.places.func.__self__} == {view}
    one = read[keys[0]].metadata["source_file"]
    only = view.rank("strings winter", 9, where=normalise({"source_file": one}))
    assert {place.source_file for place in only.places(list(only.scores)).values()} == {one}
    workspace.library.create_collection("other")
    assert workspace.library.ingest_text("A text about strings.", "new.md", "other") == 1
    assert view.rank("strings", 9).snapshot != ranking.snapshot
    assert (ranking.read(keys), ranking.places(keys)) == (None, None), "the store has changed"
    workspace.library.delete_collection("other")


@pytest.mark.parametrize("size", ["library", 60])
def test_rankings_without_texts_are_those_with_texts(size, workspace, tmp_path, monkeypatch):
    read: list[int] = []
    documents = rows.documents
    monkeypatch.setattr(rows, "documents", lambda at, keys: read.extend(keys) or documents(at, keys))
    rows_of_file = [
        {"text": f"{text[:20]} water", "sources": [f"deep/{name}.md"]} for name, text in zip(NAMES, TEXTS, strict=True)
    ]
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows_of_file))
    dataset = read_library(workspace, tmp_path / "queries.jsonl")
    techniques = {
        "naive": None, "bm25": None, "hybrid": None, "graph": None,
        "rrf": {"use": "hybrid", "bases": ["bm25", "naive"], "fusion": "rrf", "fetch": 3},
        "nested": {"use": "hybrid", "bases": ["hybrid", "bm25"], "weights": [2, 1]},
    }  # fmt: skip
    options: Any = {"workspace": workspace, "salt": "x", "timing_repeats": 0, "chunk_size": size, "progress": False}

    def asked(folder: str, only: list[str]) -> tuple[Any, int]:
        read.clear()
        result = compare(
            {name: techniques[name] for name in only}, dataset, ["nDCG@10", "R@5"],
            cache=tmp_path / "cache", runs=tmp_path / folder, **options,
        )  # fmt: skip
        assert result.failures == {}
        return result.runs, len(read)

    by_keys, _ = asked("keys", list(techniques))
    _, few = asked("few", ["bm25"])
    for module in ("index", "masking"):
        monkeypatch.setattr(f"ragistry.evaluation.systems.{module}.masked_store", MaskedStore)
    by_texts, _ = asked("texts", list(techniques))
    _, many = asked("many", ["bm25"])
    assert by_keys == by_texts
    for name in techniques:
        lines = [
            (tmp_path / folder / f"{name}.answers.jsonl").read_text().splitlines()[1:] for folder in ("keys", "texts")
        ]
        keys, texts = ([json.loads(line)["scores"] for line in of] for of in lines)
        assert keys == texts
    assert few < many, "only the results of searches are read"


def test_salt_is_drawn_once_for_a_workspace_and_can_be_repeated(workspace, tmp_path):
    corpus = [Text(name, "", text) for name, text in zip(NAMES, LONG, strict=True)]
    dataset = Dataset("long", corpus, {"q": "bitter leaves"}, {"q": {NAMES[0]: 1}})

    def salt(opened: Workspace, **options: Any) -> str:
        cache = tmp_path / opened.root.name
        result = compare(["bm25"], dataset, ["RR@10"], workspace=opened, cache=cache, progress=False, **options)
        assert origin(result)["salt"] == result.provenance["salt"]
        return result.provenance["salt"]

    (tmp_path / "other").mkdir()
    with hashed_workspace(tmp_path / "other") as other:
        first = salt(workspace)
        assert first == salt(workspace) != salt(other)
        assert salt(other, salt=first) == first
        assert salt(other) != first, "a salt that is passed is not kept"
        for wrong in ("", " ", 5):
            with refused(EvaluationError, wrong):
                salt(other, salt=wrong)


def test_salt_that_cannot_be_kept_is_an_error(tmp_path):
    (tmp_path / SALT).mkdir()
    with refused(EvaluationError, "--salt"):
        read_salt(tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / SALT).write_text("")
    assert len(read_salt(tmp_path / "cut")) == 16


def test_controls_rank_by_names_by_titles_and_at_random():
    corpus = [Text("a/GreenTea_2.md", "Rain", "x"), Text("b.md", "", "# Cold soup\n\ntext"), Text("c.md", "", "y")]
    qrels = {"tea": {"b.md": 1}, "soup": {"c.md": 1}}
    dataset = Dataset("d", corpus, {"tea": "green tea", "soup": "cold soup"}, qrels)
    found = controls(dataset, 2)
    assert found["filename"]["tea"][0][0] == "a/GreenTea_2.md"
    assert found["title_only"]["soup"][0][0] == "b.md"
    assert all(len({id for id, _ in ranking}) == 2 for run in found.values() for ranking in run.values())
    assert controls(dataset, 2) == found
