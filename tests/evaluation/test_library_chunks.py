"""Test sets made from a library are searched in the chunks of the library, without the words of their queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragistry.chunking.breadcrumb import searched_text
from ragistry.chunking.joined import joined_text
from ragistry.evaluation import Dataset, compare, read_beir, write_beir
from ragistry.evaluation.data.checks import contains_words
from ragistry.evaluation.data.library import library_sources
from ragistry.evaluation.data.testsets import known_items, make_testset
from ragistry.evaluation.systems.build import library_chunks
from ragistry.types import Document
from ragistry.workspace import Workspace
from tests.evaluation.small_sets import hashed_workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[Workspace]:
    """Real documentation, and files without headings."""
    plain = tmp_path_factory.mktemp("plain")
    (plain / "notes.txt").write_text("Sencha turns sour in boiling water.\n\n" * 60)
    (plain / "table.csv").write_text("tea,minutes\n" + "sencha,2\n" * 300)
    with hashed_workspace(tmp_path_factory.mktemp("library")) as opened:
        for name, folder in {"hugo": data / "docs-hugo" / "content-management", "plain": plain}.items():
            opened.library.create_collection(name)
            opened.library.ingest_folder(folder, name)
        yield opened


@pytest.fixture(scope="module")
def made(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    sources, folder = library_sources(workspace), tmp_path_factory.mktemp("testset")
    candidates = known_items(sources, per_document=3)
    write_beir(make_testset("mine", sources, candidates, limit=40, per_document=3).dataset, folder)
    return read_beir(folder)


def test_chunks_are_those_of_the_library_without_the_words_of_the_queries(workspace, made):
    found = library_chunks(made, workspace.store)
    assert found.keys() == {document.id for document in made.corpus}
    known = {searched_text(chunk.content, chunk.metadata) for chunk in workspace.store.scan()}
    asked: dict[str, list[str]] = {name: [] for name in found}
    for query, text in made.judged.items():
        asked[next(iter(made.qrels[query]))].append(text)
    assert {bool(queries) for queries in asked.values()} == {True, False}
    for name, chunks in found.items():
        searched = [searched_text(*chunk) for chunk in chunks]
        assert asked[name] or known.issuperset(searched), "a document without queries is as in the library"
        joined = joined_text([Document(chunk.text, chunk.metadata, 0.0, "") for chunk in chunks])
        assert joined.split() == made.texts[name].split()
        assert [chunk.metadata["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
        for chunk, whole in zip(chunks, searched, strict=True):
            told = [whole, *map(str, chunk.metadata.values())]
            assert not any(contains_words(query, text) for query in asked[name] for text in told)
            assert not {"description", "tags", "source_path", "places"} & chunk.metadata.keys()


def test_comparison_embeds_only_the_chunks_that_differ(workspace, made, tmp_path):
    compared = compare(["naive", "bm25"], made, workspace=workspace, cache=tmp_path)
    [index] = compared.indexes.values()
    chunks = [chunk for chunks in library_chunks(made, workspace.store).values() for chunk in chunks]
    known = {searched_text(chunk.content, chunk.metadata) for chunk in workspace.store.scan()}
    assert (index.chunks, index.as_in_library) == (len(chunks), len(made.corpus))
    assert index.from_library == len({text for chunk in chunks if (text := searched_text(*chunk)) in known}) > 0
    assert set(compared.runs["bm25"]) == set(made.judged)
    cut = compare("bm25", made, workspace=workspace, cache=tmp_path, chunk_size="1000/150")
    assert [one.as_in_library for one in cut.indexes.values()] == [0], "a given size cuts the documents"


@pytest.mark.parametrize("change", ["changed", "removed", "joined otherwise"])
def test_document_that_differs_from_the_library_is_cut_anew(workspace, made, tmp_path, change):
    with hashed_workspace(tmp_path) as other:
        other.library.create_collection("plain")
        text = next(one.text for one in made.corpus if one.id == "plain/notes.txt")
        if change != "removed":
            other.library.ingest_text(text + "!" * (change == "changed"), "notes.txt", "plain")
        found = library_chunks(made, other.store)
        assert list(found) == (["plain/notes.txt"] if change == "joined otherwise" else [])
        [index] = compare("bm25", made, workspace=other, cache=tmp_path / "cache").indexes.values()
        assert (index.documents, index.as_in_library) == (len(made.corpus), len(found))


def test_names_of_places_do_not_give_a_query_away(workspace, made):
    document = next(one for one in made.corpus if one.id == "plain/notes.txt")
    grades, how = {"q": {document.id: 1}}, {"q": {"kind": "description"}}
    query = Dataset("m", [document], {"q": "Steeping sencha"}, grades, synthetic=how)
    with pytest.MonkeyPatch.context() as patch:
        scan = workspace.store.scan
        named = {"chapter": "Steeping sencha well", "sheet": "Teas", "heading_context": "Steeping > Sencha"}
        patch.setattr(
            workspace.store, "scan", lambda: (replace(one, metadata={**one.metadata, **named}) for one in scan())
        )
        [chunks] = library_chunks(query, workspace.store).values()
    assert {(chunk.metadata.get("chapter"), chunk.metadata.get("sheet")) for chunk in chunks} == {(None, "Teas")}
    assert not any("Sencha" in str(chunk.metadata.get("heading_context")) for chunk in chunks)


def test_set_of_another_origin_has_no_chunks_of_the_library(workspace, made):
    written = Dataset("own", made.corpus, made.queries, made.qrels)
    assert library_chunks(written, workspace.store) == {}
