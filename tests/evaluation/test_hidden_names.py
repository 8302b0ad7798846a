"""Over the index of a test set techniques see no names of sources, and no technique of a comparison writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import EvaluationError, UnsupportedError
from ragistry.evaluation import Dataset, Text, compare, read_library
from ragistry.evaluation.comparison import controls
from ragistry.evaluation.summary import summarise
from ragistry.evaluation.systems.index import STORE, ReadOnly
from ragistry.protocols import LibraryStore, as_ranking_store
from ragistry.text.analysis import analyse
from ragistry.types import Document
from ragistry.utils.ids import chunk_id
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import check_message, refused

NAMED = ("source_file", "source", "source_path", "file_path")
"""Metadata with the name of a source."""
NAMES = ("brewing-green-tea", "baking-rye-bread", "keeping-honey-bees", "oiling-a-chain", "tuning-a-violin")
TEXTS = (
    "Leaves turn bitter in boiling water.", "Dough rises overnight.", "A colony survives the winter.",
    "Clean and oil it every few weeks.", "Its strings stand in fifths.",
)  # fmt: skip
LONG = ["\n\n".join(f"{text} Part {part}." for part in range(4)) for text in TEXTS]


class ByPath:
    """Ranks by the words that a query shares with whatever names a chunk's source."""

    def __init__(self, config: dict, *, store: Any) -> None:
        self.store = store

    def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
        words = set(analyse(query))

        def shared(chunk: Document) -> int:
            names = " ".join([chunk.id, *(str(chunk.metadata.get(key, "")) for key in NAMED)])
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
            named = [chunk.id, *(str(chunk.metadata.get(key, "")) for key in NAMED)]
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


def test_technique_that_ranks_by_paths_does_no_better_than_chance(workspace, tmp_path):
    """Every query is answered by the words of a path, and by no word of a text."""
    corpus = [Text(f"guide/{name}.md", "", text) for name, text in zip(NAMES, LONG, strict=True)]
    qrels = {name: {f"guide/{name}.md": 1} for name in NAMES}
    dataset = Dataset("paths", corpus, {name: name.replace("-", " ") for name in NAMES}, qrels)
    given = {"paths": ByPath, "folder": ByFolder, "bm25": None, "parent_document": None}
    result = compare(given, dataset, ["RR@10"], workspace=workspace, cache=tmp_path, chunk_size=60)
    assert result.failures == {}
    assert result.controls["filename"]["RR@10"] == 1
    assert max(result.techniques[name].measures["RR@10"].mean for name in ("paths", "folder")) < 0.8
    assert any("filename" in warning for warning in result.warnings)
    assert all(id in dataset.texts for run in result.runs.values() for ranking in run.values() for id, _ in ranking)


def of_library(workspace: Workspace, folder: Path, metadata: dict[str, Any] | None = None) -> Dataset:
    """A query for each source, whose words are those of its name."""
    rows = [{"text": name.replace("-", " "), "sources": [f"deep/{name}.md"]} for name in NAMES]
    lines = [json.dumps(row | ({"metadata": metadata} if metadata else {})) for row in rows]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    return read_library(workspace, folder / "queries.jsonl")


def test_only_peoples_queries_are_searched_with_real_names(workspace, tmp_path):
    options: dict[str, Any] = {"workspace": workspace, "cache": tmp_path, "progress": False}
    real, made = of_library(workspace, tmp_path), of_library(workspace, tmp_path, {"synthetic": True, "kind": "model"})
    as_in_a_search = compare({"paths": ByPath}, real, ["RR@10"], chunk_size="library", **options)
    assert as_in_a_search.techniques["paths"].measures["RR@10"].mean == 1
    with refused(EvaluationError, len(NAMES)):
        compare({"paths": ByPath}, made, ["RR@10"], chunk_size="library", **options)
    hidden = compare({"paths": ByPath}, made, ["RR@10"], **options)
    assert hidden.techniques["paths"].measures["RR@10"].mean < 0.8


class Writing:
    """Deletes what it has just searched."""

    def __init__(self, config: dict, *, store: Any, library: Any = None) -> None:
        self.store = store
        self.library = library

    def retrieve(self, query: str, *, top_k: int | None = None, where: object = None) -> list[Document]:
        if self.library is not None:
            assert [entry.name for entry in self.library.collections.entries()] == ["notes"]
            for write in (self.library.delete_collection, self.library.collections.add):
                with pytest.raises(UnsupportedError):
                    write("notes")
        self.store.delete(ids=[one.id for one in self.store.scan()])
        return []


