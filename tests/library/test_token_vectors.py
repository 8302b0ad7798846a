"""Token vectors that are kept with a library: computed at ingest, read by `maxsim`, erased with their chunk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import StoreError
from ragistry.models.maxsim import MaxSimReranker
from ragistry.models.token_file import TokenFile, text_key
from ragistry.trace import collect, stage
from ragistry.types import RetrievalResult
from tests.messages import refused

TEXTS = {"weather": "a cold front brings rain", "tea": "green tea is steeped briefly", "snow": "snow falls in winter"}
QUERY = "when will it rain?"


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Workspace]:
    def opened(*, keep: bool = True) -> Workspace:
        workspace = open_workspace(tmp_path, keep_token_vectors=keep)
        if not workspace.library.list_collections():
            workspace.library.create_collection("notes")
            workspace.library.create_collection("other")
        return workspace

    return opened


def file_of(workspace: Workspace) -> TokenFile:
    return TokenFile(workspace.folder / "tokens.db")


def kept(workspace: Workspace) -> set[str]:
    """The sources whose text is in the file."""
    with closing(file_of(workspace)) as file:
        found = file.get([text_key(text) for text in TEXTS.values()])
    return {name for name, text in TEXTS.items() if text_key(text) in found}


def ingest(workspace: Workspace) -> None:
    for name, text in TEXTS.items():
        workspace.library.ingest_text(text, name, "notes")


def searched(workspace: Workspace) -> tuple[RetrievalResult, int]:
    """The result of `rerank`, and the calls of the reranker's model."""
    result = workspace.search(QUERY, technique="rerank")
    return result, max(one.model_calls for one in result.trace if one.name == "rerank")


def test_a_search_reads_the_vectors_that_the_ingest_computed(opened: Callable[..., Workspace]) -> None:
    with opened() as workspace:
        ingest(workspace)
        assert kept(workspace) == set(TEXTS)
    with opened() as workspace:
        found, calls = searched(workspace)
        assert calls == 1  # the query
    with opened(keep=False) as workspace:
        computed, calls = searched(workspace)
        assert calls == 2
    assert [one.id for one in found.documents] == [one.id for one in computed.documents]
    assert [one.score for one in found.documents] == pytest.approx([one.score for one in computed.documents], abs=1e-4)


def test_what_is_deleted_or_replaced_is_erased(opened: Callable[..., Workspace]) -> None:
    with opened() as workspace:
        ingest(workspace)
        with closing(file_of(workspace)) as file:
            [tea] = file.get([text_key(TEXTS["tea"])]).values()
        path = file.path
        numbers = tea.values.tobytes()
        assert numbers[:100] in path.read_bytes()
        workspace.library.delete_source("tea", "notes")
        assert numbers[:100] not in path.read_bytes()
        workspace.library.ingest_text("hail in spring", "snow", "notes")
        assert kept(workspace) == {"weather"}
        workspace.library.move_source("weather", "notes", "other")
        assert kept(workspace) == {"weather"}
        workspace.library.delete_collection("other")
        assert kept(workspace) == set()


def test_the_next_write_completes_what_was_interrupted(opened: Callable[..., Workspace]) -> None:
    with opened() as workspace:
        ingest(workspace)
        workspace.store.replace_source("notes", "tea", [])  # as if the process had ended before the file followed
        with closing(file_of(workspace)) as file:
            file.remove(file.versions())
        workspace.library.ingest_text(TEXTS["weather"], "weather", "notes")
        assert kept(workspace) == {"weather", "snow"}


def test_a_write_without_the_setting_deletes_the_file(opened: Callable[..., Workspace]) -> None:
    with opened() as workspace:
        ingest(workspace)
    with opened(keep=False) as workspace:
        assert file_of(workspace).path.exists()
        workspace.library.delete_source("tea", "notes")
        assert not file_of(workspace).path.exists()


def test_a_damaged_file_is_computed_again(opened: Callable[..., Workspace]) -> None:
    with opened() as workspace:
        ingest(workspace)
        path = file_of(workspace).path
    with closing(TokenFile(path)) as file:
        [row] = file.get([text_key(TEXTS["snow"])]).values()
    content, numbers = path.read_bytes(), row.values.tobytes()[:64]
    path.write_bytes(content.replace(numbers, bytes(64)))
    with closing(MaxSimReranker(token_file=TokenFile(path))) as reranker, collect() as trace, stage("rerank"):
        scores = reranker.rerank(QUERY, list(TEXTS.values()))
    assert trace.stages()[0].model_calls == 2
    assert scores == pytest.approx(MaxSimReranker().rerank(QUERY, list(TEXTS.values())))
    assert not path.exists()
    path.write_bytes(b"not a database, but long enough to be looked at" * 20)
    with refused(StoreError):
        TokenFile(path).versions()
    with opened() as workspace:
        workspace.library.ingest_text("more", "more", "notes")
        assert kept(workspace) == set(TEXTS)