@pytest.mark.parametrize("size", ["library", 60])
def test_technique_that_writes_fails_in_one_line(size, workspace, tmp_path):
    before = workspace.store.count()
    dataset = of_library(workspace, tmp_path)
    result = compare(
        {"writes": Writing, "bm25": None}, dataset, ["RR@10"], workspace=workspace, cache=tmp_path, chunk_size=size
    )
    check_message(result.failures["writes"].error, "delete")
    assert list(result.techniques) == ["bm25"]
    assert workspace.store.count() == before > 0


def test_read_only_store_is_a_store_that_ranks_if_the_other_does(workspace):
    view: Any = ReadOnly(workspace.store, STORE)
    assert isinstance(view, LibraryStore)
    assert as_ranking_store(view) is view
    assert list(view.scan()) == list(workspace.store.scan())
    for name in ("replace_source", "clear_collection", "close"):
        with refused(UnsupportedError, name):
            getattr(view, name)()


def test_rankings_of_two_workspaces_are_equal(workspace, tmp_path):
    corpus = [Text(f"{name} {copy}", "", text) for name, text in zip(NAMES, LONG, strict=True) for copy in range(3)]
    dataset = Dataset("copies", corpus, {"q": "bitter leaves"}, {"q": {f"{NAMES[0]} 0": 1}})
    (tmp_path / "other").mkdir()
    with hashed_workspace(tmp_path / "other") as other:
        runs = [
            compare(["naive", "bm25", "hybrid"], dataset, workspace=one, cache=tmp_path / name, chunk_size=60).runs
            for name, one in (("first", workspace), ("second", other))
        ]
        with refused(EvaluationError, "other"):
            compare("bm25", of_library(workspace, tmp_path), workspace=other, chunk_size="library")
    assert runs[0] == runs[1]


def test_neighbours_are_found_under_opaque_names(workspace, tmp_path):
    corpus = [Text(name, "", text) for name, text in zip(NAMES, LONG, strict=True)]
    dataset = Dataset("long", corpus, {"q": "bitter leaves"}, {"q": {NAMES[0]: 1}})
    names = ["bm25", "parent_document"]
    result = compare(names, dataset, ["RR@10"], workspace=workspace, chunk_size=60, cache=tmp_path)
    words, *wider = result.techniques.values()
    assert all(one.returned_tokens >= words.returned_tokens for one in wider)
    assert [one.measures["RR@10"].mean for one in wider] == [1]


@pytest.mark.parametrize("size", ["library", 60])
def test_rankings_without_texts_are_those_with_texts(size, workspace, tmp_path, monkeypatch):
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
    options: Any = {"workspace": workspace, "timing_repeats": 0, "chunk_size": size, "progress": False}

    asked_for: list[Any] = []
    monkeypatch.setattr(
        "ragistry.evaluation.comparison.summarise",
        lambda asking, *args: asked_for.append(asking.rankings) or summarise(asking, *args),
    )

    for store in (as_ranking_store, lambda _: None):
        monkeypatch.setattr("ragistry.evaluation.systems.index.as_ranking_store", store)
        result = compare(techniques, dataset, ["nDCG@10", "R@5"], cache=tmp_path / "cache", **options)
        assert result.failures == {}
    by_keys, by_texts = asked_for
    for name in techniques:
        for query, found in by_keys[name].items():
            other = by_texts[name][query]
            assert (found.documents, found.scores) == (other.documents, other.scores)


def test_controls_rank_by_names_by_titles_and_at_random():
    corpus = [Text("a/GreenTea_2.md", "Rain", "x"), Text("b.md", "", "# Cold soup\n\ntext"), Text("c.md", "", "y")]
    qrels = {"tea": {"b.md": 1}, "soup": {"c.md": 1}}
    dataset = Dataset("d", corpus, {"tea": "green tea", "soup": "cold soup"}, qrels)
    found = controls(dataset, 2)
    assert found["filename"]["tea"][0][0] == "a/GreenTea_2.md"
    assert found["title_only"]["soup"][0][0] == "b.md"
    assert all(len({id for id, _ in ranking}) == 2 for run in found.values() for ranking in run.values())
    assert controls(dataset, 2) == found
